/* description.c: study.json: written, read as bytes from outside, and compared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "study/study_internal.h"

/* -- writing ----------------------------------------------------------------------------------------------
 */

ls_status ls_study_text(const ls_study *s, ls_text *out, ls_err *err)
{
    json_t *settings = json_array(), *counts = json_array(), *o;
    const size_t flags = JSON_INDENT(1) | JSON_REAL_PRECISION(17);

    for (int i = 0; i < s->n_settings; i++) json_array_append_new(settings, json_string(s->settings[i]));
    for (int i = 0; i < s->n_counts; i++) json_array_append_new(counts, json_integer(s->counts[i]));
    o = json_pack(
        "{s:i, s:s, s:s, s:o, s:s, s:o, s:i, s:i, s:i, s:f, s:i, s:s, s:b, s:I, s:s, s:s, s:s, s:i}",
        "format", LSI_STUDY_FORMAT, "experiment", s->experiment, "name", s->name, "settings", settings,
        "mode", ls_study_mode_name(s->mode), "counts", counts, "ranks_per_node", s->ranks_per_node, "repeats",
        s->repeats, "steps", s->steps, "seconds", s->seconds, "threads", s->threads, "device", s->device,
        "train", (int)s->train, "batch", (json_int_t)s->batch, "config_xxh3", s->config, "version",
        s->version, "host", s->host, "cores", s->cores);
    if (o != NULL) json_object_set_new(o, "busy", json_real(s->busy));
    if (o == NULL) return ls_fail(err, LS_INVALID, "the study cannot be written: a text in it is no UTF-8");
    ls_json_add(out, o, flags);
    ls_text_add(out, "\n");
    json_decref(o);
    return out->failed ? ls_fail(err, LS_NOMEM, "no memory") : LS_OK;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

/* Members are asked for one by one; the first that is not as it must be is remembered. */
typedef struct reader {
    const json_t *o;
    ls_arena *arena;
    const char *wrong;
    bool no_memory;
} reader;

static const json_t *member(reader *r, const char *key)
{
    const json_t *v = json_object_get(r->o, key);

    if (v == NULL && r->wrong == NULL) r->wrong = key;
    return v;
}

static int64_t whole(reader *r, const char *key, int64_t least, int64_t most)
{
    const json_t *v = member(r, key);
    const int64_t x = json_integer_value(v);

    if ((!json_is_integer(v) || x < least || x > most) && r->wrong == NULL) r->wrong = key;
    return x;
}

static const char *text_value(reader *r, const json_t *v, const char *key)
{
    const char *text = json_string_value(v);
    const char *copy = text != NULL ? ls_arena_strdup(r->arena, text) : NULL;

    if (text == NULL && r->wrong == NULL) r->wrong = key;
    r->no_memory |= text != NULL && copy == NULL;
    return copy != NULL ? copy : "";
}

static void read_counts(reader *r, ls_study *s)
{
    const json_t *list = member(r, "counts");
    const size_t n = json_array_size(list);

    if (n < 1 || n > LS_STUDY_COUNTS_MAX) {
        if (r->wrong == NULL) r->wrong = "counts";
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        const json_int_t x = json_integer_value(v);
        if (!json_is_integer(v) || x < 1 || x > LS_STUDY_RANKS_MAX || (i > 0 && x <= s->counts[i - 1])) {
            if (r->wrong == NULL) r->wrong = "counts";
            return;
        }
        s->counts[s->n_counts++] = (int)x;
    }
}

static void read_settings(reader *r, ls_study *s)
{
    const json_t *list = member(r, "settings");
    const size_t n = json_array_size(list);
    const char **texts = ls_arena_alloc(r->arena, sizeof *texts * (n + 1));

    r->no_memory |= texts == NULL;
    if (!json_is_array(list) || n > LSI_SETTINGS_MAX || texts == NULL) {
        if (r->wrong == NULL) r->wrong = "settings";
        return;
    }
    for (size_t i = 0; i < n; i++) texts[i] = text_value(r, json_array_get(list, i), "settings");
    s->settings = texts;
    s->n_settings = (int)n;
}

static void read_members(reader *r, ls_study *s)
{
    const char *mode = text_value(r, member(r, "mode"), "mode");
    const json_t *seconds = member(r, "seconds"), *train = member(r, "train");

    s->experiment = text_value(r, member(r, "experiment"), "experiment");
    s->name = text_value(r, member(r, "name"), "name");
    read_settings(r, s);
    s->mode = strcmp(mode, "strong") == 0 ? LS_STUDY_STRONG : LS_STUDY_WEAK;
    if (strcmp(mode, ls_study_mode_name(s->mode)) != 0 && r->wrong == NULL) r->wrong = "mode";
    read_counts(r, s);
    s->ranks_per_node = (int)whole(r, "ranks_per_node", 0, 4096);
    s->repeats = (int)whole(r, "repeats", 1, LS_STUDY_REPEATS_MAX);
    s->steps = (int)whole(r, "steps", 0, 1000000000);
    s->seconds = json_number_value(seconds);
    if ((!json_is_number(seconds) || !(s->seconds >= 0 && s->seconds <= 1e9)) && r->wrong == NULL)
        r->wrong = "seconds";
    s->threads = (int)whole(r, "threads", 1, 1 << 20);
    s->device = text_value(r, member(r, "device"), "device");
    s->train = json_is_true(train);
    if (!json_is_boolean(train) && r->wrong == NULL) r->wrong = "train";
    s->batch = whole(r, "batch", 1, INT64_C(1) << 40);
    snprintf(s->config, sizeof s->config, "%.16s", text_value(r, member(r, "config_xxh3"), "config_xxh3"));
    s->version = text_value(r, member(r, "version"), "version");
    s->host = text_value(r, member(r, "host"), "host");
    s->busy = json_number_value(json_object_get(r->o, "busy"));
    if (!(s->busy >= 0 && s->busy <= 1)) s->busy = 0;
    s->cores = (int)whole(r, "cores", 1, 1 << 20);
}

ls_status ls_study_parse(ls_study *s, const char *text, size_t length, ls_err *err)
{
    json_error_t where;
    reader r = {0};
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    ls_status st = LS_OK;

    *s = (ls_study){0};
    LS_TRY(ls_arena_create(&s->arena, LS_MEM_CLI, err));
    if (root == NULL) {
        st = ls_fail(err, LS_DATA, "line %d: %s", where.line, where.text);
        goto out;
    }
    r = (reader){.o = root, .arena = s->arena};
    if (whole(&r, "format", 0, INT32_MAX) != LSI_STUDY_FORMAT && r.wrong == NULL) {
        st = ls_fail(err, LS_DATA, "format %lld; this program reads format %d",
                     (long long)json_integer_value(json_object_get(root, "format")), LSI_STUDY_FORMAT);
        goto out;
    }
    read_members(&r, s);
    if (r.no_memory) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    if (r.wrong != NULL) st = ls_fail(err, LS_DATA, "\"%s\" is missing or makes no sense", r.wrong);
out:
    json_decref(root);
    return st;
}

/* -- comparing --------------------------------------------------------------------------------------------
 */

static unsigned note(ls_text *text, ls_study_part part, const char *what, const char *a, const char *b)
{
    if (text != NULL)
        ls_text_add(text, "%s%s: %s and %s", text->length > 0 ? "; " : "", what, a[0] != '\0' ? a : "none",
                    b[0] != '\0' ? b : "none");
    return part;
}

static unsigned differ(ls_text *text, ls_study_part part, const char *what, const char *a, const char *b)
{
    return strcmp(a, b) != 0 ? note(text, part, what, a, b) : 0;
}

static unsigned differ_number(ls_text *text, ls_study_part part, const char *what, double a, double b)
{
    char x[32], y[32];

    snprintf(x, sizeof x, "%.10g", a);
    snprintf(y, sizeof y, "%.10g", b);
    return a != b ? note(text, part, what, x, y) : 0;
}

/* The value of the setting whose key is the first `length` bytes of `key`; the last that was given counts. */
static const char *value_of(const ls_study *s, const char *key, size_t length)
{
    for (int i = s->n_settings - 1; i >= 0; i--)
        if (strncmp(s->settings[i], key, length) == 0 && s->settings[i][length] == '=')
            return s->settings[i] + length + 1;
    return NULL;
}

/* The settings of `a` that are others in `b`; with `missing` only those that `b` does not have.  The batch is
 * the study's own matter. */
static unsigned differ_from(ls_text *text, const ls_study *a, const ls_study *b, bool missing)
{
    unsigned d = 0;

    for (int i = 0; i < a->n_settings; i++) {
        const size_t length = strcspn(a->settings[i], "=");
        const char *x = value_of(a, a->settings[i], length), *y = value_of(b, a->settings[i], length);
        char key[128];
        /* Given more than once: named once, where it counts. */
        if (x == NULL || x != a->settings[i] + length + 1 || lsi_sets_batch(a->settings[i])) continue;
        if (missing ? y != NULL : y != NULL && strcmp(x, y) == 0) continue;
        snprintf(key, sizeof key, "%.*s", (int)length, a->settings[i]);
        d |= note(text, LS_STUDY_SETTING, key, missing ? "not given" : x,
                  missing     ? x
                  : y != NULL ? y
                              : "not given");
    }
    return d;
}

static unsigned differ_settings(ls_text *text, const ls_study *a, const ls_study *b)
{
    return differ_from(text, a, b, false) | differ_from(text, b, a, true);
}

unsigned ls_study_differences(const ls_study *a, const ls_study *b, ls_text *text)
{
    /* The same experiment may lie elsewhere on another machine. */
    const bool moved = strcmp(a->name, b->name) == 0;
    unsigned d = differ(text, moved ? LS_STUDY_VERSION : LS_STUDY_QUESTION, "experiment", a->experiment,
                        b->experiment);

    d |= differ(text, LS_STUDY_QUESTION, "name", a->name, b->name);
    d |= differ_settings(text, a, b);
    d |= differ(text, LS_STUDY_QUESTION, "mode", ls_study_mode_name(a->mode), ls_study_mode_name(b->mode));
    d |= differ_number(text, LS_STUDY_QUESTION, "ranks per node", a->ranks_per_node, b->ranks_per_node);
    d |= differ_number(text, LS_STUDY_QUESTION, "smallest count", a->counts[0], b->counts[0]);
    d |= differ_number(text, LS_STUDY_QUESTION, "batch that stays", (double)a->batch, (double)b->batch);
    d |= differ_number(text, LS_STUDY_QUESTION, "threads", a->threads, b->threads);
    d |= differ(text, LS_STUDY_QUESTION, "device", a->device, b->device);
    d |= differ(text, LS_STUDY_QUESTION, "points", a->train ? "trained" : "benchmarks",
                b->train ? "trained" : "benchmarks");
    d |= differ_number(text, LS_STUDY_LENGTH, "steps", a->steps, b->steps);
    d |= differ_number(text, LS_STUDY_LENGTH, "seconds", a->seconds, b->seconds);
    d |= differ(text, LS_STUDY_MACHINE, "host", a->host, b->host);
    d |= differ_number(text, LS_STUDY_MACHINE, "cores", a->cores, b->cores);
    d |= differ(text, LS_STUDY_VERSION, "version", a->version, b->version);
    d |= differ(text, LS_STUDY_VERSION, "resolved experiment", a->config, b->config);
    return d;
}
