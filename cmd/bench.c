/* bench.c: `lockstep bench`: the training step on made-up data, timed on all ranks. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/flops.h"
#include "bench/measure.h"
#include "bench/probe.h"
#include "profile.h"
#include "report_parts.h"
#include "train/rehearsal.h"

enum { VARIANTS = 2 }; /* the experiment, and what it is compared with */

/* What all ranks know. */
typedef struct job {
    const cli_args *args;
    cli_ranks ranks[VARIANTS];
    int n;
    char other[128]; /* the setting in which the second differs */
} job;

typedef struct result {
    ls_measure m;
    ls_spread rate; /* samples per second, of all ranks */
    double flops_per_sample, flop_s;
    size_t planned, used;
} result;

typedef struct results {
    result of[VARIANTS];
    ls_probe peak; /* of all ranks */
} results;

/* -- progress ---------------------------------------------------------------------------------------------
 */

typedef struct ticker {
    bool on;
    double last;
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

/* -- measuring --------------------------------------------------------------------------------------------
 */

/* Every number becomes that of the slowest rank. */
static ls_status slowest(ls_comm *c, ls_measure *m, ls_err *err)
{
    double x[] = {m->step_s.p16,    m->step_s.p50,    m->step_s.p84,     m->exposed_s.p16,
                  m->exposed_s.p50, m->exposed_s.p84, m->allocs_per_step};
    ls_status st;

    if (c == NULL) return LS_OK;
    st = ls_comm_max(c, x, (int)(sizeof x / sizeof x[0]), "comparing times", err);
    m->step_s = (ls_spread){x[0], x[1], x[2]};
    m->exposed_s = (ls_spread){x[3], x[4], x[5]};
    m->allocs_per_step = x[6];
    return st;
}

/* What the machine can do where all ranks ask it at once. */
static ls_status probe(ls_comm *c, int threads, ls_probe *peak, ls_err *err)
{
    double sums[2];
    ls_status st = LS_OK;

    if (c != NULL) LS_TRY(ls_comm_barrier(c, "before the probe", err));
    LS_TRY(ls_probe_machine(threads, peak, err));
    sums[0] = peak->flop_s;
    sums[1] = peak->read_b_s;
    if (c != NULL) LS_TRY(ls_comm_sum(c, sums, 2, "adding up the probe", err));
    peak->flop_s = sums[0];
    peak->read_b_s = sums[1];
out:
    return st;
}

static ls_status open_variant(ls_rehearsal *x, const job *j, int i, const ls_place *place, ls_comm *comm,
                              result *r, ls_err *err)
{
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR];
    const ls_status st =
        ls_rehearsal_open(x, &j->ranks[i].experiment, j->args->device, place->threads, comm, err);

    if (st != LS_OK) return st;
    r->planned = ls_session_memory(&x->session).total;
    r->used = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR] - before + ls_session_comm_bytes(&x->session);
    return LS_OK;
}

static ls_status measure(ls_rehearsal *x, const job *j, ls_comm *comm, results *r, ls_err *err)
{
    ls_status st = LS_OK;
    ticker t = {.on = !j->args->json && isatty(STDERR_FILENO) && x[0].session.rank == 0};
    const ls_measure_args how = {j->args->steps, j->args->seconds, tick, &t};
    ls_subject subjects[VARIANTS];
    ls_measure m[VARIANTS];

    for (int i = 0; i < j->n; i++) {
        subjects[i] = (ls_subject){ls_rehearsal_step, ls_rehearsal_exposed_s, &x[i]};
    }
    LS_TRY(ls_measure_subjects(subjects, j->n, &how, m, err));
    tick_end(&t);
    LS_TRY(probe(comm, x[0].session.threads, &r->peak, err));
    for (int i = 0; i < j->n; i++) {
        const ls_batch_plan *p = &x[i].session.plans[0];
        result *of = &r->of[i];
        LS_TRY(slowest(comm, &m[i], err));
        of->m = m[i];
        of->rate = ls_spread_rate(of->m.step_s, (double)x[i].update.samples);
        for (int k = 0; k < x[i].session.n_stages; k++)
            of->flops_per_sample += ls_plan_product_flops(p[k].plan) / (double)p[k].batch;
        of->flop_s = of->flops_per_sample * of->rate.p50;
    }
out:
    return st;
}

/* A run whose numbers blew up may be faster or slower than a real one: say so. */
static void warn_unless_finite(const ls_metric_sums *now)
{
    for (int i = 0; i < now->n; i++) {
        const double value = ls_metric_mean(now, now->name[i]);
        if (!isfinite(value)) ls_log(LS_LOG_WARN, "%s is %g after the last step", now->name[i], value);
    }
}

/* -- reporting --------------------------------------------------------------------------------------------
 */

static json_t *compared_json(const job *j, const results *r)
{
    const result *a = &r->of[0], *b = &r->of[1];

    return json_pack("{s:s, s:o, s:o, s:f, s:f}", "setting", j->other, "step_s",
                     report_spread_json(b->m.step_s), "samples_per_s", report_spread_json(b->rate),
                     "comm_exposed_s", b->m.exposed_s.p50, "ratio", a->m.step_s.p50 / b->m.step_s.p50);
}

static void print_json(const ls_rehearsal *x, const job *j, const results *r)
{
    const result *a = &r->of[0];
    const ls_session *s = &x->session;
    const ls_batch_plan *p = &s->plans[0];
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:i, s:o, s:o, s:f, s:f}", "event", "bench", "experiment",
                  ls_config_text(s->cfg, "name"), "device", j->args->device, "ranks", s->ranks, "threads",
                  s->threads, "batch_per_rank", (json_int_t)ls_config_int(s->cfg, "batch.per_rank"), "steps",
                  a->m.steps, "step_s", report_spread_json(a->m.step_s), "samples_per_s",
                  report_spread_json(a->rate), "comm_exposed_s", a->m.exposed_s.p50, "data_wait_s", 0.0);
    json_t *more = json_pack(
        "{s:f, s:f, s:f, s:I, s:I, s:f, s:i, s:f, s:f, s:f}", "flops_per_sample", a->flops_per_sample,
        "flop_s", a->flop_s, "peak_share", a->flop_s / r->peak.flop_s, "planned_bytes",
        (json_int_t)a->planned, "used_bytes", (json_int_t)a->used, "allocs_per_step", a->m.allocs_per_step,
        "warmup_steps", a->m.warmup_steps, "all_flops_per_sample", ls_plan_flops(p->plan) / (double)p->batch,
        "peak_flop_s", r->peak.flop_s, "peak_read_b_s", r->peak.read_b_s);

    json_object_update(o, more);
    json_decref(more);
    if (j->n > 1) json_object_set_new(o, "compared", compared_json(j, r));
    cli_print_json_take(o);
}

static void print_exchange(const ls_session *s, const result *a)
{
    char b[32];

    if (s->comm == NULL) return;
    printf("exchange      %.3f ms of a step not hidden (%.1f %%; median step of the rank with the most)",
           a->m.exposed_s.p50 * 1e3, 100 * a->m.exposed_s.p50 / a->m.step_s.p50);
    if (s->peers != NULL)
        printf(", %d buckets, %s", ls_peers_buckets(s->peers),
               ls_text_bytes((double)ls_peers_bytes(s->peers), b));
    printf("\n");
}

static void print_compared(const job *j, const results *r)
{
    const result *a = &r->of[0], *b = &r->of[1];

    if (j->n < 2) return;
    printf("with %-8s %.3f ms (%.3f to %.3f), in turns with the above: a step takes %.3f times as long as "
           "that\n",
           j->other, b->m.step_s.p50 * 1e3, b->m.step_s.p16 * 1e3, b->m.step_s.p84 * 1e3,
           a->m.step_s.p50 / b->m.step_s.p50);
    if (a->m.exposed_s.p50 > 0 || b->m.exposed_s.p50 > 0)
        printf("              exchange not hidden: %.3f ms\n", b->m.exposed_s.p50 * 1e3);
}

static void print_text(const ls_rehearsal *x, const job *j, const results *r)
{
    const result *a = &r->of[0];
    const ls_session *s = &x->session;
    const ls_metric_sums *now = &x->c.now;
    char t[3][32];

    printf("model         %s, batch %lld, device %s, ", s->trial->name,
           (long long)ls_config_int(s->cfg, "batch.per_rank"), j->args->device);
    if (s->ranks > 1) printf("%d ranks of ", s->ranks);
    printf("%d thread%s\n", s->threads, s->threads == 1 ? "" : "s");
    printf("measured      %d steps after %d of warm-up\n", a->m.steps, a->m.warmup_steps);
    printf("step          %.3f ms (central 68 %%: %.3f to %.3f)\n", a->m.step_s.p50 * 1e3,
           a->m.step_s.p16 * 1e3, a->m.step_s.p84 * 1e3);
    printf("samples/s     %.4g (%.4g to %.4g)%s\n", a->rate.p50, a->rate.p16, a->rate.p84,
           s->ranks > 1 ? " of all ranks" : "");
    print_exchange(s, a);
    print_compared(j, r);
    printf("FLOP/s        %s = %.1f %% of the measured peak %s (%s); %s per sample\n",
           ls_text_si(a->flop_s, t[0]), 100 * a->flop_s / r->peak.flop_s, ls_text_si(r->peak.flop_s, t[1]),
           r->peak.isa, ls_text_si(a->flops_per_sample, t[2]));
    if (a->flop_s > r->peak.flop_s)
        printf("              more than the peak: counted is the direct formula; Winograd convolutions do "
               "less\n");
    printf("memory read   %s/s measured\n", ls_text_bytes(r->peak.read_b_s, t[0]));
    printf("memory        %s planned, %s used%s\n", ls_text_bytes((double)a->planned, t[0]),
           ls_text_bytes((double)a->used, t[1]), s->ranks > 1 ? ", of each rank" : "");
    printf("allocations   %g per step\n", a->m.allocs_per_step);
    printf("last step    ");
    for (int i = 0; i < now->n; i++) printf(" %s %.5g", now->name[i], ls_metric_mean(now, now->name[i]));
    printf("\n");
}

/* -- ranks ------------------------------------------------------------------------------------------------
 */

static ls_status profile(const ls_rehearsal *x, const job *j, double step_s, ls_err *err)
{
    if (x->session.shards != NULL)
        return ls_fail(err, LS_INVALID, "--profile shows one plan; reproducible=true runs several at a time");
    return profile_print(x->session.plans[0].plan, j->args->json, x->session.rank == 0, step_s, err);
}

static ls_status run(const job *j, const ls_place *place, ls_comm *comm, ls_err *err)
{
    ls_rehearsal x[VARIANTS] = {0};
    results r = {0};
    ls_status st = LS_OK;

    if (place->size == 1) comm = NULL;
    for (int i = 0; i < j->n; i++) LS_TRY(open_variant(&x[i], j, i, place, comm, &r.of[i], err));
    LS_TRY(measure(x, j, comm, &r, err));
    if (place->rank == 0) warn_unless_finite(&x[0].c.now);
    if (j->args->profile) LS_TRY(profile(&x[0], j, r.of[0].m.step_s.p50, err));
    if (place->rank != 0) goto out;
    if (j->args->json)
        print_json(&x[0], j, &r);
    else
        print_text(&x[0], j, &r);
out:
    if (st != LS_OK && comm != NULL) ls_comm_abort(comm, err->text);
    for (int i = 0; i < j->n; i++) ls_rehearsal_release(&x[i]);
    return st;
}

static int bench_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    ls_err err = {0};

    if (run(arg, place, comm, &err) != LS_OK) return cli_fail_in_rank("bench", place, &err);
    return CLI_DONE;
}

/* -- the command ------------------------------------------------------------------------------------------
 */

/* What the experiment is compared with: --compare KEY=VALUE; a KEY that is true or false alone is turned
 * round.  The reproducible mode always shows its price. */
static ls_status choose_other(job *j, ls_err *err)
{
    ls_config *cfg = j->ranks[0].experiment.cfg;
    const char *key = j->args->compare;
    int at;

    if (key == NULL && ls_config_bool(cfg, "reproducible")) key = "reproducible";
    if (key == NULL) return LS_OK;
    at = ls_config_find(cfg, key);
    if (strchr(key, '=') != NULL)
        snprintf(j->other, sizeof j->other, "%s", key);
    else if (at >= 0 && ls_config_at(cfg, at).kind == LS_SETTING_BOOL)
        snprintf(j->other, sizeof j->other, "%s=%s", key, ls_config_bool(cfg, key) ? "false" : "true");
    else
        return ls_fail(err, LS_INVALID,
                       "--compare %s: write key=value, or the name of a setting that is true or false", key);
    return LS_OK;
}

static ls_status open_other(job *j, ls_err *err)
{
    cli_args args = *j->args;
    ls_status st;

    j->n = 1;
    st = choose_other(j, err);
    if (st != LS_OK || j->other[0] == '\0') return st;
    args.settings = ls_alloc(LS_MEM_CLI, sizeof *args.settings * ((size_t)args.n_settings + 1));
    if (args.settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = 0; i < args.n_settings; i++) args.settings[i] = j->args->settings[i];
    args.settings[args.n_settings++] = j->other;
    j->n = 2;
    st = cli_ranks_open(&j->ranks[1], args.model, true, &args, err);
    ls_free(args.settings);
    return st;
}

int cli_bench(const cli_args *args)
{
    job j = {.args = args};
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(cli_ranks_open(&j.ranks[0], args->model, true, args, &err));
    if (args->list_settings) {
        report_settings(&j.ranks[0].experiment, args->json);
        goto out;
    }
    LS_TRY(open_other(&j, &err));
    code = cli_ranks_run(&j.ranks[0], "bench", bench_rank, &j);
out:
    for (int i = 0; i < VARIANTS; i++) cli_ranks_release(&j.ranks[i]);
    return st == LS_OK ? code : cli_fail("bench", &err);
}
