/* bench_formats.c: the result of `lockstep bench` in the layouts of other benchmarks, for tools and tables
 * that expect them; docs/bench.md has an example of each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "report_parts.h"

/* -- Horovod's synthetic benchmark ------------------------------------------------------------------------
 */

/* 1.96 standard deviations of n numbers (of all, not estimated from a sample), as that benchmark prints. */
static double reach_of(const double *x, int n, double mean)
{
    double squares = 0;

    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return 1.96 * sqrt(squares / n);
}

static void print_horovod(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    const ls_job_times *t = &r->of[0].times;
    const double ranks = t->ranks, mean = ls_mean_of(t->iteration, (size_t)t->iterations).mean;
    const double reach = reach_of(t->iteration, t->iterations, mean);

    (void)j;
    printf("Model: %s\nBatch size: %lld\nNumber of CPUs: %d\n", x->session.trial->name,
           (long long)ls_config_int(x->session.cfg, "batch.per_rank"), t->ranks);
    printf("Running warmup...\nRunning benchmark...\n");
    for (int i = 0; i < t->iterations; i++)
        printf("Iter #%d: %.1f img/sec per CPU\n", i, t->iteration[i] / ranks);
    printf("Img/sec per CPU: %.1f +-%.1f\n", mean / ranks, reach / ranks);
    printf("Total img/sec on %d CPU(s): %.1f +-%.1f\n", t->ranks, mean, reach);
    printf(
        "Differs from Horovod's: every rank is timed and the total is their sum (there: rank 0's rate times "
        "size); a CPU is a rank of %d thread%s; %d steps of warm-up; %d steps an iteration\n",
        x->session.threads, x->session.threads == 1 ? "" : "s", r->of[0].m.warmup_steps,
        t->steps < LS_ITERATION_STEPS ? t->steps : LS_ITERATION_STEPS);
}

/* -- the table of the cosmoGAN benchmark ------------------------------------------------------------------
 */

static void print_cosmogan(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    const bench_result *a = &r->of[0];

    (void)j;
    printf(
        "| ranks | images/s median | central 68 %% | p16 | p84 | step time |\n|---|---|---|---|---|---|\n");
    printf("| %d | %.4g | %.4g | %.4g | %.4g | %.4g s |\n", x->session.ranks, a->rate.p50,
           a->rate.p84 - a->rate.p16, a->rate.p16, a->rate.p84, a->times.spread.p50);
    printf("images/s = samples of all ranks / step time; central 68 %%: p84 - p16, the full width; %d steps "
           "after %d of warm-up; batch %lld a rank\n",
           a->m.steps, a->m.warmup_steps, (long long)ls_config_int(x->session.cfg, "batch.per_rank"));
}

/* -- MLPerf's log -----------------------------------------------------------------------------------------
 */

/* One line; takes over value and metadata. */
static void mllog(int64_t time_ms, const char *type, const char *key, json_t *value, json_t *metadata)
{
    json_t *o = json_pack("{s:s, s:I, s:s, s:s, s:o, s:o}", "namespace", "", "time_ms", (json_int_t)time_ms,
                          "event_type", type, "key", key, "value", value, "metadata", metadata);

    printf(":::MLLOG ");
    json_dumpf(o, stdout, JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(o);
}

static void mllog_point(int64_t time_ms, const char *key, json_t *value)
{
    mllog(time_ms, "POINT_IN_TIME", key, value, json_object());
}

static void print_mlperf(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    const bench_result *a = &r->of[0];
    ls_config *cfg = x->session.cfg;

    mllog_point(r->begin_ms, "submission_benchmark", json_string(ls_config_text(cfg, "name")));
    mllog_point(r->begin_ms, "submission_platform",
                json_sprintf("host=%s hosts=%d ranks=%d threads=%d", a->times.of[0].host, r->crowd.hosts,
                             x->session.ranks, x->session.threads));
    mllog_point(r->begin_ms, "seed", json_integer(ls_config_int(cfg, "seed")));
    mllog_point(r->begin_ms, "global_batch_size", json_integer(x->update.samples));
    mllog_point(r->begin_ms, "gradient_accumulation_steps",
                json_integer(ls_config_int(cfg, "parallel.accumulate")));
    mllog(r->begin_ms, "INTERVAL_START", "init_start", json_null(), json_object());
    mllog(r->run_ms, "INTERVAL_END", "init_stop", json_null(), json_object());
    mllog(r->run_ms, "INTERVAL_START", "run_start", json_null(), json_object());
    mllog(r->stop_ms, "POINT_IN_TIME", "tracked_stats",
          json_pack("{s:f, s:f, s:f, s:f, s:o}", "throughput", a->mean.mean, "samples_per_second_p16",
                    a->rate.p16, "samples_per_second_p50", a->rate.p50, "samples_per_second_p84", a->rate.p84,
                    "samples_per_second_stderr", report_number_json(a->mean.error)),
          json_pack("{s:i, s:i, s:s}", "step", a->m.steps, "warmup_steps", a->m.warmup_steps, "data",
                    j->real[0] ? "real" : "synthetic"));
    mllog(r->stop_ms, "INTERVAL_END", "run_stop", json_null(), json_pack("{s:s}", "status", "success"));
}

/* -- names ------------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    bench_printer print;
} formats[] = {{"text", bench_print_text},
               {"json", bench_print_json},
               {"horovod", print_horovod},
               {"cosmogan", print_cosmogan},
               {"mlperf", print_mlperf}};

enum { N_FORMATS = sizeof formats / sizeof formats[0] };

ls_status bench_format(const char *name, bench_printer *out, ls_err *err)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (strcmp(name, formats[i].name) == 0) {
            *out = formats[i].print;
            return LS_OK;
        }
    return ls_fail(err, LS_INVALID, "--format %s: expected " BENCH_FORMATS, name);
}
