/* bench_measure.c: times the steps of an experiment on all ranks, and what the machine can do. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "bench.h"
#include "bench/flops.h"

/* -- progress ---------------------------------------------------------------------------------------------
 */

typedef struct ticker {
    bool on;
    double last;
    ls_comm *comm;
    bench_results *r;
} ticker;

static void tick(void *ctx, const char *phase, int done, int planned)
{
    ticker *t = ctx;
    double now = ls_clock_seconds();

    if (!t->on || now - t->last < 0.1) return;
    t->last = now;
    if (planned > 0)
        fprintf(stderr, "\r\033[K%s: step %d of %d", phase, done, planned);
    else
        fprintf(stderr, "\r\033[K%s: step %d", phase, done);
}

static void tick_end(const ticker *t)
{
    if (t->on) fprintf(stderr, "\r\033[K");
}

static int64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static ls_status start(void *ctx, double *zero, ls_err *err)
{
    const ticker *t = ctx;

    t->r->run_ms = wall_ms();
    return ls_job_zero(t->comm, zero, err);
}

/* -- the machine ------------------------------------------------------------------------------------------
 */

/* What one thread can do alone, and then all ranks at once. */
static ls_status probe(ls_comm *c, int threads, bench_results *r, ls_err *err)
{
    ls_status st = LS_OK;

    if (c == NULL || ls_comm_rank(c) == 0) LS_TRY(ls_probe_machine(1, NULL, &r->core, err));
    r->peak = r->core;
    if (c == NULL && threads == 1) return LS_OK;
    LS_TRY(ls_probe_machine(threads, c, &r->peak, err));
out:
    return st;
}

/* Rank 0's device stands for all; ranks that share one have it once. */
static ls_status probe_device(ls_comm *c, const ls_session *s, bench_results *r, ls_err *err)
{
    const ls_backend *b = s->dev->backend;
    int here = 1, hosts = 1;
    ls_status st = LS_OK;

    if (b->measure == NULL) return LS_OK;
    if (s->rank == 0 && !b->measure(s->dev, ls_session_compute(s->cfg), &r->device)) r->device.flop_s = 0;
    if (c != NULL) {
        LS_TRY(ls_comm_broadcast(c, &r->device, sizeof r->device, 0, "the peak of a device", err));
        here = ls_comm_local_size(c);
        hosts = ls_comm_hosts(c);
    }
    if (!(r->device.flop_s > 0)) return LS_OK;
    if (here > r->device.devices) here = r->device.devices;
    r->peak = (ls_probe){.flop_s = r->device.flop_s * here * hosts,
                         .read_b_s = r->device.copy_b_s * here * hosts,
                         .copy_b_s = r->device.copy_b_s * here * hosts,
                         .isa = r->device.what};
out:
    return st;
}

/* -- the experiment ---------------------------------------------------------------------------------------
 */

static ls_status open_variant(ls_rehearsal *x, const bench_job *j, int i, const ls_place *place,
                              ls_comm *comm, bench_result *r, ls_err *err)
{
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR];
    const ls_status st = ls_rehearsal_open(x, &j->ranks[i].experiment, place->threads, j->real[i], comm, err);

    if (st != LS_OK) return st;
    r->planned = ls_session_memory(&x->session).total;
    r->memory = ls_device_memory_of(x->session.dev);
    r->used = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR] - before + ls_session_comm_bytes(&x->session);
    if (r->memory.own) r->used += r->memory.used; /* the allocator knows nothing of it */
    return LS_OK;
}

static ls_status time_steps(ls_rehearsal *x, const bench_job *j, ls_comm *comm, bench_results *r, ls_err *err)
{
    ticker t = {
        .on = !j->args->json && isatty(STDERR_FILENO) && x[0].session.rank == 0, .comm = comm, .r = r};
    const ls_measure_args how = {.steps = j->args->steps,
                                 .seconds = j->args->seconds,
                                 .turn = j->args->turn,
                                 .progress = tick,
                                 .start = start,
                                 .ctx = &t};
    ls_subject subjects[BENCH_VARIANTS];
    ls_measure m[BENCH_VARIANTS];
    ls_status st;

    for (int i = 0; i < j->n; i++)
        subjects[i] = (ls_subject){ls_rehearsal_step, ls_rehearsal_spent, &x[i], ls_rehearsal_rest};
    st = ls_measure_subjects(subjects, j->n, &how, m, err);
    for (int i = 0; i < j->n; i++) r->of[i].m = m[i];
    r->stop_ms = wall_ms();
    tick_end(&t);
    return st;
}

/* What follows from the times of one variant. */
static ls_status conclude(bench_result *r, const ls_rehearsal *x, ls_comm *comm, ls_err *err)
{
    const double samples = (double)x->update.samples;
    ls_status st = LS_OK;

    LS_TRY(ls_job_times_gather(&r->times, &r->m, (double)ls_rehearsal_samples(x), comm, err));
    r->rate = ls_spread_rate(r->times.spread, samples);
    r->mean = ls_estimate_rate(r->times.mean, samples);
    for (int k = 0; k < x->session.n_stages; k++) {
        const ls_batch_plan *p = ls_session_usual(&x->session, k);
        ls_document d;
        st = ls_document_make(&d, p->plan, err);
        if (st == LS_OK) r->flops_per_sample += ls_document_product_flops(&d) / (double)p->batch;
        for (int i = 0; st == LS_OK && i < d.n_nodes; i++)
            r->bytes_s +=
                d.nodes[i].bytes * (double)ls_rehearsal_samples(x) / (double)p->batch / r->times.spread.p50;
        r->all_flops_per_sample += ls_plan_flops(p->plan) / (double)p->batch;
        if (x->session.split) /* once for all batches of the update */
            r->all_flops_per_sample +=
                ls_plan_flops(x->session.updates[k].plan) / (double)ls_rehearsal_samples(x);
        ls_document_release(&d);
        if (st != LS_OK) goto out;
    }
    r->flop_s = r->flops_per_sample * r->rate.p50;
out:
    return st;
}

/* How many times as long a step of the first takes as one of the second.  Steps of the same number are
 * neighbours in time, so that a machine that grows slower or faster meanwhile changes no ratio of two. */
static ls_status compare(bench_results *r, ls_err *err)
{
    const ls_job_times *a = &r->of[0].times, *b = &r->of[1].times;
    const int n = a->steps < b->steps ? a->steps : b->steps;
    double *ratio = ls_alloc(LS_MEM_CLI, sizeof *ratio * (size_t)(n + 1));

    if (ratio == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d ratios", n);
    for (int i = 0; i < n; i++) ratio[i] = a->step_s[i] / b->step_s[i];
    if (n > 0) r->ratio = ls_spread_of(ratio, (size_t)n).p50;
    ls_free(ratio);
    return LS_OK;
}

/* A run whose numbers blew up may be faster or slower than a real one: say so. */
static void warn_unless_finite(const ls_metric_sums *now)
{
    for (int i = 0; i < now->n; i++) {
        const double value = ls_metric_mean(now, now->name[i]);
        if (!isfinite(value)) ls_log(LS_LOG_WARN, "%s is %g after the last step", now->name[i], value);
    }
}

static ls_status note_others(const bench_beside *b, bench_results *r, ls_err *err)
{
    r->beside_s = json_array();
    for (int i = 0; i < b->n; i++)
        if (json_array_append_new(r->beside_s, json_real(bench_beside_step(b, i))) != 0)
            return ls_fail(err, LS_LOST, "--beside: rank %d has not taken a step meanwhile", i + 1);
    return LS_OK;
}

ls_status bench_measure(ls_rehearsal x[BENCH_VARIANTS], const bench_job *j, const ls_place *place,
                        ls_comm *comm, bench_results *r, ls_err *err)
{
    ls_status st = LS_OK;

    r->begin_ms = wall_ms();
    LS_TRY(open_variant(&x[0], j, 0, place, comm, &r->of[0], err));
    /* The first one's settings, which may ask for a second, have been found the same on all ranks. */
    if (comm != NULL)
        LS_TRY(ls_comm_agree(comm, (uint64_t)j->n, "--against, which all machines must be given: variants",
                             err));
    for (int i = 1; i < j->n; i++) LS_TRY(open_variant(&x[i], j, i, place, comm, &r->of[i], err));
    LS_TRY(bench_beside_begin(&j->beside, err));
    /* After compiling, which may take long, and before the first step. */
    LS_TRY(ls_crowd_look(&r->crowd, comm, x[0].session.threads, j->cores, err));
    if ((1 + j->beside.n) * x[0].session.threads > r->crowd.cores) r->crowd.oversubscribed = true;
    LS_TRY(time_steps(x, j, comm, r, err));
    if (j->beside.n > 0) LS_TRY(note_others(&j->beside, r, err));
    LS_TRY(probe(comm, x[0].session.threads, r, err));
    LS_TRY(probe_device(comm, &x[0].session, r, err));
    for (int i = 0; i < j->n; i++) LS_TRY(conclude(&r->of[i], &x[i], comm, err));
    if (j->n > 1) LS_TRY(compare(r, err));
    if (place->rank == 0) warn_unless_finite(&x[0].c.now);
out:
    return st;
}

void bench_release(ls_rehearsal x[BENCH_VARIANTS], bench_results *r)
{
    json_decref(r->beside_s);
    for (int i = 0; i < BENCH_VARIANTS; i++) {
        ls_measure_release(&r->of[i].m);
        ls_job_times_release(&r->of[i].times);
        ls_rehearsal_release(&x[i]);
    }
}
