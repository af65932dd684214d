/* question.c: from an experiment and a command line to a study's question. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/parallel.h"
#include "config/experiment.h"
#include "study/study_internal.h"
#include "train/session.h"

enum { CONFIG_BYTES = 1 << 18, DEFAULT_REPEATS = 3 };

/* -- what is given ----------------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return x < y ? -1 : x > y;
}

/* "1,2,4" in any order; each once. */
static ls_status parse_counts(ls_study *s, const char *text, ls_err *err)
{
    const char *option = s->ranks_per_node > 0 ? "--nodes" : "--ranks";
    const char *at = text;

    if (text == NULL || text[0] == '\0')
        return ls_fail(err, LS_INVALID, "which rank counts?  Such as --ranks 1,2,4");
    for (;;) {
        char *end;
        const long n = strtol(at, &end, 10);
        if (end == at || n < 1 || n > LS_STUDY_RANKS_MAX || (*end != ',' && *end != '\0'))
            return ls_fail(err, LS_INVALID, "%s %s: expected counts from 1 to %d, such as 1,2,4", option,
                           text, LS_STUDY_RANKS_MAX);
        for (int i = 0; i < s->n_counts; i++)
            if (s->counts[i] == n)
                return ls_fail(err, LS_INVALID, "%s %s: %ld occurs twice", option, text, n);
        if (s->n_counts == LS_STUDY_COUNTS_MAX)
            return ls_fail(err, LS_INVALID, "%s: more than %d counts", option, LS_STUDY_COUNTS_MAX);
        s->counts[s->n_counts++] = (int)n;
        if (*end == '\0') break;
        at = end + 1;
    }
    qsort(s->counts, (size_t)s->n_counts, sizeof s->counts[0], ascending);
    return LS_OK;
}

static ls_status parse_mode(ls_study *s, const char *text, ls_err *err)
{
    if (text == NULL)
        return ls_fail(
            err, LS_INVALID,
            "--mode weak (the batch of a rank stays) or --mode strong (the batch of all ranks stays)?");
    s->mode = strcmp(text, "strong") == 0 ? LS_STUDY_STRONG : LS_STUDY_WEAK;
    if (strcmp(text, ls_study_mode_name(s->mode)) != 0)
        return ls_fail(err, LS_INVALID, "--mode %s: expected weak or strong", text);
    return LS_OK;
}

/* The device is a part of the question by itself: in study.json it has had a place of its own since before it
 * was a setting, and studies from then go on. */
static bool sets_device(const char *setting)
{
    return strncmp(setting, "device=", 7) == 0;
}

static ls_status copy_settings(ls_study *s, const ls_study_wish *w, ls_err *err)
{
    const char **list = ls_arena_alloc(s->arena, sizeof *list * (size_t)(w->n_settings + 1));

    if (w->n_settings > LSI_SETTINGS_MAX)
        return ls_fail(err, LS_INVALID, "more than %d settings", LSI_SETTINGS_MAX);
    if (list == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = 0; i < w->n_settings; i++) {
        if (strncmp(w->settings[i], "ranks=", 6) == 0 ||
            strncmp(w->settings[i], "resources.slots_per_trial=", 26) == 0)
            return ls_fail(err, LS_INVALID, "%s: a study sets the ranks by itself (--ranks 1,2,4)",
                           w->settings[i]);
        const char *copy = ls_arena_strdup(s->arena, w->settings[i]);
        if (copy == NULL) return ls_fail(err, LS_NOMEM, "no memory");
        if (sets_device(copy))
            s->device = copy + 7; /* the last holds; what it means is settled with the experiment */
        else
            list[s->n_settings++] = copy;
    }
    s->settings = list;
    return LS_OK;
}

static ls_status parse_wish(ls_study *s, const ls_study_wish *w, ls_err *err)
{
    ls_status st = LS_OK;

    s->ranks_per_node = w->ranks_per_node;
    LS_TRY(parse_counts(s, w->counts, err));
    LS_TRY(parse_mode(s, w->mode, err));
    LS_TRY(copy_settings(s, w, err));
    if (w->repeats > LS_STUDY_REPEATS_MAX)
        return ls_fail(err, LS_INVALID, "--repeats %d: at most %d", w->repeats, LS_STUDY_REPEATS_MAX);
    s->repeats = w->repeats > 0 ? w->repeats : DEFAULT_REPEATS;
    if (w->train && (w->steps > 0 || w->seconds > 0))
        return ls_fail(
            err, LS_INVALID,
            "--train takes as many steps as the experiment says: set train.steps=N or train.epochs=N "
            "instead of --steps and --seconds");
    s->steps = w->steps;
    s->seconds = w->steps > 0 ? 0 : w->seconds;
    s->threads = w->threads > 0 ? w->threads : 1;
    s->train = w->train;
    s->experiment = ls_arena_strdup(s->arena, w->experiment);
    if (s->experiment == NULL) return ls_fail(err, LS_NOMEM, "no memory");
out:
    return st;
}

/* -- what follows from the experiment ---------------------------------------------------------------------
 */

/* data=real and data=synthetic are words of `bench`, not settings. */
static bool is_of_bench(const ls_study *s, const char *setting)
{
    return !s->train && strncmp(setting, "data=", 5) == 0;
}

/* The experiment as the point of `count` has it; `batch` NULL: as it is written. */
static ls_status load(const ls_study *s, int count, const char *batch, ls_experiment *x, ls_err *err)
{
    const char *settings[LSI_SETTINGS_MAX + 3];
    char ranks[32], device[512];
    int n = 0;

    snprintf(ranks, sizeof ranks, "ranks=%d", ls_study_ranks(s, count));
    for (int i = 0; i < s->n_settings; i++)
        if (!is_of_bench(s, s->settings[i]) && (batch == NULL || !lsi_sets_batch(s->settings[i])))
            settings[n++] = s->settings[i];
    settings[n++] = ranks;
    if (s->device != NULL) {
        if (snprintf(device, sizeof device, "device=%s", s->device) >= (int)sizeof device)
            return ls_fail(err, LS_INVALID, "device: %.100s... is no device", s->device);
        settings[n++] = device;
    }
    if (batch != NULL) settings[n++] = batch;
    return ls_experiment_load(x, s->experiment, settings, n, err);
}

/* Leaves out the line of a setting that is in no group. */
static void drop_line(char *text, const char *start)
{
    char *line = strstr(text, start), *next;

    while (line != NULL && line != text && line[-1] != '\n') line = strstr(line + 1, start);
    next = line != NULL ? strchr(line, '\n') : NULL;
    if (next != NULL) memmove(line, next + 1, strlen(next + 1) + 1);
}

static ls_status hash_config(const ls_experiment *x, char hash[24], ls_err *err)
{
    char *text = ls_alloc(LS_MEM_CLI, CONFIG_BYTES);
    FILE *f = text != NULL ? fmemopen(text, CONFIG_BYTES, "w") : NULL;
    ls_status st = LS_OK;

    if (f == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory");
        goto out;
    }
    ls_experiment_write(x, f);
    fclose(f);
    text[CONFIG_BYTES - 1] = '\0';
    drop_line(text, "device: ");
    snprintf(hash, 24, "%016llx", (unsigned long long)XXH3_64bits(text, strnlen(text, CONFIG_BYTES)));
out:
    ls_free(text);
    return st;
}

/* The batch that stays, as the smallest run has it. */
static ls_status settle_batch(ls_study *s, ls_err *err)
{
    const int ranks = ls_study_ranks(s, s->counts[0]);
    ls_experiment x = {0};
    ls_status st = LS_OK;

    LS_TRY(load(s, s->counts[0], NULL, &x, err));
    s->batch = s->mode == LS_STUDY_STRONG ? ls_update_of(x.cfg, ranks).samples
                                          : ls_config_int(x.cfg, "batch.per_rank");
    s->name = ls_arena_strdup(s->arena, ls_config_text(x.cfg, "name"));
    s->device = ls_arena_strdup(s->arena, ls_config_text(x.cfg, "device"));
    if (s->name == NULL || s->device == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    LS_TRY(hash_config(&x, s->config, err));
out:
    ls_experiment_release(&x);
    return st;
}

/* Every point must be able to run before the first one does. */
static ls_status check_points(const ls_study *s, ls_err *err)
{
    char batch[64];
    ls_status st = LS_OK;

    lsi_batch_setting(s, batch);
    for (int i = 0; i < s->n_counts && st == LS_OK; i++) {
        const int ranks = ls_study_ranks(s, s->counts[i]);
        ls_experiment x = {0};
        if (s->mode == LS_STUDY_STRONG && s->batch % ranks != 0)
            return ls_fail(
                err, LS_INVALID,
                "strong scaling keeps the batch of all ranks, %lld samples, and %d ranks cannot share "
                "them evenly: leave out %d, or set batch.global to a multiple of all counts",
                (long long)s->batch, ranks, s->counts[i]);
        st = load(s, s->counts[i], batch, &x, err);
        if (st == LS_OK && s->mode == LS_STUDY_STRONG &&
            s->batch % ((int64_t)ranks * ls_config_int(x.cfg, "parallel.accumulate")) != 0)
            st = ls_fail(err, LS_INVALID,
                         "strong scaling: %lld samples cannot be shared evenly by %d ranks with "
                         "parallel.accumulate=%lld: leave out %d, or set batch.global",
                         (long long)s->batch, ranks, (long long)ls_config_int(x.cfg, "parallel.accumulate"),
                         s->counts[i]);
        else if (st != LS_OK)
            ls_fail_in(err, st, "with %d rank%s", ranks, ranks == 1 ? "" : "s");
        ls_experiment_release(&x);
    }
    return st;
}

ls_status ls_study_experiment(const ls_study *s, int count, ls_experiment *x, ls_err *err)
{
    char batch[64];

    lsi_batch_setting(s, batch);
    return load(s, count, batch, x, err);
}

ls_status ls_study_ask(ls_study *s, const ls_study_wish *w, ls_err *err)
{
    char host[256] = "unknown";
    ls_status st = LS_OK;

    *s = (ls_study){0};
    LS_TRY(ls_arena_create(&s->arena, LS_MEM_CLI, err));
    LS_TRY(parse_wish(s, w, err));
    gethostname(host, sizeof host - 1);
    s->host = ls_arena_strdup(s->arena, host);
    s->version = LS_VERSION;
    s->cores = ls_parallel_cores();
    if (s->host == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    LS_TRY(settle_batch(s, err));
    LS_TRY(check_points(s, err));
out:
    return st;
}

void ls_study_release(ls_study *s)
{
    ls_arena_destroy(s->arena);
    *s = (ls_study){0};
}

/* -- names and commands -----------------------------------------------------------------------------------
 */

const char *ls_study_mode_name(ls_study_mode mode)
{
    return mode == LS_STUDY_STRONG ? "strong" : "weak";
}

const char *ls_study_unit(const ls_study *s)
{
    return s->ranks_per_node > 0 ? "node" : "rank";
}

int ls_study_ranks(const ls_study *s, int count)
{
    return s->ranks_per_node > 0 ? count * s->ranks_per_node : count;
}

bool lsi_sets_batch(const char *setting)
{
    static const char *const keys[] = {
        "batch.per_rank=", "batch.global=", "hyperparameters.global_batch_size="};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strncmp(setting, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}

void lsi_batch_setting(const ls_study *s, char text[64])
{
    snprintf(text, 64, "%s=%lld", s->mode == LS_STUDY_STRONG ? "batch.global" : "batch.per_rank",
             (long long)s->batch);
}

static void add_word(ls_text *out, const char *word)
{
    ls_text_add(out, " ");
    ls_text_add_quoted(out, word);
}

void ls_study_command(const ls_study *s, ls_text *out)
{
    ls_text_add(out, "lockstep scale");
    add_word(out, s->experiment);
    for (int i = 0; i < s->n_settings; i++) add_word(out, s->settings[i]);
    ls_text_add(out, " --%ss ", ls_study_unit(s));
    for (int i = 0; i < s->n_counts; i++) ls_text_add(out, "%s%d", i > 0 ? "," : "", s->counts[i]);
    if (s->ranks_per_node > 0) ls_text_add(out, " --ranks-per-node %d", s->ranks_per_node);
    ls_text_add(out, " --mode %s --repeats %d", ls_study_mode_name(s->mode), s->repeats);
    if (s->steps > 0) ls_text_add(out, " --steps %d", s->steps);
    if (s->seconds > 0) ls_text_add(out, " --seconds %g", s->seconds);
    ls_text_add(out, " --threads %d", s->threads);
    /* Always: the experiment may have said another. */
    ls_text_add(out, " --device");
    add_word(out, s->device);
    if (s->train) ls_text_add(out, " --train");
    if (s->dir[0] != '\0') {
        ls_text_add(out, " --dir");
        add_word(out, s->dir);
    }
}
