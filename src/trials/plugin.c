/* plugin.c: loads a trial from a shared object and looks it over.
 *
 * Tables of the trials of this build are tested; those of a plug-in are its author's, and a mistake in one
 * must end in a message rather than later in a wrong address. */
#include "trials/plugin.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/module.h"

#define SYMBOL "lockstep_trial_plugin"

/* By its look alone, for a name must mean the same whether or not the file is there. */
bool ls_plugin_is_named(const char *name)
{
    const size_t n = strlen(name);

    return strchr(name, '/') != NULL || (n > 3 && strcmp(name + n - 3, ".so") == 0);
}

/* -- the file ---------------------------------------------------------------------------------------------
 */

/* All of an open file; false when it cannot be read. */
static bool hash_stream(FILE *f, char magic[4], uint64_t *xxh3)
{
    XXH3_state_t *state = XXH3_createState();
    char chunk[1 << 14];
    size_t n;
    bool ok = state != NULL && XXH3_64bits_reset(state) == XXH_OK;

    for (bool first = true; ok && (n = fread(chunk, 1, sizeof chunk, f)) > 0; first = false) {
        if (first && n >= 4) memcpy(magic, chunk, 4);
        ok = XXH3_64bits_update(state, chunk, n) == XXH_OK;
    }
    if (ok) *xxh3 = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return ok && ferror(f) == 0;
}

/* The loader is asked only about what can be a shared object: its own words for the rest help nobody. */
static ls_status check_file(const char *path, uint64_t *xxh3, ls_err *err)
{
    char magic[4] = {0};
    struct stat info;
    FILE *f = NULL;
    ls_status st = LS_OK;

    if (stat(path, &info) != 0 || (S_ISREG(info.st_mode) && (f = fopen(path, "rb")) == NULL))
        return ls_fail(err, LS_INVALID, "%s", strerror(errno));
    if (f == NULL) return ls_fail(err, LS_INVALID, "is no file");
    if (!hash_stream(f, magic, xxh3))
        st = ls_fail(err, LS_INVALID, "cannot be read");
    else if (memcmp(magic, "\177ELF", sizeof magic) != 0)
        st = ls_fail(err, LS_INVALID, "is no shared object; model.trial wants what cc -shared -fPIC makes");
    fclose(f);
    return st;
}

/* Of what a run names: a folder from elsewhere must not make this user run somebody's code. */
static ls_status check_record(const char *path, uint64_t recorded, uint64_t xxh3, ls_err *err)
{
    const char *hint = "; if you trust it, name it by hand: model.trial=";
    struct stat info;

    if (recorded == 0)
        return ls_fail(err, LS_INVALID, "the run names it without its hash (model.plugin_xxh3)%s%s", hint,
                       path);
    if (recorded != xxh3)
        return ls_fail(
            err, LS_INVALID,
            "is not the file that the run was trained with: its hash is %016llx, recorded is %016llx%s%s",
            (unsigned long long)xxh3, (unsigned long long)recorded, hint, path);
    if (stat(path, &info) != 0 || (info.st_uid != geteuid() && info.st_uid != 0))
        return ls_fail(err, LS_INVALID, "the run names it, and it belongs to another user%s%s", hint, path);
    return LS_OK;
}

/* -- the trial --------------------------------------------------------------------------------------------
 */

static int count_words(const char *text)
{
    int n = 0;

    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        text += strcspn(text, " ");
        n++;
    }
    return n;
}

/* What is wrong with a row of the table by itself, or NULL. */
static const char *wrong_with(const ls_setting *s)
{
    const bool has_text = s->kind == LS_SETTING_TEXT || s->kind == LS_SETTING_PERIOD;

    if (strncmp(s->key, "model.", 6) != 0 || s->key[6] == '\0' || strcmp(s->key, "model.trial") == 0 ||
        strcmp(s->key, "model.plugin_xxh3") == 0)
        return "is no key for a trial's own setting: those begin with \"model.\"";
    if (strlen(s->key) > 100) return "is longer than 100 bytes";
    if ((int)s->kind < LS_SETTING_INT || s->kind > LS_SETTING_PERIOD) return "is of an unknown kind";
    if (s->help == NULL) return "has no help";
    if (has_text != (s->text != NULL))
        return has_text ? "has no text for its default" : "has a text, but is no text";
    if (!isfinite(s->value)) return "has a default that is no number";
    if (s->kind != LS_SETTING_CHOICE) return NULL;
    if (s->choices == NULL) return "has no choices";
    return s->value < 0 || s->value >= count_words(s->choices) ? "has a default beyond its choices" : NULL;
}

static ls_status check_rows(const ls_trial *t, ls_err *err)
{
    for (const ls_setting *s = t->settings; s != NULL && s->key != NULL; s++) {
        const char *wrong = wrong_with(s);
        for (const ls_setting *p = t->settings; p != s; p++)
            if (strcmp(p->key, s->key) == 0) wrong = "is there twice";
        if (wrong != NULL) return ls_fail(err, LS_INVALID, "setting \"%.100s\" %s", s->key, wrong);
    }
    return LS_OK;
}

/* A default must be something that a user could write. */
static ls_status check_defaults(const ls_trial *t, ls_err *err)
{
    char shown[LS_SETTING_SHOW_MAX];
    ls_config *cfg = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_config_create(&cfg, t, err));
    for (const ls_setting *s = t->settings; s != NULL && s->key != NULL; s++) {
        st = ls_config_put(cfg, s->key, ls_setting_show(s, shown), err);
        if (st != LS_OK) {
            ls_fail_in(err, st, "a default is not valid");
            goto out;
        }
    }
out:
    ls_config_destroy(cfg);
    return st;
}

static ls_status check_trial(const ls_trial *t, ls_err *err)
{
    ls_status st = LS_OK;

    /* The name becomes that of a folder. */
    if (t->name == NULL || t->name[0] == '\0' || t->name[0] == '.' || strchr(t->name, '/') != NULL ||
        strlen(t->name) > 100)
        return ls_fail(err, LS_INVALID, "its trial has no name that a folder can have");
    if (t->about == NULL || t->build == NULL)
        return ls_fail(err, LS_INVALID, "trial \"%s\" lacks .about or .build", t->name);
    if (t->batch < 1 || t->batch > 1000000)
        return ls_fail(err, LS_INVALID, "trial \"%s\": .batch is %lld, not 1 to 1000000", t->name,
                       (long long)t->batch);
    if ((int)t->optimiser.rule < LS_SGD || t->optimiser.rule > LS_LAMB)
        return ls_fail(err, LS_INVALID, "trial \"%s\": .optimiser has an unknown rule", t->name);
    LS_TRY(check_rows(t, err));
    LS_TRY(check_defaults(t, err));
out:
    return ls_fail_in(err, st, "trial \"%s\"", t->name);
}

/* -- loading ----------------------------------------------------------------------------------------------
 */

/* The number is raised by hand, the layout follows from the headers' structs: it tells of builds between two
 * versions, too. */
static ls_status check_version(const ls_trial_plugin *p, ls_err *err)
{
    if (p->api != LS_TRIAL_API)
        return ls_fail(err, LS_INVALID,
                       "was built for version %d of the trial API, and lockstep %s has version %d; build it "
                       "again with this program's headers (make -B)",
                       p->api, LS_VERSION, LS_TRIAL_API);
    if (p->layout != LS_TRIAL_LAYOUT)
        return ls_fail(err, LS_INVALID,
                       "was built with headers of another lockstep (API %d, layout %zu), and lockstep %s has "
                       "API %d, layout %zu; build it again with this program's headers (make -B)",
                       p->api, p->layout, LS_VERSION, LS_TRIAL_API, (size_t)LS_TRIAL_LAYOUT);
    if (p->trial == NULL) return ls_fail(err, LS_INVALID, "LS_TRIAL_PLUGIN names no trial");
    return LS_OK;
}

ls_status ls_plugin_load(const ls_trial **out, uint64_t *xxh3, ls_plugin_trust trust, const char *path,
                         ls_err *err)
{
    const uint64_t recorded = *xxh3;
    const ls_trial_plugin *plugin;
    void *module;
    ls_err why = {0};
    ls_status st = LS_OK;

    *out = NULL;
    LS_TRY(check_file(path, xxh3, err));
    if (trust == LS_PLUGIN_BY_RUN) LS_TRY(check_record(path, recorded, *xxh3, err));
    /* From here on its code runs: constructors do before anything of it can be asked. */
    if (ls_module_load(&module, path, &why) != LS_OK) {
        st = ls_fail(err, LS_INVALID, "%s", why.text);
        goto out;
    }
    plugin = ls_module_symbol(module, SYMBOL);
    if (plugin == NULL) {
        st = ls_fail(err, LS_INVALID,
                     "is no trial: it has no " SYMBOL "; end its source with LS_TRIAL_PLUGIN(trial)");
        goto out;
    }
    LS_TRY(check_version(plugin, err));
    LS_TRY(check_trial(plugin->trial, err));
    *out = plugin->trial;
out:
    return ls_fail_in(err, st, "%s", path);
}
