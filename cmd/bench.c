/* bench.c: `lockstep bench`: a training step on made-up data, timed. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/flops.h"
#include "bench/measure.h"
#include "bench/probe.h"
#include "profile.h"
#include "report.h"

typedef struct result {
    ls_measure m;
    ls_probe peak;
    ls_spread rate; /* samples per second */
    double flops_per_sample, flop_s;
    size_t planned, used;
} result;

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

static ls_status measure(cli_experiment *x, const cli_args *args, result *r, ls_err *err)
{
    ls_status st = LS_OK;
    ticker t = {.on = !args->json && isatty(STDERR_FILENO)};
    ls_measure_args how = {args->steps, args->seconds, x->seed, tick, &t};

    ls_state_init(x->state, x->seed);
    ls_step_write_defaults(x->step, x->plan);
    ls_step_write_synthetic(x->step, x->plan, x->seed);
    r->planned = ls_plan_memory_of(x->plan).total;
    r->used = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR];
    LS_TRY(ls_measure_plan(x->plan, &how, &r->m, err));
    tick_end(&t);
    LS_TRY(ls_probe_machine(x->threads, &r->peak, err));
    r->rate = ls_spread_rate(r->m.step_s, (double)x->batch);
    r->flops_per_sample = ls_plan_product_flops(x->plan) / (double)x->batch;
    r->flop_s = r->flops_per_sample * r->rate.p50;
out:
    return st;
}

/* A run whose numbers blew up may be faster or slower than a real one: say so. */
static void warn_unless_finite(const ls_plan *p)
{
    for (int i = 0; i < ls_plan_fetch_count(p); i++) {
        const ls_tensor *t = ls_plan_fetch_at(p, i);
        if (t->dtype == LS_F32 && t->shape.rank == 0 && !isfinite(*(const float *)t->data))
            ls_log(LS_LOG_WARN, "%s is %g after the last step", t->name, (double)*(const float *)t->data);
    }
}

/* -- reporting --------------------------------------------------------------------------------------------
 */

static void print_json(const cli_experiment *x, const cli_args *args, const result *r)
{
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:i, s:o, s:o, s:f, s:f}", "event", "bench", "experiment",
                  x->name, "device", args->device, "ranks", (int)ls_config_int(x->cfg, "ranks"), "threads",
                  x->threads, "batch_per_rank", (json_int_t)x->batch, "steps", r->m.steps, "step_s",
                  report_spread_json(r->m.step_s), "samples_per_s", report_spread_json(r->rate),
                  "comm_exposed_s", 0.0, "data_wait_s", 0.0);
    json_t *more = json_pack(
        "{s:f, s:f, s:f, s:I, s:I, s:f, s:i, s:f, s:f, s:f}", "flops_per_sample", r->flops_per_sample,
        "flop_s", r->flop_s, "peak_share", r->flop_s / r->peak.flop_s, "planned_bytes",
        (json_int_t)r->planned, "used_bytes", (json_int_t)r->used, "allocs_per_step", r->m.allocs_per_step,
        "warmup_steps", r->m.warmup_steps, "all_flops_per_sample", ls_plan_flops(x->plan) / (double)x->batch,
        "peak_flop_s", r->peak.flop_s, "peak_read_b_s", r->peak.read_b_s);

    json_object_update(o, more);
    json_decref(more);
    cli_print_json_take(o);
}

static void print_text(const cli_experiment *x, const cli_args *args, const result *r)
{
    char a[32], b[32], c[32];

    printf("model         %s, batch %lld, device %s, %d thread%s\n", x->trial->name, (long long)x->batch,
           args->device, x->threads, x->threads == 1 ? "" : "s");
    printf("measured      %d steps after %d of warm-up\n", r->m.steps, r->m.warmup_steps);
    printf("step          %.3f ms (central 68 %%: %.3f to %.3f)\n", r->m.step_s.p50 * 1e3,
           r->m.step_s.p16 * 1e3, r->m.step_s.p84 * 1e3);
    printf("samples/s     %.4g (%.4g to %.4g)\n", r->rate.p50, r->rate.p16, r->rate.p84);
    printf("FLOP/s        %s = %.1f %% of the measured peak %s (%s); %s per sample\n",
           ls_text_si(r->flop_s, a), 100 * r->flop_s / r->peak.flop_s, ls_text_si(r->peak.flop_s, b),
           r->peak.isa, ls_text_si(r->flops_per_sample, c));
    if (r->flop_s > r->peak.flop_s)
        printf("              more than the peak: counted is the direct formula; Winograd convolutions do "
               "less\n");
    printf("memory read   %s/s measured\n", ls_text_bytes(r->peak.read_b_s, a));
    printf("memory        %s planned, %s used\n", ls_text_bytes((double)r->planned, a),
           ls_text_bytes((double)r->used, b));
    printf("allocations   %g per step\n", r->m.allocs_per_step);
    printf("last step    ");
    for (int i = 0; i < ls_plan_fetch_count(x->plan); i++) {
        const ls_tensor *t = ls_plan_fetch_at(x->plan, i);
        if (t->dtype == LS_F32 && t->shape.rank == 0) printf(" %s %.5g", t->name, (double)*(float *)t->data);
    }
    printf("\n");
}

static ls_status run(cli_experiment *x, const cli_args *args, ls_err *err)
{
    result r = {0};
    ls_status st = LS_OK;

    LS_TRY(measure(x, args, &r, err));
    warn_unless_finite(x->plan);
    if (args->profile) LS_TRY(profile_print(x->plan, args->json, r.m.step_s.p50, err));
    if (args->json)
        print_json(x, args, &r);
    else
        print_text(x, args, &r);
out:
    return st;
}

int cli_bench(const cli_args *args)
{
    cli_experiment x = {0};
    ls_err err = {0};
    ls_status st;
    int rc = CLI_DONE;

    st = args->list_settings ? cli_experiment_configure(&x, args, &err) : cli_experiment_open(&x, args, &err);
    if (st == LS_OK && args->list_settings)
        report_settings(&x, args->json);
    else if (st == LS_OK)
        st = run(&x, args, &err);
    if (st != LS_OK) rc = cli_fail("bench", &err);
    cli_experiment_release(&x);
    return rc;
}
