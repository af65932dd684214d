/* summary.c: times of steps, and summary.json. */
#include "train/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "ckpt/ckpt.h"
#include "exec/results.h"
#include "train/limit.h"
#include "train/prefetch.h"
#include "train/shards.h"

#define KEPT_STEPS 65536 /* of the newest steps; older ones are overwritten */

void ls_summary_release(ls_summary *s)
{
    ls_free(s->steps);
    ls_free(s->exposed);
    ls_free(s->waiting);
    ls_free(s->sorted);
    s->steps = s->exposed = s->waiting = s->sorted = NULL;
    ls_pace_release(&s->pace);
    json_decref(s->init);
    s->init = NULL;
}

void ls_summary_note_step(ls_summary *s, const ls_step_times *t, int64_t n)
{
    const double now = (double)n / (t->all > 0 ? t->all : 1e-9);

    if (s->steps == NULL) {
        s->steps = ls_alloc(LS_MEM_CLI, KEPT_STEPS * sizeof *s->steps);
        s->exposed = ls_alloc(LS_MEM_CLI, KEPT_STEPS * sizeof *s->exposed);
        s->waiting = ls_alloc(LS_MEM_CLI, KEPT_STEPS * sizeof *s->waiting);
        s->sorted = ls_alloc(LS_MEM_CLI, KEPT_STEPS * sizeof *s->sorted);
        s->cap = s->steps != NULL && s->exposed != NULL && s->waiting != NULL && s->sorted != NULL
                     ? KEPT_STEPS
                     : 0;
    }
    if (n > s->batch) s->batch = n;
    if (s->cap > 0 && n == s->batch) {
        s->exposed[s->n_steps % s->cap] = t->exposed;
        s->waiting[s->n_steps % s->cap] = t->waiting;
        s->steps[s->n_steps++ % s->cap] = t->all;
    }
    s->compute_s += t->all;
    ls_pace_note(&s->pace, t->all - t->exposed);
    s->rate = s->rate > 0 ? 0.95 * s->rate + 0.05 * now : now;
}

ls_spread ls_summary_spread(const ls_summary *s, const double *latest)
{
    const size_t n = s->n_steps < s->cap ? s->n_steps : s->cap;

    return n > 0 ? ls_spread_keep(latest, n, s->sorted) : (ls_spread){NAN, NAN, NAN};
}

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *ls_metrics_json(const ls_metric_sums *m)
{
    json_t *o = json_object();

    for (int i = 0; i < m->n; i++) json_object_set_new(o, m->name[i], number(ls_metric_mean(m, m->name[i])));
    return o;
}

static json_t *spread_json(ls_spread s)
{
    return json_pack("{s:o, s:o, s:o}", "p16", number(s.p16), "p50", number(s.p50), "p84", number(s.p84));
}

/* Every second of this process that is not booked otherwise is idle. */
ls_ledger ls_summary_ledger(const ls_summary *s, const ls_counters *c)
{
    const double booked = s->compute_s + s->evaluate_s + s->data_s + s->checkpoint_s;
    ls_ledger l = c->ledger;

    l.compute += s->compute_s - s->comm_s;
    l.comm += s->comm_s;
    l.evaluate += s->evaluate_s;
    l.data += s->data_s;
    l.checkpoint += s->checkpoint_s;
    l.idle += s->wall_s > booked ? s->wall_s - booked : 0;
    return l;
}

json_t *ls_summary_load(const char *folder)
{
    char path[4200];
    json_t *o = NULL;

    snprintf(path, sizeof path, "%s/summary.json", folder);
    return ls_json_read(&o, path, LS_JSON_FILE_MAX, NULL) == LS_OK ? o : NULL;
}

void ls_summary_recall(ls_summary *s, const char *folder)
{
    const char *name;
    json_t *o = ls_summary_load(folder), *value;

    if (o == NULL) return;
    json_object_foreach(json_object_get(json_object_get(o, "metrics"), "last"), name, value)
        ls_metric_add(&s->last, name, json_is_number(value) ? json_number_value(value) : NAN, 1);
    s->last.samples = s->last.n > 0 ? 1 : 0;
    if (s->init == NULL) s->init = json_incref(json_object_get(o, "init"));
    json_decref(o);
}

static json_t *metrics(const ls_summary *s, const ls_counters *c, const ls_metric_sums *test)
{
    json_t *m = json_pack("{s:o}", "last", ls_metrics_json(&s->last));

    if (test->samples > 0) json_object_set_new(m, "test", ls_metrics_json(test));
    if (test->samples > 0) json_object_set_new(m, "test_samples", json_integer((json_int_t)test->samples));
    if (test->samples > 0 && s->tested != NULL) {
        json_object_set_new(m, "test_weights", json_string(s->tested));
        json_object_set_new(m, "test_step", json_integer((json_int_t)s->tested_step));
    }
    if (c->has_best)
        json_object_set_new(m, "best",
                            json_pack("{s:f, s:I}", "value", c->best, "step", (json_int_t)c->best_step));
    return m;
}

static void add_buckets(json_t *list, const ls_session *session, const ls_plan *p)
{
    int32_t at = 0;

    for (int b; (b = ls_plan_next_bucket(p, &at)) >= 0;)
        json_array_append_new(list, json_integer((json_int_t)ls_peers_bucket_bytes(session->peers, b)));
}

/* How weights in pieces are gathered, and why so. */
static void add_gathers(json_t *o, const ls_session *session)
{
    static const char *const again[] = {
        [LS_REGATHER_MOST] = "most", [LS_REGATHER_ALL] = "all", [LS_REGATHER_NONE] = "none"};
    char text[512];

    if (session->place.sharding != LS_SHARD_WEIGHTS) return;
    json_object_set_new(o, "gathers",
                        json_pack("{s:i, s:s, s:s}", "ahead", session->place.prefetch, "again",
                                  again[session->place.regather], "why",
                                  ls_prefetch_text(&session->gathers, text, sizeof text)));
}

/* How ranks exchange gradients, and what it costs rank 0.  Plans in the order in which they run: `lockstep
 * plan` lists the same. */
static json_t *comm_json(const ls_summary *s, const ls_session *session)
{
    json_t *buckets = json_array(), *o;

    for (int i = 0; session->comm != NULL && i < session->n_stages; i++) {
        add_buckets(buckets, session, ls_session_usual(session, i)->plan);
        if (session->split) add_buckets(buckets, session, session->updates[i].plan);
    }
    o = json_pack("{s:s, s:s, s:o, s:f, s:I, s:o, s:o, s:o}", "kind",
                  session->comm != NULL ? ls_comm_kind(session->comm) : "self", "strategy",
                  ls_config_choice(session->cfg, "parallel.strategy"), "buckets", buckets, "bytes_per_step",
                  ls_session_traffic(session), "sent_bytes", (json_int_t)s->sent_bytes, "exposed_s_per_step",
                  number(ls_summary_spread(s, s->exposed).p50), "waiting_s_per_step",
                  number(ls_summary_spread(s, s->waiting).p50), "rank_compute_s", ls_pace_json(&s->pace));
    add_gathers(o, session);
    if (session->place.carry && ls_plan_leaves_updates(ls_session_usual(session, 0)->plan))
        json_object_set_new(o, "carried", json_true());
    return o;
}

/* What computed, and what it took of memory of its own; else that is a part of the process, which peak_bytes
 * is of. */
static void add_device(json_t *o, const ls_session *session)
{
    const ls_device_memory m = ls_device_memory_of(session->dev);

    json_object_set_new(o, "device", json_string(ls_config_text(session->cfg, "device")));
    if (m.own)
        json_object_set_new(o, "device_bytes",
                            json_pack("{s:I, s:I}", "used", (json_int_t)m.used, "peak", (json_int_t)m.peak));
}

/* What is computed again, where that was asked for. */
static void add_recompute(json_t *o, const ls_session *session)
{
    int of;
    const int n = ls_session_recomputed(session, &of);

    if (ls_recompute_mode_of(session->cfg) != LS_RECOMPUTE_NONE)
        json_object_set_new(o, "recompute", json_pack("{s:i, s:i}", "units", n, "of", of));
}

/* Whether a plan has: its update then had gradients that were never added up. */
static bool has_failed(const ls_session *s)
{
    bool any = false;

    for (int i = 0; i < s->n_stages && !any; i++)
        any =
            ls_plan_failed(ls_session_usual(s, i)->plan) || (s->split && ls_plan_failed(s->updates[i].plan));
    for (int i = 0; i < s->n_plans && !any; i++) any = ls_plan_failed(s->plans[i].plan);
    return any;
}

json_t *ls_summary_json(const ls_summary *s, const ls_counters *c, const ls_session *session,
                        const char *state, const ls_metric_sums *test, const char *error)
{
    const ls_spread time = ls_summary_spread(s, s->steps), rate = ls_spread_rate(time, (double)s->batch);
    const ls_ledger ledger = ls_summary_ledger(s, c);
    char host[256] = "unknown", hash[20];
    struct rusage usage = {0};
    const bool cut = session->place.sharding == LS_SHARD_WEIGHTS;
    /* Of a run that failed, an update may be on its way, or was made of sums that never came. */
    const bool carried = session->place.carry && ls_plan_carries(ls_session_usual(session, 0)->plan),
               known = (!cut || s->hashed_at == c->step + 1) && !carried && !has_failed(session);
    uint64_t weights = s->weights;
    ls_err why = {0};
    json_t *o;

    gethostname(host, sizeof host - 1);
    getrusage(RUSAGE_SELF, &usage);
    if (!cut && ls_weights_xxh3(session->state, &weights, &why) != LS_OK) ls_log(LS_LOG_WARN, "%s", why.text);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)weights);
    o = json_pack("{s:s, s:s*, s:i, s:I, s:I, s:o, s:o, s:o, s:f, s:o, s:o, s:s*, s:I, s:I, s:s, s:s}",
                  "state", state, "error", error, "ranks", session->ranks, "steps", (json_int_t)c->step,
                  "epochs", (json_int_t)c->epoch, "metrics", metrics(s, c, test), "samples_per_s",
                  spread_json(rate), "step_s", spread_json(time), "wall_s", ls_ledger_total(&ledger),
                  "ledger_s", ls_ledger_json(&ledger), "comm", comm_json(s, session), "weights_xxh3",
                  known ? hash : NULL, "peak_bytes", (json_int_t)usage.ru_maxrss * 1024, "planned_bytes",
                  (json_int_t)ls_session_memory(session).total, "version", LS_VERSION, "host", host);
    if (o != NULL) add_device(o, session);
    if (o != NULL) add_recompute(o, session);
    if (o != NULL) json_object_set_new(o, "skipped_steps", json_integer((json_int_t)c->skipped));
    if (o != NULL && c->loss_scale != 0) json_object_set_new(o, "loss_scale", json_real(c->loss_scale));
    if (o != NULL && s->init != NULL) json_object_set(o, "init", s->init);
    if (o != NULL && s->ended_by != NULL) json_object_set_new(o, "ended_by", json_string(s->ended_by));
    if (o != NULL && s->ended_why[0] != '\0') json_object_set_new(o, "ended_why", json_string(s->ended_why));
    return o;
}
