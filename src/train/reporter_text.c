/* reporter_text.c: the first and the last words of a run. */
#include "train/reporter_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/units.h"
#include "events/table.h"
#include "train/layers.h"
#include "train/limit.h"
#include "train/resume.h"

/* -- beginning --------------------------------------------------------------------------------------------
 */

static void add_layers(ls_text *out, const ls_reporter_options *o)
{
    ls_layers layers = {0};

    if (ls_layers_of_session(&layers, o->session, LS_LAYER_ROWS, NULL) != LS_OK ||
        ls_layers_table(&layers, out, NULL) != LS_OK)
        out->failed = true;
    ls_layers_release(&layers);
    ls_text_add(out, "\n");
}

static void add_init(ls_text *out, const json_t *init)
{
    const json_int_t kept = json_integer_value(json_object_get(init, "kept"));

    if (init == NULL) return;
    ls_text_add(out, "weights       from %s (xxh3 %s)", json_string_value(json_object_get(init, "path")),
                json_string_value(json_object_get(init, "xxh3")));
    if (kept > 0) ls_text_add(out, "; %lld variables have new ones", (long long)kept);
    ls_text_add(out, "\n");
}

/* The one line that says how the learning rate came about. */
static void add_lr(ls_text *out, const ls_reporter_options *o)
{
    const ls_lr_schedule *s = o->schedule;

    ls_text_add(out, "learning rate %g for batches of %lld", s->peak, (long long)o->batch);
    if (s->peak != s->base) ls_text_add(out, " (%g scaled)", s->base);
    if (s->warmup_steps > 0)
        ls_text_add(out, ", warm-up from %g over %lld steps", s->base, (long long)s->warmup_steps);
    ls_text_add(out, "\n");
}

static const char *or_empty(const char *value)
{
    return value[0] != '\0' ? value : "\"\"";
}

/* What is otherwise than when the run was left. */
static void add_changes(ls_text *out, const ls_reporter_options *o)
{
    ls_change c;

    for (int at = 0;
         o->before != NULL && ls_resume_next_change(o->before->cfg, o->experiment->cfg, &at, &c);) {
        ls_text_add(out, "changed       %s: %s -> %s", c.key, or_empty(c.before), or_empty(c.now));
        /* Devices round differently: who compares bits must not overlook it. */
        if (strcmp(c.key, "device") == 0)
            ls_text_add(out, " (the run was left on %s and goes on with %s)", c.before, c.now);
        ls_text_add(out, "\n");
    }
    if (o->step_samples != o->batch)
        ls_text_add(out, "steps         in settings are of %lld samples, as when the run began\n",
                    (long long)o->step_samples);
}

static void add_recompute(ls_text *out, const ls_session *s)
{
    const ls_recompute_mode mode = ls_recompute_mode_of(s->cfg);
    int of;
    const int n = ls_session_recomputed(s, &of);

    if (mode != LS_RECOMPUTE_NONE && (n > 0 || s->dev->limit > 0))
        ls_text_add(out, "recompute     %d of %d units%s\n", n, of,
                    mode == LS_RECOMPUTE_AUTO ? ", by memory.limit" : "");
}

void lsi_report_beginning(ls_text *out, const ls_reporter_options *o)
{
    const ls_batch_plan *p = ls_session_usual(o->session, 0);
    char params[32], memory[32];

    add_layers(out, o);
    ls_text_add(out, "model         %s, %s parameters, %s planned, %d thread%s\n", o->experiment->trial->name,
                ls_text_count(ls_step_count_params(p->step, "*"), params),
                ls_text_bytes((double)ls_session_memory(o->session).total, memory), o->session->threads,
                o->session->threads == 1 ? "" : "s");
    add_recompute(out, o->session);
    ls_text_add(out, "data          %lld samples to train", (long long)o->epoch_samples);
    if (o->val != NULL) ls_text_add(out, ", %lld to validate", (long long)ls_dataset_count(o->val));
    ls_text_add(out, ", %lld to test\n", (long long)ls_dataset_count(o->test));
    add_init(out, o->init);
    add_lr(out, o);
    ls_text_add(out, "run           %s, %lld steps%s\n", o->folder, (long long)o->total_steps,
                o->resumed_at >= 0 ? ", continued" : "");
    if (o->resumed_at >= 0) ls_text_add(out, "from          step %lld\n", (long long)o->resumed_at);
    if (o->resumed_at >= 0) add_changes(out, o);
}

/* -- the end ----------------------------------------------------------------------------------------------
 */

static void print_table(ls_table *t, ls_text *out)
{
    if (t == NULL || ls_table_print(t, out, NULL) != LS_OK) out->failed = true;
    ls_table_destroy(t);
    ls_text_add(out, "\n");
}

static void number_text(const json_t *v, char *buf, size_t size)
{
    buf[0] = '\0';
    if (json_is_number(v)) snprintf(buf, size, "%.4f", json_number_value(v));
}

/* One row per metric: the last validation, the best one where it is kept count of, the test pass. */
static void add_metrics(ls_text *out, const ls_reporter_options *o, const ls_counters *c,
                        const json_t *metrics)
{
    const json_t *last = json_object_get(metrics, "last"), *test = json_object_get(metrics, "test");
    const json_t *rows = json_object_size(last) > 0 ? last : test;
    const char *best = ls_config_text(o->experiment->cfg, "train.best_metric"), *slash = strchr(best, '/'),
               *name;
    json_t *value;
    ls_table *t = NULL;

    if (json_object_size(rows) == 0) return;
    if (ls_table_create(&t, "lrrlr", NULL) != LS_OK) out->failed = true;
    if (t == NULL) return;
    ls_table_row(t, (const char *[]){"metric", "validation", "best", "", "test"});
    ls_table_rule(t);
    json_object_foreach((json_t *)rows, name, value)
    {
        char a[32], b[32] = "", step[32] = "", d[32];
        number_text(json_object_get(last, name), a, sizeof a);
        if (c->has_best && strcmp(name, slash != NULL ? slash + 1 : best) == 0) {
            snprintf(b, sizeof b, "%.4f", c->best);
            snprintf(step, sizeof step, "step %lld", (long long)c->best_step);
        }
        number_text(json_object_get(test, name), d, sizeof d);
        ls_table_row(t, (const char *[]){name, a, b, step, d});
    }
    print_table(t, out);
}

static void add_time(ls_text *out, const json_t *summary)
{
    const json_t *ledger = json_object_get(summary, "ledger_s");
    const double wall = json_number_value(json_object_get(summary, "wall_s"));
    char seconds[32], share[32];
    ls_table *t = NULL;
    const char *name;
    json_t *value;

    if (ls_table_create(&t, "lrr", NULL) != LS_OK) out->failed = true;
    if (t == NULL) return;
    ls_table_row(t, (const char *[]){"time", "seconds", "share"});
    ls_table_rule(t);
    json_object_foreach((json_t *)ledger, name, value)
    {
        const double s = json_number_value(value);
        if (s == 0) continue;
        snprintf(seconds, sizeof seconds, "%.2f", s);
        snprintf(share, sizeof share, "%.1f %%", 100 * s / (wall > 0 ? wall : 1));
        ls_table_row(t, (const char *[]){name, seconds, share});
    }
    ls_table_rule(t);
    snprintf(seconds, sizeof seconds, "%.2f", wall);
    ls_table_row(t, (const char *[]){"wall", seconds, ""});
    print_table(t, out);
}

static double rate_of(const json_t *summary, const char *key)
{
    return json_number_value(json_object_get(json_object_get(summary, "samples_per_s"), key));
}

static const char *rate_text(const json_t *summary, const char *key, char *buf)
{
    return ls_units_rate(rate_of(summary, key), buf);
}

/* Where the link `last` of the run leads to. */
static void add_checkpoint(ls_text *out, const char *folder)
{
    char link[4200], name[256];
    ssize_t n;

    snprintf(link, sizeof link, "%s/checkpoints/last", folder);
    n = readlink(link, name, sizeof name - 1);
    if (n > 0) ls_text_add(out, "checkpoint    %s/checkpoints/%.*s\n", folder, (int)n, name);
}

static void add_tested(ls_text *out, const ls_metric_sums *test, const json_t *metrics)
{
    const char *weights = json_string_value(json_object_get(metrics, "test_weights"));

    ls_text_add(out, "tested        on %lld samples", (long long)test->samples);
    if (weights != NULL)
        ls_text_add(out, " with the %s weights, of step %lld", weights,
                    (long long)json_integer_value(json_object_get(metrics, "test_step")));
    ls_text_add(out, "\n");
}

void lsi_report_ending(ls_text *out, const ls_reporter_options *o, const ls_counters *c,
                       const ls_metric_sums *test, const json_t *summary)
{
    const char *why = json_string_value(json_object_get(summary, "ended_why"));
    const char *weights = json_string_value(json_object_get(summary, "weights_xxh3"));
    char samples[32], mid[32], low[32], high[32];

    ls_text_add(out, "\n");
    add_metrics(out, o, c, json_object_get(summary, "metrics"));
    add_time(out, summary);
    if (why != NULL) ls_text_add(out, "ended early   %s\n", why);
    if (test == NULL)
        ls_text_add(out, "stopped       at step %lld; go on with --resume\n", (long long)c->step);
    else
        add_tested(out, test, json_object_get(summary, "metrics"));
    ls_text_add(out, "samples       %s\n", ls_text_count(c->epoch * o->epoch_samples + c->position, samples));
    if (rate_of(summary, "p50") > 0)
        ls_text_add(out, "samples/s     %s (central 68 %%: %s to %s)\n", rate_text(summary, "p50", mid),
                    rate_text(summary, "p16", low), rate_text(summary, "p84", high));
    add_checkpoint(out, o->folder);
    if (weights != NULL) ls_text_add(out, "weights       %s\n", weights);
    ls_text_add(out, "run           %s\n", o->folder);
}
