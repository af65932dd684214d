/* settings.c: config.yaml of a run as a list of keys and values, and in which of them runs differ. */
#include "runs/settings.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/whole.h"

enum { FILE_MOST = 1 << 20, GROUP_MOST = 64, KEYS_MOST = 2000, PATH_MOST = 4200 };

/* -- one run ----------------------------------------------------------------------------------------------
 */

/* The value of a line, in place: a text loses its quotes, and the signs that keep YAML and references from
 * seeing more in it. */
static char *plain_value(char *at)
{
    char *to = at, *from = at + 1;

    if (*at != '"') return at;
    for (; *from != '\0' && *from != '"'; from++) {
        if (*from == '\\' && from[1] != '\0')
            from++;
        else if (strncmp(from, "$${", 3) == 0)
            from++;
        *to++ = *from;
    }
    *to = '\0';
    return at;
}

/* Splits "key: value" in place; NULL: it is no such line. */
static char *split(char *line)
{
    char *colon = strchr(line, ':');

    if (colon == NULL || colon == line || strcspn(line, " \t\"'#{[") < (size_t)(colon - line)) return NULL;
    *colon = '\0';
    return colon + 1 + strspn(colon + 1, " ");
}

/* One line; `keys` is where the next composed key goes.  Returns where the one after it goes. */
static char *add_line(ls_run_settings *s, char *line, char group[GROUP_MOST], char *keys)
{
    const size_t indent = strspn(line, " ");
    char *key = line + indent, *value = split(key);

    if (value == NULL || (indent != 0 && (indent != 2 || group[0] == '\0'))) return keys;
    if (indent == 0) group[0] = '\0';
    if (*value == '\0') {
        if (indent == 0 && strlen(key) < GROUP_MOST) snprintf(group, GROUP_MOST, "%s", key);
        return keys;
    }
    s->items[s->n++] = (ls_run_setting){keys, plain_value(value)};
    return keys +
           snprintf(keys, strlen(key) + GROUP_MOST + 2, "%s%s%s", group, group[0] != '\0' ? "." : "", key) +
           1;
}

ls_status ls_run_settings_parse(ls_run_settings *s, const char *text, size_t n, ls_err *err)
{
    char group[GROUP_MOST] = "", *line, *keys, *next;
    size_t lines = 1;

    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    if (lines > KEYS_MOST)
        return ls_fail(err, LS_DATA, "more than %d lines; is this the work of `lockstep train`?", KEYS_MOST);
    /* The text, and the keys once more, each with its group. */
    s->items = ls_alloc(LS_MEM_CLI, lines * sizeof *s->items);
    s->memory = ls_alloc(LS_MEM_CLI, 2 * (n + 1) + lines * (GROUP_MOST + 2));
    if (s->items == NULL || s->memory == NULL) return ls_fail(err, LS_NOMEM, "no memory for settings");
    memcpy(s->memory, text, n);
    s->memory[n] = '\0';
    keys = s->memory + n + 1;
    for (line = s->memory; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        keys = add_line(s, line, group, keys);
    }
    return LS_OK;
}

ls_status ls_run_settings_read(ls_run_settings *s, const char *run, ls_err *err)
{
    char path[PATH_MOST], *text = NULL;
    ls_status st = LS_OK;
    size_t n = 0;

    if (snprintf(path, sizeof path, "%s/config.yaml", run) >= (int)sizeof path)
        return ls_fail(err, LS_INVALID, "%.200s...: the name is too long", run);
    if (access(path, F_OK) != 0 && errno == ENOENT) return LS_OK;
    LS_TRY(ls_whole_file(&text, &n, path, FILE_MOST, err));
    st = ls_run_settings_parse(s, text, n, err);
    if (st != LS_OK) st = ls_fail_in(err, st, "%s", path);
out:
    ls_free(text);
    return st;
}

void ls_run_settings_release(ls_run_settings *s)
{
    ls_free(s->items);
    ls_free(s->memory);
    *s = (ls_run_settings){0};
}

/* What runs had before there was a setting for it: beside newer ones they would else seem to differ. */
static const ls_run_setting earlier[] = {{"device", "cpu"}};

const char *ls_run_setting_value(const ls_run_settings *s, const char *key, int hint)
{
    if (hint >= 0 && hint < s->n && strcmp(s->items[hint].key, key) == 0) return s->items[hint].value;
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->items[i].key, key) == 0) return s->items[i].value;
    for (size_t i = 0; s->n > 0 && i < sizeof earlier / sizeof earlier[0]; i++)
        if (strcmp(earlier[i].key, key) == 0) return earlier[i].value;
    return NULL;
}

/* -- many runs --------------------------------------------------------------------------------------------
 */

static bool is_known(const ls_run_keys *k, const char *key, int hint)
{
    if (hint < k->n && strcmp(k->keys[hint], key) == 0) return true;
    for (int i = 0; i < k->n; i++)
        if (strcmp(k->keys[i], key) == 0) return true;
    return false;
}

static bool same_in_all(const ls_run_settings *runs, int n_runs, const char *key, int hint)
{
    const char *first = ls_run_setting_value(&runs[0], key, hint);

    for (int r = 1; r < n_runs; r++) {
        const char *value = ls_run_setting_value(&runs[r], key, hint);
        if (first == NULL || value == NULL ? first != value : strcmp(first, value) != 0) return false;
    }
    return true;
}

ls_status ls_run_keys_of(ls_run_keys *k, const ls_run_settings *runs, int n_runs, ls_err *err)
{
    *k = (ls_run_keys){0};
    k->keys = ls_alloc(LS_MEM_CLI, KEYS_MOST * sizeof *k->keys);
    k->differs = ls_alloc(LS_MEM_CLI, KEYS_MOST * sizeof *k->differs);
    if (k->keys == NULL || k->differs == NULL) return ls_fail(err, LS_NOMEM, "no memory for settings");
    for (int r = 0; r < n_runs; r++)
        for (int i = 0; i < runs[r].n && k->n < KEYS_MOST; i++)
            if (!is_known(k, runs[r].items[i].key, i)) k->keys[k->n++] = runs[r].items[i].key;
    for (int i = 0; i < k->n; i++) {
        k->differs[i] = !same_in_all(runs, n_runs, k->keys[i], i);
        k->n_differing += k->differs[i];
    }
    return LS_OK;
}

void ls_run_keys_release(ls_run_keys *k)
{
    ls_free(k->keys);
    ls_free(k->differs);
    *k = (ls_run_keys){0};
}
