/* test_device_rules.c: devices with layouts and fusions of their own, for tests: reference kernels on host
 * memory and on memory that the host cannot see, with feature maps whose channels come last and with rows
 * that have gaps.
 */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/c16.h"
#include "check.h"
#include "exec/document.h"
#include "ops/ops.h"
#include "passes/autodiff.h"
#include "passes/passes.h"
#include "tensors.h"

static const ls_layout rows_of_8 = {.name = "rows8", .row = 8};
static const ls_layout blocks_of_4 = {
    .name = "c4", .rank = 4, .order = {0, 1, 2, 3}, .block = 4, .block_axis = 1};

/* -- reorder, from any layout to any ------------------------------------------------------------------------
 */

static void reorder(const char *device, ls_dtype t, const ls_layout *from, const ls_layout *to)
{
    enum { N = 2 * 16 * 3 * 5, ROOM = 2 * 16 * 3 * 8 * 4 + 64 };
    const ls_shape s = LS_SHAPE(2, 16, 3, 5);
    const ls_strides a = ls_layout_strides(from, s), b = ls_layout_strides(to, s);
    static uint8_t x[ROOM], y[ROOM];
    static double scratch[2 * N];
    const size_t size = ls_dtype_size(t);
    ls_device *dev = NULL;
    ls_graph *g = NULL;
    ls_kernel k;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    const ls_value in = ls_graph_input(g, "x", t, s);
    const ls_value out = ls_graph_add(g, &ls_op_reorder, 1, &in, &(ls_reorder_attr){from, to});
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    g->values[in.id]->layout = from;
    g->values[out.id]->layout = to;
    REQUIRE_OK(ls_device_open(&dev, device, 2, &err), &err);
    REQUIRE_OK(dev->backend->plan(dev, g, g->nodes[0], &k, &err), &err);
    REQUIRE(k.scratch_bytes <= sizeof scratch);
    memset(x, 1, sizeof x);
    memset(y, 0xee, sizeof y);
    for (int64_t i = 0; i < N; i++) memset(x + (size_t)ls_strides_place(&a, i) * size, (int)(i % 59), size);
    k.run(k.state, &(ls_call){.in = (void *const[]){x}, .out = (void *const[]){y}, .scratch = scratch});
    int wrong = 0;
    for (int64_t i = 0; i < N; i++) {
        uint8_t want[4];
        memset(want, (int)(i % 59), sizeof want);
        wrong += memcmp(y + (size_t)ls_strides_place(&b, i) * size, want, size) != 0;
    }
    CHECK_EQ_INT(wrong, 0);
    const size_t end = ls_layout_bytes(to, t, s);
    for (size_t i = end; i < sizeof y; i++) wrong += y[i] != 0xee; /* nothing behind */
    CHECK_EQ_INT(wrong, 0);
    k.destroy(k.state);
    ls_device_close(dev);
    ls_graph_destroy(g);
}

static void reorders(void)
{
    static const ls_layout *const all[] = {&ls_layout_plain, &ls_layout_nhwc, &lsi_layout_c16, &rows_of_8,
                                           &blocks_of_4};
    enum { N_ALL = sizeof all / sizeof all[0] };

    for (size_t i = 0; i < N_ALL; i++)
        for (size_t j = 0; j < N_ALL; j++) {
            reorder("ref", LS_F32, all[i], all[j]);
            reorder("ref", LS_U8, all[i], all[j]);
            reorder("cpu", LS_F32, all[i], all[j]);
            reorder("cpu", LS_BF16, all[i], all[j]);
        }
}

/* -- devices ------------------------------------------------------------------------------------------------
 */

/* Everything that a node makes lies in rows of whole eights, but for views and variables. */
static void gaps(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                 const ls_layout **in, const ls_layout **out)
{
    (void)dev;
    if (n->op->flags & LS_OP_VIEW) return;
    for (int i = 0; i < n->n_in; i++) in[i] = have[i];
    for (int k = 0; k < n->n_out; k++)
        if (g->values[n->out[k]]->var < 0) out[k] = &rows_of_8;
}

/* Feature maps and sequences with their channels last. */
static const ls_layout *last(const ls_vinfo *v)
{
    return v->var >= 0          ? &ls_layout_plain
           : v->shape.rank == 4 ? &ls_layout_nhwc
           : v->shape.rank == 3 ? &ls_layout_nlc
                                : &ls_layout_plain;
}

static void channels_last(const ls_device *dev, const ls_graph *g, const ls_node *n,
                          const ls_layout *const *have, const ls_layout **in, const ls_layout **out)
{
    (void)dev;
    (void)have;
    if (n->op->flags & LS_OP_VIEW) return;
    for (int i = 0; i < n->n_in; i++) in[i] = last(g->values[n->in[i]]);
    for (int k = 0; k < n->n_out; k++) out[k] = last(g->values[n->out[k]]);
}

typedef struct model {
    ls_backend backend;
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
    ls_document doc;
} model;

static ls_graph *network(void)
{
    const ls_conv_attr conv = {.stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1};
    const ls_init uniform = {LS_INIT_UNIFORM, 1};
    ls_graph *g;
    ls_value wrt[2], grads[2];

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    wrt[0] = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(6, 3, 3, 3), uniform);
    wrt[1] = ls_graph_var(g, "b", LS_VAR_PARAM, LS_F32, LS_SHAPE(6), uniform);
    ls_value y = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 3, 5, 7));
    y = ls_tanh(ls_bias(ls_conv2d(y, wrt[0], conv), wrt[1], 1));
    ls_graph_fetch(y, "y");
    y = ls_softmax(ls_reshape(ls_reshape(y, LS_SHAPE(2, 6, 35)), LS_SHAPE(6, 70)));
    ls_autodiff(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false), (ls_value){g, -1}, 2, wrt, grads);
    ls_graph_fetch(grads[0], "dw");
    ls_graph_fetch(grads[1], "db");
    return g;
}

static void run_on(model *m, const char *device, ls_layout_rule layouts, const ls_fusion_rule *fuses)
{
    float x[2 * 3 * 5 * 7];
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&m->dev, device, 1, &err), &err);
    m->backend = *m->dev->backend;
    m->backend.layouts = layouts;
    m->backend.fuses = fuses;
    m->dev->backend = &m->backend;
    REQUIRE_OK(ls_state_create(&m->state, m->dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&m->plan, network(), m->dev, m->state, &err), &err);
    init_state(m->state, 7);
    for (int i = 0; i < (int)(sizeof x / sizeof x[0]); i++) x[i] = (float)(i % 13) / 8 - 0.5f;
    tensor_write(ls_plan_input(m->plan, "x"), x, sizeof x);
    run_plan(m->plan);
    REQUIRE_OK(ls_document_make(&m->doc, m->plan, &err), &err);
}

static void end(model *m)
{
    ls_document_release(&m->doc);
    ls_plan_destroy(m->plan);
    ls_state_destroy(m->state);
    ls_device_close(m->dev);
}

static int nodes_of(const model *m, const char *op)
{
    int n = 0;

    for (int32_t i = 0; i < m->doc.n_nodes; i++) n += strcmp(m->doc.nodes[i].op, op) == 0;
    return n;
}

/* The first output of the only node of that op. */
static const ls_doc_value *made_by(const model *m, const char *op)
{
    for (int32_t i = 0; i < m->doc.n_nodes; i++)
        if (strcmp(m->doc.nodes[i].op, op) == 0) return &m->doc.values[m->doc.nodes[i].out[0]];
    REQUIRE(false);
    return NULL;
}

static void check_same(const model *a, const model *b)
{
    static const char *const names[] = {"y", "dw", "db"};

    for (int i = 0; i < 3; i++) {
        const ls_tensor *t = ls_plan_fetch(b->plan, names[i]);
        CHECK(tensor_equal(ls_plan_fetch(a->plan, names[i]), t));
        CHECK_EQ_INT(t->bytes, (size_t)ls_shape_count(t->shape) * sizeof(float)); /* the host sees no gaps */
    }
    CHECK(ls_plan_hash(a->plan) == ls_plan_hash(b->plan)); /* the device has no say in it */
}

/* Bytes of gaps are had, moved and shown. */
static void gaps_have_their_bytes(void)
{
    static const char *const devices[] = {"ref", "far"};

    for (int i = 0; i < 2; i++) {
        model plain = {0}, padded = {0};
        run_on(&plain, devices[i], NULL, NULL);
        run_on(&padded, devices[i], gaps, NULL);
        check_same(&plain, &padded);
        const ls_doc_value *y = made_by(&plain, "conv2d"), *z = made_by(&padded, "conv2d");
        CHECK_EQ_STR(y->layout, "plain");
        CHECK_EQ_STR(z->layout, "rows8");
        CHECK_EQ_INT(y->bytes, 2 * 6 * 5 * 7 * 4);
        CHECK_EQ_INT(z->bytes, 2 * 6 * 5 * 8 * 4);
        CHECK(padded.doc.buffers[z->buffer].bytes >= z->bytes);
        CHECK(padded.doc.arena_bytes > plain.doc.arena_bytes);
        CHECK(nodes_of(&padded, "reorder") > 0);
        end(&plain);
        end(&padded);
    }
}

static void channels_come_last(void)
{
    model plain = {0}, last_ones = {0};

    run_on(&plain, "far", NULL, NULL);
    run_on(&last_ones, "far", channels_last, NULL);
    check_same(&plain, &last_ones);
    CHECK_EQ_STR(made_by(&last_ones, "conv2d")->layout, "nhwc");
    CHECK(nodes_of(&last_ones, "reorder") > 0);
    end(&plain);
    end(&last_ones);
}

/* Whatever the device would like: other ranks may have another. */
static void ranks_exchange_plain_tensors(void)
{
    ls_graph *g;
    ls_value x, sum, room[2];
    ls_err err = {0};
    int reorders = 0;

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    x = ls_tanh(ls_graph_input(g, "x", LS_F32, LS_SHAPE(3, 5)));
    sum = ls_all_reduce(ls_graph_scalar(g, "weight"), 1, &x, (ls_collective_attr){.bucket = -1}, room);
    ls_graph_fetch(ls_tanh(sum), "y");
    ls_pass_layout(g, gaps, NULL);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    CHECK(g->values[x.id]->layout == &rows_of_8);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        reorders += n->op == &ls_op_reorder;
        if (!(n->op->flags & LS_OP_COLLECTIVE)) continue;
        for (int k = 0; k < n->n_in; k++) CHECK(g->values[n->in[k]]->layout == &ls_layout_plain);
        for (int k = 0; k < n->n_out; k++) CHECK(g->values[n->out[k]]->layout == &ls_layout_plain);
    }
    CHECK_EQ_INT(reorders, 2); /* before the exchange, and for the host */
    ls_graph_destroy(g);
}

/* A device that can add a bias in its products and nothing else. */
static void one_pattern_is_folded(void)
{
    static const ls_fusion_rule bias[] = {{LS_FUSE_BIAS, NULL}, {LS_FUSE_NONE, NULL}};
    model plain = {0}, fused = {0};

    run_on(&plain, "far", NULL, NULL);
    run_on(&fused, "far", NULL, bias);
    CHECK_EQ_INT(nodes_of(&plain, "bias"), 1);
    CHECK_EQ_INT(nodes_of(&fused, "bias"), 0);
    CHECK_EQ_INT(fused.doc.n_nodes, plain.doc.n_nodes - 1);
    CHECK_EQ_INT(nodes_of(&fused, "tanh"), 1);
    CHECK(ls_plan_hash(plain.plan) == ls_plan_hash(fused.plan));
    end(&plain);
    end(&fused);
}

int main(void)
{
    CHECK_RUN(reorders);
    CHECK_RUN(gaps_have_their_bytes);
    CHECK_RUN(channels_come_last);
    CHECK_RUN(ranks_exchange_plain_tensors);
    CHECK_RUN(one_pattern_is_folded);
    return CHECK_DONE();
}
