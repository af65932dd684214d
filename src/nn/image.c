/* image.c: declares images that a person wants to see. */
#include <stdio.h>

#include "nn/nn_internal.h"

void ls_image_at(ls_step *s, ls_at at, const char *name, ls_value v, double lo, double hi)
{
    char full[LSI_WORD], buf[LS_SHAPE_TEXT];
    ls_shape shape;

    if (!lsi_step_open(s) || !ls_value_ok(v)) return;
    lsi_step_at(s, at);
    shape = ls_value_shape(v);
    if (shape.rank != 4 || (shape.dim[1] != 1 && shape.dim[1] != 3) || ls_value_dtype(v) != LS_F32) {
        lsi_step_fail(s, "image \"%s\": needs f32 (N, 1 or 3, H, W), got %s %s", name,
                      ls_dtype_name(ls_value_dtype(v)), ls_shape_text(shape, buf));
        return;
    }
    if (!(hi > lo)) {
        lsi_step_fail(s, "image \"%s\": its range must grow, got %g to %g", name, lo, hi);
        return;
    }
    if (!s->how.images) return; /* mistakes are told before hours of training, images after */
    snprintf(full, sizeof full, "samples/%s", name);
    /* One name for several images makes rows of one picture. */
    for (int row = 2; lsi_is_fetched(s, full); row++) snprintf(full, sizeof full, "samples/%s#%d", name, row);
    lsi_fetch(s, ls_affine(v, 1 / (hi - lo), -lo / (hi - lo)), full);
}
