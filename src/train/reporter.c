/* reporter.c: one place where a run's numbers go out. */
#include "train/reporter.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/text.h"
#include "events/events.h"
#include "events/metrics.h"
#include "events/progress.h"
#include "train/layers.h"
#include "train/reporter_text.h"
#include "train/resume.h"
#include "train/samples.h"

#define VALIDATION "val" /* its tags begin with it */

struct ls_reporter {
    ls_reporter_options o;
    ls_events *events;
    ls_metrics *metrics;
    ls_progress *progress;
    ls_samples *samples;
    int64_t sampled; /* the step of the newest pictures */
    double started;
};

enum { MOST_TAGS = LS_MAX_METRICS + 2 }; /* with the learning rate and the loss scale */

/* Metrics with their tags, for the writers. */
typedef struct tagged {
    char tag[MOST_TAGS][LS_METRIC_NAME + 24];
    ls_metric value[MOST_TAGS];
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

static double epochs_done(const ls_reporter *r, const ls_counters *c)
{
    return (double)c->epoch + (double)c->position / (double)r->o.epoch_samples;
}

/* One report to all files, and as a JSON line where those are wanted. */
static void emit(ls_reporter *r, const ls_counters *c, const char *event, const tagged *t)
{
    const ls_metrics_line line = {.step = c->step,
                                  .epoch = epochs_done(r, c),
                                  .time_s = c->seconds + ls_clock_seconds() - r->started,
                                  .values = t->value,
                                  .n_values = t->n};

    /* Who was thought dead and has woken up leaves the files to the one who came after. */
    if (r->o.run != NULL && ls_run_check(r->o.run, NULL) != LS_OK) return;
    ls_samples_collect(r->samples, r->events, false);
    for (int i = 0; i < t->n; i++) ls_events_scalar(r->events, t->tag[i], c->step, t->value[i].value);
    ls_events_scalar(r->events, "epoch", c->step, (double)c->epoch);
    ls_metrics_write(r->metrics, &line);
    if (r->o.json) {
        ls_text text = {0};
        ls_text_add(&text, "{\"event\": \"%s\", ", event);
        ls_metrics_format(&text, &line);
        if (!text.failed) printf("%s}\n", text.data);
        ls_output_flush();
        ls_text_release(&text);
    }
}

/* -- beginning
 * --------------------------------------------------------------------------------------------------- */

static void write_hparams(ls_reporter *r)
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

/* To the terminal, unless it is to be quiet, and in any case to the log. */
static void say(const ls_reporter *r, ls_text *text)
{
    if (!text->failed && text->data != NULL) {
        ls_runlog_note(r->o.log, text->data);
        if (!r->o.json && !r->o.quiet) fputs(text->data, stdout);
        ls_output_flush();
    }
    ls_text_release(text);
}

/* The layers, for programs. */
static void print_layers(const ls_reporter *r)
{
    ls_layers layers = {0};

    if (ls_layers_of_session(&layers, r->o.session, 0, NULL) == LS_OK) {
        json_t *o = ls_layers_json(&layers);
        if (o != NULL) json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        printf("\n");
        json_decref(o);
    }
    ls_layers_release(&layers);
}

/* What a resumed run does otherwise, for programs. */
static void print_changes(const ls_reporter_options *o)
{
    ls_change c;

    for (int at = 0; ls_resume_next_change(o->before->cfg, o->experiment->cfg, &at, &c);) {
        json_t *line = json_pack("{s:s, s:s, s:s, s:s}", "event", "changed", "setting", c.key, "before",
                                 c.before, "now", c.now);
        if (line != NULL) json_dumpf(line, stdout, JSON_COMPACT);
        printf("\n");
        json_decref(line);
    }
}

ls_status ls_reporter_open(ls_reporter **out, const ls_reporter_options *o, ls_err *err)
{
    const ls_progress_options progress = ls_progress_detect(STDERR_FILENO, o->quiet || o->json);
    ls_config *cfg = o->experiment->cfg;
    ls_reporter *r = ls_alloc(LS_MEM_CLI, sizeof *r);
    char path[4200];
    ls_text hello = {0};
    ls_status st = LS_OK;

    *out = r;
    if (r == NULL) return ls_fail(err, LS_NOMEM, "report: no memory");
    r->o = *o;
    r->started = ls_clock_seconds();
    snprintf(path, sizeof path, "%s/metrics.jsonl", o->folder);
    LS_TRY(ls_metrics_open(&r->metrics, path, o->resumed_at >= 0 ? o->resumed_at : LS_METRICS_NEW,
                           o->validates ? VALIDATION "/" : NULL, err));
    LS_TRY(ls_events_open(&r->events, o->folder, err));
    /* A run that begins anew may find files of an attempt that got to no checkpoint. */
    ls_events_restart(r->events, o->resumed_at >= 0 ? o->resumed_at + 1 : 0);
    if (o->resumed_at < 0) write_hparams(r);
    LS_TRY(ls_samples_open(&r->samples,
                           &(ls_samples_options){.session = o->session,
                                                 .data = o->test,
                                                 .folder = o->folder,
                                                 .seed = (uint64_t)ls_config_int(cfg, "seed"),
                                                 .n = ls_config_int(cfg, "train.samples")},
                           err));
    LS_TRY(ls_progress_create(&r->progress, &progress, err));
    ls_runlog_attach(o->log, r->progress);
    lsi_report_beginning(&hello, o);
    say(r, &hello);
    if (o->json) print_layers(r);
    if (o->json && o->before != NULL) print_changes(o);
out:
    return st;
}

void ls_reporter_close(ls_reporter *r)
{
    if (r == NULL) return;
    ls_runlog_attach(r->o.log, NULL);
    ls_progress_destroy(r->progress);
    ls_samples_close(r->samples, r->events);
    ls_metrics_close(r->metrics);
    ls_events_close(r->events);
    ls_free(r);
}

/* -- during
 * ------------------------------------------------------------------------------------------------------ */

static void add_value(tagged *t, const char *tag, double value)
{
    snprintf(t->tag[t->n], sizeof t->tag[t->n], "%s", tag);
    t->value[t->n] = (ls_metric){t->tag[t->n], value};
    t->n++;
}

static void report_step(ls_reporter *r, const ls_counters *c, const ls_metric_sums *now, double lr,
                        double rate, bool due)
{
    tagged t;

    tag_all(&t, now, "train", "_step");
    if (due) {
        add_value(&t, "lr", lr);
        if (c->loss_scale != 0) add_value(&t, "loss_scale", c->loss_scale);
        emit(r, c, "step", &t);
    }
    for (int i = 0; i < now->n; i++) t.value[i].name = now->name[i];
    ls_progress_update(r->progress, &(ls_progress_state){.epoch = c->epoch + 1,
                                                         .n_epochs = r->o.n_epochs,
                                                         .step = c->step,
                                                         .n_steps = r->o.total_steps,
                                                         .values = t.value,
                                                         .n_values = now->n,
                                                         .samples_per_s = rate});
}

void ls_reporter_step(ls_reporter *r, const ls_counters *c, const ls_metric_sums *now, double lr, double rate,
                      bool due)
{
    if (r != NULL) report_step(r, c, now, lr, rate, due);
}

void ls_reporter_epoch(ls_reporter *r, const ls_counters *c)
{
    tagged t;

    if (r == NULL) return;
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

void ls_reporter_validation(ls_reporter *r, const ls_counters *c, const ls_metric_sums *sums)
{
    char text[512], line[640];
    tagged t;

    if (r == NULL) return;
    tag_all(&t, sums, VALIDATION, "_epoch");
    if (c->has_best) {
        snprintf(t.tag[t.n], sizeof t.tag[t.n], "%s_best",
                 ls_config_text(r->o.experiment->cfg, "train.best_metric"));
        t.value[t.n] = (ls_metric){t.tag[t.n], c->best};
        t.n++;
    }
    emit(r, c, "validation", &t);
    snprintf(line, sizeof line, "epoch %.4g, step %lld: %s on %lld samples", epochs_done(r, c),
             (long long)c->step, means_text(sums, text, sizeof text), (long long)sums->samples);
    ls_progress_say(r->progress, "%s", line);
    ls_runlog_note(r->o.log, line);
}

ls_events *ls_reporter_events(ls_reporter *r)
{
    return r != NULL ? r->events : NULL;
}

void ls_reporter_note_line(ls_reporter *r, const char *format, ...)
{
    char line[640];
    va_list args;

    if (r == NULL) return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    ls_progress_say(r->progress, "%s", line);
    ls_runlog_note(r->o.log, line);
}

void ls_reporter_samples(ls_reporter *r, const ls_counters *c)
{
    if (r == NULL || r->sampled == c->step) return;
    r->sampled = c->step;
    ls_samples_make(r->samples, r->events, c->step);
}

void ls_reporter_flush(ls_reporter *r)
{
    if (r == NULL) return;
    ls_samples_collect(r->samples, r->events, true);
    ls_metrics_flush(r->metrics);
    ls_events_flush(r->events);
    ls_runlog_flush(r->o.log);
}

void ls_reporter_add_missing(ls_reporter *r, json_t *summary)
{
    int64_t metrics, events, log;

    if (r == NULL) return;
    metrics = ls_metrics_missing(r->metrics);
    events = ls_events_missing(r->events);
    log = ls_runlog_missing(r->o.log);
    if (metrics + events + log == 0) return;
    json_object_set_new(summary, "missing",
                        json_pack("{s:I, s:I, s:I}", "metrics", (json_int_t)metrics, "events",
                                  (json_int_t)events, "log", (json_int_t)log));
}

/* What the disk would not take to the very end. */
static void add_missing(ls_reporter *r, ls_text *text)
{
    ls_reporter_flush(r);
    if (ls_metrics_missing(r->metrics) + ls_events_missing(r->events) + ls_runlog_missing(r->o.log) == 0)
        return;
    ls_text_add(
        text, "missing       %lld lines of metrics.jsonl, %lld TensorBoard records, %lld pieces of the log\n",
        (long long)ls_metrics_missing(r->metrics), (long long)ls_events_missing(r->events),
        (long long)ls_runlog_missing(r->o.log));
}

void ls_reporter_end(ls_reporter *r, const ls_counters *c, const ls_metric_sums *test, const json_t *summary)
{
    ls_text text = {0};
    tagged t;

    if (r == NULL) return;
    ls_progress_finish(r->progress);
    if (test != NULL) {
        tag_all(&t, test, "test", "_epoch");
        emit(r, c, "test", &t);
    }
    lsi_report_ending(&text, &r->o, c, test, summary);
    add_missing(r, &text);
    say(r, &text);
}

void ls_reporter_failure(ls_reporter *r, const ls_err *why)
{
    ls_text text = {0};

    if (r == NULL) return;
    ls_progress_finish(r->progress);
    ls_text_add(&text, "lockstep: error: %s\n", why != NULL ? why->text : "failed");
    if (!text.failed) ls_runlog_note(r->o.log, text.data);
    ls_text_release(&text);
}
