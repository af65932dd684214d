/* run_throughput.c: samples per second over the time of a run, and the median of its steps beside it. */
#include <math.h>

#include "base/alloc.h"
#include "base/stats.h"
#include "train/run_pages.h"

/* Rates are shown of stretches that are no shorter than half of the median between two reports, and than this
 * share of the run: what lies closer has no length on the page, and two reports that a clock puts side by
 * side would be a rate without meaning. */
static const double LEAST_SHARE = 1.0 / 300;
/* A rate that is so many times that of the steps is no rate, and does not stretch the axis. */
static const double WILD = 3;
/* Bands of more runs cover each other. */
enum { BANDS_MOST = 4 };

/* Samples of a step: the summary has the rate and the time of the same steps. */
static double batch_of(const ls_past_run *r)
{
    return round(ls_past_run_number(r, "samples_per_s", "p50") * ls_past_run_number(r, "step_s", "p50"));
}

/* `room` has place for all distances. */
static double least_stretch(const ls_history *h, double *room)
{
    int64_t n = 0;

    for (int64_t i = 0; i + 1 < h->n_times; i++) {
        const double dt = h->time_s[i + 1] - h->time_s[i];
        if (dt > 0) room[n++] = dt;
    }
    if (n == 0) return 0;
    return fmax(0.5 * ls_spread_of(room, (size_t)n).p50,
                LEAST_SHARE * (h->time_s[h->n_times - 1] - h->time_s[0]));
}

/* What a run's two series need: rates between reports, and the steps' median over the whole time. */
typedef struct pace {
    double *time, *rate;
    int64_t n;
    double ends[2], median[2], lo[2], hi[2];
} pace;

/* Reports that lie too close become one stretch; what is left at the end belongs to the last. */
static void fill_rates(pace *p, const ls_history *h, double batch)
{
    const double least = least_stretch(h, p->rate);
    int64_t from = 0, before = 0; /* where this stretch and the one before begin */

    for (int64_t i = 1; i < h->n_times; i++) {
        const double dt = h->time_s[i] - h->time_s[from];
        const bool last = i + 1 == h->n_times;
        if (!(dt > 0) || (dt < least && !last)) continue;
        if (dt < least && p->n > 0) { /* last */
            p->n--;
            from = before;
        }
        p->time[p->n] = h->time_s[i];
        p->rate[p->n++] = batch * (h->step[i] - h->step[from]) / (h->time_s[i] - h->time_s[from]);
        before = from;
        from = i;
    }
}

static ls_status add_pace(const ls_past_run *r, ls_arena *arena, const char *label, int colour,
                          ls_chart_series *out, ls_err *err)
{
    const ls_history *h = &r->history;
    const double wall = ls_past_run_number(r, NULL, "wall_s");
    const char *before = label != NULL ? label : "", *comma = label != NULL ? ", " : "";
    pace *p = ls_arena_alloc(arena, sizeof *p);
    const char *between = ls_arena_printf(arena, "%s%sbetween reports", before, comma);
    const char *steps = ls_arena_printf(arena, "%s%smedian of steps, central 68 %%", before, comma);

    if (p == NULL || between == NULL || steps == NULL ||
        (p->time = ls_arena_alloc(arena, (size_t)(h->n_times + 1) * sizeof(double))) == NULL ||
        (p->rate = ls_arena_alloc(arena, (size_t)(h->n_times + 1) * sizeof(double))) == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for a chart");
    fill_rates(p, h, batch_of(r));
    for (int i = 0; i < 2; i++) {
        p->median[i] = ls_past_run_number(r, "samples_per_s", "p50");
        p->lo[i] = ls_past_run_number(r, "samples_per_s", "p16");
        p->hi[i] = ls_past_run_number(r, "samples_per_s", "p84");
    }
    p->ends[0] = h->n_times > 0 ? h->time_s[0] : 0;
    p->ends[1] = h->n_times > 1 ? h->time_s[h->n_times - 1] : wall;
    out[0] = (ls_chart_series){.name = steps,
                               .key = label,
                               .colour = colour,
                               .dashed = true,
                               .n = 2,
                               .x = p->ends,
                               .y = p->median,
                               .lo = p->lo,
                               .hi = p->hi};
    out[1] = (ls_chart_series){.name = between,
                               .key = label,
                               .colour = colour,
                               .marks = p->n <= 60,
                               .n = p->n,
                               .x = p->time,
                               .y = p->rate};
    return LS_OK;
}

/* Where the axis ends at the latest: beyond all that steps have shown, and beyond most of the stretches. */
static double most_of(const ls_chart_series *series, int n, double *room)
{
    double most = 0;
    int64_t all = 0;

    for (int k = 0; k < n; k++) {
        for (int64_t i = 0; i < series[k].n; i++) {
            const double v = series[k].hi != NULL ? series[k].hi[i] : series[k].y[i];
            if (!isfinite(v)) continue;
            if (series[k].hi != NULL)
                most = fmax(most, v);
            else
                room[all++] = v;
        }
    }
    if (all == 0) return most;
    return WILD * fmax(most, ls_spread_of(room, (size_t)all).p50);
}

static bool any_beyond(const ls_chart_series *series, int n, double most)
{
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < series[k].n; i++)
            if (series[k].y[i] > most) return true;
    return false;
}

ls_status ls_run_pages_throughput(ls_report *page, const ls_page_runs *p, ls_err *err)
{
    ls_chart_series series[2 * LS_RUN_PAGES_MOST];
    ls_arena *arena = NULL;
    int64_t points = 0;
    double *room, most;
    const char *caption;
    ls_status st = LS_OK;

    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    for (int k = 0; k < p->n; k++) {
        LS_TRY(add_pace(&p->runs[k], arena, p->n == 1 ? NULL : p->label[k], k + 1, &series[2 * k], err));
        points += series[2 * k + 1].n;
    }
    room = ls_arena_alloc(arena, (size_t)(points + 1) * sizeof *room);
    if (room == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for a chart");
        goto out;
    }
    most = most_of(series, 2 * p->n, room);
    caption = ls_arena_printf(
        arena, "%sBetween two reports all time counts, also that of validation and checkpoints.%s",
        p->n > BANDS_MOST ? ""
                          : "The band holds the central 68 % of the training steps of the "
                            "run's newest process. ",
        any_beyond(series, 2 * p->n, most) ? " Some rates lie beyond the axis: several reports came at once."
                                           : "");
    for (int k = 0; k < p->n && p->n > BANDS_MOST; k++) series[2 * k].lo = series[2 * k].hi = NULL;
    ls_report_heading(page, "Throughput");
    ls_report_chart(page,
                    &(ls_chart){.id = "throughput",
                                .title = "Samples per second over the run",
                                .caption = caption,
                                .x_label = "seconds since the start",
                                .y_label = p->n == 1 ? "samples/s" : "samples/s; dashed: median of the steps",
                                .x_scale = LS_SCALE_FROM_ZERO,
                                .y_scale = LS_SCALE_FROM_ZERO,
                                .y_most = most,
                                .series = series,
                                .n_series = 2 * p->n});
out:
    ls_arena_destroy(arena);
    return st;
}
