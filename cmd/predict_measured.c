/* predict_measured.c: what was measured, beside what is predicted: results of `lockstep bench --json` and the
 * points of studies, each with the row of its ranks and strategy; what is of another question is named. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "bench/results.h"
#include "predict_table.h"
#include "study/study.h"

/* A result, wherever it is from. */
typedef struct result {
    const char *from; /* the file, or the study's folder */
    char experiment[128], strategy[32], device[32], settings[512];
    int64_t ranks, hosts, threads, batch; /* 0: not said */
    int64_t beside;
    bool oversubscribed;
    ls_spread rate;
    int row; /* that it belongs to; -1: to none */
} result;

typedef struct results {
    result *of;
    int n;
    size_t cap;
} results;

int predict_measured_files(cli_args *args, const char **files)
{
    int n = 0, kept = 0;

    for (int i = 0; i < args->measured.n; i++) files[n++] = args->measured.of[i];
    if (n == 0) return 0;
    for (int i = 0; i < args->n_settings; i++)
        if (strchr(args->settings[i], '=') != NULL)
            args->settings[kept++] = args->settings[i];
        else
            files[n++] = args->settings[i];
    args->n_settings = kept;
    return n;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static ls_status add(results *all, const result *r, ls_err *err)
{
    if (!LS_GROW(LS_MEM_CLI, all->of, all->n + 1, all->cap))
        return ls_fail(err, LS_NOMEM, "no memory for what was measured");
    all->of[all->n++] = *r;
    return LS_OK;
}

/* The last of the settings, separated by spaces, that sets `key`; "" where none does. */
static void setting_of(const char *settings, const char *key, char *value, size_t size)
{
    const size_t n = strlen(key);

    value[0] = '\0';
    for (const char *at = settings; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (strncmp(at, key, n) == 0 && at[n] == '=')
            snprintf(value, size, "%.*s", (int)strcspn(at + n + 1, " "), at + n + 1);
}

/* What versions that did not say it trained with: the setting, or what the experiment says. */
static ls_status find_strategy(result *r, const char *experiment, ls_err *err)
{
    ls_experiment x = {0};
    ls_status st = LS_OK;

    if (r->strategy[0] == '\0') setting_of(r->settings, "parallel.strategy", r->strategy, sizeof r->strategy);
    if (r->strategy[0] != '\0') return LS_OK;
    LS_TRY(ls_experiment_load(&x, experiment, NULL, 0, err));
    snprintf(r->strategy, sizeof r->strategy, "%s", ls_config_choice(x.cfg, "parallel.strategy"));
out:
    ls_experiment_release(&x);
    return st;
}

static ls_status read_bench(results *all, const char *path, const char *experiment, ls_err *err)
{
    ls_bench_results b = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_bench_results_read_any(&b, path, err));
    for (int i = 0; i < b.n; i++) {
        const ls_bench_result *from = &b.of[i];
        result r = {.from = path,
                    .ranks = from->ranks,
                    .hosts = from->hosts,
                    .threads = from->threads,
                    .batch = from->batch_per_rank,
                    .beside = from->beside,
                    .oversubscribed = from->oversubscribed,
                    .rate = from->spread};
        if (isnan(r.rate.p50))
            LS_TRY(ls_fail(err, LS_DATA, "%s: result %d: \"samples_per_s\" is missing", path, i + 1));
        memcpy(r.experiment, from->experiment, sizeof r.experiment);
        memcpy(r.strategy, from->strategy, sizeof r.strategy);
        memcpy(r.device, from->device, sizeof r.device);
        memcpy(r.settings, from->settings, sizeof r.settings);
        LS_TRY(find_strategy(&r, experiment, err));
        LS_TRY(add(all, &r, err));
    }
out:
    ls_bench_results_release(&b);
    return st;
}

/* What all points of a count have in common, as the study's experiment says it. */
static ls_status describe_count(result *r, const ls_study *s, int count, ls_err *err)
{
    ls_experiment x = {0};
    size_t at = 0;
    ls_status st = LS_OK;

    LS_TRY(ls_study_experiment(s, count, &x, err));
    r->ranks = ls_study_ranks(s, count);
    r->hosts = s->ranks_per_node > 0 ? count : 1;
    r->threads = s->threads;
    r->batch = ls_config_int(x.cfg, "batch.per_rank");
    snprintf(r->experiment, sizeof r->experiment, "%s", s->name);
    snprintf(r->strategy, sizeof r->strategy, "%s", ls_config_choice(x.cfg, "parallel.strategy"));
    snprintf(r->device, sizeof r->device, "%s", s->device);
    for (int i = 0; i < s->n_settings && at < sizeof r->settings; i++)
        at += (size_t)snprintf(r->settings + at, sizeof r->settings - at, "%s%s", i > 0 ? " " : "",
                               s->settings[i]);
out:
    ls_experiment_release(&x);
    return st;
}

/* What is not there, or is a folder and no study, is a mistake of the command line; what is there and cannot
 * be read is damaged. */
static ls_status check_file(const char *path, ls_err *err)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return ls_fail(err, LS_INVALID,
                       "--measured %s: %s; name results of `lockstep bench --json`, or the folder of a "
                       "study (`lockstep scale`)",
                       path, strerror(errno));
    if (S_ISDIR(info.st_mode) && !ls_study_is_one(path))
        return ls_fail(err, LS_INVALID,
                       "--measured %s: a folder that is no study; name that of `lockstep scale`, or files "
                       "of `lockstep bench --json`",
                       path);
    return LS_OK;
}

ls_status predict_measured_check(const char *const *files, int n, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < n && st == LS_OK; i++) st = check_file(files[i], err);
    return st;
}

static ls_status read_study(results *all, const char *path, ls_err *err)
{
    ls_study s = {0};
    ls_study_points p = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_study_load(&s, path, err));
    LS_TRY(ls_study_points_load(&p, &s, err));
    if (p.n_there == 0) LS_TRY(ls_fail(err, LS_DATA, "%s: no point of that study is measured", path));
    for (int i = 0; i < s.n_counts; i++) {
        result r = {.from = path};
        LS_TRY(describe_count(&r, &s, s.counts[i], err));
        for (int k = i * s.repeats; k < (i + 1) * s.repeats; k++) {
            if (!p.there[k]) continue;
            r.rate = p.of[k].rate;
            r.oversubscribed = p.of[k].oversubscribed ||
                               r.ranks / r.hosts * r.threads > (p.of[k].cores > 0 ? p.of[k].cores : s.cores);
            LS_TRY(add(all, &r, err));
        }
    }
out:
    ls_study_points_release(&p);
    ls_study_release(&s);
    return st;
}

/* -- what belongs to what ---------------------------------------------------------------------------------
 */

/* Settings that are compared by themselves, or change nothing in what a step takes. */
static bool is_apart(const char *setting)
{
    static const char *const keys[] = {
        "batch.", "ranks=", "device=",      "parallel.strategy=", "data=",         "data.",
        "seed=",  "name=",  "train.steps=", "train.epochs=",      "optimizer.lr=", "lr."};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strncmp(setting, keys[i], strlen(keys[i])) == 0) return true;
    return false;
}

/* A setting of `a` that `b` has not, or has otherwise; both with spaces between them. */
static bool differs(const char *a, const char *b, char *which, size_t size)
{
    char key[128], mine[256], other[256];

    for (const char *at = a; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        if (is_apart(at)) continue;
        snprintf(key, sizeof key, "%.*s", (int)strcspn(at, "= "), at);
        setting_of(a, key, mine, sizeof mine);
        setting_of(b, key, other, sizeof other);
        if (strcmp(mine, other) == 0) continue;
        ls_text_fit(which, size, "%s=%s", key, mine);
        return true;
    }
    return false;
}

static bool same_device(const char *a, const char *b)
{
    const size_t n = strcspn(a, ":");

    return n == strcspn(b, ":") && strncmp(a, b, n) == 0;
}

static int row_of(const predict_table *t, const result *r, bool *has_batch, bool *has_way)
{
    *has_batch = *has_way = false;
    for (int i = 0; i < t->n; i++) {
        if (t->way[t->rows[i].way].batch != r->batch) continue;
        *has_batch = true;
        if (strcmp(t->way[t->rows[i].way].strategy, r->strategy) != 0) continue;
        *has_way = true;
        if (t->rows[i].ranks == r->ranks) return i;
    }
    return -1;
}

/* The settings of the prediction, with spaces between them. */
typedef struct asked {
    ls_text all;
    ls_text without; /* the limit of --memory, which is of the question */
} asked;

static bool is_otherwise(const char *settings, const result *r, char *why, size_t size)
{
    char which[300];

    if (differs(r->settings, settings, which, sizeof which))
        ls_text_fit(why, size, "measured with %s, which the prediction does not have", which);
    else if (differs(settings, r->settings, which, sizeof which))
        ls_text_fit(why, size, "measured without %s, which the prediction has", which);
    else
        return false;
    return true;
}

/* A limit of memory changes a step only where it has something computed again. */
static bool is_other_step(const predict_table *t, const asked *a, const result *r, int row, char *why,
                          size_t size)
{
    const char *all = a->all.data != NULL ? a->all.data : "",
               *without = a->without.data != NULL ? a->without.data : "";

    char mode[16];

    if (!is_otherwise(all, r, why, size)) return false;
    setting_of(all, "train.recompute", mode, sizeof mode);
    if (row >= 0 && t->way[t->rows[row].way].recomputed > 0 && strcmp(mode, "unit") != 0) return true;
    return is_otherwise(without, r, why, size);
}

/* The row of a result; else -1 with the reason. */
static int match(const predict_table *t, const asked *a, const result *r, char *why, size_t size)
{
    const int64_t usual = t->placement.ranks_per_node, here = r->ranks < usual ? r->ranks : usual;
    bool has_batch, has_way;
    const int row = row_of(t, r, &has_batch, &has_way);

    if (strcmp(r->experiment, t->name) != 0)
        ls_text_fit(why, size, "experiment %s, not %s", r->experiment, t->name);
    else if (r->beside > 0)
        ls_text_fit(why, size, "one rank beside others, without exchange (bench --beside)");
    else if (!same_device(r->device, t->machine.device))
        ls_text_fit(why, size, "device %s, and machine %s has %s", r->device, t->machine.name,
                    t->machine.device);
    else if (r->threads > 0 && r->threads != t->machine.threads)
        ls_text_fit(why, size, "ranks of %lld threads, and those of machine %s have %d",
                    (long long)r->threads, t->machine.name, (int)t->machine.threads);
    else if (!has_batch)
        ls_text_fit(why, size, "batch %lld per rank, not %s", (long long)r->batch, t->batches);
    else if (is_other_step(t, a, r, row, why, size))
        return -1;
    else if (!has_way)
        ls_text_fit(why, size, "strategy %s is not asked for (--strategy)", r->strategy);
    else if (row < 0)
        ls_text_fit(why, size, "%lld ranks are not asked for (--ranks)", (long long)r->ranks);
    else if (r->oversubscribed)
        ls_text_fit(why, size, "%lld ranks were oversubscribed, of which a prediction says nothing",
                    (long long)r->ranks);
    else if (r->hosts > 0 && (r->ranks + r->hosts - 1) / r->hosts != here)
        ls_text_fit(why, size,
                    "%lld ranks on %lld machine%s, and the prediction has %lld a machine (--ranks-per-node)",
                    (long long)r->ranks, (long long)r->hosts, r->hosts == 1 ? "" : "s", (long long)here);
    else if (t->rows[row].why[0] != '\0')
        ls_text_fit(why, size, "there is no prediction for it: %s", t->rows[row].why);
    else
        return row;
    return -1;
}

/* One line for all results of a file of which the same is to be said. */
static void note(ls_text *out, const result *r, const char *why)
{
    char line[1400];

    snprintf(line, sizeof line, "%.800s: %.500s\n", r->from, why);
    if (out->data == NULL || strstr(out->data, line) == NULL) ls_text_add(out, "%s", line);
}

/* -- errors -----------------------------------------------------------------------------------------------
 */

static ls_status pool(predict_row *row, int at, const results *all, ls_err *err)
{
    const ls_prediction *p = &row->p;
    const double samples = p->samples_per_s * p->mid;
    predict_measured *m = &row->measured;
    ls_spread *of;

    for (int i = 0; i < all->n; i++) m->n += all->of[i].row == at;
    if (m->n == 0) return LS_OK;
    of = ls_alloc(LS_MEM_CLI, sizeof *of * (size_t)m->n);
    if (of == NULL) return ls_fail(err, LS_NOMEM, "no memory for what was measured");
    for (int i = 0, k = 0; i < all->n; i++)
        if (all->of[i].row == at) of[k++] = all->of[i].rate;
    m->rate = ls_study_pool(of, m->n);
    m->error = p->samples_per_s / m->rate.p50 - 1;
    m->within = m->rate.p50 >= samples / p->hi && m->rate.p50 <= samples / p->lo;
    ls_free(of);
    return LS_OK;
}

static ls_status judge(predict_table *t, const results *all, ls_err *err)
{
    predict_nearness *near = &t->near;
    double *errors = ls_alloc(LS_MEM_CLI, sizeof *errors * (size_t)(t->n + 1));
    ls_status st = LS_OK;

    if (errors == NULL) return ls_fail(err, LS_NOMEM, "no memory for what was measured");
    for (int i = 0; i < t->n; i++) {
        const predict_measured *m = &t->rows[i].measured;
        LS_TRY(pool(&t->rows[i], i, all, err));
        if (m->n == 0) continue;
        if (near->compared == 0 || fabs(m->error) > near->largest) {
            near->largest = fabs(m->error);
            near->largest_at = i;
        }
        near->inside += m->within;
        errors[near->compared++] = fabs(m->error);
    }
    if (near->compared > 0) near->median = ls_spread_of(errors, (size_t)near->compared).p50;
out:
    ls_free(errors);
    return st;
}

static void collect_settings(asked *a, const cli_args *args)
{
    for (int i = 0; i < args->n_settings; i++) {
        const char *setting = args->settings[i];
        ls_text_add(&a->all, "%s ", setting);
        if (args->memory == NULL || strcmp(setting, args->memory_setting) != 0)
            ls_text_add(&a->without, "%s ", setting);
    }
}

ls_status predict_measured_add(predict_table *t, const cli_args *args, const char *const *files, int n,
                               ls_err *err)
{
    results all = {0};
    asked a = {0};
    char why[600];
    ls_status st = LS_OK;

    collect_settings(&a, args);
    for (int i = 0; i < n; i++)
        LS_TRY(ls_study_is_one(files[i]) ? read_study(&all, files[i], err)
                                         : read_bench(&all, files[i], args->model, err));
    for (int i = 0; i < all.n; i++) {
        result *r = &all.of[i];
        r->row = match(t, &a, r, why, sizeof why);
        if (r->row < 0) note(&t->near.unmatched, r, why);
    }
    if (a.all.failed || a.without.failed || t->near.unmatched.failed)
        LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    LS_TRY(judge(t, &all, err));
    t->has_measured = true;
    if (t->near.compared == 0)
        st = ls_fail(err, LS_INVALID, "nothing that was measured is what is predicted: %.*s",
                     (int)strcspn(t->near.unmatched.data, "\n"), t->near.unmatched.data);
out:
    ls_text_release(&a.all);
    ls_text_release(&a.without);
    ls_free(all.of);
    return st;
}
