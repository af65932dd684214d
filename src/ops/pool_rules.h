/* pool_rules.h: windows shared by the pooling ops, and the shape rule of their gradients. */
#ifndef LS_OPS_POOL_RULES_H
#define LS_OPS_POOL_RULES_H

#include "ops/ops.h"

/* Checks x (N, C, H, W) and the attributes, notes H and W in the attributes and computes the pooled shape.
 * Padding is smaller than the window and images are not empty, so that every window holds at least one
 * element. */
ls_status lsi_pool_infer(ls_pool_attr *a, ls_dtype dtype, ls_shape x, ls_shape *y, ls_err *err);
/* The same from the other side: dy (N, C, HO, WO) and the attributes, which must hold H and W, give dx. */
ls_status lsi_pool_infer_grad(ls_pool_attr *a, ls_dtype dtype, ls_shape dy, ls_shape *dx, ls_err *err);
/* Refuses windows in which a position does not fit one byte. */
ls_status lsi_pool_check_positions(const ls_pool_attr *a, ls_err *err);
void lsi_pool_attr_text(const void *attr, char *buf, size_t n);
/* Elements of one window. */
int64_t lsi_pool_window_size(const ls_pool_attr *a);

/* The part of a window that lies inside the image: rows y0..y1-1, columns x0..x1-1; top and left are where
 * the window itself begins, possibly in the padding. */
typedef struct lsi_pool_window {
    int64_t plane; /* offset of the image in x */
    int64_t top, left, y0, y1, x0, x1;
} lsi_pool_window;
/* The window of element i of the pooled tensor, whose shape is y. */
lsi_pool_window lsi_pool_window_at(const ls_pool_attr *a, ls_shape y, int64_t i);
/* One over the number of elements that an average of this window divides by. */
double lsi_pool_weight(const ls_pool_attr *a, const lsi_pool_window *w);

#endif
