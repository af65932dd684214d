/* test_branches.c: what of a plan may run side by side: nothing that has to do with each other, and `far`
 * plays recordings in any order that is left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "exec/branches.h"
#include "exec/results.h"
#include "model.h"
#include "ops/ops.h"
#include "tensors.h"

enum { WIDE = 40, ARMS = 3, LONG = 4 };

/* Arms that begin at one value and end in one sum, in memory that is used again along them. */
static ls_graph *make_graph(void)
{
    ls_graph *g = NULL;
    ls_value x, w, sum = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(WIDE, WIDE), (ls_init){LS_INIT_NORMAL, 0.05});
    x = ls_tanh(ls_graph_input(g, "x", LS_F32, LS_SHAPE(WIDE, WIDE)));
    for (int arm = 0; arm < ARMS; arm++) {
        ls_value v = x;
        for (int i = 0; i < LONG; i++) v = ls_tanh(ls_matmul(v, w, (arm + i) % 2 == 0, false));
        sum = arm == 0 ? v : ls_add(sum, v);
    }
    ls_graph_fetch(sum, "sum");
    return g;
}

static void run_steps(const model *m, int steps, float *out)
{
    static float x[WIDE * WIDE];
    ls_err err = {0};

    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < WIDE * WIDE; i++) x[i] = (float)((i * 7 + s * 13) % 19) / 19 - 0.5f;
        ls_plan_feed(m->plan, "x", 0, x, sizeof x);
        CHECK_OK(ls_plan_start(m->plan, &err), &err);
        CHECK_OK(ls_plan_join(m->plan, &err), &err);
    }
    tensor_read(ls_plan_fetch(m->plan, "sum"), out, sizeof *out * WIDE * WIDE);
}

static void recordings_in_any_order(void)
{
    static float want[WIDE * WIDE], got[WIDE * WIDE];
    model m;

    model_open(&m, make_graph(), "ref", 1);
    run_steps(&m, 4, want);
    model_close(&m);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        model_open(&m, make_graph(), "far", seed);
        run_steps(&m, 4, got); /* from the second on they are recorded */
        CHECK(memcmp(got, want, sizeof got) == 0);
        model_close(&m);
    }
}

static bool is_before(const lsi_branches *b, int32_t early, int32_t late)
{
    for (int32_t i = b->first[late]; i < b->first[late + 1]; i++)
        if (b->before[i] == early || is_before(b, early, b->before[i])) return true;
    return false;
}

/* Whether a node reads what another makes. */
static bool reads(const ls_node *n, const ls_node *maker)
{
    for (int i = 0; i < n->n_in; i++)
        for (int k = 0; k < maker->n_out; k++)
            if (n->in[i] == maker->out[k]) return true;
    return false;
}

static void arms_have_nothing_to_do_with_each_other(void)
{
    lsi_branches b = {0};
    int apart = 0;
    ls_err err = {0};
    model m;

    model_open(&m, make_graph(), "far", 1);
    REQUIRE_OK(lsi_branches_make(m.plan, &b, &err), &err);
    for (int32_t i = 0; i < m.plan->schedule.n; i++)
        for (int32_t k = 0; k < i; k++) {
            if (reads(m.plan->steps[i].node, m.plan->steps[k].node)) CHECK(is_before(&b, k, i));
            apart += !is_before(&b, k, i);
        }
    CHECK(apart > 0);
    lsi_branches_release(&b);
    model_close(&m);
}

int main(void)
{
    CHECK_RUN(recordings_in_any_order);
    CHECK_RUN(arms_have_nothing_to_do_with_each_other);
    return CHECK_DONE();
}
