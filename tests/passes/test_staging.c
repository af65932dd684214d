/* test_staging.c: values between a device and what the host does: copies where a side is crossed, one per
 * value, and a proof that notices when one is missing. */
#include <string.h>

#include "base/alloc.h"
#include "check.h"
#include "graph/graph.h"
#include "ops/ops.h"
#include "passes/check.h"

/* In these graphs the host takes square roots. */
static bool on_host(const void *ctx, const ls_node *n)
{
    (void)ctx;
    return n->op == &ls_op_sqrt;
}

static int count(const ls_graph *g, const ls_op *op)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i]->dead && g->nodes[i]->op == op;
    return n;
}

static ls_graph *make(void)
{
    ls_graph *g = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    return g;
}

static ls_status prove(ls_graph *g, ls_err *err)
{
    static size_t bytes[1000], scratch[1000];
    ls_schedule s = {0};
    ls_memory m = {0};
    size_t at = 0;
    ls_status st = LS_OK;

    REQUIRE(g->n_values < 1000);
    LS_TRY(ls_pass_schedule(g, &s, err));
    for (int32_t i = 0; i < g->n_values; i++) {
        bytes[i] = 64;
        if (!g->values[i]->staged) continue;
        g->values[i]->at = at;
        at += 64;
    }
    LS_TRY(ls_pass_memory(g, &s, bytes, scratch, &m, err));
    LS_TRY(ls_check_memory(g, &s, &m, bytes, scratch, err));
out:
    ls_memory_release(&m);
    ls_schedule_release(&s);
    return st;
}

/* The host reads what the device makes, its own results and views of either. */
static ls_graph *make_mixed(void)
{
    ls_graph *g = make();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 4)), a = ls_square(x);
    const ls_value first = ls_sqrt(a), second = ls_sqrt(ls_reshape(first, LS_SHAPE(16)));
    const ls_value third = ls_sqrt(ls_reshape(a, LS_SHAPE(16)));

    ls_graph_fetch(ls_add(ls_mul(second, third), second), "device");
    ls_graph_fetch(ls_sqrt(a), "host");
    ls_graph_fetch(ls_reshape(first, LS_SHAPE(2, 8)), "view");
    ls_pass_staging(g, on_host, NULL);
    return g;
}

static void one_copy_per_value_and_side(void)
{
    ls_graph *g = make_mixed();
    ls_err err = {0};

    CHECK_OK(ls_graph_status(g, &err), &err);
    CHECK_EQ_INT(count(g, &ls_op_to_host), 2);   /* of a, and of its view */
    CHECK_EQ_INT(count(g, &ls_op_to_device), 2); /* of second and third; first stays with the host */
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        CHECK_EQ_INT(n->queue == LS_QUEUE_HOST, n->op == &ls_op_sqrt);
        for (int k = 0; n->op == &ls_op_sqrt && k < n->n_in; k++)
            CHECK(g->values[ls_graph_storage(g, n->in[k])]->staged);
    }
    CHECK_OK(prove(g, &err), &err);
    ls_graph_destroy(g);
}

/* Copies of it that are fetched stay with the host, but for those that the device reads, too, and second
 * names. */
static void what_the_host_made_is_shown_by_it(void)
{
    ls_graph *g = make();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4)), a = ls_sqrt(x), b = ls_sqrt(a);
    const ls_value used = ls_copy(b);
    ls_err err = {0};

    ls_graph_fetch(ls_copy(a), "alone");
    ls_graph_fetch(ls_copy(a), "again");
    ls_graph_fetch(used, "used");
    ls_graph_fetch(ls_square(used), "squared");
    ls_pass_staging(g, on_host, NULL);
    CHECK(g->values[a.id]->staged && g->values[a.id]->fetch);
    CHECK_EQ_STR(g->values[a.id]->name, "alone");
    CHECK(!g->values[b.id]->fetch);
    CHECK_EQ_INT(count(g, &ls_op_copy), 2);
    CHECK_EQ_INT(count(g, &ls_op_to_device), 2);
    CHECK_OK(prove(g, &err), &err);
    ls_graph_destroy(g);
}

static bool is_collective(const void *ctx, const ls_node *n)
{
    (void)ctx;
    return (n->op->flags & LS_OP_COLLECTIVE) != 0;
}

/* A sum over leaves has parameters for their shapes alone: what is plain, and the weight, go to the host. */
static void shapes_are_not_copied(void)
{
    for (int shards = 0; shards <= 4; shards += 4) {
        ls_graph *g = make();
        const ls_value w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(16), (ls_init){0});
        const ls_value x[] = {w, ls_graph_input(g, "control", LS_F32, LS_SHAPE(4))};
        const ls_collective_attr attr = {.bucket = 0, .plain = 1, .shards = shards};
        ls_value room[3], sum = ls_all_reduce(ls_graph_scalar(g, "weight"), 2, x, attr, room);
        ls_err err = {0};
        int of_w = 0;

        ls_graph_fetch(ls_square(ls_graph_out(sum, 0)), "sum");
        ls_graph_fetch(ls_square(ls_graph_out(sum, 1)), "told");
        ls_pass_staging(g, is_collective, NULL);
        for (int32_t i = 0; i < g->n_nodes; i++)
            of_w += g->nodes[i]->op == &ls_op_to_host && g->nodes[i]->in[0] == w.id;
        CHECK_EQ_INT(of_w, shards == 0 ? 1 : 0);
        CHECK_EQ_INT(count(g, &ls_op_to_host), shards == 0 ? 3 : 2);
        CHECK_OK(ls_check_collectives(g, &err), &err);
        CHECK_OK(prove(g, &err), &err);
        ls_graph_destroy(g);
    }
}

static void a_device_alone_is_left_alone(void)
{
    ls_graph *g = make();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4));
    const int32_t before = (ls_graph_fetch(ls_square(x), "y"), g->n_nodes);
    ls_err err = {0};

    ls_pass_staging(g, on_host, NULL);
    CHECK_EQ_INT(g->n_nodes, before);
    CHECK_OK(prove(g, &err), &err);
    ls_graph_destroy(g);
}

/* Whoever reads the value itself in the place of its copy is found, on either side. */
static void a_missing_copy_is_found(void)
{
    for (int side = 0; side < 2; side++) {
        const ls_op *op = side == 0 ? &ls_op_to_host : &ls_op_to_device;
        ls_graph *g = make_mixed();
        int32_t copy = -1;
        ls_err err = {0};
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (g->nodes[i]->op == op) copy = i;
        REQUIRE(copy >= 0);
        ls_graph_replace(g, g->nodes[copy]->out[0], g->nodes[copy]->in[0]);
        g->nodes[copy]->dead = true;
        CHECK_STATUS(prove(g, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, "is in memory that it cannot see");
        ls_graph_destroy(g);
    }
}

/* Two staged values in the same bytes. */
static void what_overlaps_is_found(void)
{
    static size_t bytes[1000], scratch[1000];
    ls_graph *g = make_mixed();
    ls_schedule s = {0};
    ls_memory m = {0};
    ls_err err = {0};

    for (int32_t i = 0; i < g->n_values; i++) bytes[i] = 64; /* and `at` is 0 for all */
    REQUIRE_OK(ls_pass_schedule(g, &s, &err), &err);
    REQUIRE_OK(ls_pass_memory(g, &s, bytes, scratch, &m, &err), &err);
    CHECK_STATUS(ls_check_memory(g, &s, &m, bytes, scratch, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "writes over value");
    ls_memory_release(&m);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
}

/* -- what the proof sees ----------------------------------------------------------------------------------
 */

/* Places of two nodes in the schedule, and of what they make, once the memory is planned. */
typedef struct planned {
    ls_graph *g;
    ls_schedule s;
    ls_memory m;
    size_t bytes[16], scratch[16];
} planned;

static void plan(planned *p, ls_graph *g)
{
    ls_err err = {0};

    p->g = g;
    REQUIRE(g->n_values <= 16 && g->n_nodes <= 16);
    for (int i = 0; i < 16; i++) p->bytes[i] = p->scratch[i] = 64;
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    REQUIRE_OK(ls_pass_schedule(g, &p->s, &err), &err);
    REQUIRE_OK(ls_pass_memory(g, &p->s, p->bytes, p->scratch, &p->m, &err), &err);
    CHECK_OK(ls_check_memory(g, &p->s, &p->m, p->bytes, p->scratch, &err), &err);
}

/* As it was changed since. */
static void is_refused(planned *p, const char *why)
{
    ls_err err = {0};

    CHECK_STATUS(ls_check_memory(p->g, &p->s, &p->m, p->bytes, p->scratch, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, why);
    ls_memory_release(&p->m);
    ls_schedule_release(&p->s);
    ls_graph_destroy(p->g);
}

/* An input that has no more readers, which the host need not write again before the next run. */
static void inputs_stay(void)
{
    ls_graph *g = make();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(16)), a = ls_square(x), b = ls_square(a);
    planned p = {0};

    ls_graph_fetch(b, "y");
    plan(&p, g);
    p.m.offset[b.id] = p.m.offset[x.id];
    is_refused(&p, "which the host still needs");
}

static void fetched_views_stay(void)
{
    ls_graph *g = make();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(16)), a = ls_square(x), b = ls_square(a);
    planned p = {0};

    ls_graph_fetch(ls_reshape(a, LS_SHAPE(4, 4)), "view");
    ls_graph_fetch(b, "y");
    plan(&p, g);
    p.m.offset[b.id] = p.m.offset[a.id];
    is_refused(&p, "which the host still needs");
}

/* Of nodes in queues that run side by side. */
static void scratch_memory_is_one_nodes(void)
{
    ls_graph *g = make();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(16));
    const ls_value there = ls_graph_add(g, &ls_op_to_host, 1, &x, NULL);
    planned p = {0};

    g->values[there.id]->staged = true;
    ls_graph_fetch(there, "there");
    ls_graph_fetch(ls_square(x), "here");
    plan(&p, g);
    CHECK_EQ_INT(p.s.n, 2);
    CHECK(p.m.scratch[0] != p.m.scratch[1]);
    p.m.scratch[0] = p.m.scratch[1];
    is_refused(&p, "have the same scratch memory");
}

int main(void)
{
    CHECK_RUN(one_copy_per_value_and_side);
    CHECK_RUN(what_the_host_made_is_shown_by_it);
    CHECK_RUN(shapes_are_not_copied);
    CHECK_RUN(a_device_alone_is_left_alone);
    CHECK_RUN(a_missing_copy_is_found);
    CHECK_RUN(what_overlaps_is_found);
    CHECK_RUN(inputs_stay);
    CHECK_RUN(fetched_views_stay);
    CHECK_RUN(scratch_memory_is_one_nodes);
    return CHECK_DONE();
}
