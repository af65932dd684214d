/* fuse_internal.h: what the patterns of fusion share.
 *
 * Each looks at one live node and, when it is there and wanted, adds the fused node in its place and marks
 * the old ones dead.  The position in the program (not the node number, which grows with every fused node)
 * tells what comes before what. */
#ifndef LS_PASSES_FUSE_INTERNAL_H
#define LS_PASSES_FUSE_INTERNAL_H

#include "ops/ops.h"
#include "passes/passes.h"

typedef struct lsi_fuser {
    ls_graph *g;
    int32_t *uses; /* per value; recounted before each sweep */
    int32_t n_uses;
    const ls_fusion_rule *rules;
    const ls_device *dev;
    bool left_over; /* nodes that nobody reads are not marked dead yet */
} lsi_fuser;

/* Whether the device wants what fits. */
bool lsi_fuse_wanted(const lsi_fuser *f, ls_fusion fusion);

/* The live node that made the value, or NULL for inputs and variables. */
ls_node *lsi_fuse_producer(const lsi_fuser *f, int32_t value);
/* Whether exactly one live node reads the value and nobody outside does. */
bool lsi_fuse_single_use(const lsi_fuser *f, int32_t value);
/* The activation an element-wise node computes (relu, leaky_relu, tanh), LS_ACT_NONE for others. */
ls_act lsi_fuse_act(const ls_node *n, double *slope);
/* The same for the gradients of activations that are functions of the result. */
ls_act lsi_fuse_act_grad(const ls_node *n, double *slope);
/* Adds a node at the place of `old` and lets its outputs 0..old->n_out-1 stand for those of `old`, which
 * dies. NULL when the graph has failed. */
ls_node *lsi_fuse_substitute(lsi_fuser *f, ls_node *old, const ls_op *op, int n_in, const int32_t *in,
                             const void *attr);
/* Readers of node n's output 0 read `value` instead; n dies. */
void lsi_fuse_bypass(lsi_fuser *f, ls_node *n, int32_t value);

/* Attention of heads where a product left them (fuse_attention.c). */
void lsi_fuse_attention(lsi_fuser *f, ls_node *attention);

/* What reads the gradient of a maximum over points (fuse_max.c). */
void lsi_fuse_max(lsi_fuser *f, ls_node *reader);

/* A max pool behind a batch norm, both ways (fuse_norm_pool.c). */
void lsi_fuse_norm_pool(lsi_fuser *f, ls_node *pool);

/* Chains of element-wise nodes (fuse_pointwise.c). */
void lsi_fuse_pointwise(lsi_fuser *f);
/* Casts between floating types (fuse_casts.c), last: values are no longer of the types that ops' rules give.
 */
void lsi_fuse_casts(lsi_fuser *f);

#endif
