/* fuse_norm_pool.c: a max pool behind a batch norm and its activation, both ways.
 *
 * Between the norm and the pool lies a map of the norm's size that nothing else reads, and backward another
 * that is zero but where a window was won.  As one node neither is written.  It needs that activation in the
 * norm or in the pool, and its mask in the gradient of either: so it comes behind the patterns that bring it
 * there. */
#include <string.h>

#include "passes/fuse_internal.h"

enum { X, GAMMA, BETA, MEAN = 1, INVSTD }; /* inputs of a batch norm, and two of its outputs */

typedef struct place {
    ls_node *norm, *pool;
    ls_node *pool_grad, *norm_grad; /* NULL: there are no gradients */
    ls_norm_pool_attr attr;
} place;

/* The only node that reads the value, as input k; NULL also where somebody outside does. */
static ls_node *only_reader(const lsi_fuser *f, int32_t value, int k)
{
    const ls_graph *g = f->g;

    if (!lsi_fuse_single_use(f, value)) return NULL;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && k < g->nodes[i]->n_in && g->nodes[i]->in[k] == value) return g->nodes[i];
    return NULL;
}

/* The activation between norm and pool, wherever it is; false: it does not keep the order of elements. */
static bool find_act(place *p)
{
    const ls_norm_attr *norm = p->norm->attr;
    const ls_pool_attr *pool = p->pool->attr;

    p->attr = (ls_norm_pool_attr){*norm, *pool};
    p->attr.pool.relu = false;
    if (pool->relu && norm->act != LS_ACT_NONE) return false;
    if (pool->relu) p->attr.norm.act = LS_ACT_RELU;
    return p->attr.norm.act == LS_ACT_NONE || p->attr.norm.act == LS_ACT_RELU ||
           (p->attr.norm.act == LS_ACT_LEAKY && p->attr.norm.slope > 0);
}

/* Whether the gradients' mask is that of the activation, once. */
static bool masks_once(const place *p)
{
    const ls_norm_attr *norm = p->norm_grad->attr, *forward = &p->attr.norm;
    const bool in_pool = ((const ls_pool_attr *)p->pool_grad->attr)->relu;

    if (in_pool)
        return forward->act == LS_ACT_RELU && norm->act == LS_ACT_NONE &&
               p->pool_grad->in[2] == p->pool->out[0];
    if (norm->act != forward->act) return false;
    return norm->act == LS_ACT_NONE || (norm->by_beta && norm->slope == forward->slope);
}

/* What reads the positions, if anything does: the pool's gradient, and nothing but the norm's reads that. */
static bool find_gradients(const lsi_fuser *f, place *p)
{
    const ls_norm_attr *a;

    p->pool_grad = p->norm_grad = NULL;
    if (f->uses[p->pool->out[1]] == 0) return !f->g->values[p->pool->out[1]]->fetch;
    p->pool_grad = only_reader(f, p->pool->out[1], 1);
    if (p->pool_grad == NULL || p->pool_grad->op != &ls_op_maxpool2d_grad) return false;
    p->norm_grad = only_reader(f, p->pool_grad->out[0], 0);
    if (p->norm_grad == NULL || p->norm_grad->op != &ls_op_batch_norm_grad) return false;
    a = p->norm_grad->attr;
    return !a->residual && !a->sums && p->norm_grad->in[1] == p->norm->in[X] &&
           p->norm_grad->in[2] == p->norm->in[GAMMA] && p->norm_grad->in[3] == p->norm->out[MEAN] &&
           p->norm_grad->in[4] == p->norm->out[INVSTD] && masks_once(p);
}

static bool find(const lsi_fuser *f, ls_node *pool, place *p)
{
    const ls_norm_attr *a;

    p->pool = pool;
    p->norm = lsi_fuse_producer(f, pool->in[0]);
    if (p->norm == NULL || p->norm->op != &ls_op_batch_norm || p->norm->out[0] != pool->in[0]) return false;
    a = p->norm->attr;
    if (a->residual || !lsi_fuse_single_use(f, pool->in[0]) || !find_act(p)) return false;
    return find_gradients(f, p);
}

/* The gradient, with what the fused norm leaves for it. */
static void fuse_gradients(lsi_fuser *f, const place *p, const ls_node *fused)
{
    int32_t in[9] = {
        p->pool_grad->in[0], p->norm_grad->in[1], p->norm_grad->in[2],          fused->in[BETA],
        fused->out[MEAN],    fused->out[INVSTD],  fused->out[fused->n_out - 2], fused->out[fused->n_out - 1]};
    ls_node *sum = lsi_fuse_producer(f, in[0]);
    ls_norm_pool_attr a = p->attr;

    a.norm.sums = sum != NULL && sum->op == &ls_op_add && lsi_fuse_single_use(f, in[0]) &&
                  ls_shape_equal(*ls_node_in_shape(f->g, sum, 0), *ls_node_in_shape(f->g, sum, 1));
    if (a.norm.sums) {
        in[0] = sum->in[0];
        in[8] = sum->in[1];
    }
    if (lsi_fuse_substitute(f, p->norm_grad, &ls_op_batch_norm_pool_grad, 8 + a.norm.sums, in, &a) == NULL)
        return;
    p->pool_grad->dead = true;
    if (a.norm.sums) sum->dead = true;
}

void lsi_fuse_norm_pool(lsi_fuser *f, ls_node *n)
{
    place p;
    ls_node *fused;

    if (n->op != &ls_op_maxpool2d || !find(f, n, &p)) return;
    if (!lsi_fuse_wanted(
            f,
            (ls_fusion){.pattern = LS_FUSE_NORM_POOL, .inner = p.norm, .outer = n, .act = p.attr.norm.act}))
        return;
    fused = lsi_fuse_substitute(f, p.norm, &ls_op_batch_norm_pool, p.norm->n_in, p.norm->in, &p.attr);
    if (fused == NULL) return;
    n->dead = true;
    ls_graph_replace(f->g, n->out[0], fused->out[0]);
    ls_graph_replace(f->g, n->out[1], fused->out[fused->n_out - 2]);
    if (p.pool_grad != NULL) fuse_gradients(f, &p, fused);
}
