/* test_turns.c: ranks start collectives in one order and wait for them in one, whatever their batches are and
 * whatever their devices make of the program: for every trial and strategy the plans of several batches, with
 * and without fusions and regions, have the same sequence, of the same tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "check.h"
#include "ops/ops.h"
#include "passes/check.h"
#include "passes/list.h"
#include "small_trials.h"

/* -- what a device may do -----------------------------------------------------------------------------------
 */

/* A device that takes all it can get into one node. */
static bool takes(const ls_device *dev, const ls_graph *g, const ls_node *n, int64_t samples,
                  const ls_region_kind *in, ls_region_kind *out)
{
    (void)dev;
    (void)g;
    (void)samples;
    (void)in;
    if ((n->op->flags & (LS_OP_COLLECTIVE | LS_OP_UPDATE | LS_OP_EFFECT | LS_OP_WAIT)) || n->n_in == 0)
        return false;
    for (int k = 0; k < n->n_out; k++) out[k] = LS_REGION_SAMPLE;
    return true;
}

static bool fits(const ls_device *dev, const ls_graph *g, int64_t samples, int n,
                 const ls_node *const *members)
{
    (void)dev;
    (void)g;
    (void)samples;
    (void)members;
    return n < 64;
}

static const ls_region_rule greedy = {takes, fits, 2};

static int first_rank(const void *peers, ls_group group)
{
    (void)peers;
    (void)group;
    return 0;
}

typedef enum device { PLAIN, FUSES, REGIONS, DEVICES } device;
static const char *const devices[] = {"plain", "fusions", "regions"};

/* -- the sequence -------------------------------------------------------------------------------------------
 */

/* The variable that a value is, or a piece or another shape or type of; "" where there is none. */
static const char *variable(const ls_graph *g, int32_t v)
{
    for (int32_t node; v >= 0; v = node >= 0 && g->nodes[node]->n_in > 0 ? g->nodes[node]->in[0] : -1) {
        if (g->values[v]->var >= 0) return g->vars[g->values[v]->var]->name;
        node = g->values[v]->node;
    }
    return "";
}

/* The parameter that the sum `v` is for, by the optimiser that reads it. */
static const char *whose(const ls_graph *g, int32_t v)
{
    enum { WEIGHTS = 3 }; /* the first of an optimiser's inputs that is one */

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || !ls_optim_is(n->op)) continue;
        const int of = ((const ls_optim_attr *)n->attr)->n;
        for (int k = WEIGHTS + of; k < WEIGHTS + 2 * of; k++)
            if (n->in[k] == v) return variable(g, n->in[k - of]);
    }
    return "";
}

static void tell(const ls_graph *g, const ls_node *n, FILE *to)
{
    const bool wait = n->op->coll_op == LS_COLL_OP_WAIT;
    char text[256] = "";

    n->op->attr_text(n->attr, text, sizeof text);
    fprintf(to, "%s %s", n->op->name, text);
    for (int k = 0; k < n->n_in; k++) {
        const ls_vinfo *v = g->values[n->in[k]];
        fprintf(to, " %s%lld:%s", ls_dtype_name(v->dtype), (long long)ls_shape_count(v->shape),
                n->op->collective == LS_COLL_ALL_GATHER ? variable(g, n->in[k]) : "");
    }
    for (int k = 0; wait && k < n->n_out; k++) fprintf(to, " %s", whose(g, n->out[k]));
    fputc('\n', to);
}

/* Starts in their order, then waits and barriers in theirs. */
static char *sequence(const ls_graph *g, const ls_schedule *s)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    REQUIRE(to != NULL);
    for (int starts = 1; starts >= 0; starts--)
        for (int32_t i = 0; i < s->n; i++) {
            const ls_node *n = g->nodes[s->order[i]];
            if (!(n->op->flags & LS_OP_COLLECTIVE) || n->op->coll_op == LS_COLL_OP_LEAF) continue;
            if ((n->op->coll_op == LS_COLL_OP_START) == (starts == 1)) tell(g, n, to);
        }
    REQUIRE(fclose(to) == 0);
    return text;
}

static char *compile(const small_trial *t, const ls_strategy *how, int64_t batch, device d)
{
    ls_graph *g = small_trial_record_of(t, batch);
    ls_schedule s = {0};
    ls_passage way = {.g = g,
                      .how = how,
                      .fuses = d != PLAIN ? lsi_cpu_fusions : NULL,
                      .regions = d == REGIONS ? &greedy : NULL,
                      .rank_of = first_rank,
                      .ranks = how->sharding == LS_SHARD_NOTHING ? 2 : 0,
                      .schedule = &s};
    ls_err err = {0};
    char *text;

    REQUIRE_OK(ls_passes_run(&way, LS_PHASE_PROGRAM, &err), &err);
    if (!CHECK(ls_passes_run(&way, LS_PHASE_DEVICE, &err) == LS_OK))
        printf("  %s, batch %d, %s: %s\n", t->trial, (int)batch, devices[d], err.text);
    text = sequence(g, &s);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
    return text;
}

/* The first line in which they differ. */
static void show_difference(const char *a, const char *b)
{
    size_t line = 0;

    for (size_t i = 0; a[i] == b[i] && a[i] != '\0'; i++)
        if (a[i] == '\n') line = i + 1;
    printf("    %.*s\n    %.*s\n", (int)strcspn(a + line, "\n"), a + line, (int)strcspn(b + line, "\n"),
           b + line);
}

/* -- every trial in every way -------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    ls_strategy how;
} ways[] = {
    {"ddp", {.share_from = 1 << 20}},
    {"ddp, shared", {.share_from = 1}},
    {"ddp, carried", {.share_from = 1, .carry = true}},
    {"zero1", {.sharding = LS_SHARD_STATE, .clip_norm = 1}},
    {"fsdp", {.sharding = LS_SHARD_WEIGHTS, .prefetch = 1}},
    {"fsdp, far ahead, kept", {.sharding = LS_SHARD_WEIGHTS, .prefetch = 3, .regather = LS_REGATHER_NONE}},
    {"fsdp, synchronised norms", {.sharding = LS_SHARD_WEIGHTS, .sync_norm = true, .guard = LS_GUARD_SKIP}},
    {"fsdp, computed again", {.sharding = LS_SHARD_WEIGHTS, .prefetch = 1, .recompute = {.all = true}}},
    {"fsdp, large units", {.sharding = LS_SHARD_WEIGHTS, .prefetch = 1, .bucket_bytes = 8 << 20}},
    {"hybrid", {.sharding = LS_SHARD_WEIGHTS, .prefetch = 1, .group = LS_GROUP_SHARD, .clip_norm = 1}},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void one_sequence(const small_trial *t, int w, ls_dtype compute, const int64_t *batches)
{
    ls_strategy how = ways[w].how;
    char *want = NULL;

    how.ranks = true;
    how.update = 6;
    how.pieces = how.sharding != LS_SHARD_NOTHING ? 2 : 1;
    if (how.bucket_bytes == 0) how.bucket_bytes = 20000;
    how.compute = compute;
    for (int i = 0; batches[i] > 0; i++)
        for (int d = 0; d < DEVICES; d++) {
            char *got = compile(t, &how, batches[i], (device)d);
            if (want == NULL) {
                want = got;
                CHECK(want[0] != '\0'); /* there is something to compare */
                continue;
            }
            if (!CHECK(strcmp(got, want) == 0)) {
                printf("  %s, %s, %s, batch %d, %s:\n", t->trial, ways[w].name, ls_dtype_name(compute),
                       (int)batches[i], devices[d]);
                show_difference(want, got);
            }
            free(got);
        }
    free(want);
}

static void every_way_of(const small_trial *t, const int64_t *batches)
{
    for (int w = 0; w < WAYS; w++) {
        one_sequence(t, w, LS_F32, batches);
        one_sequence(t, w, LS_BF16, batches);
    }
}

static void some_trials(void)
{
    static const char *const names[] = {"mnist", "linear"};

    for (const small_trial *t = small_trials; t->trial != NULL; t++)
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strcmp(t->trial, names[i]) == 0) every_way_of(t, (const int64_t[]){2, 1, 5, 0});
}

static void all_trials(void)
{
    for (const small_trial *t = small_trials; t->trial != NULL; t++)
        if (t->like == NULL) every_way_of(t, (const int64_t[]){2, 1, t->large ? 0 : 5, 0});
}

/* -- the proof ----------------------------------------------------------------------------------------------
 */

/* Without any one of the edges it does not hold. */
static void a_missing_turn_is_found(void)
{
    const ls_strategy how = {.ranks = true,
                             .update = 4,
                             .sharding = LS_SHARD_WEIGHTS,
                             .pieces = 2,
                             .prefetch = 1,
                             .bucket_bytes = 20000};
    ls_graph *g = small_trial_record(&small_trials[0]);
    ls_schedule s = {0};
    ls_passage way = {.g = g, .how = &how, .rank_of = first_rank, .schedule = &s};
    ls_err err = {0};
    int refused = 0;

    REQUIRE_OK(ls_passes_run(&way, LS_PHASE_PROGRAM, &err), &err);
    REQUIRE_OK(ls_passes_run(&way, LS_PHASE_DEVICE, &err), &err);
    for (int32_t i = 0; i < g->n_edges; i++) {
        const ls_edge e = g->edges[i];
        if (e.kind != LS_EDGE_TURN) continue;
        g->edges[i] = g->edges[--g->n_edges];
        if (ls_check_collectives(g, &err) != LS_OK) { /* else other edges imply it */
            refused++;
            CHECK(strstr(err.text, "ranks start first") != NULL ||
                  strstr(err.text, "ranks wait first") != NULL);
        }
        g->edges[g->n_edges++] = g->edges[i];
        g->edges[i] = e;
    }
    CHECK(refused >= 4);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
}

/* `all`: every trial. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "all") == 0) {
        CHECK_RUN(all_trials);
    } else {
        CHECK_RUN(some_trials);
        CHECK_RUN(a_missing_turn_is_found);
    }
    return CHECK_DONE();
}
