/* run_curves.c: a chart for every metric of some runs.
 *
 * The names in metrics.jsonl are PHASE/METRIC_step and PHASE/METRIC_epoch with the phases train, val and
 * test, val/METRIC_best, and names of their own such as lr.  All phases of a metric share a chart, as do all
 * runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "train/run_pages.h"

/* What a curve is of its metric; the order is that of the legend. */
typedef enum part { EACH_STEP, EACH_EPOCH, VALIDATION, TEST, BEST, PARTS } part;

typedef enum kind { LOSS, ACCURACY, OTHER, RATE, KINDS } kind;

typedef struct name {
    char metric[LS_HISTORY_NAME];
    part part;
} name;

static bool ends_in(const char *text, size_t n, const char *end)
{
    const size_t m = strlen(end);

    return n > m && memcmp(text + n - m, end, m) == 0;
}

static name split(const char *whole)
{
    static const struct {
        const char *begin;
        part part;
    } phases[] = {{"train/", EACH_STEP}, {"val/", VALIDATION}, {"test/", TEST}};
    name out = {.part = EACH_STEP};
    size_t n;

    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        if (strncmp(whole, phases[i].begin, strlen(phases[i].begin)) != 0) continue;
        whole += strlen(phases[i].begin);
        out.part = phases[i].part;
        break;
    }
    n = strlen(whole);
    if (ends_in(whole, n, "_epoch")) {
        n -= strlen("_epoch");
        if (out.part == EACH_STEP) out.part = EACH_EPOCH;
    } else if (out.part == VALIDATION && ends_in(whole, n, "_best")) {
        n -= strlen("_best");
        out.part = BEST;
    } else if (ends_in(whole, n, "_step")) {
        n -= strlen("_step");
    }
    snprintf(out.metric, sizeof out.metric, "%.*s", (int)n, whole);
    return out;
}

static kind kind_of(const char *metric)
{
    if (strcmp(metric, "lr") == 0 || strncmp(metric, "lr.", 3) == 0) return RATE;
    if (strstr(metric, "loss") != NULL) return LOSS;
    return strncmp(metric, "acc", 3) == 0 ? ACCURACY : OTHER;
}

/* Names that the models that ship use, in words. */
static const char *title_of(const char *metric)
{
    static const char *const titles[][2] = {
        {"loss", "Loss"},
        {"acc", "Accuracy"},
        {"lr", "Learning rate"},
        {"loss_d", "Loss of the discriminator"},
        {"d_loss", "Loss of the discriminator"},
        {"loss_g", "Loss of the generator"},
        {"g_loss", "Loss of the generator"},
        {"loss_eg", "Loss of encoder and generator"},
        {"loss_rec", "Loss of the reconstruction"},
        {"loss_gan", "Adversarial loss"},
        {"loss_cycle", "Loss of the cycle"},
        {"loss_identity", "Loss of identity"},
    };

    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (strcmp(titles[i][0], metric) == 0) return titles[i][1];
    return metric;
}

/* -- one chart ---------------------------------------------------------------------------------------------
 */

/* The curves of a metric on their way into a chart. */
typedef struct drawing {
    ls_arena *arena;
    ls_chart_series *series;
    int n;
    bool has[PARTS];    /* curves of any run */
    double least, most; /* of the finite values */
} drawing;

static void note_range(drawing *d, const ls_curve *c)
{
    for (int64_t i = 0; i < c->n; i++) {
        if (!isfinite(c->value[i])) continue;
        d->least = fmin(d->least, c->value[i]);
        d->most = fmax(d->most, c->value[i]);
    }
}

static const ls_curve *curve_of(const ls_past_run *r, const char *metric, part p)
{
    for (int i = 0; i < r->history.n_curves; i++) {
        const name s = split(r->history.curves[i].name);
        if (s.part == p && strcmp(s.metric, metric) == 0) return &r->history.curves[i];
    }
    return NULL;
}

/* Beside others a run has its epochs' means alone where there are enough of them, and not what follows from
 * the rest. */
static bool is_shown(part p, bool alone, const ls_curve *epochs)
{
    if (alone) return true;
    return p != BEST && !(p == EACH_STEP && epochs != NULL && epochs->n > 1);
}

static ls_status add_run(drawing *d, const ls_page_runs *pages, int k, const char *metric, ls_err *err)
{
    static const char *const parts[PARTS] = {"training", "training, mean of epochs", "validation", "test",
                                             "best so far"};
    static const int colours[PARTS] = {6, 1, 2, 3, 8}; /* of several runs each has one */
    const ls_curve *epochs = curve_of(&pages->runs[k], metric, EACH_EPOCH);
    const bool alone = pages->n == 1;

    for (part p = 0; p < PARTS; p++) {
        const ls_curve *c = curve_of(&pages->runs[k], metric, p);
        if (c == NULL || !is_shown(p, alone, epochs)) continue;
        ls_chart_series *s = &d->series[d->n++];
        *s = (ls_chart_series){.n = c->n, .x = c->epoch, .y = c->value};
        s->name = alone ? parts[p] : ls_arena_printf(d->arena, "%s, %s", pages->label[k], parts[p]);
        s->key = alone ? NULL : pages->label[k];
        d->has[p] = true;
        if (s->name == NULL) return ls_fail(err, LS_NOMEM, "no memory for a chart");
        s->colour = !alone ? k + 1 : epochs == NULL && p == EACH_STEP ? 1 : colours[p];
        s->dashed = p == BEST || (!alone && p >= VALIDATION);
        s->marks = p == TEST || ((p == EACH_EPOCH || p == VALIDATION) && c->n <= 60);
        note_range(d, c);
    }
    return LS_OK;
}

/* Losses that fall by orders of magnitude are straight lines on a logarithmic axis, and flat ones on another.
 */
static ls_chart_scale scale_of(const drawing *d, kind k)
{
    if (k == LOSS && d->least > 0 && d->most > 50 * d->least) return LS_SCALE_LOG10;
    return k == ACCURACY || d->least < 0 ? LS_SCALE_FITTED : LS_SCALE_FROM_ZERO;
}

/* The metric, and which lines are what where runs have the colours. */
static void name_lines(const drawing *d, const char *metric, bool alone, char *out, size_t size)
{
    const bool training = d->has[EACH_STEP] || d->has[EACH_EPOCH];

    snprintf(out, size, "%s%s%s%s", metric,
             !alone && training && (d->has[VALIDATION] || d->has[TEST]) ? ": training" : "",
             alone || !d->has[VALIDATION] ? "" : "; dashed: validation",
             alone || !d->has[TEST] ? "" : "; last dot: test");
}

static ls_status add_chart(ls_report *page, const ls_page_runs *pages, const char *metric, int number,
                           ls_err *err)
{
    drawing d = {.least = INFINITY, .most = -INFINITY};
    char id[40], label[LS_HISTORY_NAME + 80];
    ls_status st = LS_OK;

    LS_TRY(ls_arena_create(&d.arena, LS_MEM_CLI, err));
    d.series = ls_arena_alloc(d.arena, (size_t)pages->n * PARTS * sizeof *d.series);
    if (d.series == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for a chart");
        goto out;
    }
    for (int k = 0; k < pages->n; k++) LS_TRY(add_run(&d, pages, k, metric, err));
    name_lines(&d, metric, pages->n == 1, label, sizeof label);
    snprintf(id, sizeof id, "curve-%02d-", number);
    for (size_t i = strlen(id), j = 0; i + 1 < sizeof id && metric[j] != '\0'; i++, j++) {
        const char c = metric[j];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        id[i] = plain || c == '_' ? c : '-';
        id[i + 1] = '\0';
    }
    ls_report_chart(page, &(ls_chart){.id = id,
                                      .title = title_of(metric),
                                      .x_label = "epoch",
                                      .y_label = label,
                                      .x_scale = LS_SCALE_FROM_ZERO,
                                      .y_scale = scale_of(&d, kind_of(metric)),
                                      .series = d.series,
                                      .n_series = d.n});
out:
    ls_arena_destroy(d.arena);
    return st;
}

/* -- all of them -------------------------------------------------------------------------------------------
 */

/* Has an earlier curve, of this run or of one before, the same metric? */
static bool is_known(const ls_past_run *runs, int k, int i, const char *metric)
{
    for (int r = 0; r <= k; r++)
        for (int c = 0; c < (r < k ? runs[r].history.n_curves : i); c++)
            if (strcmp(split(runs[r].history.curves[c].name).metric, metric) == 0) return true;
    return false;
}

ls_status ls_run_pages_curves(ls_report *page, const ls_page_runs *p, ls_err *err)
{
    const ls_past_run *runs = p->runs;
    ls_status st = LS_OK;
    int number = 0;

    for (kind k = 0; k < KINDS; k++) {
        for (int r = 0; r < p->n; r++) {
            for (int i = 0; i < runs[r].history.n_curves; i++) {
                const name s = split(runs[r].history.curves[i].name);
                if (kind_of(s.metric) != k || is_known(runs, r, i, s.metric)) continue;
                if (number++ == 0) ls_report_heading(page, "Curves");
                LS_TRY(add_chart(page, p, s.metric, number, err));
            }
        }
    }
out:
    return st;
}
