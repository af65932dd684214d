/* report.c: one place where a run's numbers go out. */
#include "train/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "events/events.h"
#include "events/metrics.h"
#include "events/progress.h"
#include "train/periods.h"

struct ls_report {
    ls_report_options o;
    ls_events *events;
    ls_metrics *metrics;
    ls_progress *progress;
    ls_period every;
    double started;
};

/* Metrics with their tags, for the writers. */
typedef struct tagged {
    char tag[LS_MAX_METRICS][LS_METRIC_NAME + 24];
    ls_metric value[LS_MAX_METRICS];
    int n;
} tagged;

static void tag_all(tagged *t, const ls_metric_sums *m, const char *phase, const char *ending)
{
    t->n = m->n;
    for (int i = 0; i < m->n; i++) {
        snprintf(t->tag[i], sizeof t->tag[i], "%s/%s%s", phase, m->name[i], ending);
        t->value[i] = (ls_metric){t->tag[i], ls_metric_mean(m, m->name[i])};
    }
}

static double epochs_done(const ls_report *r, const ls_counters *c)
{
    return (double)c->epoch + (double)c->position / (double)r->o.epoch_samples;
}

/* One report to all files, and as a JSON line where those are wanted. */
static void emit(ls_report *r, const ls_counters *c, const char *event, const tagged *t)
{
    const ls_metrics_line line = {.step = c->step - 1,
                                  .epoch = epochs_done(r, c),
                                  .time_s = c->seconds + ls_clock_seconds() - r->started,
                                  .values = t->value,
                                  .n_values = t->n};

    for (int i = 0; i < t->n; i++) ls_events_scalar(r->events, t->tag[i], c->step - 1, t->value[i].value);
    ls_events_scalar(r->events, "epoch", c->step - 1, (double)c->epoch);
    ls_metrics_write(r->metrics, &line);
    if (r->o.json) {
        ls_text text = {0};
        ls_text_add(&text, "{\"event\": \"%s\", ", event);
        ls_metrics_format(&text, &line);
        if (!text.failed) printf("%s}\n", text.data);
        fflush(stdout);
        ls_text_release(&text);
    }
}

/* -- beginning
 * --------------------------------------------------------------------------------------------------- */

static void write_hparams(ls_report *r)
{
    const ls_config *cfg = r->o.experiment->cfg;
    ls_hparam params[256];
    char shown[256][LS_SETTING_SHOW_MAX];
    int64_t n = 0;

    for (int i = 0; i < ls_config_count(cfg) && n < 256; i++) {
        const ls_setting s = ls_config_at(cfg, i);
        const bool number =
            s.kind == LS_SETTING_INT || s.kind == LS_SETTING_REAL || s.kind == LS_SETTING_BOOL;
        params[n] = (ls_hparam){s.key, number ? NULL : ls_setting_show(&s, shown[n]), s.value};
        n++;
    }
    ls_events_hparams(r->events, params, n);
}

/* The one line that says how the learning rate came about. */
static void explain_lr(const ls_report *r)
{
    const ls_schedule *s = r->o.schedule;

    printf("learning rate %g for batches of %lld", s->peak, (long long)r->o.batch);
    if (s->peak != s->base) printf(" (%g scaled)", s->base);
    if (s->warmup_steps > 0) printf(", warm-up from %g over %lld steps", s->base, (long long)s->warmup_steps);
    printf("\n");
}

static void say_hello(const ls_report *r)
{
    const ls_report_options *o = &r->o;
    char params[32], memory[32];

    if (o->json || o->quiet) return;
    printf("model         %s, %s parameters, %s planned, %d thread%s\n", o->experiment->trial->name,
           ls_text_count(ls_step_count_params(o->session->plans[0].step, "*"), params),
           ls_text_bytes((double)ls_plan_memory_of(o->session->plans[0].plan).total, memory),
           o->session->threads, o->session->threads == 1 ? "" : "s");
    printf("data          %lld samples to train, %lld to test\n", (long long)o->epoch_samples,
           (long long)o->test_samples);
    explain_lr(r);
    printf("run           %s, %lld steps%s\n", o->folder, (long long)o->total_steps,
           o->resumed_at >= 0 ? ", continued" : "");
    if (o->resumed_at >= 0) printf("from          step %lld\n", (long long)o->resumed_at);
    fflush(stdout);
}

ls_status ls_report_open(ls_report **out, const ls_report_options *o, ls_err *err)
{
    const ls_progress_options progress = ls_progress_detect(STDERR_FILENO, o->quiet || o->json);
    ls_report *r = ls_alloc(LS_MEM_CLI, sizeof *r);
    char path[4200];
    ls_status st = LS_OK;

    *out = r;
    if (r == NULL) return ls_fail(err, LS_NOMEM, "report: no memory");
    r->o = *o;
    r->started = ls_clock_seconds();
    r->every = ls_config_period(o->experiment->cfg, "train.report_every");
    snprintf(path, sizeof path, "%s/metrics.jsonl", o->folder);
    LS_TRY(ls_metrics_open(&r->metrics, path, o->resumed_at >= 0 ? o->resumed_at - 1 : LS_METRICS_NEW, err));
    LS_TRY(ls_events_open(&r->events, o->folder, err));
    if (o->resumed_at >= 0)
        ls_events_restart(r->events, o->resumed_at);
    else
        write_hparams(r);
    LS_TRY(ls_progress_create(&r->progress, &progress, err));
    say_hello(r);
out:
    return st;
}

void ls_report_close(ls_report *r)
{
    if (r == NULL) return;
    ls_progress_destroy(r->progress);
    ls_metrics_close(r->metrics);
    ls_events_close(r->events);
    ls_free(r);
}

/* -- during
 * ------------------------------------------------------------------------------------------------------ */

void ls_report_step(ls_report *r, const ls_counters *c, const ls_metric_sums *now, double lr, double rate)
{
    const int64_t samples = c->epoch * r->o.epoch_samples + c->position;
    const ls_moment after = {c->step, samples, 0}, before = {c->step - 1, samples - now->samples, 0};
    const int64_t per_epoch = (r->o.epoch_samples + r->o.batch - 1) / r->o.batch;
    tagged t;

    tag_all(&t, now, "train", "_step");
    if (ls_period_due(r->every, r->o.epoch_samples, before, after)) {
        if (t.n < LS_MAX_METRICS) {
            snprintf(t.tag[t.n], sizeof t.tag[t.n], "lr");
            t.value[t.n] = (ls_metric){t.tag[t.n], lr};
            t.n++;
        }
        emit(r, c, "step", &t);
    }
    for (int i = 0; i < now->n; i++) t.value[i].name = now->name[i];
    ls_progress_update(r->progress,
                       &(ls_progress_state){.epoch = c->epoch + 1,
                                            .n_epochs = (r->o.total_steps + per_epoch - 1) / per_epoch,
                                            .step = c->step,
                                            .n_steps = r->o.total_steps,
                                            .values = t.value,
                                            .n_values = now->n,
                                            .samples_per_s = rate});
}

void ls_report_epoch(ls_report *r, const ls_counters *c)
{
    tagged t;

    tag_all(&t, &c->sums, "train", "_epoch");
    emit(r, c, "epoch", &t);
}

/* "loss 0.0312, acc 0.9904" */
static const char *means_text(const ls_metric_sums *m, char *buf, size_t n)
{
    size_t at = 0;

    buf[0] = '\0';
    for (int i = 0; i < m->n && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%s %.4f", i > 0 ? ", " : "", m->name[i],
                               ls_metric_mean(m, m->name[i]));
    return buf;
}

void ls_report_validation(ls_report *r, const ls_counters *c, const ls_metric_sums *sums)
{
    char text[512];
    tagged t;

    tag_all(&t, sums, "val", "_epoch");
    if (c->has_best && t.n < LS_MAX_METRICS) {
        snprintf(t.tag[t.n], sizeof t.tag[t.n], "%s_best",
                 ls_config_text(r->o.experiment->cfg, "train.best_metric"));
        t.value[t.n] = (ls_metric){t.tag[t.n], c->best};
        t.n++;
    }
    emit(r, c, "validation", &t);
    ls_progress_say(r->progress, "epoch %.4g, step %lld: %s on %lld samples", epochs_done(r, c),
                    (long long)c->step, means_text(sums, text, sizeof text), (long long)sums->samples);
}

void ls_report_flush(ls_report *r)
{
    ls_metrics_flush(r->metrics);
    ls_events_flush(r->events);
}

void ls_report_end(ls_report *r, const ls_counters *c, const ls_metric_sums *test, const char *folder,
                   const json_t *summary)
{
    const json_t *rate = json_object_get(json_object_get(summary, "samples_per_s"), "p50");
    char text[512];
    tagged t;

    ls_progress_finish(r->progress);
    if (test != NULL) {
        tag_all(&t, test, "test", "_epoch");
        emit(r, c, "test", &t);
    }
    if (r->o.json || r->o.quiet) return;
    if (test != NULL)
        printf("test          %s on %lld samples\n", means_text(test, text, sizeof text),
               (long long)test->samples);
    else
        printf("stopped       at step %lld; go on with --resume\n", (long long)c->step);
    printf("samples/s     %.4g\n", json_real_value(rate));
    printf("weights       %s\n", json_string_value(json_object_get(summary, "weights_xxh3")));
    printf("run           %s\n", folder);
}
