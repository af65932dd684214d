/* Collectives as nodes of plans: on one to four ranks, at lengths that ranks do not divide, empty ones among
 * them, on memory that the host can see and on memory that it cannot. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/far/far.h"
#include "check.h"
#include "comm/comm.h"
#include "exec/document.h"
#include "exec/peers.h"
#include "exec/queued_internal.h"
#include "exec/results.h"
#include "exec/state.h"
#include "model.h"
#include "ops/ops.h"

enum { MOST = 4, TENSORS = 2, FLOATS = 64 };

typedef struct way {
    ls_collective kind;
    ls_group group;
    int ranks;
    bool overlap;
    const char *device;
    int n; /* tensors */
    int64_t count[TENSORS];
    int root, plain;
    bool leaves; /* rank 1, in the middle */
    bool fails;  /* a kernel of rank 0, in its second step */
    bool breaks; /* its device, before that kernel */
} way;

typedef struct rank {
    const way *w;
    ls_comm *comm;
    int wrong;
} rank;

static float given(int rank, int tensor, int64_t i)
{
    return (float)(100 * rank + 1000 * tensor) + (float)i;
}

/* Powers of two: sums are exact. */
static float weight_of(int rank)
{
    return rank % 2 == 0 ? 0.5f : 2;
}

/* Element i of what a rank gets of tensor k. */
static float expected(const way *w, int rank, int k, int64_t i)
{
    const int64_t piece = ls_exchange_piece(w->count[k], w->ranks);
    const bool plain = k >= w->n - w->plain;
    float sum = 0;

    if (w->kind == LS_COLL_BROADCAST) return given(w->root, k, i);
    if (w->kind == LS_COLL_ALL_GATHER) return given((int)(i / w->count[k]), k, i % w->count[k]);
    if (w->kind == LS_COLL_REDUCE_SCATTER) i += rank * piece;
    if (i >= w->count[k]) return 0;
    for (int r = 0; r < w->ranks; r++) sum += (plain ? 1 : weight_of(r)) * given(r, k, i);
    return sum;
}

static ls_value add_collective(const way *w, ls_graph *g, ls_value *x)
{
    const bool pieces = w->kind == LS_COLL_REDUCE_SCATTER || w->kind == LS_COLL_ALL_GATHER;
    const ls_collective_attr attr = {
        .bucket = -1, .group = w->group, .plain = w->plain, .ranks = pieces ? w->ranks : 0, .root = w->root};
    ls_value room[1 + TENSORS];

    switch (w->kind) {
    case LS_COLL_ALL_REDUCE: return ls_all_reduce(ls_graph_scalar(g, "weight"), w->n, x, attr, room);
    case LS_COLL_REDUCE_SCATTER: return ls_reduce_scatter(ls_graph_scalar(g, "weight"), w->n, x, attr, room);
    case LS_COLL_ALL_GATHER: return ls_all_gather(w->n, x, attr, room);
    default: return ls_broadcast(w->n, x, attr, room);
    }
}

/* x is made by a node, which may write it where ranks exchange it; the results are read by others. */
static ls_graph *build(const way *w)
{
    static const char *const in[] = {"a", "b"}, *const out[] = {"c", "d"};
    ls_value x[TENSORS], y;
    ls_graph *g;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    for (int k = 0; k < w->n; k++)
        x[k] = ls_copy(ls_scale(ls_graph_input(g, in[k], LS_F32, LS_SHAPE(w->count[k])), 1));
    y = add_collective(w, g, x);
    for (int k = 0; k < w->n; k++) ls_graph_fetch(ls_copy(ls_scale(ls_graph_out(y, k), 2)), out[k]);
    return g;
}

static int run_steps(const rank *r, ls_plan *p, int me)
{
    const way *w = r->w;
    int wrong = 0;
    ls_err err = {0};

    for (int step = 0; step < 3 && wrong == 0; step++) {
        for (int k = 0; k < w->n; k++) {
            float x[FLOATS];
            for (int64_t i = 0; i < w->count[k]; i++) x[i] = given(me, k, i);
            ls_plan_write_input(p, k == 0 ? "a" : "b", 0, x, sizeof *x * (size_t)w->count[k]);
        }
        ls_plan_write_scalar(p, "weight", (double)weight_of(me));
        if (ls_plan_run(p, &err) != LS_OK) return 1 + printf("rank %d: %s\n", me, err.text);
        for (int k = 0; k < w->n; k++) {
            const ls_tensor *t = ls_plan_fetch(p, k == 0 ? "c" : "d");
            float y[MOST * FLOATS];
            if (ls_tensor_read(t, 0, y, t->bytes, &err) != LS_OK) return 1;
            for (int64_t i = 0; i < ls_shape_count(t->shape) && wrong == 0; i++)
                if (y[i] != 2 * expected(w, me, k, i))
                    wrong += printf("%s, rank %d of %d, tensor %d: element %d is %g, expected %g\n",
                                    ls_collective_name(w->kind), me, w->ranks, k, (int)i, (double)y[i],
                                    (double)(2 * expected(w, me, k, i)));
        }
    }
    return wrong;
}

/* Every kernel that makes or takes exchanged tensors; what the document says of it. */
static int look(const rank *r, const ls_plan *p)
{
    ls_document d;
    ls_err err = {0};
    int wrong = ls_document_make(&d, p, &err) != LS_OK || d.n_collectives != 1;

    if (wrong == 0) {
        const ls_doc_collective *c = &d.collectives[0];
        wrong += strcmp(c->kind, ls_collective_name(r->w->kind)) != 0 || c->start >= c->end;
        wrong += strcmp(d.nodes[c->start].queue, strcmp(r->w->device, "far") == 0 ? "host" : "comm") != 0;
        wrong += strcmp(d.nodes[c->end].impl, ls_comm_kind(r->comm)) != 0;
    }
    if (wrong > 0) printf("the document of a plan with %s is wrong\n", ls_collective_name(r->w->kind));
    ls_document_release(&d);
    return wrong;
}

/* -- a rank that leaves -----------------------------------------------------------------------------------
 */

enum { LEAVES_AFTER = 3 };

/* Begins steps one ahead of their results, as training does; rank 1 leaves after some. */
static int begin_steps(ls_plan *p, int me)
{
    const ls_tensor *t = ls_plan_fetch(p, "c");
    ls_status st = LS_OK;
    ls_err err = {0};
    float y = 0;
    int wrong = 0;

    for (int step = 1; wrong == 0 && st == LS_OK && (me == 0 || step <= LEAVES_AFTER); step++) {
        const float x = (float)(step + 10 * me);
        ls_plan_write_input(p, "a", 0, &x, sizeof x);
        ls_plan_write_scalar(p, "weight", 1);
        st = ls_plan_start(p, &err);
        if (step > LEAVES_AFTER + 1) return 1 + printf("a step went on without rank 1\n");
        if (st != LS_OK || step == 1) continue;
        st = ls_plan_result(p, t, (uint64_t)step - 1, &y, sizeof y, &err);
        wrong += y != (float)(2 * (2 * (step - 1) + 10));
    }
    if (me == 1) return wrong + (ls_plan_join(p, &err) != LS_OK);
    wrong += st != LS_LOST || strstr(err.text, "rank 1") == NULL;
    /* The last step that was complete on all ranks: its result was there before anything failed. */
    err = (ls_err){0};
    st = ls_plan_result(p, t, LEAVES_AFTER, &y, sizeof y, &err);
    if (st != LS_OK || y != (float)(2 * (2 * LEAVES_AFTER + 10)))
        wrong += printf("step %d: %g, %s\n", LEAVES_AFTER, (double)y, err.text);
    /* The one that failed has none. */
    wrong += ls_plan_result(p, t, LEAVES_AFTER + 1, &y, sizeof y, &(ls_err){0}) != LS_LOST;
    return wrong;
}

/* -- a kernel that fails ----------------------------------------------------------------------------------
 */

static atomic_bool broken;
static int before_it_breaks; /* kernels */

/* A device that has failed does nothing any more: all that is marked counts as reached. */
static void enqueue_or_break(ls_device *dev, ls_queue q, const ls_kernel *k, const ls_call *call)
{
    if (before_it_breaks-- == 0) broken = true;
    if (!broken) ls_backend_far.queues->enqueue(dev, q, k, call);
}

static void mark_unbroken(ls_device *dev, ls_queue q, ls_event *e)
{
    if (!broken) ls_backend_far.queues->mark(dev, q, e);
}

static void read_unbroken(ls_device *dev, ls_queue q, const ls_buffer *from, size_t at, void *to,
                          size_t bytes)
{
    if (!broken) ls_backend_far.queues->read(dev, q, from, at, to, bytes);
}

static bool reached_or_broken(ls_device *dev, ls_event *e)
{
    return broken || ls_backend_far.queues->reached(dev, e);
}

static ls_status join_unbroken(ls_device *dev, ls_event *e, ls_err *err)
{
    const ls_status st = ls_backend_far.queues->join(dev, e, err);

    return broken ? ls_fail(err, LS_DEVICE, "made up: the device is gone") : st;
}

/* `kernels` more are run by this device, and then it fails. */
static void break_after(ls_device *dev, int kernels)
{
    static ls_backend backend;
    static ls_queues queues;

    queues = *ls_backend_far.queues;
    queues.enqueue = enqueue_or_break;
    queues.mark = mark_unbroken;
    queues.read = read_unbroken;
    queues.reached = reached_or_broken;
    queues.join = join_unbroken;
    backend = ls_backend_far;
    backend.queues = &queues;
    before_it_breaks = kernels;
    broken = false;
    dev->backend = &backend;
}

/* No rank ends a step with what a rank has given whose device had failed: an older step's numbers. */
static int fail_in_second_step(const way *w, ls_plan *p, int me)
{
    lsi_step *s = &p->steps[0];
    failing f;
    ls_status st = LS_OK;
    ls_err err = {0};
    int step = 0, wrong;

    if (me == 0 && w->breaks)
        break_after(p->dev, p->queued->n[LS_QUEUE_COMPUTE] + p->queued->n[LS_QUEUE_COPY]);
    else if (me == 0)
        failing_put(&f, s);
    while (st == LS_OK && step < 5) {
        const float x = 1;
        ls_plan_write_input(p, "a", 0, &x, sizeof x);
        ls_plan_write_scalar(p, "weight", 1);
        st = ls_plan_run(p, &err);
        step++;
    }
    if (me == 0 && !w->breaks) failing_take(&f, s);
    wrong = step != 2 || strstr(err.text, "made up") == NULL || st != (me == 0 ? LS_DEVICE : LS_LOST) ||
            (!w->breaks && strstr(err.text, s->node->op->name) == NULL) ||
            (me > 0 && strstr(err.text, "rank 0") == NULL);
    if (wrong != 0) printf("rank %d: step %d: %s\n", me, step, err.text);
    return wrong;
}

static void *rank_main(void *arg)
{
    rank *r = arg;
    const ls_peers_options how = {.overlap = r->w->overlap};
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_peers *peers = NULL;
    ls_plan *plan = NULL;
    ls_graph *g = build(r->w);
    ls_err err = {0};
    ls_status st = LS_OK;

    r->wrong = 1;
    LS_TRY(ls_device_open(&dev, r->w->device, 1, &err));
    LS_TRY(ls_state_create(&state, dev, &err));
    LS_TRY(ls_peers_create(&peers, r->comm, &how, &err));
    ls_state_set_peers(state, peers);
    LS_TRY(ls_plan_compile_take(&plan, g, dev, state, &err));
    if (r->w->fails)
        r->wrong = fail_in_second_step(r->w, plan, ls_comm_rank(r->comm));
    else if (r->w->leaves)
        r->wrong = begin_steps(plan, ls_comm_rank(r->comm));
    else
        r->wrong = run_steps(r, plan, ls_comm_rank(r->comm)) + look(r, plan);
out:
    if (st != LS_OK) printf("rank %d: %s\n", ls_comm_rank(r->comm), err.text);
    ls_plan_destroy(plan);
    ls_peers_destroy(peers);
    ls_state_destroy(state);
    ls_device_close(dev);
    if (r->w->leaves) ls_comm_close(r->comm);
    return NULL;
}

static int run_way(const way *w)
{
    ls_comm *comm[MOST];
    pthread_t threads[MOST];
    rank ranks[MOST];
    ls_err err = {0};
    int wrong = 0;

    REQUIRE_OK(ls_comm_open_threads(comm, w->ranks, &err), &err);
    for (int i = 0; i < w->ranks; i++) {
        ranks[i] = (rank){w, comm[i], 0};
        REQUIRE(pthread_create(&threads[i], NULL, rank_main, &ranks[i]) == 0);
    }
    for (int i = 0; i < w->ranks; i++) {
        pthread_join(threads[i], NULL);
        wrong += ranks[i].wrong;
    }
    for (int i = 0; i < w->ranks && !w->leaves; i++) ls_comm_close(comm[i]);
    return wrong;
}

static void every_collective(void)
{
    static const int64_t lengths[][TENSORS] = {{1, 0}, {7, 0}, {32, 0}, {0, 0}, {5, 33}, {17, 0}, {64, 3}};
    static const char *const devices[] = {"ref", "cpu", "far"};

    for (int kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_BROADCAST; kind++)
        for (int ranks = 1; ranks <= MOST; ranks++)
            for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
                way w = {.kind = (ls_collective)kind,
                         .group = i % 2 == 0 ? LS_GROUP_ALL : LS_GROUP_MACHINE,
                         .ranks = ranks,
                         .overlap = i != 2,
                         .device = devices[i % 3],
                         .n = i < 4 ? 1 : TENSORS,
                         .count = {lengths[i][0], lengths[i][1]},
                         .root = kind == LS_COLL_BROADCAST ? ranks - 1 : 0,
                         .plain = kind == LS_COLL_ALL_REDUCE && i == 6};
                CHECK_EQ_INT(run_way(&w), 0);
            }
}

static void results_of_the_last_complete_step_are_there(void)
{
    static const way w = {.kind = LS_COLL_ALL_REDUCE,
                          .ranks = 2,
                          .overlap = true,
                          .device = "far",
                          .n = 1,
                          .count = {1},
                          .leaves = true};

    for (int seed = 1; seed <= 10; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("LOCKSTEP_FAR_SEED", text, 1);
        CHECK_EQ_INT(run_way(&w), 0);
    }
}

static void no_rank_ends_a_step_in_which_one_has_failed(void)
{
    static const char *const devices[] = {"far", "cpu", "ref"};

    for (int i = 0; i < 12; i++) {
        const way w = {.kind = LS_COLL_ALL_REDUCE,
                       .ranks = i < 6 ? 2 : MOST,
                       .overlap = i % 6 < 3,
                       .device = devices[i % 3],
                       .n = 1,
                       .count = {1},
                       .leaves = true,
                       .fails = true};
        CHECK_EQ_INT(run_way(&w), 0);
    }
}

static void nor_one_in_which_a_device_has(void)
{
    for (int seed = 1; seed <= 10; seed++) {
        const way w = {.kind = LS_COLL_ALL_REDUCE,
                       .ranks = MOST,
                       .overlap = seed % 2 == 0,
                       .device = "far",
                       .n = 1,
                       .count = {1},
                       .leaves = true,
                       .fails = true,
                       .breaks = true};
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("LOCKSTEP_FAR_SEED", text, 1);
        CHECK_EQ_INT(run_way(&w), 0);
    }
}

/* A plan for other ranks than there are. */
static void wrong_number_of_ranks(void)
{
    const way w = {.kind = LS_COLL_ALL_GATHER, .ranks = 3, .n = 1, .count = {4}};
    ls_peers *peers;
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
    ls_err err = {0};

    REQUIRE_OK(ls_peers_create_absent(&peers, 2, 0, &(ls_peers_options){0}, &err), &err);
    REQUIRE_OK(ls_device_open(&dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    ls_state_set_peers(state, peers);
    CHECK_STATUS(ls_plan_compile_take(&plan, build(&w), dev, state, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "pieces of 3 ranks, and there are 2");
    ls_state_destroy(state);
    ls_peers_destroy(peers);
    ls_device_close(dev);
}

int main(void)
{
    CHECK_RUN(every_collective);
    CHECK_RUN(results_of_the_last_complete_step_are_there);
    CHECK_RUN(no_rank_ends_a_step_in_which_one_has_failed);
    CHECK_RUN(nor_one_in_which_a_device_has);
    CHECK_RUN(wrong_number_of_ranks);
    return CHECK_DONE();
}
