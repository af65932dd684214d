/* test_hash.c: graphs that differ in anything that changes a result have different hashes: for every op, in
 * the cases that all tests of ops share, each input wired to another value, two inputs exchanged, every
 * attribute changed; names, fetches and control edges; and what changes no result leaves the hash alone. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "op_test_internal.h"
#include "passes/autodiff.h"
#include "passes/passes.h"

static const char *case_name;
static int n_wirings, n_attributes;

static void differs(uint64_t before, uint64_t after, const ls_node *n, const char *what, int k)
{
    if (before != after) return;
    CHECK(before != after);
    printf("  case %s, %s: another %s %d leaves the hash as it is\n", case_name, n->op->name, what, k);
}

/* -- attributes -------------------------------------------------------------------------------------------
 */

typedef enum field_kind { INT, LONG, REAL, BOOL, ACT, FUNCTION, LAYOUT } field_kind;

typedef struct field {
    size_t at;
    field_kind kind;
} field;

#define F(type, member, kind)                                                                                \
    {                                                                                                        \
        offsetof(type, member), kind                                                                         \
    }
#define END                                                                                                  \
    {                                                                                                        \
        SIZE_MAX, INT                                                                                        \
    }
#define CONV(T, p)                                                                                           \
    F(T, p stride[0], INT), F(T, p stride[1], INT), F(T, p dilation[0], INT), F(T, p dilation[1], INT),      \
        F(T, p pad[0], INT), F(T, p pad[1], INT), F(T, p pad[2], INT), F(T, p pad[3], INT),                  \
        F(T, p groups, INT), F(T, p in[2], LONG), F(T, p in[3], LONG), F(T, p kernel[0], INT),               \
        F(T, p kernel[1], INT), F(T, p act, ACT), F(T, p slope, REAL)
#define POOL(T, p)                                                                                           \
    F(T, p kernel[0], INT), F(T, p kernel[1], INT), F(T, p stride[0], INT), F(T, p stride[1], INT),          \
        F(T, p pad[0], INT), F(T, p pad[1], INT), F(T, p pad[2], INT), F(T, p pad[3], INT),                  \
        F(T, p count_pad, BOOL), F(T, p in[0], LONG), F(T, p in[1], LONG), F(T, p relu, BOOL)

static const field pw[] = {F(ls_pw_attr, p[0], REAL), F(ls_pw_attr, p[1], REAL), END};
static const field collective[] = {F(ls_collective_attr, bucket, INT),   F(ls_collective_attr, group, ACT),
                                   F(ls_collective_attr, carried, BOOL), F(ls_collective_attr, plain, INT),
                                   F(ls_collective_attr, shards, LONG),  F(ls_collective_attr, ranks, INT),
                                   F(ls_collective_attr, root, INT),     END};
static const field attention[] = {F(ls_attention_attr, scale, REAL), END};
static const field barrier[] = {F(ls_collective_attr, bucket, INT), F(ls_collective_attr, at, ACT), END};
#define NORM(T, p)                                                                                           \
    F(T, p eps, REAL), F(T, p momentum, REAL), F(T, p unbiased_running, BOOL), F(T, p act, ACT),             \
        F(T, p slope, REAL), F(T, p residual, BOOL), F(T, p by_beta, BOOL), F(T, p sums, BOOL)
static const field norm[] = {NORM(ls_norm_attr, ), END};
static const field norm_pool[] = {NORM(ls_norm_pool_attr, norm.), POOL(ls_norm_pool_attr, pool.), END};
static const field axis[] = {F(ls_axis_attr, axis, INT), END};
static const field bias_act[] = {F(ls_bias_act_attr, act, ACT), F(ls_bias_act_attr, slope, REAL),
                                 F(ls_bias_act_attr, axis, INT), END};
static const field shape[] = {F(ls_shape_attr, to.dim[0], LONG), END};
static const field cast[] = {F(ls_cast_attr, to, ACT), END};
static const field conv[] = {CONV(ls_conv_attr, ), END};
static const field conv_pool[] = {CONV(ls_conv_pool_attr, conv.), POOL(ls_conv_pool_attr, pool.), END};
static const field pool[] = {POOL(ls_pool_attr, ), END};
static const field random_mask[] = {F(ls_random_attr, p, REAL), F(ls_random_attr, stream, INT),
                                    F(ls_random_attr, per_channel, BOOL), END};
static const field random_shape[] = {F(ls_random_attr, p, REAL), F(ls_random_attr, stream, INT),
                                     F(ls_random_attr, shape.dim[0], LONG), END};
static const field fill[] = {F(ls_fill_attr, dtype, ACT), F(ls_fill_attr, value, REAL), END};
static const field matmul[] = {F(ls_matmul_attr, trans_a, BOOL), F(ls_matmul_attr, trans_b, BOOL),
                               F(ls_matmul_attr, act, ACT), F(ls_matmul_attr, slope, REAL), END};
static const field pad[] = {F(ls_pad_attr, mode, ACT),    F(ls_pad_attr, pad[0], LONG),
                            F(ls_pad_attr, pad[1], LONG), F(ls_pad_attr, pad[2], LONG),
                            F(ls_pad_attr, pad[3], LONG), END};
static const field pointwise[] = {F(ls_pointwise_attr, step[0].pw, FUNCTION),
                                  F(ls_pointwise_attr, step[0].a, INT), END};
static const field reduce_max_grad[] = {F(ls_reduce_max_grad_attr, axis, INT),
                                        F(ls_reduce_max_grad_attr, length, LONG), END};
static const field conv_max[] = {F(ls_conv_max_attr, length, LONG), END};
static const field prefix[] = {F(ls_prefix_attr, length, LONG), END};
static const field reduce[] = {F(ls_reduce_attr, axes, INT), F(ls_reduce_attr, keep, BOOL), END};
static const field reorder[] = {F(ls_reorder_attr, from, LAYOUT), F(ls_reorder_attr, to, LAYOUT), END};
static const field replay[] = {F(ls_replay_attr, stream, INT), END};
static const field scatter[] = {F(ls_scatter_attr, n_rows, LONG), END};
static const field slice[] = {F(ls_slice_attr, axis, INT), F(ls_slice_attr, start, LONG),
                              F(ls_slice_attr, length, LONG), END};
static const field transpose[] = {F(ls_transpose_attr, perm[0], INT), END};
static const field upsample[] = {F(ls_upsample_attr, factor, INT), END};
static const field optim[] = {F(ls_optim_attr, n, INT),
                              F(ls_optim_attr, momentum, REAL),
                              F(ls_optim_attr, weight_decay, REAL),
                              F(ls_optim_attr, beta1, REAL),
                              F(ls_optim_attr, beta2, REAL),
                              F(ls_optim_attr, eps, REAL),
                              F(ls_optim_attr, alpha, REAL),
                              F(ls_optim_attr, trust, REAL),
                              F(ls_optim_attr, nesterov, BOOL),
                              F(ls_optim_attr, form, ACT),
                              F(ls_optim_attr, more, BOOL),
                              F(ls_optim_attr, later, BOOL),
                              F(ls_optim_attr, pieces, INT),
                              END};
static const field all_finite[] = {F(ls_all_finite_attr, first, INT), END};
static const field rescale[] = {F(ls_rescale_attr, counts, BOOL), F(ls_rescale_attr, dynamic, BOOL),
                                F(ls_rescale_attr, growth, INT),  F(ls_rescale_attr, least, REAL),
                                F(ls_rescale_attr, most, REAL),   END};

/* An op with attributes that is missing here fails the test. */
static const struct {
    const ls_op *op;
    const field *fields;
} attributes[] = {{&ls_op_affine, pw},
                  {&ls_op_leaky_relu, pw},
                  {&ls_op_leaky_relu_grad, pw},
                  {&ls_op_all_reduce_start, collective},
                  {&ls_op_all_reduce_wait, collective},
                  {&ls_op_all_reduce_leaf, collective},
                  {&ls_op_reduce_scatter_start, collective},
                  {&ls_op_reduce_scatter_wait, collective},
                  {&ls_op_all_gather_start, collective},
                  {&ls_op_all_gather_wait, collective},
                  {&ls_op_broadcast_start, collective},
                  {&ls_op_broadcast_wait, collective},
                  {&ls_op_attention, attention},
                  {&ls_op_attention_grad, attention},
                  {&ls_op_self_attention, attention},
                  {&ls_op_self_attention_grad, attention},
                  {&ls_op_barrier, barrier},
                  {&ls_op_batch_norm, norm},
                  {&ls_op_batch_norm_grad, norm},
                  {&ls_op_batch_norm_pool, norm_pool},
                  {&ls_op_batch_norm_pool_grad, norm_pool},
                  {&ls_op_instance_norm, norm},
                  {&ls_op_instance_norm_grad, norm},
                  {&ls_op_layer_norm, norm},
                  {&ls_op_layer_norm_grad, norm},
                  {&ls_op_bias, axis},
                  {&ls_op_concat, axis},
                  {&ls_op_reduce_max, axis},
                  {&ls_op_bias_act_grad, bias_act},
                  {&ls_op_broadcast_to, shape},
                  {&ls_op_reshape, shape},
                  {&ls_op_cast, cast},
                  {&ls_op_convert, cast},
                  {&ls_op_conv2d, conv},
                  {&ls_op_conv2d_dx, conv},
                  {&ls_op_conv2d_dw, conv},
                  {&ls_op_conv2d_dw_pooled, conv_pool},
                  {&ls_op_maxpool2d, pool},
                  {&ls_op_maxpool2d_grad, pool},
                  {&ls_op_avgpool2d, pool},
                  {&ls_op_avgpool2d_grad, pool},
                  {&ls_op_dropout, random_mask},
                  {&ls_op_random_normal, random_shape},
                  {&ls_op_random_uniform, random_shape},
                  {&ls_op_fill, fill},
                  {&ls_op_matmul, matmul},
                  {&ls_op_pad, pad},
                  {&ls_op_pad_adjoint, pad},
                  {&ls_op_pointwise, pointwise},
                  {&ls_op_reduce_max_grad, reduce_max_grad},
                  {&ls_op_conv_max_dx, conv_max},
                  {&ls_op_reduce_sum, reduce},
                  {&ls_op_reorder, reorder},
                  {&ls_op_replay, replay},
                  {&ls_op_scatter_rows, scatter},
                  {&ls_op_prefix, prefix},
                  {&ls_op_slice, slice},
                  {&ls_op_transpose, transpose},
                  {&ls_op_upsample2d, upsample},
                  {&ls_op_upsample2d_grad, upsample},
                  {&ls_op_sgd, optim},
                  {&ls_op_adam, optim},
                  {&ls_op_rmsprop, optim},
                  {&ls_op_lars, optim},
                  {&ls_op_lamb, optim},
                  {&ls_op_all_finite, all_finite},
                  {&ls_op_rescale, rescale}};

static const field *fields_of(const ls_op *op)
{
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].op == op) return attributes[i].fields;
    return NULL;
}

/* Puts another value that its kind may have there. */
static void change(char *attr, const field *f)
{
    int *i = (int *)(void *)(attr + f->at);

    switch (f->kind) {
    case INT: *i += 1; break;
    case LONG: *(int64_t *)(void *)i += 1; break;
    case REAL: *(double *)(void *)i = 1.5 * *(double *)(void *)i + 0.25; break;
    case BOOL: *(bool *)(void *)i = !*(bool *)(void *)i; break;
    case ACT: *i = *i == 1 ? 0 : 1; break; /* of an enumeration with at least two values */
    case FUNCTION:
        *i = ls_pw_is_binary((ls_pw)*i) ? (*i == LS_PW_ADD ? LS_PW_MUL : LS_PW_ADD)
                                        : (*i == LS_PW_EXP ? LS_PW_TANH : LS_PW_EXP);
        break;
    case LAYOUT: *(const ls_layout **)(void *)i = &ls_layout_nhwc; break;
    }
}

static void check_attributes(ls_graph *g, ls_node *n)
{
    const uint64_t before = ls_graph_hash(g);
    const field *fields = fields_of(n->op);
    char *kept = malloc(n->op->attr_size + 1);

    if (n->op->attr_size > 0 && !CHECK(fields != NULL)) printf("  %s: its attributes?\n", n->op->name);
    for (int k = 0; kept != NULL && fields != NULL && fields[k].at != SIZE_MAX; k++) {
        memcpy(kept, n->attr, n->op->attr_size);
        change(n->attr, &fields[k]);
        differs(before, ls_graph_hash(g), n, "attribute", k);
        memcpy(n->attr, kept, n->op->attr_size);
        n_attributes++;
    }
    free(kept);
}

/* -- wiring -----------------------------------------------------------------------------------------------
 */

static void rewire(ls_graph *g, ls_node *n, int k, int32_t value)
{
    const uint64_t before = ls_graph_hash(g);
    const int32_t was = n->in[k];

    if (was == value) return;
    n->in[k] = value;
    differs(before, ls_graph_hash(g), n, "value for input", k);
    n->in[k] = was;
    n_wirings++;
}

/* `spare` is an input of the graph that nobody reads. */
static void check_wiring(ls_graph *g, ls_node *n, int32_t spare)
{
    const uint64_t before = ls_graph_hash(g);

    for (int k = 0; k < n->n_in; k++) rewire(g, n, k, spare);
    for (int k = 0; k + 1 < n->n_in; k++) {
        const int32_t a = n->in[k], b = n->in[k + 1];
        if (a == b) continue;
        n->in[k] = b;
        n->in[k + 1] = a;
        differs(before, ls_graph_hash(g), n, "order of inputs from", k);
        n->in[k] = a;
        n->in[k + 1] = b;
        n_wirings++;
    }
    CHECK(ls_graph_hash(g) == before);
}

/* -- all ops ----------------------------------------------------------------------------------------------
 */

static void add_gradients(op_test *t)
{
    ls_value wrt[OP_MAX_TENSORS], grads[OP_MAX_TENSORS];
    int n = 0;

    for (int i = 0; i < t->n_in; i++)
        if (t->in[i].differentiated) wrt[n++] = t->in[i].v;
    for (int k = 0; n > 0 && k < t->n_out; k++) {
        if (!t->out[k].in_loss || !ls_dtype_is_float(ls_value_dtype(t->out[k].v))) continue;
        ls_autodiff(t->out[k].v, (ls_value){t->g, -1}, n, wrt, grads);
    }
}

static void build(op_test *t, const op_case *c)
{
    ls_err err = {0};

    t->dtype = LS_F32;
    t->n_in = t->n_out = 0;
    REQUIRE_OK(ls_graph_create(&t->g, &err), &err);
    c->build(t, c->p);
    if (!(c->flags & OP_NO_GRAD)) add_gradients(t);
}

static void each_op(void)
{
#define OP_LIST_ENTRY(name) &op_cases_##name,
    static const op_case_list *const lists[] = {OP_LISTS(OP_LIST_ENTRY)};
#undef OP_LIST_ENTRY
    static op_test t;
    int n_ops, met[256] = {0};
    const ls_op *const *ops = ls_ops_all(&n_ops);

    REQUIRE(n_ops <= 256);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (int i = 0; i < lists[l]->n; i++) {
            const op_case *c = &lists[l]->cases[i];
            int32_t spare;
            case_name = c->name;
            build(&t, c);
            spare = ls_graph_input(t.g, "spare", LS_F32, LS_SHAPE(3)).id;
            for (int32_t k = 0; spare >= 0 && k < t.g->n_nodes; k++) {
                int op = 0;
                while (op < n_ops && ops[op] != t.g->nodes[k]->op) op++;
                if (op == n_ops || met[op]++ >= 2) continue; /* twice is enough of each */
                check_wiring(t.g, t.g->nodes[k], spare);
                check_attributes(t.g, t.g->nodes[k]);
            }
            ls_graph_destroy(t.g);
            /* Sources are kept for later runs of one case; the next one has others. */
            for (int s = 0; s < t.n_known; s++) free(t.in[s].values);
            t = (op_test){0};
        }
    for (int i = 0; i < n_ops; i++)
        if (!CHECK(met[i] > 0)) printf("  no case has the op %s\n", ops[i]->name);
    printf("  %d wirings, %d attributes\n", n_wirings, n_attributes);
}

/* -- the rest ---------------------------------------------------------------------------------------------
 */

typedef struct variation {
    const char *input, *variable, *fetch;
    bool swapped, fetch_sum, edge, dead, scope;
    ls_init init;
} variation;

static uint64_t hash_of(const variation *v)
{
    ls_graph *g;
    ls_err err = {0};
    ls_value a, b, sum, diff;
    uint64_t hash;

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    if (v->scope) g->scope = "layer";
    a = ls_graph_input(g, v->input, LS_F32, LS_SHAPE(4));
    b = ls_graph_var(g, v->variable, LS_VAR_PARAM, LS_F32, LS_SHAPE(4), v->init);
    if (v->dead) (void)ls_exp(a);
    sum = ls_add(a, b);
    diff = v->swapped ? ls_sub(b, a) : ls_sub(a, b);
    ls_graph_fetch(ls_mul(sum, diff), v->fetch);
    if (v->fetch_sum) ls_graph_fetch(sum, "sum");
    if (v->edge) ls_graph_order(g, g->values[sum.id]->node, g->values[diff.id]->node, LS_EDGE_OVERWRITE);
    ls_pass_dead(g);
    hash = ls_graph_hash(g);
    CHECK(ls_graph_hash(g) == hash);
    ls_graph_destroy(g);
    return hash;
}

static const variation usual = {.input = "x", .variable = "w", .fetch = "y", .init = {LS_INIT_NORMAL, 0.5}};

static void names_fetches_and_edges(void)
{
    variation v[9];
    uint64_t hash[9];

    for (int i = 0; i < 9; i++) v[i] = usual;
    v[1].input = "z";
    v[2].variable = "v";
    v[3].fetch = "result";
    v[4].swapped = true;
    v[5].fetch_sum = true;
    v[6].edge = true;
    v[7].init.a = 0.25;
    v[8].init.kind = LS_INIT_UNIFORM;
    for (int i = 0; i < 9; i++) hash[i] = hash_of(&v[i]);
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < i; k++)
            if (!CHECK(hash[i] != hash[k])) printf("  variations %d and %d have one hash\n", k, i);
}

static void what_changes_no_result(void)
{
    variation dead = usual, scope = usual;

    dead.dead = true;
    scope.scope = true;
    CHECK(hash_of(&dead) == hash_of(&usual));
    CHECK(hash_of(&scope) == hash_of(&usual));
}

int main(void)
{
    CHECK_RUN(each_op);
    CHECK_RUN(names_fetches_and_edges);
    CHECK_RUN(what_changes_no_result);
    return CHECK_DONE();
}
