/* rules.h: what the passes ask of a device: what to fold into one node, and which layouts to use.
 *
 * The fusion pass knows where a pattern fits: that the fused node computes the same.  Whether a device can
 * run it, and whether it is then faster, only its backend knows: it lists the patterns that it wants
 * (ls_backend.fuses), with a rule where that depends on the place.  The layout pass knows how to reorder;
 * where that pays is the backend's rule (ls_backend.layouts).  The region pass knows which nodes can become
 * one without a cycle; what a device can compute sample by sample, and where that is faster, is the backend's
 * (ls_backend.regions). */
#ifndef LS_PASSES_RULES_H
#define LS_PASSES_RULES_H

#include "ops/ops.h"

typedef struct ls_device ls_device; /* backend/backend.h; here it is only handed on */

/* In the order in which they are tried.  A product is conv2d, conv2d_dx or matmul; a norm batch_norm or
 * instance_norm; an activation relu, leaky_relu or tanh. */
typedef enum ls_pattern {
    LS_FUSE_NONE,        /* ends a list */
    LS_FUSE_BIAS,        /* bias(product): the product has a third input */
    LS_FUSE_RESIDUAL,    /* add(norm, r): the norm's attribute `residual`, and a last input */
    LS_FUSE_PRODUCT_ADD, /* add(matmul with a bias, r): a fourth input */
    LS_FUSE_ACT,         /* act(product), act(norm): attributes act, slope; relu(maxpool2d): relu */
    LS_FUSE_POOL_MASK,   /* relu_grad(maxpool2d_grad): the mask moves to the smaller side of the pool */
    LS_FUSE_NORM_GRAD,   /* norm_grad(act_grad): attributes act, slope and, where others need the masked
                            gradient too, residual: it is then the last output */
    LS_FUSE_NORM_BIAS,   /* instance_norm(bias): the mean takes away what a bias adds, so it is left out */
    LS_FUSE_NORM_SUM,    /* reduce_sum(norm_grad) over all but channels: it is 0 */
    LS_FUSE_GRAD_ADD,    /* add(layer_norm_grad, r): attribute `residual`, and a last input */
    LS_FUSE_GRAD_SUM,    /* batch_norm_grad(add) with a residual: attribute `sums`, and a last input */
    LS_FUSE_NORM_SIGN, /* norm_grad that reads y for its sign: attribute by_beta, and beta in the place of y,
                          or nothing there where the norm has none */
    LS_FUSE_POOL_SUM,  /* reduce_sum(maxpool2d_grad) over images: a sum of what the pool's gradient reads */
    LS_FUSE_POOL_GRAD, /* maxpool2d_grad(relu_grad) of a pool that applies the ReLU: attribute relu */
    LS_FUSE_BIAS_GRAD, /* reduce_sum(act_grad) over all axes but one: bias_act_grad */
    LS_FUSE_POOLED_WEIGHTS, /* conv2d_dw(x, maxpool2d_grad): conv2d_dw_pooled */
    LS_FUSE_HEADS,          /* attention of slices of one tensor, turned so that heads lie together, and its
                               gradient: self_attention */
    LS_FUSE_MAX,            /* reduce_sum, conv2d_dx, conv2d_dw (of 1 x 1) of reduce_max_grad over points: a
                               sum of what that reads, conv_max_dx, conv_max_dw */
    LS_FUSE_NORM_POOL,      /* maxpool2d(act(batch_norm)), and its gradient: batch_norm_pool */
    LS_FUSE_POINTWISE,      /* chains of element-wise ops: pointwise */
    LS_FUSE_CAST_OUT,       /* cast(node) between floating types: the node's result is of the cast's type */
    LS_FUSE_CAST_IN,        /* node(cast): the node reads what the cast would have read */
    LS_FUSE_N
} ls_pattern;

/* A place where a pattern fits. */
typedef struct ls_fusion {
    ls_pattern pattern;
    const ls_node *inner, *outer; /* what becomes one node; `outer` reads what `inner` makes */
    ls_act act;                   /* the activation or the one whose gradient it is, where there is one */
    int n_in, n_steps; /* LS_FUSE_POINTWISE: inputs and functions that the chain, of which `outer` is
                          the last node, has with `inner` */
} ls_fusion;

/* One pattern that a backend wants.  A list of them ends with {LS_FUSE_NONE}. */
typedef struct ls_fusion_rule {
    ls_pattern pattern;
    bool (*wants)(const ls_device *dev, const ls_graph *g, const ls_fusion *f); /* NULL: wherever it fits */
} ls_fusion_rule;

/* Sets the layouts in which the node's kernel wants its inputs and makes its outputs, all of which are preset
 * to plain; `have` holds those that the inputs are in already.  A rule that weighs a reorder against what its
 * kernel gains finds the bytes in the graph.  Views keep the layout of what they show, and plain where the
 * shape changes; versions of variables are plain. */
typedef void (*ls_layout_rule)(const ls_device *dev, const ls_graph *g, const ls_node *n,
                               const ls_layout *const *have, const ls_layout **in, const ls_layout **out);

/* What a value is to a region, in which every sample (a slice along dimension 0) is computed by itself. */
typedef enum ls_region_kind {
    LS_REGION_OUTSIDE, /* not made in the region: a slice of it may be read, or all of it */
    LS_REGION_SAMPLE,  /* a slice follows from the same slice of others, and from what all samples share */
    LS_REGION_SUM,     /* a sum over all samples: only there when the last of them has been computed */
    LS_REGION_NEXT     /* the next version of a variable, by an optimiser: nobody in the region reads it */
} ls_region_kind;

typedef struct ls_region_rule {
    /* Whether the node could be a part of a region over so many samples: `in` holds the kinds of its inputs,
     * and `out` receives those of its outputs. */
    bool (*takes)(const ls_device *dev, const ls_graph *g, const ls_node *n, int64_t samples,
                  const ls_region_kind *in, ls_region_kind *out);
    /* Whether these nodes, in an order in which inputs come first, can be one. */
    bool (*fits)(const ls_device *dev, const ls_graph *g, int64_t samples, int n,
                 const ls_node *const *members);
    int least; /* nodes that are worth it, views not counted */
} ls_region_rule;

#endif
