/* fuse_attention.c: attention of heads that lie as a product left them.
 *
 * A layer turns what its product made, (N, T, 3, H, D), so that heads lie together, (3, N, H, T, D), takes it
 * apart into queries, keys and values, and turns the result back; the gradient does the same the other way,
 * with zeros around each third and sums of them.  A kernel that finds heads where they lie needs none of
 * that. */
#include <string.h>

#include "passes/fuse_internal.h"

/* The places of one layer: what a fused node reads, and whose readers get its result. */
typedef struct heads {
    ls_node *attention, *grad; /* grad: NULL where there is none */
    int32_t qkv;               /* (N, T, 3, H, D) */
    ls_node *back;             /* makes (N, T, H, D) of what attention made */
    int32_t dout;              /* (N, T, H, D) */
    ls_node *end;              /* makes (N, T, 3, H, D) of the gradients */
} heads;

static ls_node *made_by(const lsi_fuser *f, int32_t value, const ls_op *op)
{
    ls_node *n = lsi_fuse_producer(f, value);

    return n != NULL && n->op == op ? n : NULL;
}

/* The one node that reads the value, if it is of this op; nobody outside may. */
static ls_node *read_by(const lsi_fuser *f, int32_t value, const ls_op *op)
{
    const ls_graph *g = f->g;

    if (!lsi_fuse_single_use(f, value)) return NULL;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; !g->nodes[i]->dead && k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] == value) return g->nodes[i]->op == op ? g->nodes[i] : NULL;
    return NULL;
}

static bool turns(const ls_node *n, int rank, const int *perm)
{
    const ls_transpose_attr *a = n != NULL ? n->attr : NULL;

    if (a == NULL || a->rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (a->perm[i] != perm[i]) return false;
    return true;
}

/* q, k and v are thirds of one tensor that was turned: where it came from, or -1. */
static int32_t common_source(const lsi_fuser *f, const ls_node *attention)
{
    static const int perm[5] = {2, 0, 3, 1, 4};
    int32_t turned = -1;

    for (int i = 0; i < 3; i++) {
        const ls_node *view = made_by(f, attention->in[i], &ls_op_reshape);
        const ls_node *slice = view != NULL ? made_by(f, view->in[0], &ls_op_slice) : NULL;
        const ls_slice_attr *a = slice != NULL ? slice->attr : NULL;
        if (a == NULL || a->axis != 0 || a->start != i || a->length != 1) return -1;
        if (i > 0 && slice->in[0] != turned) return -1;
        turned = slice->in[0];
    }
    const ls_node *turn = made_by(f, turned, &ls_op_transpose);
    if (ls_graph_value(f->g, turned)->shape.rank != 5 || !turns(turn, 5, perm)) return -1;
    const ls_shape heads = *ls_node_in_shape(f->g, turn, 0), each = *ls_node_in_shape(f->g, attention, 0);
    /* Each third became (N * H, T, D). */
    if (heads.dim[2] != 3 || each.dim[0] != heads.dim[0] * heads.dim[3] || each.dim[1] != heads.dim[1])
        return -1;
    return turn->in[0];
}

/* The node that turns (N, H, T, D), a view of the value, to (N, T, H, D); NULL where another reads it. */
static ls_node *turned_back(const lsi_fuser *f, int32_t value, const ls_node *but, ls_shape qkv)
{
    static const int perm[4] = {0, 2, 1, 3};
    ls_node *found = NULL;

    for (int32_t i = 0; i < f->g->n_nodes; i++) {
        ls_node *n = f->g->nodes[i];
        for (int k = 0; !n->dead && n != but && k < n->n_in; k++) {
            if (n->in[k] != value) continue;
            if (found != NULL || n->op != &ls_op_reshape) return NULL;
            found = n;
        }
    }
    if (found == NULL || f->g->values[value]->fetch) return NULL;
    found = read_by(f, found->out[0], &ls_op_transpose);
    if (found == NULL || ls_node_in_shape(f->g, found, 0)->rank != 4 || !turns(found, 4, perm)) return NULL;
    return ls_shape_equal(*ls_node_out_shape(f->g, found, 0),
                          LS_SHAPE(qkv.dim[0], qkv.dim[1], qkv.dim[3], qkv.dim[4]))
               ? found
               : NULL;
}

/* Third number i with zeros in the places of the others: the node that joins them. */
static ls_node *third_among_zeros(const lsi_fuser *f, int32_t value, int i)
{
    const ls_graph *g = f->g;
    const ls_node *view = read_by(f, value, &ls_op_reshape);
    ls_node *join = view != NULL ? read_by(f, view->out[0], &ls_op_concat) : NULL;
    int64_t before = 0, all = 0;

    if (join == NULL || ((const ls_axis_attr *)join->attr)->axis != 0) return NULL;
    for (int k = 0; k < join->n_in; k++) {
        const ls_node *fill = lsi_fuse_producer(f, join->in[k]);
        if (join->in[k] == view->out[0]) {
            before = all;
        } else if (fill == NULL || fill->op != &ls_op_fill ||
                   ((const ls_fill_attr *)fill->attr)->value != 0) {
            return NULL;
        }
        all += ls_node_in_shape(g, join, k)->dim[0];
    }
    return before == i && all == 3 && ls_node_out_shape(g, join, 0)->rank == 5 ? join : NULL;
}

static bool reads_both(const ls_node *n, int32_t a, int32_t b)
{
    return (n->in[0] == a && n->in[1] == b) || (n->in[0] == b && n->in[1] == a);
}

/* The value that is the sum of three, each of which only that sum reads; -1: it is none. */
static int32_t sum_of(const lsi_fuser *f, const int32_t part[3])
{
    for (int last = 0; last < 3; last++) {
        const int32_t a = part[(last + 1) % 3], b = part[(last + 2) % 3];
        const ls_node *first = read_by(f, a, &ls_op_add), *second;
        if (first == NULL || !reads_both(first, a, b) || !lsi_fuse_single_use(f, b)) continue;
        second = read_by(f, first->out[0], &ls_op_add);
        if (second != NULL && reads_both(second, first->out[0], part[last]) &&
            lsi_fuse_single_use(f, part[last]))
            return second->out[0];
    }
    return -1;
}

static bool match_gradient(const lsi_fuser *f, heads *h)
{
    static const int inverse[5] = {1, 3, 0, 2, 4}, forth[4] = {0, 2, 1, 3};
    const ls_node *n = h->grad;
    const ls_node *view = made_by(f, n->in[5], &ls_op_reshape);
    const ls_node *turn = view != NULL ? made_by(f, view->in[0], &ls_op_transpose) : NULL;
    int32_t part[3], sum;

    for (int i = 0; i < 3; i++)
        if (n->in[i] != h->attention->in[i]) return false;
    if (n->in[4] != h->attention->out[1] || turn == NULL || ls_node_in_shape(f->g, turn, 0)->rank != 4 ||
        !turns(turn, 4, forth))
        return false;
    h->dout = turn->in[0];
    if (!ls_shape_equal(f->g->values[h->dout]->shape, *ls_node_out_shape(f->g, h->back, 0))) return false;
    for (int i = 0; i < 3; i++) {
        const ls_node *join = third_among_zeros(f, n->out[i], i);
        if (join == NULL) return false;
        part[i] = join->out[0];
    }
    sum = sum_of(f, part);
    if (sum < 0) return false;
    h->end = read_by(f, sum, &ls_op_transpose);
    return h->end != NULL && turns(h->end, 5, inverse);
}

static bool match(const lsi_fuser *f, ls_node *attention, heads *h)
{
    const ls_graph *g = f->g;

    *h = (heads){.attention = attention, .qkv = common_source(f, attention)};
    if (h->qkv < 0) return false;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || n->op != &ls_op_attention_grad || n->in[3] != attention->out[0]) continue;
        if (h->grad != NULL) return false;
        h->grad = g->nodes[i];
    }
    if (g->values[attention->out[1]]->fetch || f->uses[attention->out[1]] != (h->grad != NULL)) return false;
    h->back = turned_back(f, attention->out[0], h->grad, g->values[h->qkv]->shape);
    return h->back != NULL && (h->grad == NULL || match_gradient(f, h));
}

/* A node in the place of `old`, whose result is read in the place of what `end` made. */
static ls_node *stand_in(lsi_fuser *f, ls_node *old, ls_node *end, const ls_op *op, int n_in,
                         const int32_t *in)
{
    ls_graph *g = f->g;
    ls_value inputs[4], out;
    ls_node *n;

    for (int i = 0; i < n_in; i++) inputs[i] = (ls_value){g, in[i]};
    g->here = old->src;
    g->scope = old->scope;
    out = ls_graph_add(g, op, n_in, inputs, old->attr);
    if (!ls_value_ok(out)) return NULL;
    n = g->nodes[g->values[out.id]->node];
    ls_graph_stand_for(n, old);
    n->backward = old->backward;
    g->values[n->out[0]]->category = g->values[end->out[0]]->category;
    lsi_fuse_bypass(f, end, n->out[0]);
    old->dead = true;
    return n;
}

/* What is left of turning and joining nobody reads. */
void lsi_fuse_attention(lsi_fuser *f, ls_node *attention)
{
    heads h;
    ls_node *n;

    if (attention->op != &ls_op_attention || !match(f, attention, &h)) return;
    if (!lsi_fuse_wanted(f, (ls_fusion){.pattern = LS_FUSE_HEADS, .inner = h.back, .outer = attention}))
        return;
    f->left_over = true;
    n = stand_in(f, attention, h.back, &ls_op_self_attention, 1, &h.qkv);
    if (n == NULL || h.grad == NULL) return;
    stand_in(f, h.grad, h.end, &ls_op_self_attention_grad, 4,
             (int32_t[]){h.qkv, n->out[0], n->out[1], h.dout});
}
