/* test_carry.c: updates that a run leaves to the next one (passes/carry.c): which models have them, in which
 * order they come, and that a plan in which one of them goes wrong is refused. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "ops/ops.h"
#include "passes/check.h"
#include "passes/list.h"
#include "small_trials.h"

static const ls_strategy carried = {
    .ranks = true, .share_from = INT64_MAX, .update = 4, .bucket_bytes = 20000, .carry = true};

static const small_trial *find(const char *name)
{
    for (const small_trial *t = small_trials; t->trial != NULL; t++)
        if (strcmp(t->trial, name) == 0) return t;
    REQUIRE(false);
    return NULL;
}

static ls_graph *lower(const char *trial, const ls_strategy *how)
{
    ls_graph *g = small_trial_record(find(trial));

    ls_passes_lower(g, how);
    REQUIRE(g->err.status == LS_OK);
    return g;
}

static bool is(const ls_node *n, ls_coll_op what)
{
    return !n->dead && (n->op->flags & LS_OP_COLLECTIVE) && n->op->coll_op == what &&
           ((const ls_collective_attr *)n->attr)->carried;
}

static int bucket(const ls_node *n)
{
    return ((const ls_collective_attr *)n->attr)->bucket;
}

static int count(const ls_graph *g, ls_coll_op what)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) n += is(g->nodes[i], what);
    return n;
}

/* The order in which a device without fusions runs them. */
static ls_schedule order_of(ls_graph *g, const ls_strategy *how)
{
    ls_schedule s = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_passes_run(&(ls_passage){.g = g, .how = how, .schedule = &s}, LS_PHASE_DEVICE, &err), &err);
    return s;
}

/* -- what it makes of a step -------------------------------------------------------------------------------
 */

/* Sums that were started last are awaited first: they are those of the layers that are read first. */
static void the_last_comes_first(void)
{
    ls_graph *g = lower("mnist", &carried);
    ls_schedule s = order_of(g, &carried);
    int waited[64], started[64], n_waited = 0, n_started = 0;

    for (int32_t i = 0; i < s.n; i++) {
        const ls_node *n = g->nodes[s.order[i]];
        if (is(n, LS_COLL_OP_WAIT)) waited[n_waited++] = bucket(n);
        if (is(n, LS_COLL_OP_START)) started[n_started++] = bucket(n);
    }
    CHECK(n_waited > 2);
    CHECK_EQ_INT(n_waited, n_started);
    for (int i = 0; i < n_waited && n_waited == n_started; i++)
        CHECK_EQ_INT(waited[i], started[n_started - 1 - i]);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
}

/* Between the first and the last of the waits a forward pass computes. */
static void layers_compute_while_others_travel(void)
{
    ls_graph *g = lower("mnist", &carried);
    ls_schedule s = order_of(g, &carried);
    int32_t last = 0;
    int products = 0;

    for (int32_t i = 0; i < s.n; i++)
        if (is(g->nodes[s.order[i]], LS_COLL_OP_WAIT)) last = i;
    for (int32_t i = 0; i < last; i++) products += g->nodes[s.order[i]]->op == &ls_op_conv2d;
    CHECK_EQ_INT(products, 2);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
}

/* Nothing reads a weight as the run found it but what updates it. */
static void all_read_the_updated_weights(void)
{
    ls_graph *g = lower("mnist", &carried);
    int old = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; !g->nodes[i]->dead && k < g->nodes[i]->n_in; k++) {
            const ls_vinfo *v = g->values[g->nodes[i]->in[k]];
            old += v->kind == LS_VALUE_VAR && g->vars[v->var]->role == LS_VAR_PARAM && !g->nodes[i]->carried;
        }
    CHECK_EQ_INT(old, 0);
    ls_graph_destroy(g);
}

/* A step whose later losses read weights that an earlier one has updated makes its updates itself: it is the
 * step that it would be. */
static void updates_that_the_step_reads_stay(void)
{
    ls_strategy never = carried;
    ls_graph *a = lower("aae", &carried), *b;

    never.carry = false;
    b = lower("aae", &never);
    CHECK_EQ_INT(count(a, LS_COLL_OP_WAIT), 0);
    CHECK_EQ_INT(count(a, LS_COLL_OP_START), 0);
    CHECK(ls_graph_hash(a) == ls_graph_hash(b));
    ls_graph_destroy(a);
    ls_graph_destroy(b);
}

/* -- the proof ---------------------------------------------------------------------------------------------
 */

/* A plan that goes wrong in one way is refused, and says how. */
static void refuses(const char *what, void (*spoil)(ls_graph *g), const char *why)
{
    ls_graph *g = lower("mnist", &carried);
    ls_schedule s = order_of(g, &carried);
    ls_err err = {0};

    REQUIRE_OK(ls_check_collectives(g, &err), &err);
    spoil(g);
    if (!CHECK(ls_check_collectives(g, &err) == LS_INVALID) || !CHECK(strstr(err.text, why) != NULL))
        printf("  %s: %s\n", what, err.text);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
}

static ls_node *first(const ls_graph *g, ls_coll_op what)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (is(g->nodes[i], what)) return g->nodes[i];
    REQUIRE(false);
    return NULL;
}

static void wait_for_another(ls_graph *g)
{
    ((ls_collective_attr *)first(g, LS_COLL_OP_WAIT)->attr)->bucket = 999;
}

static void read_a_sum(ls_graph *g)
{
    const int32_t sum = first(g, LS_COLL_OP_WAIT)->out[0];

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && !g->nodes[i]->carried && g->nodes[i]->op == &ls_op_conv2d) {
            g->nodes[i]->in[1] = sum;
            return;
        }
}

static void update_by_what_the_run_makes(ls_graph *g)
{
    const int32_t token = first(g, LS_COLL_OP_START)->out[0];

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->carried && (g->nodes[i]->op->flags & LS_OP_UPDATE)) g->nodes[i]->in[0] = token;
}

static void start_before_the_wait(ls_graph *g)
{
    ls_node *start = first(g, LS_COLL_OP_START);
    const ls_node *wait = NULL;

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (is(g->nodes[i], LS_COLL_OP_WAIT) && bucket(g->nodes[i]) == bucket(start)) wait = g->nodes[i];
    REQUIRE(wait != NULL);
    start->in[0] = g->vars[0]->first; /* as if nothing that it gives were made of weights */
    for (int k = 1; k < start->n_in; k++) start->in[k] = wait->in[k];
    for (int32_t i = 0; i < g->n_edges; i++)
        if (g->edges[i].to == start->id) g->edges[i--] = g->edges[--g->n_edges];
}

static void a_wrong_plan_is_refused(void)
{
    refuses("another bucket", wait_for_another, "nothing in the next run waits for what it starts");
    refuses("a sum that is read", read_a_sum, "a node reads what is not there when nothing was carried");
    refuses("an update by this run", update_by_what_the_run_makes,
            "a carried node reads what is not there when it runs alone");
    refuses("a start too early", start_before_the_wait,
            "no edge puts the end of the run before's exchange first");
}

int main(void)
{
    CHECK_RUN(the_last_comes_first);
    CHECK_RUN(layers_compute_while_others_travel);
    CHECK_RUN(all_read_the_updated_weights);
    CHECK_RUN(updates_that_the_step_reads_stay);
    CHECK_RUN(a_wrong_plan_is_refused);
    return CHECK_DONE();
}
