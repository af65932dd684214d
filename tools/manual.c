/* manual.c: lockstep_manual page|bash|zsh|fish FILE EXPERIMENT...: writes the manual page or a shell's
 * completion to FILE; the build calls it. */
#include "manual.h"

#include <stdio.h>
#include <string.h>

first_word manual_first(const cli_command *c)
{
    const char *word = c->usage + strspn(c->usage, "[");

    if (strncmp(word, "EXPERIMENT", 10) == 0) return FIRST_EXPERIMENT;
    if (strncmp(word, "options", 7) == 0 || strncmp(word, "NAME", 4) == 0) return FIRST_NONE;
    if (word[0] >= 'A' && word[0] <= 'Z') return FIRST_PATH;
    return strchr(word, '|') != NULL && word[0] >= 'a' && word[0] <= 'z' ? FIRST_ACTION : FIRST_NONE;
}

void manual_actions(const cli_command *c, char *buf, size_t size)
{
    const char *word = c->usage + strspn(c->usage, "[");

    snprintf(buf, size, "%.*s", (int)strcspn(word, " ]"), word);
    for (char *at = buf; *at != '\0'; at++)
        if (*at == '|') *at = ' ';
}

bool manual_takes_settings(const cli_command *c)
{
    const first_word first = manual_first(c);

    return (first == FIRST_EXPERIMENT || first == FIRST_PATH) && strstr(c->usage, "key=value") != NULL;
}

/* Models share keys such as model.size; each is told once. */
enum { KEYS_MAX = 512 };
typedef struct walk {
    const char *seen[KEYS_MAX];
    int n;
    manual_visit visit;
    void *arg;
} walk;

static void visit_once(void *arg, ls_setting_group group, const ls_trial *model, bool from_model,
                       const ls_setting *s)
{
    walk *w = arg;

    (void)group;
    (void)model;
    (void)from_model;
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->seen[i], s->key) == 0) return;
    if (w->n < KEYS_MAX) w->seen[w->n++] = s->key;
    w->visit(w->arg, s);
}

bool manual_settings(manual_visit visit, void *arg)
{
    walk w = {.visit = visit, .arg = arg};
    ls_err err = {0};

    if (ls_settings_each(visit_once, &w, &err) == LS_OK) return true;
    fprintf(stderr, "lockstep_manual: %s\n", err.text);
    return false;
}

const char *manual_values(const ls_setting *s)
{
    return s->kind == LS_SETTING_BOOL ? "true false" : s->choices != NULL ? s->choices : "";
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*write)(const manual *m);
    } kinds[] = {{"page", manual_page}, {"bash", manual_bash}, {"zsh", manual_zsh}, {"fish", manual_fish}};
    const manual m = {(const char *const *)argv + 3, argc - 3};

    for (size_t i = 0; argc > 2 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(argv[1], kinds[i].name) != 0) continue;
        if (freopen(argv[2], "w", stdout) != NULL && kinds[i].write(&m) && fflush(stdout) == 0) return 0;
        perror(argv[2]);
        return 1;
    }
    fprintf(stderr, "usage: lockstep_manual page|bash|zsh|fish FILE EXPERIMENT...\n");
    return 2;
}
