/* run_gauges.c: load, memory, power and temperature of the devices of some runs over their time
 * (gauges.h).
 *
 * The files are gpu.jsonl, and gpu-RANK.jsonl of other machines; names in them are gpu/DEVICE/WHAT. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/whole.h"
#include "events/metrics_reader.h"
#include "train/run_pages.h"

#define GAUGES_MAX_BYTES ((size_t)256 << 20)

enum { FILES_MOST = 64 };

/* What a chart shows; `what` ends the names. */
typedef struct quantity {
    const char *what, *id, *title, *unit;
} quantity;

static const quantity quantities[] = {
    {"utilization_percent", "gpu-load", "Load of the GPUs", "% of the time computing"},
    {"memory_mib", "gpu-memory", "Memory of the GPUs in use", "MiB, of all programs"},
    {"power_w", "gpu-power", "Power of the GPUs", "W"},
    {"temperature_c", "gpu-temperature", "Temperature of the GPUs", "degrees Celsius"},
};
enum { QUANTITIES = sizeof quantities / sizeof quantities[0] };

/* One quantity of one device of one run. */
typedef struct line {
    int run, quantity;
    char device[80]; /* "GPU 0", "GPU 0 of rank 8's machine" */
    double *x, *y;
    int64_t n, capacity;
} line;

typedef struct lines {
    line *of;
    size_t n, cap;
} lines;

static void release(lines *l)
{
    for (size_t i = 0; i < l->n; i++) {
        ls_free(l->of[i].x);
        ls_free(l->of[i].y);
    }
    ls_free(l->of);
}

/* -- reading -----------------------------------------------------------------------------------------------
 */

/* The quantity and the device of a name; -1: none of these. */
static int parse_name(const char *name, int *device)
{
    char what[48];
    int end = 0;

    if (sscanf(name, "gpu/%d/%47[a-z_]%n", device, what, &end) != 2 || name[end] != '\0' || *device < 0)
        return -1;
    for (int q = 0; q < QUANTITIES; q++)
        if (strcmp(quantities[q].what, what) == 0) return q;
    return -1;
}

static line *line_of(lines *l, int run, int quantity, const char *device)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->of[i].run == run && l->of[i].quantity == quantity && strcmp(l->of[i].device, device) == 0)
            return &l->of[i];
    if (!LS_GROW(LS_MEM_CLI, l->of, l->n + 1, l->cap)) return NULL;
    l->of[l->n] = (line){.run = run, .quantity = quantity};
    snprintf(l->of[l->n].device, sizeof l->of[l->n].device, "%s", device);
    return &l->of[l->n++];
}

static bool add_point(line *at, double x, double y)
{
    const int64_t want = at->n == 0 ? 256 : 2 * at->n;

    if (at->n == at->capacity) {
        double *xs = ls_realloc(LS_MEM_CLI, at->x, (size_t)want * sizeof *xs);
        if (xs != NULL) at->x = xs;
        double *ys = xs != NULL ? ls_realloc(LS_MEM_CLI, at->y, (size_t)want * sizeof *ys) : NULL;
        if (ys == NULL) return false;
        at->y = ys;
        at->capacity = want;
    }
    at->x[at->n] = x;
    at->y[at->n++] = y;
    return true;
}

/* All numbers of one report; `rank`: of the file, -1 for the one of rank 0's machine. */
static ls_status add_report(lines *l, int run, int rank, json_t *report, ls_err *err)
{
    const double time_s = json_number_value(json_object_get(report, "time_s"));
    const char *name;
    json_t *value;

    json_object_foreach(report, name, value)
    {
        char device[80];
        int number;
        const int q = parse_name(name, &number);
        line *at;
        if (q < 0 || !json_is_number(value)) continue;
        snprintf(device, sizeof device, rank < 0 ? "GPU %d" : "GPU %d of rank %d's machine", number, rank);
        at = line_of(l, run, q, device);
        if (at == NULL || !add_point(at, time_s, json_number_value(value)))
            return ls_fail(err, LS_NOMEM, "no memory for the gauges of a run");
    }
    return LS_OK;
}

static ls_status read_file(lines *l, int run, const char *folder, const char *file, ls_err *err)
{
    char path[4400], *text = NULL;
    ls_metrics_reader r = {0};
    json_t *report;
    ls_status st = LS_OK;
    int rank = -1;
    size_t n;

    (void)sscanf(file, "gpu-%d", &rank);
    snprintf(path, sizeof path, "%.4000s/%.47s", folder, file);
    if (ls_whole_plain(&text, &n, path, GAUGES_MAX_BYTES, err) != LS_OK) { /* charts beside a run's results */
        ls_log(LS_LOG_WARN, "%s; the charts of these GPUs are left out", err->text);
        *err = (ls_err){0};
        return LS_OK;
    }
    ls_metrics_reader_begin(&r, text, n);
    while (st == LS_OK && (report = ls_metrics_next(&r)) != NULL) {
        st = add_report(l, run, rank, report, err);
        json_decref(report);
    }
    ls_metrics_warn(&r.damage, path);
    ls_free(text);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_gauges(const char *file)
{
    int rank, end = 0;

    if (strcmp(file, "gpu.jsonl") == 0) return true;
    return sscanf(file, "gpu-%d.jsonl%n", &rank, &end) == 1 && end > 0 && file[end] == '\0' && rank >= 0;
}

static ls_status read_run(lines *l, int run, const char *folder, ls_err *err)
{
    char names[FILES_MOST][48];
    DIR *d = opendir(folder);
    const struct dirent *e;
    ls_status st = LS_OK;
    int n = 0;

    while (d != NULL && n < FILES_MOST && (e = readdir(d)) != NULL)
        if (strlen(e->d_name) < sizeof names[0] && is_gauges(e->d_name))
            snprintf(names[n++], sizeof names[0], "%.47s", e->d_name);
    if (d != NULL) closedir(d);
    qsort(names, (size_t)n, sizeof names[0], by_name);
    for (int i = 0; i < n; i++) LS_TRY(read_file(l, run, folder, names[i], err));
out:
    return st;
}

/* -- drawing -----------------------------------------------------------------------------------------------
 */

static ls_status add_chart(ls_report *page, const ls_page_runs *p, const lines *l, int quantity, bool first,
                           ls_err *err)
{
    const struct quantity *q = &quantities[quantity];
    ls_arena *arena = NULL;
    ls_chart_series *series;
    ls_status st = LS_OK;
    int n = 0;

    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    series = ls_arena_alloc(arena, (l->n + 1) * sizeof *series);
    for (size_t i = 0; i < l->n && series != NULL; i++) {
        const line *at = &l->of[i];
        const char *name = at->device;
        if (at->quantity != quantity) continue;
        if (p->n > 1) name = ls_arena_printf(arena, "%s, %s", p->label[at->run], at->device);
        if (name == NULL) series = NULL;
        if (series == NULL) break;
        series[n++] = (ls_chart_series){.name = name,
                                        .key = p->n > 1 ? p->label[at->run] : NULL,
                                        .colour = p->n > 1 ? at->run + 1 : 0,
                                        .n = at->n,
                                        .x = at->x,
                                        .y = at->y};
    }
    if (series == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for a chart");
        goto out;
    }
    if (n == 0) goto out;
    if (first) ls_report_heading(page, "GPUs");
    ls_report_chart(page, &(ls_chart){.id = q->id,
                                      .title = q->title,
                                      .x_label = "seconds since the start",
                                      .y_label = q->unit,
                                      .x_scale = LS_SCALE_FROM_ZERO,
                                      .y_scale = LS_SCALE_FROM_ZERO,
                                      .series = series,
                                      .n_series = n});
out:
    ls_arena_destroy(arena);
    return st;
}

ls_status ls_run_pages_gauges(ls_report *page, const ls_page_runs *p, ls_err *err)
{
    ls_status st = LS_OK;
    lines l = {0};
    bool any[QUANTITIES] = {false}, first = true;

    for (int k = 0; k < p->n; k++) LS_TRY(read_run(&l, k, p->runs[k].path, err));
    for (size_t i = 0; i < l.n; i++) any[l.of[i].quantity] = true;
    for (int q = 0; q < QUANTITIES; q++) {
        if (!any[q]) continue;
        LS_TRY(add_chart(page, p, &l, q, first, err));
        first = false;
    }
out:
    release(&l);
    return st;
}
