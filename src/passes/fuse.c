/* fuse.c: folds small ops into their producers, so that a tensor is read and written once.
 *
 * Needs: a program without dead nodes, all gradients in it.  Leaves: fewer nodes, some with `act`, `residual`
 * or other fields that only fusion sets; what was folded is dead.
 *
 * Here is where patterns fit; what the device wants of them is its own affair (rules.h). */
#include <string.h>

#include "passes/fuse_internal.h"

/* -- tools
 * ---------------------------------------------------------------------------------------------------- */

ls_node *lsi_fuse_producer(const lsi_fuser *f, int32_t value)
{
    int32_t node = f->g->values[value]->node;

    return node < 0 || f->g->nodes[node]->dead ? NULL : f->g->nodes[node];
}

bool lsi_fuse_single_use(const lsi_fuser *f, int32_t value)
{
    return value < f->n_uses && f->uses[value] == 1 && !f->g->values[value]->fetch;
}

ls_act lsi_fuse_act(const ls_node *n, double *slope)
{
    *slope = 0;
    if (n->op == &ls_op_relu) return LS_ACT_RELU;
    if (n->op == &ls_op_tanh) return LS_ACT_TANH;
    if (n->op != &ls_op_leaky_relu) return LS_ACT_NONE;
    *slope = ((const ls_pw_attr *)n->attr)->p[0];
    return LS_ACT_LEAKY;
}

ls_act lsi_fuse_act_grad(const ls_node *n, double *slope)
{
    *slope = 0;
    if (n->op == &ls_op_relu_grad) return LS_ACT_RELU;
    if (n->op == &ls_op_tanh_grad) return LS_ACT_TANH;
    if (n->op != &ls_op_leaky_relu_grad) return LS_ACT_NONE;
    *slope = ((const ls_pw_attr *)n->attr)->p[0];
    return LS_ACT_LEAKY;
}

ls_node *lsi_fuse_substitute(lsi_fuser *f, ls_node *old, const ls_op *op, int n_in, const int32_t *in,
                             const void *attr)
{
    ls_graph *g = f->g;
    ls_value inputs[LS_PW_MAX_INPUTS + 8], v;
    ls_node *n;

    LS_BUG_IF(n_in > (int)(sizeof inputs / sizeof inputs[0]));
    for (int i = 0; i < n_in; i++) inputs[i] = (ls_value){g, in[i]};
    g->here = old->src;
    g->scope = old->scope;
    v = ls_graph_add(g, op, n_in, inputs, attr);
    if (!ls_value_ok(v)) return NULL;
    n = g->nodes[g->values[v.id]->node];
    ls_graph_stand_for(n, old);
    n->backward = old->backward;
    n->after = old->after;
    old->dead = true;
    for (int k = 0; k < old->n_out; k++) {
        g->values[n->out[k]]->var = g->values[old->out[k]]->var;
        g->values[n->out[k]]->category = g->values[old->out[k]]->category;
        ls_graph_replace(g, old->out[k], n->out[k]);
    }
    return n;
}

void lsi_fuse_bypass(lsi_fuser *f, ls_node *n, int32_t value)
{
    n->dead = true;
    ls_graph_replace(f->g, n->out[0], value);
}

bool lsi_fuse_wanted(const lsi_fuser *f, ls_fusion fusion)
{
    for (const ls_fusion_rule *r = f->rules; r->pattern != LS_FUSE_NONE; r++)
        if (r->pattern == fusion.pattern && (r->wants == NULL || r->wants(f->dev, f->g, &fusion)))
            return true;
    return false;
}

static bool wanted(const lsi_fuser *f, ls_pattern pattern, const ls_node *inner, const ls_node *outer,
                   ls_act act)
{
    return lsi_fuse_wanted(f, (ls_fusion){.pattern = pattern, .inner = inner, .outer = outer, .act = act});
}

static bool recount(lsi_fuser *f)
{
    f->n_uses = f->g->n_values;
    f->uses = ls_arena_alloc(f->g->arena, sizeof *f->uses * ((size_t)f->n_uses + 1));
    if (f->uses == NULL) {
        ls_graph_fail(f->g, LS_NOMEM, "fusion: no memory");
        return false;
    }
    ls_graph_count_uses(f->g, f->uses);
    return true;
}

/* -- forward: bias and activation into products
 * ------------------------------------------------------------------ */

static bool is_product(const ls_node *n)
{
    return n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx || n->op == &ls_op_matmul;
}

static bool is_norm(const ls_node *n)
{
    return n->op == &ls_op_batch_norm || n->op == &ls_op_instance_norm;
}

/* Where node p, if it can apply an activation itself, says which; and its slope. */
static ls_act *own_act(const ls_node *p, double **slope)
{
    ls_matmul_attr *product = p->attr;
    ls_conv_attr *conv = p->attr;
    ls_norm_attr *norm = p->attr;

    *slope = NULL;
    if (!is_product(p) && !is_norm(p)) return NULL; /* many ops have no attributes at all */
    *slope = p->op == &ls_op_matmul ? &product->slope : is_product(p) ? &conv->slope : &norm->slope;
    return p->op == &ls_op_matmul ? &product->act : is_product(p) ? &conv->act : &norm->act;
}

/* instance_norm(bias(x, b)), also in the norm's gradient: every sample and channel has one number added,
 * which is in its mean, too. */
static void drop_bias(lsi_fuser *f, ls_node *n)
{
    const ls_graph *g = f->g;
    const ls_node *reader = NULL;

    if (n->op != &ls_op_bias || ((const ls_axis_attr *)n->attr)->axis != 1 || g->values[n->out[0]]->fetch)
        return;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; !g->nodes[i]->dead && k < g->nodes[i]->n_in; k++) {
            const ls_node *r = g->nodes[i];
            if (r->in[k] != n->out[0]) continue;
            if (!(r->op == &ls_op_instance_norm && k == 0) && !(r->op == &ls_op_instance_norm_grad && k == 1))
                return;
            if (r->op == &ls_op_instance_norm && g->values[r->out[1]]->fetch) return; /* the mean */
            reader = r;
        }
    if (reader == NULL || !wanted(f, LS_FUSE_NORM_BIAS, n, reader, LS_ACT_NONE)) return;
    lsi_fuse_bypass(f, n, n->in[0]);
}

/* bias(product(x, w), b) along the product's channels. */
static void fuse_bias(lsi_fuser *f, ls_node *n)
{
    ls_node *p;
    double *slope;
    int rank, axis;
    int32_t in[3];

    if (n->op != &ls_op_bias || !lsi_fuse_single_use(f, n->in[0])) return;
    p = lsi_fuse_producer(f, n->in[0]);
    if (p == NULL || !is_product(p) || p->n_in != 2 || *own_act(p, &slope) != LS_ACT_NONE) return;
    rank = ls_node_out_shape(f->g, p, 0)->rank;
    axis = ((const ls_axis_attr *)n->attr)->axis;
    if (axis != (p->op == &ls_op_matmul ? rank - 1 : 1)) return;
    if (!wanted(f, LS_FUSE_BIAS, p, n, LS_ACT_NONE)) return;
    in[0] = p->in[0], in[1] = p->in[1], in[2] = n->in[1];
    /* The fused node runs where the bias stood, when the bias vector is certainly there. */
    ls_graph_stand_for(p, n);
    p = lsi_fuse_substitute(f, p, p->op, 3, in, p->attr);
    if (p != NULL) lsi_fuse_bypass(f, n, p->out[0]);
}

/* act(product(...)), act(norm(...)) and relu(maxpool2d(...)). */
static void fuse_act(lsi_fuser *f, ls_node *n)
{
    double slope, *own_slope;
    const ls_act act = lsi_fuse_act(n, &slope);
    ls_act *own;
    ls_node *p;

    if (act == LS_ACT_NONE || !lsi_fuse_single_use(f, n->in[0])) return;
    p = lsi_fuse_producer(f, n->in[0]);
    if (p == NULL || f->g->values[n->in[0]]->out != 0) return;
    own = own_act(p, &own_slope);
    if (own != NULL ? *own != LS_ACT_NONE : p->op != &ls_op_maxpool2d || act != LS_ACT_RELU) return;
    if (!wanted(f, LS_FUSE_ACT, p, n, act)) return;
    if (own != NULL) {
        *own = act;
        *own_slope = slope;
    } else {
        ((ls_pool_attr *)p->attr)->relu = true;
    }
    lsi_fuse_bypass(f, n, n->in[0]);
}

/* add(norm(x), r): the norm adds r itself, before its activation. */
static void fuse_residual(lsi_fuser *f, ls_node *n)
{
    if (n->op != &ls_op_add) return;
    for (int k = 1; k >= 0; k--) {
        ls_node *p = lsi_fuse_producer(f, n->in[k]);
        int32_t r = n->in[1 - k], in[8];
        const ls_node *rp = lsi_fuse_producer(f, r);
        ls_norm_attr a;
        if (p == NULL || !is_norm(p)) continue;
        if (f->g->values[n->in[k]]->out != 0 || !lsi_fuse_single_use(f, n->in[k])) continue;
        a = *(const ls_norm_attr *)p->attr;
        if (a.act != LS_ACT_NONE || a.residual) continue;
        if (!ls_shape_equal(f->g->values[r]->shape, f->g->values[n->in[k]]->shape)) continue;
        /* Whatever r needs must not need the norm: what was made before it cannot. */
        if (rp != NULL && rp->position > p->position) continue;
        if (!wanted(f, LS_FUSE_RESIDUAL, p, n, LS_ACT_NONE)) continue;
        memcpy(in, p->in, sizeof *in * (size_t)p->n_in);
        in[p->n_in] = r;
        a.residual = true;
        p = lsi_fuse_substitute(f, p, p->op, p->n_in + 1, in, &a);
        if (p != NULL) lsi_fuse_bypass(f, n, p->out[0]);
        return;
    }
}

/* The input of add node n that comes from a node of this op and from nowhere else, which can take what is
 * added as an input of its own: the number, and the node in *p; -1: there is none. */
static int addend(const lsi_fuser *f, const ls_node *n, const ls_op *op, ls_node **p)
{
    for (int k = 1; n->op == &ls_op_add && k >= 0; k--) {
        const int32_t r = n->in[1 - k];
        const ls_node *rp = lsi_fuse_producer(f, r);
        *p = lsi_fuse_producer(f, n->in[k]);
        if (*p == NULL || (*p)->op != op || f->g->values[n->in[k]]->out != 0) continue;
        if (!lsi_fuse_single_use(f, n->in[k])) continue;
        if (!ls_shape_equal(f->g->values[r]->shape, f->g->values[n->in[k]]->shape)) continue;
        /* Whatever r needs must not need the node: what was made before it cannot. */
        if (rp != NULL && rp->position > (*p)->position) continue;
        return k;
    }
    return -1;
}

/* add(node, r) where the node has r as its last input. */
static void take_addend(lsi_fuser *f, ls_node *n, int k, ls_node *p, const void *attr)
{
    int32_t in[8];

    memcpy(in, p->in, sizeof *in * (size_t)p->n_in);
    in[p->n_in] = n->in[1 - k];
    p = lsi_fuse_substitute(f, p, p->op, p->n_in + 1, in, attr);
    if (p != NULL) lsi_fuse_bypass(f, n, p->out[0]);
}

/* add(matmul(x, w, bias), r) */
static void fuse_product_add(lsi_fuser *f, ls_node *n)
{
    ls_node *p;
    const int k = addend(f, n, &ls_op_matmul, &p);

    if (k < 0 || p->n_in != 3 || ((const ls_matmul_attr *)p->attr)->act != LS_ACT_NONE) return;
    if (wanted(f, LS_FUSE_PRODUCT_ADD, p, n, LS_ACT_NONE)) take_addend(f, n, k, p, p->attr);
}

/* add(layer_norm_grad(dy, x, ...), r): x's gradient by another way */
static void fuse_grad_add(lsi_fuser *f, ls_node *n)
{
    ls_node *p;
    const int k = addend(f, n, &ls_op_layer_norm_grad, &p);
    ls_norm_attr a;

    if (k < 0) return;
    a = *(const ls_norm_attr *)p->attr;
    if (a.residual || !wanted(f, LS_FUSE_GRAD_ADD, p, n, LS_ACT_NONE)) return;
    a.residual = true;
    take_addend(f, n, k, p, &a);
}

/* -- backward: gradients of activations into what reads them
 * -------------------------------------------------------- */

/* norm_grad(act_grad(dy, y), x, ...): the norm's gradient applies the mask itself and, when others need the
 * masked gradient too (the residual branch), hands it out. */
static void fuse_norm_grad(lsi_fuser *f, ls_node *n)
{
    ls_graph *g = f->g;
    double slope;
    ls_node *p, *fused;
    ls_norm_attr a;
    int32_t in[8];

    if (n->op != &ls_op_batch_norm_grad && n->op != &ls_op_instance_norm_grad) return;
    a = *(const ls_norm_attr *)n->attr;
    p = lsi_fuse_producer(f, n->in[0]);
    if (p == NULL || a.act != LS_ACT_NONE) return;
    a.act = lsi_fuse_act_grad(p, &slope);
    a.slope = slope;
    if (a.act == LS_ACT_NONE || !ls_shape_equal(*ls_node_in_shape(g, p, 0), *ls_node_in_shape(g, p, 1)))
        return;
    a.residual = !lsi_fuse_single_use(f, n->in[0]);
    if (a.residual) {
        if (g->values[p->out[0]]->fetch) return;
        /* Other readers will wait for this node, so it must come before all of them. */
        for (int32_t i = 0; i < g->n_nodes; i++)
            for (int k = 0; !g->nodes[i]->dead && k < g->nodes[i]->n_in; k++)
                if (g->nodes[i]->in[k] == p->out[0] && g->nodes[i]->position < n->position) return;
    }
    if (!wanted(f, LS_FUSE_NORM_GRAD, p, n, a.act)) return;
    memcpy(in, n->in, sizeof *in * (size_t)n->n_in);
    in[0] = p->in[0];
    in[n->n_in] = p->in[1];
    fused = lsi_fuse_substitute(f, n, n->op, n->n_in + 1, in, &a);
    if (fused == NULL) return;
    p->dead = true;
    if (a.residual) ls_graph_replace(g, p->out[0], fused->out[fused->n_out - 1]);
}

/* batch_norm_grad(add(dy, r), ...) that hands out what its mask leaves of dy: it adds r itself. */
static void fuse_grad_sum(lsi_fuser *f, ls_node *n)
{
    ls_node *p;
    ls_norm_attr a;
    int32_t in[8];

    if (n->op != &ls_op_batch_norm_grad) return;
    a = *(const ls_norm_attr *)n->attr;
    p = lsi_fuse_producer(f, n->in[0]);
    if (!a.residual || a.sums || p == NULL || p->op != &ls_op_add || !lsi_fuse_single_use(f, n->in[0]))
        return;
    if (!ls_shape_equal(*ls_node_in_shape(f->g, p, 0), *ls_node_in_shape(f->g, p, 1))) return;
    if (!wanted(f, LS_FUSE_GRAD_SUM, p, n, LS_ACT_NONE)) return;
    memcpy(in, n->in, sizeof *in * (size_t)n->n_in);
    in[0] = p->in[0];
    in[n->n_in] = p->in[1];
    a.sums = true;
    if (lsi_fuse_substitute(f, n, n->op, n->n_in + 1, in, &a) != NULL) p->dead = true;
}

/* Zeros that are there before node n: those of another layer will do, unless they are to be exchanged, each
 * where it lies. */
static const ls_node *zeros_before(const lsi_fuser *f, const ls_node *n, const ls_fill_attr *a)
{
    for (int32_t i = 0; i < f->g->n_nodes; i++)
        for (int k = 0; !f->g->nodes[i]->dead && k < f->g->nodes[i]->n_in; k++)
            if (f->g->nodes[i]->in[k] == n->out[0] && (f->g->nodes[i]->op->flags & LS_OP_COLLECTIVE) != 0)
                return NULL;
    for (int32_t i = 0; i < f->g->n_nodes; i++) {
        const ls_node *z = f->g->nodes[i];
        const ls_fill_attr *b = z->attr;
        if (z->dead || z->op != &ls_op_fill || z->position > n->position || f->g->values[z->out[0]]->fetch)
            continue;
        if (b->value == 0 && b->dtype == a->dtype && ls_shape_equal(b->shape, a->shape)) return z;
    }
    return NULL;
}

/* reduce_sum of a norm's gradient over at least what its statistics run over: what is added to all of a group
 * changes no result, so the gradient with respect to it is 0. */
static void zero_sum(lsi_fuser *f, ls_node *n)
{
    const ls_reduce_attr *r = n->attr;
    const ls_node *p;
    ls_fill_attr a;
    const ls_node *zeros;
    unsigned group;

    if (n->op != &ls_op_reduce_sum) return;
    p = lsi_fuse_producer(f, n->in[0]);
    if (p == NULL || (p->op != &ls_op_batch_norm_grad && p->op != &ls_op_instance_norm_grad)) return;
    group =
        p->op == &ls_op_instance_norm_grad ? 0xcu : ((1u << ls_node_in_shape(f->g, n, 0)->rank) - 1) & ~2u;
    if (p->out[0] != n->in[0] || (r->axes & group) != group) return;
    if (!wanted(f, LS_FUSE_NORM_SUM, p, n, LS_ACT_NONE)) return;
    a = (ls_fill_attr){*ls_node_out_shape(f->g, n, 0), f->g->values[n->out[0]]->dtype, 0};
    zeros = zeros_before(f, n, &a);
    if (zeros != NULL)
        lsi_fuse_bypass(f, n, zeros->out[0]);
    else
        lsi_fuse_substitute(f, n, &ls_op_fill, 0, NULL, &a);
}

/* norm_grad(dy, x, ..., y) of y = act(norm(x)): where the activation keeps the sign, x shows it; a map less
 * is read, and need not be kept until then. */
static void fuse_norm_sign(lsi_fuser *f, ls_node *n)
{
    enum { X = 1, GAMMA = 2, BETA = 2 };
    const bool batch = n->op == &ls_op_batch_norm_grad;
    const int y = batch ? 5 : 4; /* the last input, if any */
    const ls_node *norm;
    const ls_norm_attr *forward;
    ls_norm_attr a;
    int32_t in[6];

    if ((!batch && n->op != &ls_op_instance_norm_grad) || n->n_in != y + 1) return;
    a = *(const ls_norm_attr *)n->attr;
    norm = lsi_fuse_producer(f, n->in[y]);
    if (norm == NULL || norm->op != (batch ? &ls_op_batch_norm : &ls_op_instance_norm) ||
        norm->out[0] != n->in[y])
        return;
    forward = norm->attr;
    if (a.residual || a.by_beta || forward->residual || forward->act != a.act || forward->slope != a.slope)
        return;
    if (a.act != LS_ACT_RELU && (a.act != LS_ACT_LEAKY || !(a.slope > 0))) return;
    if (norm->in[0] != n->in[X] || (batch && norm->in[1] != n->in[GAMMA])) return;
    if (!wanted(f, LS_FUSE_NORM_SIGN, norm, n, a.act)) return;
    memcpy(in, n->in, sizeof *in * (size_t)n->n_in);
    if (batch) in[y] = norm->in[BETA];
    a.by_beta = true;
    lsi_fuse_substitute(f, n, n->op, batch ? y + 1 : y, in, &a);
}

/* relu_grad(maxpool2d_grad(dy, index), x) where x, the pool's input, came from the ReLU: the elements that
 * won are positive exactly where the pool's output is, so the mask can go on the smaller side of the pool. */
static void move_relu_grad(lsi_fuser *f, ls_node *n)
{
    ls_graph *g = f->g;
    const ls_node *pool;
    ls_node *p;
    ls_value masked;

    if (n->op != &ls_op_relu_grad || !lsi_fuse_single_use(f, n->in[0])) return;
    p = lsi_fuse_producer(f, n->in[0]);
    if (p == NULL || p->op != &ls_op_maxpool2d_grad || ((const ls_pool_attr *)p->attr)->relu) return;
    pool = lsi_fuse_producer(f, p->in[1]);
    if (pool == NULL || pool->op != &ls_op_maxpool2d || pool->in[0] != n->in[1]) return;
    if (!wanted(f, LS_FUSE_POOL_MASK, p, n, LS_ACT_RELU)) return;
    g->here = n->src;
    g->scope = n->scope;
    masked = ls_relu_grad((ls_value){g, p->in[0]}, (ls_value){g, pool->out[0]});
    if (!ls_value_ok(masked)) return;
    ls_graph_stand_for(g->nodes[g->values[masked.id]->node], p);
    g->nodes[g->values[masked.id]->node]->backward = p->backward;
    if (lsi_fuse_substitute(f, p, p->op, 2, (int32_t[]){masked.id, p->in[1]}, p->attr) == NULL) return;
    lsi_fuse_bypass(f, n, n->in[0]);
}

/* reduce_sum(maxpool2d_grad(dy, index)) over the images: every element of dy goes somewhere once. */
static void fuse_pool_sum(lsi_fuser *f, ls_node *n)
{
    const ls_reduce_attr *r = n->attr;
    const unsigned image = 1u << 2 | 1u << 3;
    const ls_node *p;

    if (n->op != &ls_op_reduce_sum) return;
    p = lsi_fuse_producer(f, n->in[0]);
    if (p == NULL || p->op != &ls_op_maxpool2d_grad || (r->axes & image) != image) return;
    if (((const ls_pool_attr *)p->attr)->relu) return;
    if (!wanted(f, LS_FUSE_POOL_SUM, p, n, LS_ACT_NONE)) return;
    lsi_fuse_substitute(f, n, n->op, 1, &p->in[0], r);
}

/* conv2d_dw(x, maxpool2d_grad(dy, index)): from the positions that won, without the gradient in between. */
static void fuse_pooled_weights(lsi_fuser *f, ls_node *n)
{
    const ls_node *p;
    ls_conv_pool_attr a;

    if (n->op != &ls_op_conv2d_dw || !lsi_fuse_single_use(f, n->in[1])) return;
    p = lsi_fuse_producer(f, n->in[1]);
    if (p == NULL || p->op != &ls_op_maxpool2d_grad) return;
    a = (ls_conv_pool_attr){*(const ls_conv_attr *)n->attr, *(const ls_pool_attr *)p->attr};
    if (a.pool.relu || !wanted(f, LS_FUSE_POOLED_WEIGHTS, p, n, LS_ACT_NONE)) return;
    lsi_fuse_substitute(f, n, &ls_op_conv2d_dw_pooled, 3, (int32_t[]){n->in[0], p->in[0], p->in[1]}, &a);
}

/* maxpool2d_grad(relu_grad(dy, y), index) of a pool that applies the ReLU itself. */
static void fuse_pool_grad(lsi_fuser *f, ls_node *n)
{
    ls_node *p;
    ls_pool_attr a;
    int32_t in[3];

    if (n->op != &ls_op_maxpool2d_grad || !lsi_fuse_single_use(f, n->in[0])) return;
    p = lsi_fuse_producer(f, n->in[0]);
    a = *(const ls_pool_attr *)n->attr;
    if (p == NULL || p->op != &ls_op_relu_grad || a.relu) return;
    if (!ls_shape_equal(*ls_node_in_shape(f->g, p, 0), *ls_node_in_shape(f->g, p, 1))) return;
    if (!wanted(f, LS_FUSE_POOL_GRAD, p, n, LS_ACT_RELU)) return;
    a.relu = true;
    in[0] = p->in[0], in[1] = n->in[1], in[2] = p->in[1];
    if (lsi_fuse_substitute(f, n, n->op, 3, in, &a) != NULL) p->dead = true;
}

/* reduce_sum(act_grad(dy, y)) over everything but one axis: the gradient of a bias under an activation. */
static void fuse_bias_grad(lsi_fuser *f, ls_node *n)
{
    const ls_reduce_attr *r = n->attr;
    ls_node *p, *fused;
    ls_bias_act_attr a = {0};
    unsigned all, kept;

    if (n->op != &ls_op_reduce_sum || r->keep) return;
    p = lsi_fuse_producer(f, n->in[0]);
    if (p == NULL) return;
    a.act = lsi_fuse_act_grad(p, &a.slope);
    if (a.act == LS_ACT_NONE || !ls_shape_equal(*ls_node_in_shape(f->g, p, 0), *ls_node_in_shape(f->g, p, 1)))
        return;
    all = (1u << ls_node_in_shape(f->g, n, 0)->rank) - 1;
    kept = all & ~r->axes;
    if (kept == 0 || (kept & (kept - 1)) != 0) return;
    if (!wanted(f, LS_FUSE_BIAS_GRAD, p, n, a.act)) return;
    while (!(kept & 1u << a.axis)) a.axis++;
    fused = lsi_fuse_substitute(f, p, &ls_op_bias_act_grad, 2, p->in, &a);
    if (fused == NULL) return;
    f->g->values[fused->out[1]]->category = f->g->values[n->out[0]]->category;
    lsi_fuse_bypass(f, n, fused->out[1]);
}

/* -- driver
 * ------------------------------------------------------------------------------------------------------------
 */

void ls_pass_fuse(ls_graph *g, const ls_fusion_rule *rules, const ls_device *dev)
{
    static void (*const patterns[])(lsi_fuser *, ls_node *) = {
        drop_bias,          zero_sum,       fuse_bias,          fuse_residual,  fuse_product_add,
        fuse_act,           move_relu_grad, fuse_norm_grad,     fuse_grad_sum,  fuse_grad_add,
        fuse_norm_sign,     fuse_pool_sum,  fuse_pool_grad,     fuse_bias_grad, fuse_pooled_weights,
        lsi_fuse_attention, lsi_fuse_max,   lsi_fuse_norm_pool,
    };
    lsi_fuser f = {.g = g, .rules = rules, .dev = dev};

    for (size_t i = 0; rules != NULL && i < sizeof patterns / sizeof patterns[0]; i++) {
        const int32_t n = g->n_nodes;
        if (!recount(&f)) return;
        for (int32_t k = 0; k < n && g->err.status == LS_OK; k++)
            if (!g->nodes[k]->dead) patterns[i](&f, g->nodes[k]);
    }
    if (f.left_over) ls_pass_dead(g);
    if (rules != NULL && recount(&f)) lsi_fuse_pointwise(&f);
    if (rules != NULL && g->err.status == LS_OK && recount(&f)) lsi_fuse_casts(&f);
}
