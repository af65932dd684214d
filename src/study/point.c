/* point.c: results of points, read as bytes from outside. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/fields.h"
#include "study/study_internal.h"

/* -- one result -------------------------------------------------------------------------------------------
 */

/* {p16, p50, p84}: positive, in order. */
static ls_status spread_of(const json_t *o, const char *key, ls_spread *s, ls_err *err)
{
    const json_t *v = json_object_get(o, key);

    *s = (ls_spread){ls_field_number(v, "p16"), ls_field_number(v, "p50"), ls_field_number(v, "p84")};
    if (s->p16 > 0 && s->p16 <= s->p50 && s->p50 <= s->p84) return LS_OK;
    return ls_fail(err, LS_DATA, "\"%s\" is missing or makes no sense", key);
}

static void read_bench(ls_study_point *p, const json_t *o)
{
    p->threads = (int)ls_field_count(o, "threads", 1 << 20);
    p->cores = (int)ls_field_count(o, "cores", 1 << 20);
    p->oversubscribed = json_is_true(json_object_get(o, "oversubscribed"));
    p->mean_rate = ls_field_number(o, "mean_samples_per_s");
    p->error_rate = ls_field_number(o, "stderr_samples_per_s");
    p->batches = (int)ls_field_count(o, "batches", 1000);
    p->exposed_s = ls_field_number(o, "comm_exposed_s");
    p->data_wait_s = ls_field_number(o, "data_wait_s");
    p->flop_s = ls_field_number(o, "flop_s");
    p->peak_flop_s = ls_field_number(o, "peak_flop_s");
    p->peak_read_b_s = ls_field_number(o, "peak_read_b_s");
}

/* The metric that a trained model is judged by: an accuracy where there is one, else the loss. */
static void read_score(ls_study_point *p, const json_t *metrics)
{
    json_t *of = json_object_get(metrics, "test"), *v;
    const char *name, *found = NULL;
    int best = 0;

    if (json_object_size(of) == 0) of = json_object_get(metrics, "last");
    json_object_foreach(of, name, v)
    {
        const int rank = strncmp(name, "acc", 3) == 0 ? 3 : strcmp(name, "loss") == 0 ? 2 : 1;
        if (!json_is_number(v) || !isfinite(json_number_value(v)) || rank <= best) continue;
        best = rank;
        found = name;
        p->score = json_number_value(v);
    }
    if (found != NULL) snprintf(p->score_name, sizeof p->score_name, "%s", found);
}

static ls_status read_summary(ls_study_point *p, const json_t *o, ls_err *err)
{
    char state[32];

    ls_field_text(o, "state", state, sizeof state);
    if (strcmp(state, "completed") != 0)
        return ls_fail(err, LS_DATA, "a training run that is \"%s\", not completed", state);
    p->trained = true;
    p->exposed_s = ls_field_number(json_object_get(o, "comm"), "exposed_s_per_step");
    p->data_wait_s = ls_field_number(json_object_get(o, "ledger_s"), "data") / (double)p->steps;
    p->solution_s = ls_field_number(o, "wall_s");
    if (!(p->solution_s > 0)) return ls_fail(err, LS_DATA, "\"wall_s\" is missing or makes no sense");
    read_score(p, json_object_get(o, "metrics"));
    return LS_OK;
}

ls_status ls_study_point_parse(ls_study_point *p, const char *text, size_t length, ls_err *err)
{
    json_error_t where;
    json_t *o = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    char event[16];
    ls_status st = LS_OK;

    *p = (ls_study_point){.mean_rate = NAN,
                          .error_rate = NAN,
                          .flop_s = NAN,
                          .peak_flop_s = NAN,
                          .peak_read_b_s = NAN,
                          .solution_s = NAN,
                          .score = NAN};
    if (o == NULL) return ls_fail(err, LS_DATA, "line %d: %s", where.line, where.text);
    ls_field_text(o, "event", event, sizeof event);
    if (strcmp(event, "bench") != 0 && strcmp(event, "summary") != 0) {
        st = ls_fail(err, LS_DATA, "neither the result of a benchmark nor the summary of a training run");
        goto out;
    }
    p->ranks = (int)ls_field_count(o, "ranks", LS_STUDY_RANKS_MAX);
    p->steps = (int)ls_field_count(o, "steps", 2000000000);
    if (p->ranks == 0 || p->steps == 0) LS_TRY(ls_fail(err, LS_DATA, "\"ranks\" or \"steps\" is missing"));
    LS_TRY(spread_of(o, "samples_per_s", &p->rate, err));
    LS_TRY(spread_of(o, "step_s", &p->step_s, err));
    ls_field_text(o, "host", p->host, sizeof p->host);
    ls_field_text(o, "version", p->version, sizeof p->version);
    if (strcmp(event, "summary") == 0)
        LS_TRY(read_summary(p, o, err));
    else
        read_bench(p, o);
    if (isnan(p->exposed_s)) p->exposed_s = 0;
    if (isnan(p->data_wait_s)) p->data_wait_s = 0;
out:
    json_decref(o);
    return st;
}

/* A benchmark states the error of its mean; where it does not, the spread of its steps stands in.  A median
 * of many steps is 1.25 times as uncertain as their mean. */
ls_study_inside lsi_point_inside(const ls_study_point *p)
{
    /* sqrt(pi / 2): standard error of a median over that of the mean, for many normal values.  Half the
     * distance from p16 to p84 is their standard deviation. */
    const double median = 1.2533;
    double error = median * 0.5 * (p->rate.p84 - p->rate.p16) / p->rate.p50 / sqrt((double)p->steps);
    double df = INFINITY;

    if (p->mean_rate > 0 && p->error_rate >= 0) {
        error = median * p->error_rate / p->mean_rate;
        if (p->batches > 1) df = p->batches - 1;
    }
    return (ls_study_inside){error * error, df};
}

/* -- files of points --------------------------------------------------------------------------------------
 */

void lsi_point_name(const ls_study *s, int count, int repeat, char name[64])
{
    snprintf(name, 64, "%ss-%04d-repeat-%02d", ls_study_unit(s), count, repeat);
}

ls_status ls_study_point_path(const ls_study *s, int count, int repeat, char path[LS_STUDY_PATH_MAX],
                              ls_err *err)
{
    char name[64], file[96];

    lsi_point_name(s, count, repeat, name);
    snprintf(file, sizeof file, "points/%s.json", name);
    return lsi_study_join(path, s->dir, file, err);
}

ls_status lsi_point_fits(const ls_study *s, int count, const ls_study_point *p, ls_err *err)
{
    if (p->ranks != ls_study_ranks(s, count))
        return ls_fail(err, LS_DATA, "a result of %d ranks, not of %d", p->ranks, ls_study_ranks(s, count));
    if (p->trained != s->train)
        return ls_fail(err, LS_DATA, "the result of a %s, not of a %s",
                       p->trained ? "training run" : "benchmark", s->train ? "training run" : "benchmark");
    if (p->threads > 0 && p->threads != s->threads)
        return ls_fail(err, LS_DATA, "a result of %d threads, not of %d", p->threads, s->threads);
    return LS_OK;
}

ls_status lsi_point_load(const ls_study *s, int count, int repeat, ls_study_point *p, bool *there,
                         ls_err *err)
{
    char path[LS_STUDY_PATH_MAX], *text = NULL;
    size_t n;
    ls_status st = LS_OK;

    *there = false;
    LS_TRY(ls_study_point_path(s, count, repeat, path, err));
    if (access(path, F_OK) != 0 && errno == ENOENT) goto out;
    *there = true;
    LS_TRY(lsi_study_read(path, &text, &n, err));
    st = ls_study_point_parse(p, text, n, err);
    if (st == LS_OK) st = lsi_point_fits(s, count, p, err);
    ls_fail_in(err, st, "%s", path);
out:
    ls_free(text);
    return st;
}

ls_status ls_study_points_load(ls_study_points *p, const ls_study *s, ls_err *err)
{
    const size_t n = (size_t)s->n_counts * (size_t)s->repeats;
    ls_status st = LS_OK;

    *p = (ls_study_points){.of = ls_alloc(LS_MEM_CLI, sizeof *p->of * n),
                           .there = ls_alloc(LS_MEM_CLI, sizeof *p->there * n)};
    if (p->of == NULL || p->there == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    for (size_t i = 0; i < n; i++) {
        const int count = s->counts[i / (size_t)s->repeats], repeat = (int)(i % (size_t)s->repeats) + 1;
        ls_err why = {0};
        bool there;
        st = lsi_point_load(s, count, repeat, &p->of[i], &there, &why);
        if (st != LS_OK && st != LS_DATA) LS_TRY(ls_fail(err, st, "%s", why.text));
        if (st == LS_DATA) ls_text_add(&p->damaged, "%s\n", why.text);
        p->there[i] = there && st == LS_OK;
        p->n_there += p->there[i];
        st = LS_OK;
    }
out:
    return st;
}

void ls_study_points_release(ls_study_points *p)
{
    ls_free(p->of);
    ls_free(p->there);
    ls_text_release(&p->damaged);
    *p = (ls_study_points){0};
}
