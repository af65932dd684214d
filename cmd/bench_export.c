/* bench_export.c: `lockstep bench --export FILE`: what the step is made of, measured: the costs from which
 * its time on other machines can be computed.
 *
 * Every plan of the step runs some more times with a clock around its nodes, and the exchange of every bucket
 * some times by itself.  docs/bench.md has the file's fields. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "bench.h"
#include "profile.h"

enum { EXCHANGES = 21, MOST_STEPS = 10000 }; /* exchanges of a bucket; step times that are written */

/* -- buckets ----------------------------------------------------------------------------------------------
 */

/* When things happened to a bucket, in seconds since its plan began. */
typedef struct moments {
    double ready, needed, finished;
} moments;

typedef struct notes {
    const ls_plan *plan;
    const ls_peers *peers;
    uint64_t begun;
    int run, runs;
    moments *at;   /* [bucket * runs + run] */
    bool *is_here; /* [bucket]: the plan exchanges it */
} notes;

static void note(void *ctx, int node, uint64_t begun, uint64_t ended, uint64_t progressed)
{
    notes *n = ctx;
    const int bucket = ls_peers_bucket_at(n->peers, n->plan, node);
    moments *m;

    (void)progressed;
    if (node == 0) n->begun = begun;
    if (bucket < 0) return;
    m = &n->at[bucket * n->runs + n->run];
    n->is_here[bucket] = true;
    if (strcmp(ls_plan_node_at(n->plan, node).op, "all_reduce_start") == 0) {
        m->ready = (double)(begun - n->begun) / 1e9;
    } else {
        m->needed = (double)(begun - n->begun) / 1e9;
        m->finished = (double)(ended - n->begun) / 1e9;
    }
}

static double median_at(const notes *n, int bucket, size_t field, double *scratch)
{
    for (int k = 0; k < n->runs; k++)
        scratch[k] = *(const double *)((const char *)&n->at[bucket * n->runs + k] + field);
    return ls_spread_of(scratch, (size_t)n->runs).p50;
}

/* The time of one exchange of so many bytes while nothing else goes on: of the slowest rank. */
static ls_status time_exchange(const ls_session *s, size_t bytes, double *seconds, ls_err *err)
{
    const ls_exchange_options o = {.name = "export",
                                   .n = (int64_t)(bytes / sizeof(float)),
                                   .wire = (ls_wire)ls_config_int(s->cfg, "parallel.wire")};
    double took[EXCHANGES];
    ls_exchange *x = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_exchange_create(&x, s->comm, &o, err));
    for (int i = 0; i < EXCHANGES; i++) {
        LS_TRY(ls_comm_barrier(s->comm, "before an exchange", err));
        took[i] = ls_clock_seconds();
        ls_exchange_start(x, 1);
        LS_TRY(ls_exchange_wait(x, err));
        took[i] = ls_clock_seconds() - took[i];
    }
    *seconds = ls_spread_of(took, EXCHANGES).p50;
    LS_TRY(ls_comm_max(s->comm, seconds, 1, "comparing exchanges", err));
out:
    ls_exchange_destroy(x);
    return st;
}

static ls_status add_buckets(const ls_session *s, const notes *n, int plan, json_t *all, ls_err *err)
{
    double scratch[PROFILE_STEPS_MAX];
    ls_status st = LS_OK;

    for (int b = 0; b < ls_peers_buckets(s->peers); b++) {
        const size_t bytes = ls_peers_bucket_bytes(s->peers, b);
        double alone;
        if (!n->is_here[b]) continue;
        LS_TRY(time_exchange(s, bytes, &alone, err));
        json_array_append_new(
            all, json_pack("{s:i, s:I, s:f, s:f, s:f, s:f}", "plan", plan, "bytes", (json_int_t)bytes,
                           "ready_s", median_at(n, b, offsetof(moments, ready), scratch), "needed_s",
                           median_at(n, b, offsetof(moments, needed), scratch), "finished_s",
                           median_at(n, b, offsetof(moments, finished), scratch), "exchange_s", alone));
    }
out:
    return st;
}

/* Collective. */
static ls_status export_buckets(const ls_session *s, ls_plan *p, int plan, double step_s, json_t *all,
                                ls_err *err)
{
    const int buckets = s->peers != NULL ? ls_peers_buckets(s->peers) : 0;
    notes n = {.plan = p, .peers = s->peers, .runs = profile_steps(step_s)};
    ls_status st = LS_OK;

    if (buckets == 0) return LS_OK;
    n.at = ls_alloc(LS_MEM_CLI, sizeof *n.at * (size_t)(buckets * n.runs));
    n.is_here = ls_alloc(LS_MEM_CLI, sizeof *n.is_here * (size_t)buckets);
    if (n.at == NULL || n.is_here == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for %d buckets", buckets);
        goto out;
    }
    for (n.run = 0; n.run < n.runs; n.run++) LS_TRY(ls_plan_run_noted(p, note, &n, err));
    LS_TRY(add_buckets(s, &n, plan, all, err));
out:
    ls_free(n.at);
    ls_free(n.is_here);
    return st;
}

/* -- plans ------------------------------------------------------------------------------------------------
 */

static json_t *plan_json(const ls_batch_plan *p, const char *part, int64_t runs)
{
    json_t *nodes = json_array();

    for (int i = 0; i < ls_plan_node_count(p->plan); i++) {
        const ls_plan_node n = ls_plan_node_at(p->plan, i);
        json_array_append_new(nodes, profile_node_json(&n));
    }
    return json_pack("{s:s, s:i, s:I, s:I, s:o}", "part", part, "stage", p->stage, "batch",
                     (json_int_t)p->batch, "runs_per_step", (json_int_t)runs, "nodes", nodes);
}

/* Collective: measures one plan of the step and adds it. */
static ls_status export_plan(const ls_session *s, const ls_batch_plan *p, const char *part, int64_t runs,
                             double step_s, json_t *plans, json_t *buckets, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(export_buckets(s, p->plan, (int)json_array_size(plans), step_s, buckets, err));
    LS_TRY(ls_plan_profile(p->plan, profile_steps(step_s), err));
    json_array_append_new(plans, plan_json(p, part, runs));
out:
    return st;
}

static ls_status export_plans(const ls_rehearsal *x, double step_s, json_t *plans, json_t *buckets,
                              ls_err *err)
{
    const ls_session *s = &x->session;
    const int64_t runs = x->update.samples / x->update.global;
    ls_status st = LS_OK;

    for (int i = 0; i < s->n_stages; i++) {
        LS_TRY(
            export_plan(s, &s->plans[i], s->split ? "gradients" : "step", runs, step_s, plans, buckets, err));
        if (s->split) LS_TRY(export_plan(s, &s->updates[i], "update", 1, step_s, plans, buckets, err));
    }
out:
    return st;
}

/* -- the file ---------------------------------------------------------------------------------------------
 */

static json_t *steps_json(const ls_job_times *t)
{
    json_t *steps = json_array();

    for (int i = 0; i < t->steps && i < MOST_STEPS; i++)
        json_array_append_new(steps, json_real(t->step_s[i]));
    return steps;
}

ls_status bench_export(const ls_rehearsal *x, const bench_job *j, const bench_results *r, ls_err *err)
{
    json_t *plans = json_array(), *buckets = json_array(), *o = NULL;
    ls_status st = LS_OK;

    LS_TRY(export_plans(x, r->of[0].times.spread.p50, plans, buckets, err));
    if (x->session.rank != 0) goto out;
    o = json_pack("{s:s, s:i, s:o, s:O, s:O, s:o}", "event", "bench-export", "format", 1, "result",
                  bench_json(x, j, r), "plans", plans, "buckets", buckets, "steps_s",
                  steps_json(&r->of[0].times));
    st = ls_json_write(j->args->export, o, err);
out:
    json_decref(o);
    json_decref(plans);
    json_decref(buckets);
    return st;
}
