/* bench_json.c: the result of `lockstep bench` as JSON; its fields are in docs/bench.md. */
#include <stdio.h>

#include "bench.h"
#include "report_parts.h"

static json_t *probe_json(const ls_probe *p)
{
    return json_pack("{s:f, s:f, s:f}", "flop_s", p->flop_s, "read_b_s", p->read_b_s, "copy_b_s",
                     p->copy_b_s);
}

static json_t *ranks_json(const ls_job_times *t)
{
    json_t *all = json_array();

    for (int r = 0; r < t->ranks; r++) {
        const ls_rank_times *x = &t->of[r];
        json_array_append_new(all, json_pack("{s:i, s:s, s:o, s:o, s:f, s:f, s:f}", "rank", r, "host",
                                             x->host, "samples_per_s", report_spread_json(x->rate), "step_s",
                                             report_spread_json(x->step_s), "own_s", x->own_s,
                                             "comm_exposed_s", x->exposed_s, "data_wait_s", x->data_wait_s));
    }
    return all;
}

/* The ratio is of two step times that were taken in turns: those of two runs would not be comparable. */
static json_t *against_json(const bench_job *j, const bench_results *r)
{
    const bench_result *b = &r->of[1];

    return json_pack("{s:s, s:o, s:o, s:f, s:f, s:f}", "setting", j->other, "step_s",
                     report_spread_json(b->times.spread), "samples_per_s", report_spread_json(b->rate),
                     "comm_exposed_s", b->times.exposed_s, "data_wait_s", b->times.data_wait_s, "ratio",
                     r->ratio);
}

/* What was measured. */
static json_t *subject_json(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    const ls_session *s = &x->session;
    json_t *settings = json_array();
    char hash[24];

    for (int i = 0; i < j->args->n_settings; i++)
        json_array_append_new(settings, json_string(j->args->settings[i]));
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)ls_plan_hash(ls_session_usual(s, 0)->plan));
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:i, s:b, s:s, s:s, s:i, s:i, s:i, s:i, s:O*, s:i, s:b, s:I, s:I, s:s, "
        "s:s, s:s, s:I}",
        "event", "bench", "experiment", ls_config_text(s->cfg, "name"), "settings", settings, "strategy",
        ls_config_choice(s->cfg, "parallel.strategy"), "wire", ls_config_choice(s->cfg, "parallel.wire"),
        "shard_group", (int)ls_config_int(s->cfg, "parallel.shard_group"), "overlap",
        (int)ls_config_bool(s->cfg, "parallel.overlap"), "device", ls_config_text(s->cfg, "device"), "mode",
        j->real[0] ? "real" : "synthetic", "ranks", s->ranks, "threads", s->threads, "hosts", r->crowd.hosts,
        "beside", j->beside.n, "beside_step_s", r->beside_s, "cores", r->crowd.cores, "oversubscribed",
        r->crowd.oversubscribed, "batch_per_rank", (json_int_t)ls_config_int(s->cfg, "batch.per_rank"),
        "batch_global", (json_int_t)x->update.samples, "plan_hash", hash, "version", LS_VERSION, "host",
        r->of[0].times.of[0].host, "time", (json_int_t)(r->stop_ms / 1000));
}

static json_t *times_json(const bench_result *a)
{
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:f, s:f, s:f, s:i, s:i, s:o}", "steps", a->m.steps,
                     "warmup_steps", a->m.warmup_steps, "step_s", report_spread_json(a->times.spread),
                     "samples_per_s", report_spread_json(a->rate), "mean_samples_per_s",
                     report_number_json(a->mean.mean), "stderr_samples_per_s",
                     report_number_json(a->mean.error), "batches", a->mean.batches, "comm_exposed_s",
                     a->times.exposed_s, "data_wait_s", a->times.data_wait_s, "stolen_share", a->times.stolen,
                     "slowest_rank", a->times.slowest, "fastest_rank", a->times.fastest, "per_rank",
                     ranks_json(&a->times));
}

static json_t *memory_json(const bench_result *a)
{
    const ls_device_memory *m = &a->memory;

    if (!m->own) return json_pack("{s:s, s:I}", "of", "host", "host_bytes", (json_int_t)a->used);
    return json_pack("{s:s, s:I, s:I, s:I}", "of", "device", "host_bytes", (json_int_t)(a->used - m->used),
                     "device_bytes", (json_int_t)m->used, "device_peak_bytes", (json_int_t)m->peak);
}

static json_t *costs_json(const bench_results *r)
{
    const bench_result *a = &r->of[0];

    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:o, s:I, s:I, s:o, s:f, s:f}",
                     "flops_per_sample", a->flops_per_sample, "all_flops_per_sample", a->all_flops_per_sample,
                     "flop_s", a->flop_s, "peak_share", a->flop_s / r->peak.flop_s, "peak_flop_s",
                     r->peak.flop_s, "peak_read_b_s", r->peak.read_b_s, "peak_copy_b_s", r->peak.copy_b_s,
                     "peak_isa", r->peak.isa, "peak_core", probe_json(&r->core), "planned_bytes",
                     (json_int_t)a->planned, "used_bytes", (json_int_t)a->used, "used_memory", memory_json(a),
                     "allocs_per_step", a->times.allocs_per_step, "bytes_s", a->bytes_s);
}

json_t *bench_json(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    json_t *o = subject_json(x, j, r), *times = times_json(&r->of[0]), *costs = costs_json(r);

    json_object_update(o, times);
    json_object_update(o, costs);
    json_decref(times);
    json_decref(costs);
    if (j->n > 1) json_object_set_new(o, "compared", against_json(j, r));
    return o;
}

void bench_print_json(const ls_rehearsal *x, const bench_job *j, const bench_results *r)
{
    cli_print_json_take(bench_json(x, j, r));
}
