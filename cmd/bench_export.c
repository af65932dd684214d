/* bench_export.c: `lockstep bench --export FILE`: what the step is made of, measured: the costs from which
 * its time on other machines can be computed.
 *
 * The step is taken some more times with a clock around its nodes, every plan with exchanges once more for
 * the moments at which buckets are ready and needed, and the exchange of every bucket some times by itself.
 * docs/bench.md has the file's fields. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "bench.h"
#include "exec/results.h"
#include "plans/plans.h"
#include "profile.h"

enum { EXCHANGES = 21, MOST_STEPS = 10000 }; /* exchanges of a bucket; step times that are written */

/* -- buckets ----------------------------------------------------------------------------------------------
 */

/* When things happened to a bucket, in seconds since its plan began. */
typedef struct moments {
    double ready, needed, finished;
} moments;

typedef struct notes {
    const ls_document *d;
    uint64_t begun, before; /* the run that goes on; the one before it */
    bool fresh;             /* no node of the run has ended */
    int run, runs;
    moments *at;   /* [bucket * runs + run] */
    bool *is_here; /* [bucket]: the plan exchanges it */
} notes;

static void note(void *ctx, int node, uint64_t begun, uint64_t ended, uint64_t progressed)
{
    notes *n = ctx;

    (void)progressed;
    if (n->fresh) {
        n->before = n->begun;
        n->begun = begun;
    }
    n->fresh = false;
    for (int32_t i = 0; i < n->d->n_collectives; i++) {
        const ls_doc_collective *c = &n->d->collectives[i];
        const bool carried = c->end < c->start; /* by the next run */
        const uint64_t from = carried ? n->before : n->begun;
        const int run = n->run - carried;
        if (c->bucket < 0) continue;
        n->is_here[c->bucket] = true;
        if (node == c->start && n->run < n->runs)
            n->at[c->bucket * n->runs + n->run].ready = (double)(begun - n->begun) / 1e9;
        if (node != c->end || run < 0 || run >= n->runs) continue;
        n->at[c->bucket * n->runs + run].needed = (double)(begun - from) / 1e9;
        n->at[c->bucket * n->runs + run].finished = (double)(ended - from) / 1e9;
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

static ls_status add_buckets(const ls_session *s, const ls_plan *p, const notes *n, int plan, json_t *all,
                             ls_err *err)
{
    double scratch[PROFILE_STEPS_MAX];
    ls_status st = LS_OK;
    int32_t at = 0;

    for (int b; (b = ls_plan_next_bucket(p, &at)) >= 0;) {
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

/* Collective: buckets of plan number `plan`. */
static ls_status export_buckets(const ls_session *s, ls_plan *p, const ls_document *d, int plan,
                                double step_s, json_t *all, ls_err *err)
{
    const int buckets = s->peers != NULL ? ls_peers_buckets(s->peers) : 0;
    notes n = {.d = d, .runs = profile_steps(step_s)};
    ls_status st = LS_OK;

    if (buckets == 0) return LS_OK;
    n.at = ls_alloc(LS_MEM_CLI, sizeof *n.at * (size_t)(buckets * n.runs));
    n.is_here = ls_alloc(LS_MEM_CLI, sizeof *n.is_here * (size_t)buckets);
    if (n.at == NULL || n.is_here == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for %d buckets", buckets);
        goto out;
    }
    for (n.run = 0; n.run <= n.runs; n.run++) { /* one more, for what the last one leaves */
        n.fresh = true;
        LS_TRY(ls_plan_run_noted(p, note, &n, err));
    }
    LS_TRY(ls_plan_complete(p, err));
    LS_TRY(add_buckets(s, p, &n, plan, all, err));
out:
    ls_free(n.at);
    ls_free(n.is_here);
    return st;
}

/* -- plans ------------------------------------------------------------------------------------------------
 */

static ls_status export_plans(ls_rehearsal *x, double step_s, json_t *plans, json_t *buckets,
                              json_t **profile, ls_err *err)
{
    ls_documents d = {.n = 0};
    profile_result r;
    ls_status st = LS_OK;

    LS_TRY(profile_take(x, step_s, &r, err));
    *profile = json_pack("{s:f, s:f, s:f, s:f, s:f}", "step_s", r.sums.step, "nodes_s", r.sums.nodes,
                         "exchange_s", r.sums.progress, "rest_s", r.sums.rest, "plain_step_s", r.plain_s);
    LS_TRY(ls_documents_make(&d, &x->session, x->update.samples / x->update.global, err));
    for (int i = 0; i < d.n; i++) {
        LS_TRY(export_buckets(&x->session, d.plan[i]->plan, &d.of[i], i, step_s, buckets, err));
        json_array_append_new(plans, ls_document_json(&d.of[i]));
    }
out:
    ls_documents_release(&d);
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

ls_status bench_export(ls_rehearsal *x, const bench_job *j, const bench_results *r, ls_err *err)
{
    json_t *plans = json_array(), *buckets = json_array(), *profile = NULL, *o = NULL;
    ls_status st = LS_OK;

    LS_TRY(export_plans(x, r->of[0].times.spread.p50, plans, buckets, &profile, err));
    if (x->session.rank != 0) goto out;
    o = json_pack("{s:s, s:i, s:i, s:o, s:O, s:O, s:O, s:o}", "event", "bench-export", "format", 2,
                  "plan_format", LS_PLANS_FORMAT, "result", bench_json(x, j, r), "profile", profile, "plans",
                  plans, "buckets", buckets, "steps_s", steps_json(&r->of[0].times));
    st = ls_json_write(j->args->export, o, err);
out:
    json_decref(o);
    json_decref(profile);
    json_decref(plans);
    json_decref(buckets);
    return st;
}
