/* test_waits.c: what nodes of one queue wait for in the others: enough, by every edge, and nothing that comes
 * later. */
#include "check.h"
#include "graph/graph.h"
#include "lockstep/trial.h"
#include "passes/lower.h"
#include "passes/passes.h"

static int32_t place[100000]; /* per node: in its queue, from 1 */

/* Node `late` may not begin before `early` is over. */
static bool waits_for(const ls_graph *g, const int32_t waits[LS_QUEUE_N], int32_t late, int32_t early)
{
    const ls_queue q = g->nodes[early]->queue;

    return place[early] == 0 ||
           (q == g->nodes[late]->queue ? place[early] < place[late] : waits[q] >= place[early]);
}

static void check_trial(const char *name)
{
    const ls_strategy how = {.ranks = true, .share_from = INT64_MAX, .bucket_bytes = 4096};
    const ls_trial *trial;
    ls_config *cfg = NULL;
    ls_step *step = NULL;
    ls_graph *g;
    ls_schedule s = {0};
    int32_t(*waits)[LS_QUEUE_N] = NULL, n[LS_QUEUE_N] = {0}, across = 0;
    ls_err err = {0};

    REQUIRE_OK(ls_trial_find(&trial, name, &err), &err);
    REQUIRE_OK(ls_config_create(&cfg, trial, &err), &err);
    REQUIRE_OK(ls_trial_build(&step, trial, cfg, LS_TRAIN, &err), &err);
    g = ls_step_graph_take(step);
    ls_passes_lower(g, &how);
    ls_pass_dead(g);
    ls_pass_versions(g);
    REQUIRE_OK(ls_pass_schedule(g, &s, &err), &err);
    REQUIRE_OK(ls_pass_waits(g, &s, &waits, &err), &err);
    REQUIRE(g->n_nodes < (int32_t)(sizeof place / sizeof place[0]));
    for (int32_t i = 0; i < g->n_nodes; i++) place[i] = 0;
    for (int32_t i = 0; i < s.n; i++) place[s.order[i]] = ++n[g->nodes[s.order[i]]->queue];
    CHECK(n[LS_QUEUE_COMPUTE] > 0 && n[LS_QUEUE_COMM] > 1);
    for (int q = 0; q < LS_QUEUE_N; q++) n[q] = 0;
    for (int32_t i = 0; i < s.n; i++) {
        const int32_t node = s.order[i];
        for (int q = 0; q < LS_QUEUE_N; q++) {
            CHECK(waits[i][q] <= n[q]); /* the schedule itself is an order that nothing waits in for ever */
            across += q != (int)g->nodes[node]->queue && waits[i][q] > 0;
        }
        for (int k = 0; k < g->nodes[node]->n_in; k++) {
            const int32_t maker = g->values[g->nodes[node]->in[k]]->node;
            if (maker >= 0) CHECK(waits_for(g, waits[i], node, maker));
        }
        for (int32_t e = 0; e < g->n_edges; e++)
            if (g->edges[e].to == node && !g->nodes[g->edges[e].from]->dead)
                CHECK(waits_for(g, waits[i], node, g->edges[e].from));
        n[g->nodes[node]->queue]++;
    }
    CHECK(across >=
          2 * n[LS_QUEUE_COMM]); /* what starts an exchange waits for gradients, its end for the start */
    ls_free(waits);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
    ls_step_destroy(step);
    ls_config_destroy(cfg);
}

static void of_trials(void)
{
    check_trial("mnist");
    check_trial("aae");
    check_trial("cosmogan");
}

int main(void)
{
    CHECK_RUN(of_trials);
    return CHECK_DONE();
}
