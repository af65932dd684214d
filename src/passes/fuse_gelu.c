/* fuse_gelu.c: GELU and its gradient with the products whose results they read.
 *
 * Forward both the product and what GELU makes of it are kept, the first for the gradient; backward the
 * gradient through GELU is summed up for the bias as well.  A kernel that has the product in its hands writes
 * or reads a tensor less each way. */
#include "passes/fuse_internal.h"

static bool wants(const lsi_fuser *f, const ls_node *inner, const ls_node *outer)
{
    return lsi_fuse_wanted(
        f, (ls_fusion){.pattern = LS_FUSE_PRODUCT_GELU, .inner = inner, .outer = outer, .act = LS_ACT_GELU});
}

/* The matmul of so many inputs, without an activation, that made the value; NULL: none did. */
static ls_node *product_of(const lsi_fuser *f, int32_t value, int n_in)
{
    ls_node *p = lsi_fuse_producer(f, value);

    if (p == NULL || p->op != &ls_op_matmul || p->n_in != n_in) return NULL;
    return ((const ls_matmul_attr *)p->attr)->act == LS_ACT_NONE ? p : NULL;
}

/* gelu(matmul(x, w, bias)) whose input others read, too.  One that the backward pass makes again of a product
 * from the forward pass would be kept from there on. */
static void fuse_forward(lsi_fuser *f, ls_node *n)
{
    ls_node *p = product_of(f, n->in[0], 3), *fused;

    if (p == NULL || p->backward != n->backward || lsi_fuse_single_use(f, n->in[0]) || !wants(f, p, n))
        return;
    fused = lsi_fuse_substitute(f, p, &ls_op_matmul_gelu, 3, p->in, p->attr);
    if (fused == NULL) return;
    f->g->values[fused->out[1]]->category = f->g->values[n->out[0]]->category;
    lsi_fuse_bypass(f, n, fused->out[1]);
}

/* reduce_sum(gelu_grad(matmul(dy, w), z)) over all axes but the last. */
static void fuse_backward(lsi_fuser *f, ls_node *n)
{
    const ls_reduce_attr *r = n->attr;
    const unsigned rank = (unsigned)ls_node_in_shape(f->g, n, 0)->rank;
    ls_node *grad = lsi_fuse_producer(f, n->in[0]), *p, *fused;

    if (grad == NULL || grad->op != &ls_op_gelu_grad || r->keep) return;
    if (rank < 2 || r->axes != (1u << (rank - 1)) - 1) return;
    p = product_of(f, grad->in[0], 2);
    if (p == NULL || !lsi_fuse_single_use(f, grad->in[0]) ||
        !ls_shape_equal(*ls_node_in_shape(f->g, grad, 0), *ls_node_in_shape(f->g, grad, 1)) ||
        !wants(f, p, grad))
        return;
    fused = lsi_fuse_substitute(f, grad, &ls_op_matmul_gelu_grad, 3,
                                (int32_t[]){p->in[0], p->in[1], grad->in[1]}, p->attr);
    if (fused == NULL) return;
    p->dead = true;
    f->g->values[fused->out[1]]->category = f->g->values[n->out[0]]->category;
    lsi_fuse_bypass(f, n, fused->out[1]);
}

void lsi_fuse_gelu(lsi_fuser *f, ls_node *n)
{
    if (n->op == &ls_op_gelu) fuse_forward(f, n);
    if (n->op == &ls_op_reduce_sum) fuse_backward(f, n);
}
