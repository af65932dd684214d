/* gather.c: rows and counts of an evaluation. */
#include "train/gather.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/folders.h"
#include "base/replace.h"
#include "data/npy_write.h"
#include "train/team.h"

enum { BINS = LS_DISTANCE_BINS, COUNTS = 2 * BINS + 1 }; /* of both kinds, and what is no number */

/* -- taking -----------------------------------------------------------------------------------------------
 */

static bool is_output(const ls_tensor *t)
{
    return strncmp(t->name, LS_OUTPUT_PREFIX, strlen(LS_OUTPUT_PREFIX)) == 0;
}

static ls_status add_output(ls_gather *g, const ls_tensor *t, ls_err *err)
{
    ls_gather_output *o = &g->outputs[g->n_outputs];

    if (g->n_outputs == LS_GATHER_MOST)
        return ls_fail(err, LS_INVALID, "%s: a model has at most %d outputs", t->name, LS_GATHER_MOST);
    snprintf(o->name, sizeof o->name, "%s", t->name + strlen(LS_OUTPUT_PREFIX));
    o->shape = t->shape;
    o->shape.dim[0] = (g->samples + g->stride - 1) / g->stride;
    o->rows = ls_alloc(LS_MEM_DATA, sizeof *o->rows * (size_t)ls_shape_count(o->shape));
    if (o->rows == NULL)
        return ls_fail(err, LS_NOMEM, "%s: no memory for %lld rows; raise train.output_stride", t->name,
                       (long long)o->shape.dim[0]);
    g->n_outputs++;
    return LS_OK;
}

static ls_status add_distance(ls_gather *g, const ls_distance_info *info, ls_err *err)
{
    ls_gather_distance *d = &g->distances[g->n_distances];

    if (g->n_distances == LS_GATHER_MOST)
        return ls_fail(err, LS_INVALID, "%s: a model compares at most %d pairs of distributions", info->name,
                       LS_GATHER_MOST);
    snprintf(d->name, sizeof d->name, "%s", info->name);
    d->width = info->width;
    d->counts = ls_alloc(LS_MEM_DATA, sizeof *d->counts * COUNTS);
    if (d->counts == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory for its counts", info->name);
    g->n_distances++;
    return LS_OK;
}

static ls_status prepare_confusion(ls_gather *g, const ls_plan *p, ls_err *err)
{
    const ls_tensor *t = ls_plan_fetch(p, LS_SCORES);

    if (t == NULL || g->confusion == NULL) return LS_OK;
    g->scores = ls_alloc(LS_MEM_DATA, sizeof *g->scores * (size_t)t->shape.dim[1]);
    if (g->scores == NULL) return ls_fail(err, LS_NOMEM, "no memory for the scores of a sample");
    return ls_confusion_open(g->confusion, t->shape.dim[1], err);
}

ls_status ls_gather_prepare(ls_gather *g, const ls_batch_plan *p, ls_err *err)
{
    const ls_distance_info *infos;
    const int n = ls_step_distances(p->step, &infos);
    ls_status st = LS_OK;

    if (g->prepared) return LS_OK;
    for (int i = 0; i < n; i++) LS_TRY(add_distance(g, &infos[i], err));
    for (int i = 0; g->stride > 0 && i < ls_plan_fetch_count(p->plan); i++)
        if (is_output(ls_plan_fetch_at(p->plan, i))) LS_TRY(add_output(g, ls_plan_fetch_at(p->plan, i), err));
    LS_TRY(prepare_confusion(g, p->plan, err));
    if (g->rows != NULL) LS_TRY(ls_rows_prepare(g->rows, p->plan, err));
    g->prepared = true;
out:
    return st;
}

/* Rows on their way into those of the evaluation: sample i is number at[i] of it, or first + i where `at` is
 * NULL. */
typedef struct taking {
    double *rows;
    int64_t width, stride, first;
    const int64_t *at;
} taking;

/* A chunk may begin and end within a row. */
static ls_status take_chunk(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const taking *t = ctx;
    const float *from = chunk;
    const int64_t begin = (int64_t)(offset / sizeof *from), end = begin + (int64_t)(bytes / sizeof *from);

    (void)err;
    for (int64_t k = begin; k < end;) {
        const int64_t i = k / t->width, stop = end < (i + 1) * t->width ? end : (i + 1) * t->width;
        const int64_t number = t->at != NULL ? t->at[i] : t->first + i;
        const int64_t shift = (number / t->stride - i) * t->width; /* from here to there */
        for (; number % t->stride == 0 && k < stop; k++) t->rows[shift + k] = (double)from[k - begin];
        k = stop;
    }
    return LS_OK;
}

static ls_status take_rows(const ls_gather *g, const ls_gather_output *o, const ls_plan *p, int64_t first,
                           const int64_t *at, ls_err *err)
{
    taking x = {.rows = o->rows, .stride = g->stride, .first = first, .at = at};
    char name[LS_GATHER_NAME + 16];
    const ls_tensor *t;

    snprintf(name, sizeof name, LS_OUTPUT_PREFIX "%s", o->name);
    t = ls_plan_fetch(p, name);
    LS_BUG_IF(t == NULL);
    x.width = ls_shape_count(t->shape) / t->shape.dim[0];
    return ls_tensor_visit(t, take_chunk, &x, err);
}

typedef struct counting {
    double *bins, *broken;
} counting;

static ls_status count_chunk(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const counting *c = ctx;

    (void)offset, (void)err;
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        const float at = ((const float *)chunk)[i] * BINS;
        if (isnan(at))
            *c->broken += 1;
        else
            c->bins[at <= 0 ? 0 : at >= BINS ? BINS - 1 : (int)at] += 1;
    }
    return LS_OK;
}

static ls_status count(const ls_gather_distance *d, const ls_plan *p, int which, ls_err *err)
{
    counting c = {d->counts + which * BINS, d->counts + 2 * BINS};
    char name[LS_GATHER_NAME + 16];
    const ls_tensor *t;

    snprintf(name, sizeof name, LS_DISTANCE_PREFIX "%s/%d", d->name, which);
    t = ls_plan_fetch(p, name);
    LS_BUG_IF(t == NULL);
    return ls_tensor_visit(t, count_chunk, &c, err);
}

/* One row of scores after the other, each with its label. */
static ls_status count_classes(ls_gather *g, const ls_plan *p, ls_err *err)
{
    const ls_tensor *scores = ls_plan_fetch(p, LS_SCORES), *labels = ls_plan_fetch(p, LS_SCORES_LABEL);
    const size_t row = scores != NULL ? sizeof(float) * (size_t)scores->shape.dim[1] : 0;
    ls_status st = LS_OK;

    if (g->confusion == NULL || scores == NULL || labels == NULL) return LS_OK;
    for (int64_t i = 0; i < scores->shape.dim[0]; i++) {
        int32_t label = 0;
        LS_TRY(ls_tensor_read(labels, sizeof label * (size_t)i, &label, sizeof label, err));
        LS_TRY(ls_tensor_read(scores, row * (size_t)i, g->scores, row, err));
        ls_confusion_count(g->confusion, label, ls_confusion_answer(g->scores, scores->shape.dim[1]));
    }
out:
    return st;
}

static ls_status take(ls_gather *g, const ls_batch_plan *p, int64_t first, const int64_t *at, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_gather_prepare(g, p, err));
    for (int i = 0; i < g->n_distances; i++)
        for (int k = 0; k < 2; k++) LS_TRY(count(&g->distances[i], p->plan, k, err));
    for (int i = 0; i < g->n_outputs; i++) LS_TRY(take_rows(g, &g->outputs[i], p->plan, first, at, err));
    LS_TRY(count_classes(g, p->plan, err));
    if (g->rows != NULL) LS_TRY(ls_rows_take(g->rows, p->plan, first, at, err));
out:
    return st;
}

ls_status ls_gather_take(ls_gather *g, const ls_batch_plan *p, int64_t first, ls_err *err)
{
    return take(g, p, first, NULL, err);
}

ls_status ls_gather_take_at(ls_gather *g, const ls_batch_plan *p, const int64_t *at, ls_err *err)
{
    return take(g, p, 0, at, err);
}

ls_status ls_gather_pass_on(ls_gather *g, ls_comm *c, ls_err *err)
{
    return g->rows != NULL ? ls_rows_pass_on(g->rows, c, err) : LS_OK;
}

/* -- finishing --------------------------------------------------------------------------------------------
 */

/* The area between the two cumulative distributions, which is what it costs to carry one over into the other.
 */
static double distance(const ls_gather_distance *d)
{
    double total[2] = {0}, sum[2] = {0}, area = 0;

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < BINS; i++) total[k] += d->counts[k * BINS + i];
    if (total[0] == 0 || total[1] == 0 || d->counts[2 * BINS] > 0) return NAN;
    for (int i = 0; i < BINS; i++) {
        for (int k = 0; k < 2; k++) sum[k] += d->counts[k * BINS + i];
        area += fabs(sum[0] / total[0] - sum[1] / total[1]);
    }
    return area * d->width / BINS;
}

ls_status ls_gather_finish(ls_gather *g, ls_comm *c, ls_metric_sums *sums, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < g->n_outputs; i++)
        LS_TRY(ls_team_add(c, g->outputs[i].rows, ls_shape_count(g->outputs[i].shape), "gathering outputs",
                           err));
    if (g->confusion != NULL && g->confusion->classes > 0) LS_TRY(ls_confusion_add_up(g->confusion, c, err));
    for (int i = 0; i < g->n_distances; i++) {
        LS_TRY(ls_team_add(c, g->distances[i].counts, COUNTS, "comparing distributions", err));
        ls_metric_add(sums, g->distances[i].name, distance(&g->distances[i]), sums->samples);
    }
out:
    return st;
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

static ls_status write_rows(const ls_gather_output *o, FILE *f, const char *path, ls_err *err)
{
    char header[LS_NPY_HEADER];
    const size_t n_header = ls_npy_header(header, "<f4", o->shape);
    bool ok = fwrite(header, 1, n_header, f) == n_header;

    for (int64_t i = 0, n = ls_shape_count(o->shape); ok && i < n; i++) {
        const float x = (float)o->rows[i];
        ok = fwrite(&x, sizeof x, 1, f) == 1;
    }
    return ok ? LS_OK : ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
}

static ls_status write_output(const ls_gather_output *o, const char *folder, double epoch, ls_err *err)
{
    char path[4096 + 2 * LS_GATHER_NAME];
    ls_replace_stream file = {.f = NULL};
    ls_status st;

    snprintf(path, sizeof path, "%s/%s", folder, o->name);
    st = ls_folders_make(path, err);
    if (st != LS_OK) return st;
    snprintf(path, sizeof path, "%s/%s/epoch-%.6g.npy", folder, o->name, epoch);
    LS_TRY(ls_replace_begin(&file, path, err));
    LS_TRY(write_rows(o, file.f, path, err));
    LS_TRY(ls_replace_commit(&file, err));
out:
    ls_replace_abandon(&file);
    return st;
}

ls_status ls_gather_write(const ls_gather *g, const char *folder, double epoch, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < g->n_outputs; i++) LS_TRY(write_output(&g->outputs[i], folder, epoch, err));
out:
    return st;
}

void ls_gather_release(ls_gather *g)
{
    for (int i = 0; i < g->n_outputs; i++) ls_free(g->outputs[i].rows);
    for (int i = 0; i < g->n_distances; i++) ls_free(g->distances[i].counts);
    ls_free(g->scores);
    *g = (ls_gather){0};
}
