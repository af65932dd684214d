/* fuse_max.c: gradients through a maximum over points.
 *
 * Of all points one of each channel gets a gradient, and the others zero.  Written down as a map, that is
 * read by a sum (of a bias) and two products (of the convolution of 1 x 1 below the maximum), nearly all of
 * whose terms are zero; from the points that won all three follow without the map. */
#include "passes/fuse_internal.h"

/* The gradient of a maximum over points, (N, O, 1) to (N, O, 1, L), that made the value; NULL: none did. */
static const ls_node *points_of(const lsi_fuser *f, int32_t value)
{
    const ls_node *p = lsi_fuse_producer(f, value);

    if (p == NULL || p->op != &ls_op_reduce_max_grad) return NULL;
    if (((const ls_reduce_max_grad_attr *)p->attr)->axis != 3 || ls_node_in_shape(f->g, p, 0)->rank != 3)
        return NULL;
    return ls_node_in_shape(f->g, p, 0)->dim[2] == 1 ? p : NULL;
}

/* Whether the convolution is a product of the channels of each point. */
static bool is_product_of_points(const ls_conv_attr *a, ls_shape w)
{
    for (int i = 0; i < 4; i++)
        if (a->pad[i] != 0) return false;
    return a->stride[0] == 1 && a->stride[1] == 1 && a->groups == 1 && a->act == LS_ACT_NONE &&
           w.dim[2] == 1 && w.dim[3] == 1;
}

static bool wants(const lsi_fuser *f, const ls_node *inner, const ls_node *outer)
{
    return lsi_fuse_wanted(f, (ls_fusion){.pattern = LS_FUSE_MAX, .inner = inner, .outer = outer});
}

static void fuse_sum(lsi_fuser *f, ls_node *n)
{
    const ls_node *p = points_of(f, n->in[0]);
    ls_reduce_attr a = *(const ls_reduce_attr *)n->attr;

    if (p == NULL || a.keep || !(a.axes & 1u << 3) || !wants(f, p, n)) return;
    a.axes &= ~(1u << 3);
    f->left_over = lsi_fuse_substitute(f, n, n->op, 1, &p->in[0], &a) != NULL;
}

static void fuse_dx(lsi_fuser *f, ls_node *n)
{
    const ls_node *p = points_of(f, n->in[0]);
    ls_conv_max_attr a;

    if (p == NULL || n->n_in != 2 || !is_product_of_points(n->attr, *ls_node_in_shape(f->g, n, 1))) return;
    if (!wants(f, p, n)) return;
    a.length = ((const ls_reduce_max_grad_attr *)p->attr)->length;
    f->left_over = lsi_fuse_substitute(f, n, &ls_op_conv_max_dx, 3, (int32_t[]){p->in[0], p->in[1], n->in[1]},
                                       &a) != NULL;
}

static void fuse_dw(lsi_fuser *f, ls_node *n)
{
    const ls_node *p = points_of(f, n->in[1]);

    if (p == NULL || !is_product_of_points(n->attr, *ls_node_out_shape(f->g, n, 0)) || !wants(f, p, n))
        return;
    f->left_over = lsi_fuse_substitute(f, n, &ls_op_conv_max_dw, 3, (int32_t[]){n->in[0], p->in[0], p->in[1]},
                                       NULL) != NULL;
}

void lsi_fuse_max(lsi_fuser *f, ls_node *n)
{
    if (n->op == &ls_op_reduce_sum) fuse_sum(f, n);
    if (n->op == &ls_op_conv2d_dx) fuse_dx(f, n);
    if (n->op == &ls_op_conv2d_dw) fuse_dw(f, n);
}
