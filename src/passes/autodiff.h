/* autodiff.h: gradients as further nodes of the same graph.
 *
 * Because every op's gradient rule is written in ops, the result can be differentiated again (a gradient
 * penalty needs that).  Only nodes that lie between `wrt` and `loss` get gradients: nothing dead is computed.
 */
#ifndef LS_PASSES_AUTODIFF_H
#define LS_PASSES_AUTODIFF_H

#include "graph/graph.h"

/* Adds the gradient of the sum of `seed` * `loss` (same shape; an invalid seed means ones) with respect to
 * each of wrt[0..n-1]; fills grads[i], invalid where loss does not depend on wrt[i].  Errors are sticky in
 * the graph. */
void ls_autodiff(ls_value loss, ls_value seed, int n, const ls_value *wrt, ls_value *grads);

typedef struct ls_autodiff_how {
    /* Gradient rules read, in the place of a node's input x, again(ctx, x); NULL: x itself. */
    ls_value (*again)(void *ctx, ls_value x);
    void *ctx;
    bool wide; /* gradients of 16-bit tensors become fp32, each as soon as nothing is to be added to it */
} ls_autodiff_how;
void ls_autodiff_with(ls_value loss, ls_value seed, int n, const ls_value *wrt, const ls_autodiff_how *how,
                      ls_value *grads);

/* Whether gradients would flow, before there are any: the first of wrt[0..n-1] that loss does not depend on,
 * or n.  An op without a gradient between them is an error of the graph. */
int ls_autodiff_unreached(ls_value loss, int n, const ls_value *wrt);

#endif
