/* gathered.c: declares what an evaluation gathers over all of its samples: values to keep, and distributions
 * to compare.  Both are fetched by evaluation steps alone; the trainer finds them by their names. */
#include <stdio.h>

#include "nn/nn_internal.h"

/* Whether v can be gathered: one f32 value or more per sample. */
static bool is_per_sample(ls_step *s, const char *what, const char *name, ls_value v)
{
    char buf[LS_SHAPE_TEXT];
    ls_shape shape = ls_value_shape(v);

    if (shape.rank > 1 && shape.dim[0] == s->batch && ls_value_dtype(v) == LS_F32) return true;
    lsi_step_fail(s, "%s \"%s\": needs f32 (N, ...) with the %lld samples of the batch first, got %s %s",
                  what, name, (long long)s->batch, ls_dtype_name(ls_value_dtype(v)),
                  ls_shape_text(shape, buf));
    return false;
}

void ls_output_at(ls_step *s, ls_at at, const char *name, ls_value v)
{
    char full[LSI_WORD];
    const char *folder;

    if (!lsi_step_open(s) || !ls_value_ok(v)) return;
    lsi_step_at(s, at);
    folder = lsi_step_name(s, name); /* it becomes the name of a file: letters that need no quoting */
    if (folder == NULL || !is_per_sample(s, "output", name, v) || s->mode != LS_EVAL) return;
    snprintf(full, sizeof full, LS_OUTPUT_PREFIX "%s", folder);
    ls_metric_at(s, at, full, v);
}

void ls_scores_at(ls_step *s, ls_at at, ls_value scores, ls_value label)
{
    ls_shape shape;

    if (!lsi_step_open(s) || !ls_value_ok(scores) || !ls_value_ok(label)) return;
    lsi_step_at(s, at);
    shape = ls_value_shape(label);
    if (!is_per_sample(s, "scores", "of classes", scores)) return;
    if (ls_value_shape(scores).rank != 2 || shape.rank != 1 || shape.dim[0] != s->batch ||
        ls_value_dtype(label) != LS_I32) {
        lsi_step_fail(s, "scores: need f32 (N, classes) and labels i32 (N)");
        return;
    }
    if (s->mode != LS_EVAL) return;
    ls_metric_at(s, at, LS_SCORES, scores);
    ls_metric_at(s, at, LS_SCORES_LABEL, label);
}

void ls_distance_at(ls_step *s, ls_at at, const char *name, ls_value a, ls_value b, double lo, double hi)
{
    char full[LSI_WORD];
    const char *copy;

    if (!lsi_step_open(s) || !ls_value_ok(a) || !ls_value_ok(b)) return;
    lsi_step_at(s, at);
    if (!is_per_sample(s, "distance", name, a) || !is_per_sample(s, "distance", name, b)) return;
    if (!(hi > lo)) {
        lsi_step_fail(s, "distance \"%s\": its range must grow, got %g to %g", name, lo, hi);
        return;
    }
    if (s->mode != LS_EVAL) return;
    copy = lsi_step_name(s, name);
    if (copy == NULL ||
        !lsi_step_grow(s, (void **)&s->distances, s->n_distances, &s->cap_distances, sizeof *s->distances))
        return;
    s->distances[s->n_distances++] = (ls_distance_info){copy, hi - lo};
    /* Both are brought to [0, 1] for the histograms; the distance is told in the units of the trial again. */
    for (int i = 0; i < 2; i++) {
        snprintf(full, sizeof full, LS_DISTANCE_PREFIX "%s/%d", copy, i);
        ls_metric_at(s, at, full, ls_affine(i == 0 ? a : b, 1 / (hi - lo), -lo / (hi - lo)));
    }
}

int ls_step_distances(const ls_step *s, const ls_distance_info **out)
{
    *out = s->distances;
    return s->n_distances;
}
