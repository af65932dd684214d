/* predict_run_json.c: whole runs as JSON (docs/predict.md has the fields). */
#include <math.h>

#include "predict_run.h"
#include "report_parts.h"

static json_t *interval_json(ls_interval i)
{
    return json_pack("{s:o, s:o, s:o}", "lo", report_number_json(i.lo), "mid", report_number_json(i.mid),
                     "hi", report_number_json(i.hi));
}

static json_t *limits_json(unsigned limits)
{
    json_t *list = json_array();

    for (int k = 0; k < LS_LIMIT_N; k++)
        if ((limits >> k & 1) != 0)
            json_array_append_new(list, json_string(ls_limit_name((ls_limit_kind)k) + 2));
    return list;
}

static json_t *failures_json(const predict_run *r, const ls_offer *o)
{
    return json_pack("{s:f, s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:f}", "mtbf_s", r->failures.mtbf_s,
                     "checkpoint_s", r->failures.checkpoint_s, "interval_s",
                     r->ends_alone ? json_null() : json_real(r->daly_s), "young_s", r->young_s, "expected",
                     r->expected.failures, "checkpoints_s", r->expected.checkpoints_s, "lost_s",
                     r->expected.lost_s, "lost_share", 1 - r->training.mid / o->seconds.mid, "scatter_s",
                     r->expected.scatter_s);
}

json_t *predict_run_json(const predict_table *t, const predict_row *r)
{
    static const char *const how[] = {"given", "measured", "interpolated"};
    const predict_run *run = &t->runs->of[r - t->rows];
    const ls_offer *o = run->offer >= 0 ? &t->runs->offers[run->offer] : NULL;
    json_t *x;

    if (o == NULL) return json_pack("{s:s}", "error", run->why);
    x = json_pack("{s:I, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:b}", "global_batch",
                  (json_int_t)run->batch, "steps", interval_json(run->steps), "steps_from",
                  how[run->reached.how], "at_most", (int)run->reached.at_most, "training_s",
                  interval_json(run->training), "time_s", interval_json(o->seconds), "cost",
                  interval_json(o->cost), "beyond", limits_json(o->beyond), "may_be_beyond",
                  limits_json(o->may), "front", (int)o->front);
    if (t->runs->wish.fails) json_object_set_new(x, "failures", failures_json(run, o));
    return x;
}

static json_t *point_json(const predict_runs *q, int offer)
{
    return offer >= 0 ? json_integer(q->offers[offer].row) : json_null();
}

static json_t *paying_json(const predict_table *t)
{
    const predict_runs *q = t->runs;
    json_t *list = json_array();
    ls_paying p;

    for (int line = 0; line < t->n_lines; line++) {
        if (!ls_offers_pay(q->offers, q->n, line, &p)) continue;
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "line", t->line[line], "last",
                                              point_json(q, p.last), "next", point_json(q, p.next),
                                              "time_ratio", p.next >= 0 ? json_real(p.seconds) : json_null(),
                                              "cost_ratio", p.next >= 0 ? json_real(p.cost) : json_null()));
    }
    return list;
}

static json_t *positive_json(double x)
{
    return x > 0 ? json_real(x) : json_null();
}

json_t *predict_runs_json(const predict_table *t)
{
    const predict_runs *q = t->runs;
    const predict_wish *w = &q->wish;
    const int64_t limit = w->accuracy > 0 ? ls_trainings_limit(&q->trainings) : 0;
    double excess;
    const int nearest = ls_offers_nearest(q->offers, q->n, &w->limits, &excess);
    json_t *x = json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "until", w->until,
                          "accuracy", positive_json(w->accuracy), "samples_per_epoch",
                          w->samples > 0 ? json_integer((json_int_t)w->samples) : json_null(), "cost_in",
                          w->price > 0 ? "money" : "machine-hours", "price", positive_json(w->price),
                          "budget", positive_json(w->limits.most[LS_LIMIT_BUDGET]), "deadline_s",
                          positive_json(w->limits.most[LS_LIMIT_DEADLINE]), "cheapest",
                          point_json(q, q->cheapest), "fastest", point_json(q, q->fastest), "nearest",
                          point_json(q, q->cheapest < 0 ? nearest : -1), "pays", paying_json(t));

    if (w->accuracy > 0) {
        json_object_set_new(x, "study", json_string(q->trainings.from));
        json_object_set_new(x, "batch_limit", limit > 0 ? json_integer((json_int_t)limit) : json_null());
    }
    if (w->fails && w->checkpoint_s <= 0)
        json_object_set_new(x, "checkpoint_bytes", json_real(w->checkpoint_bytes));
    return x;
}
