/* test_versions.c: in-place updates of variables, seen by readers of the old and the new version. */
#include "check.h"
#include "lockstep/plan.h"
#include "ops/ops.h"
#include "passes/check.h"
#include "tensors.h"

typedef struct rig {
    ls_graph *g;
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
    ls_value w, w1; /* versions 0 and 1 of the parameter */
} rig;

/* w = 3 and one SGD step with gradient 1 and lr 0.5: version 1 is 2.5. */
static void begin(rig *r)
{
    ls_value in[5];
    ls_optim_attr a = {.n = 1};

    REQUIRE_OK(ls_graph_create(&r->g, NULL), NULL);
    r->w = ls_graph_var(r->g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(2), (ls_init){LS_INIT_CONST, 3});
    in[0] = ls_fill(r->g, LS_SHAPE_SCALAR, LS_F32, 0.5);
    in[1] = ls_fill(r->g, LS_SHAPE_SCALAR, LS_F32, 1);
    in[2] = ls_graph_var(r->g, "t", LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    in[3] = r->w;
    in[4] = ls_fill(r->g, LS_SHAPE(2), LS_F32, 1);
    r->w1 = ls_graph_out(ls_graph_add(r->g, &ls_op_sgd, 5, in, &a), 1);
    ls_graph_advance(r->g, 0, r->w1);
    ls_graph_advance(r->g, 1, ls_graph_out(r->w1, 0));
}

static void run(rig *r)
{
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&r->dev, "cpu", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&r->state, r->dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&r->plan, r->g, r->dev, r->state, &err), &err);
    init_state(r->state, 1);
    run_plan(r->plan);
}

static double result(const rig *r, const char *name)
{
    const ls_tensor *t = ls_plan_fetch(r->plan, name);

    REQUIRE(t != NULL);
    return tensor_get(t, 0);
}

static void end(rig *r)
{
    ls_plan_destroy(r->plan);
    ls_state_destroy(r->state);
    ls_device_close(r->dev);
}

/* Built after the update, but of the old version: must run before it. */
static void reader_of_the_old_version_runs_first(void)
{
    rig r;

    begin(&r);
    ls_graph_fetch(ls_affine(r.w, 1, 10), "old");
    ls_graph_fetch(ls_affine(r.w1, 1, 10), "new");
    run(&r);
    CHECK_NEAR(result(&r, "old"), 13, 0);
    CHECK_NEAR(result(&r, "new"), 12.5, 0);
    CHECK_NEAR(tensor_get(ls_state_find(r.state, "w"), 0), 2.5, 0);
    end(&r);
}

/* new - old needs both at once: the old version must have been copied. */
static void reader_of_both_gets_a_copy(void)
{
    rig r;

    begin(&r);
    ls_graph_fetch(ls_sub(ls_affine(r.w1, 2, 0), r.w), "both");
    run(&r);
    CHECK_NEAR(result(&r, "both"), 2, 0);
    end(&r);
}

/* The same through a view of the old version. */
static void reader_of_a_view_gets_a_copy(void)
{
    rig r;
    ls_value view;

    begin(&r);
    view = ls_reshape(r.w, LS_SHAPE(1, 2));
    ls_graph_fetch(ls_sub(ls_reshape(ls_affine(r.w1, 2, 0), LS_SHAPE(1, 2)), view), "both");
    run(&r);
    CHECK_NEAR(result(&r, "both"), 2, 0);
    end(&r);
}

static void second_step_starts_from_the_first(void)
{
    rig r;

    begin(&r);
    ls_graph_fetch(ls_affine(r.w, 1, 0), "old");
    run(&r);
    run_plan(r.plan);
    CHECK_NEAR(result(&r, "old"), 2.5, 0);
    CHECK_NEAR(tensor_get(ls_state_find(r.state, "w"), 1), 2.0, 0);
    CHECK_EQ_INT(tensor_get(ls_state_find(r.state, "t"), 0), 2);
    end(&r);
}

/* Two optimiser nodes on the same version of w have no order. */
static void a_version_is_updated_once(void)
{
    rig r;
    ls_value in[5];
    ls_optim_attr a = {.n = 1};
    ls_err err = {0};

    begin(&r);
    in[0] = in[1] = ls_fill(r.g, LS_SHAPE_SCALAR, LS_F32, 1);
    in[2] = ls_graph_var(r.g, "t2", LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    in[3] = r.w;
    in[4] = ls_fill(r.g, LS_SHAPE(2), LS_F32, 1);
    ls_graph_fetch(ls_copy(ls_graph_out(ls_graph_add(r.g, &ls_op_sgd, 5, in, &a), 1)), "twice");
    REQUIRE_OK(ls_device_open(&r.dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&r.state, r.dev, &err), &err);
    CHECK_STATUS(ls_plan_compile_take(&r.plan, r.g, r.dev, r.state, &err), LS_INVALID, NULL);
    CHECK_CONTAINS(err.text, "\"w\"");
    end(&r);
}

/* -- an update of two nodes, one for every bucket, of variables that ranks share ----------------------------
 */

typedef struct buckets {
    ls_graph *g;
    ls_value old[2], new[2]; /* versions of the two parameters */
    int32_t update[2];       /* the optimiser's nodes */
} buckets;

static void begin_buckets(buckets *b)
{
    ls_value t, lr;

    REQUIRE_OK(ls_graph_create(&b->g, NULL), NULL);
    for (int i = 0; i < 2; i++)
        b->old[i] = ls_graph_var(b->g, i == 0 ? "a" : "b", LS_VAR_PARAM, LS_F32, LS_SHAPE(2),
                                 (ls_init){LS_INIT_CONST, 3});
    t = ls_graph_var(b->g, "t", LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    lr = ls_fill(b->g, LS_SHAPE_SCALAR, LS_F32, 1);
    for (int i = 0; i < 2; i++) {
        const ls_optim_attr attr = {.n = 1, .more = i == 0, .later = i > 0};
        const ls_value gradient = ls_fill(b->g, LS_SHAPE(2), LS_F32, 1);
        ls_value out = ls_graph_add(b->g, &ls_op_sgd, 5, (ls_value[]){lr, lr, t, b->old[i], gradient}, &attr);
        b->g->vars[i]->home = LS_HOME_MACHINE;
        b->update[i] = b->g->values[out.id]->node;
        /* As where the second bucket's sum arrives long after the first's. */
        b->g->nodes[b->update[i]]->position += 1000 * i;
        b->new[i] = ls_graph_out(out, 1);
        ls_graph_advance(b->g, i, b->new[i]);
        ls_graph_advance(b->g, 2, out);
        t = out;
    }
}

/* The place of each node in the schedule, -1: in none. */
static void places(buckets *b, int32_t *place)
{
    ls_schedule s;
    ls_err err = {0};

    ls_pass_dead(b->g);
    ls_pass_pieces(b->g, 0, 2);
    ls_pass_versions(b->g);
    REQUIRE_OK(ls_check_variables(b->g, &err), &err);
    REQUIRE_OK(ls_graph_status(b->g, &err), &err);
    REQUIRE_OK(ls_pass_schedule(b->g, &s, &err), &err);
    for (int32_t i = 0; i < b->g->n_nodes; i++) place[i] = -1;
    for (int32_t i = 0; i < s.n; i++) place[s.order[i]] = i;
    ls_schedule_release(&s);
}

static int32_t node_of(const buckets *b, ls_value v)
{
    return b->g->values[v.id]->node;
}

/* Other ranks may not yet have written their pieces of the first bucket: they have after the last meeting. */
static void readers_wait_for_the_whole_update(void)
{
    buckets b;
    int32_t place[64];
    ls_value reader, later;

    begin_buckets(&b);
    reader = ls_affine(b.new[0], 1, 10);
    later = ls_affine(ls_reshape(b.new[0], LS_SHAPE(1, 2)), 1, 20);
    ls_graph_fetch(reader, "reader");
    ls_graph_fetch(later, "of a view");
    places(&b, place);
    CHECK(place[b.update[0]] >= 0 && place[b.update[0]] < place[b.update[1]]);
    CHECK(place[node_of(&b, reader)] > place[b.update[1]]);
    CHECK(place[node_of(&b, later)] > place[b.update[1]]);
    ls_graph_destroy(b.g);
}

/* Other ranks may write the second bucket as soon as this one has reached the first meeting. */
static void old_versions_are_read_before_the_whole_update(void)
{
    buckets b;
    int32_t place[64];
    ls_value reader, both;
    const ls_node *sub;

    begin_buckets(&b);
    reader = ls_affine(b.old[1], 1, 10);
    b.g->nodes[node_of(&b, reader)]->position = b.g->nodes[b.update[1]]->position - 1;
    both = ls_sub(b.new[0], b.old[1]); /* needs a copy */
    ls_graph_fetch(reader, "reader");
    ls_graph_fetch(both, "both");
    places(&b, place);
    CHECK(place[node_of(&b, reader)] >= 0 && place[node_of(&b, reader)] < place[b.update[0]]);
    sub = b.g->nodes[node_of(&b, both)];
    CHECK(sub->in[1] != b.old[1].id);
    if (CHECK(b.g->values[sub->in[1]]->node >= 0))
        CHECK(place[b.g->values[sub->in[1]]->node] < place[b.update[0]]);
    ls_graph_destroy(b.g);
}

/* Where each rank has its own, readers need not wait for later buckets. */
static void own_variables_are_read_at_once(void)
{
    buckets b;
    int32_t place[64];
    ls_value reader;

    begin_buckets(&b);
    b.g->vars[0]->home = b.g->vars[1]->home = LS_HOME_RANK;
    reader = ls_affine(b.new[0], 1, 10);
    ls_graph_fetch(reader, "reader");
    places(&b, place);
    CHECK(place[node_of(&b, reader)] < place[b.update[1]]);
    ls_graph_destroy(b.g);
}

int main(void)
{
    CHECK_RUN(reader_of_the_old_version_runs_first);
    CHECK_RUN(reader_of_both_gets_a_copy);
    CHECK_RUN(reader_of_a_view_gets_a_copy);
    CHECK_RUN(second_step_starts_from_the_first);
    CHECK_RUN(a_version_is_updated_once);
    CHECK_RUN(readers_wait_for_the_whole_update);
    CHECK_RUN(old_versions_are_read_before_the_whole_update);
    CHECK_RUN(own_variables_are_read_at_once);
    return CHECK_DONE();
}
