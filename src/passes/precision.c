/* precision.c: in which types a step computes.
 *
 * Needs: what the trial wrote, in fp32, nothing of gradients.  Leaves: casts, and nodes that compute in the
 * strategy's low type; no cast from a type to itself.
 *
 * Variables stay as they are: a cast stands between a parameter and its readers, and its gradient, a cast
 * back, gives the optimiser gradients in fp32.  Which ops compute in the low type is said by one table; what
 * is not in it computes in fp32.  Losses say so themselves: they begin with a cast to fp32 (ops/losses.c),
 * which means nothing where everything is fp32 and goes here. */
#include "base/grow.h"
#include "ops/ops.h"
#include "passes/lower_internal.h"

typedef enum policy {
    WIDE,   /* sums, exponentials, distances, everything unknown: in fp32 */
    LOW,    /* most of the arithmetic, with sums in fp32 inside of the kernel: in the low type */
    FOLLOW, /* bound by memory: in the low type if that is what comes, with whatever constants and parameters
               belong to it; in fp32 if one of several is */
    OWN     /* takes a low tensor and says itself what else is wide: statistics, losses */
} policy;

static const struct {
    const ls_op *op;
    policy policy;
} table[] = {
    /* products */
    {&ls_op_conv2d, LOW},
    {&ls_op_conv2d_dx, LOW},
    {&ls_op_conv2d_dw, LOW},
    {&ls_op_matmul, LOW},
    {&ls_op_attention, LOW},
    /* between them */
    {&ls_op_bias, FOLLOW},
    {&ls_op_add, FOLLOW},
    {&ls_op_sub, FOLLOW},
    {&ls_op_mul, FOLLOW},
    {&ls_op_affine, FOLLOW},
    {&ls_op_maximum, FOLLOW},
    {&ls_op_minimum, FOLLOW},
    {&ls_op_relu, FOLLOW},
    {&ls_op_leaky_relu, FOLLOW},
    {&ls_op_gelu, FOLLOW},
    {&ls_op_tanh, FOLLOW},
    {&ls_op_sigmoid, FOLLOW},
    {&ls_op_abs, FOLLOW},
    {&ls_op_copy, FOLLOW},
    {&ls_op_prefix, FOLLOW},
    {&ls_op_detach, FOLLOW},
    {&ls_op_dropout, FOLLOW},
    {&ls_op_maxpool2d, FOLLOW},
    {&ls_op_avgpool2d, FOLLOW},
    {&ls_op_upsample2d, FOLLOW},
    {&ls_op_pad, FOLLOW},
    {&ls_op_concat, FOLLOW},
    {&ls_op_slice, FOLLOW},
    {&ls_op_reshape, FOLLOW},
    {&ls_op_transpose, FOLLOW},
    {&ls_op_broadcast_to, FOLLOW},
    {&ls_op_reduce_max, FOLLOW},
    {&ls_op_gather_rows, FOLLOW},
    /* with statistics or a loss in fp32 */
    {&ls_op_batch_norm, OWN},
    {&ls_op_instance_norm, OWN},
    {&ls_op_layer_norm, OWN},
    {&ls_op_cross_entropy, OWN},
    {&ls_op_accuracy, OWN},
    /* of low tensors there are low gradients */
    {&ls_op_gradients, OWN},
};

typedef struct casting {
    const ls_graph *from;
    ls_dtype low; /* LS_F32: there is none */
    int32_t *of;  /* by value of the new graph: its copy in the other type, or 0; one that was there before is
                     what a copy for the host was made of */
    int n;
    size_t cap;
} casting;

static policy policy_of(const ls_op *op)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].op == op) return table[i].policy;
    return WIDE;
}

/* -- casts ------------------------------------------------------------------------------------------------
 */

static const ls_node *maker(ls_value v)
{
    const int32_t node = v.g->values[v.id]->node;

    return node >= 0 ? v.g->nodes[node] : NULL;
}

/* A parameter in any of its versions, or a constant, also as a view or repeated: it has no type of its own,
 * but that of what it is used with. */
static bool is_weak(ls_value v)
{
    const ls_node *n = maker(v);

    while (n != NULL && ((n->op->flags & LS_OP_VIEW) || n->op == &ls_op_broadcast_to)) {
        v.id = n->in[0];
        n = maker(v);
    }
    return v.g->values[v.id]->var >= 0 || (n != NULL && n->op == &ls_op_fill);
}

static ls_value make_low(ls_value v, ls_dtype low)
{
    const ls_node *n = maker(v);

    if (n != NULL && n->op == &ls_op_fill) {
        const ls_fill_attr *a = n->attr;
        return ls_fill(v.g, a->shape, low, a->value);
    }
    return ls_cast(v, low);
}

/* Makes room to note the copy of v; false, with the error in the graph, where there is none. */
static bool reach(casting *c, ls_value v)
{
    const int before = c->n;

    if (v.id < c->n) return true;
    if (!LS_GROW(LS_MEM_PLAN, c->of, v.id + 1, c->cap)) {
        lsi_no_memory(v.g);
        return false;
    }
    c->n = v.id + 1;
    for (int i = before; i < c->n; i++) c->of[i] = 0;
    return true;
}

/* The value in the low type: cast once, however many read it. */
static ls_value narrow(casting *c, ls_value v)
{
    if (!ls_value_ok(v) || ls_value_dtype(v) != LS_F32 || !reach(c, v)) return v;
    if (c->of[v.id] == 0) c->of[v.id] = make_low(v, c->low).id;
    return (ls_value){v.g, c->of[v.id]};
}

/* The value in fp32, likewise. */
static ls_value widen(casting *c, ls_value v)
{
    if (!ls_value_ok(v) || ls_value_dtype(v) != c->low || !reach(c, v)) return v;
    if (c->of[v.id] == 0) c->of[v.id] = ls_cast(v, LS_F32).id;
    return (ls_value){v.g, c->of[v.id]};
}

/* What the host reads is fp32; what the step reads is what there was. */
static ls_value for_host(casting *c, ls_value v)
{
    const ls_value wide = widen(c, v);

    if (ls_value_ok(wide) && wide.id != v.id && reach(c, wide)) c->of[wide.id] = v.id;
    return wide;
}

static ls_value for_step(const casting *c, ls_value v)
{
    if (v.id < 0 || v.id >= c->n || c->of[v.id] <= 0 || c->of[v.id] > v.id) return v;
    return (ls_value){v.g, c->of[v.id]};
}

/* -- nodes ------------------------------------------------------------------------------------------------
 */

static bool all_follow(const ls_node *n, const ls_value *in)
{
    for (int k = 0; k < n->n_in; k++)
        if (ls_value_dtype(in[k]) == LS_F32 && !is_weak(in[k])) return false;
    return true;
}

/* The node's inputs in the types that it computes in; true if one of them is low, so that its results are
 * not what they were. */
static bool choose(casting *c, const ls_node *n, ls_value *in)
{
    policy p = policy_of(n->op);
    bool low = false;

    for (int k = 0; k < n->n_in; k++) low = low || ls_value_dtype(in[k]) == c->low;
    if (p == FOLLOW) p = low && all_follow(n, in) ? LOW : WIDE;
    if (n->op == &ls_op_gradients) in[0] = widen(c, in[0]);
    for (int k = 0; k < n->n_in && p != OWN; k++) in[k] = p == LOW ? narrow(c, in[k]) : widen(c, in[k]);
    return low || p == LOW;
}

/* The cast of a loss's operands, or one that a trial wrote.  What is fetched is a value of its own. */
static bool expand_cast(const ls_node *n, bool fetched, ls_value in, ls_value *out)
{
    const ls_dtype to = ((const ls_cast_attr *)n->attr)->to;

    if (fetched && ls_value_dtype(in) == to) return false;
    out[0] = ls_cast(in, to);
    return true;
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    casting *c = ctx;
    ls_value *own, first;

    if (n->op == &ls_op_cast)
        return expand_cast(n, c->from->values[n->out[0]]->fetch, for_step(c, in[0]), out);
    if (c->low == LS_F32) return false;
    own = ls_arena_alloc(to->arena, sizeof *own * (size_t)(n->n_in + 1));
    if (own == NULL) {
        lsi_no_memory(to);
        return false;
    }
    for (int k = 0; k < n->n_in; k++) own[k] = for_step(c, in[k]);
    if (!choose(c, n, own) || !lsi_sound(to)) return false;
    first = ls_graph_add(to, n->op, n->n_in, own, n->attr);
    for (int k = 0; k < n->n_out && lsi_sound(to); k++) {
        out[k] = ls_graph_out(first, k);
        if (c->from->values[n->out[k]]->fetch) out[k] = for_host(c, out[k]);
    }
    return lsi_sound(to);
}

void ls_pass_precision(ls_graph *g, const ls_strategy *how)
{
    casting c = {.from = g, .low = how->compute};

    ls_graph_rewrite(g, expand, &c);
    ls_free(c.of);
}
