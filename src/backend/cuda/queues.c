/* queues.c: queues are streams, events are events. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"

struct ls_event {
    lsi_cuda_event event;
};

/* -- small copies -----------------------------------------------------------------------------------------
 *
 * What goes to and fro around a step is a handful of numbers, each of which would be a copy of its own, one
 * after the other: together they take longer than a small network's step.  They wait here until somebody asks
 * how far the queue is, and are then one kernel, which reads and writes pinned memory where it lies.  Waiting
 * longer than they must harms nobody, since others see of a queue only its events.
 *
 * A recording that is replayed waits, too, and what was pending is the first of its nodes, and what comes to
 * be pending behind it the last: inputs, step and results are one launch. */

enum { SMALL = 4096 }; /* bytes between host and device */

static int send_pending(const lsi_cuda_device *d)
{
    lsi_cuda_device *of = (lsi_cuda_device *)d;
    lsi_cuda_copies_args *p = &of->pending;
    lsi_cuda_stream s = d->stream[d->pending_in];
    int code = 0;

    if (d->due != NULL)
        code = d->api->graph_launch(d->due, &d->before, p, s);
    else if (p->n > 0)
        code = d->api->launch.copies(s, p);
    of->due = NULL;
    p->n = 0;
    return code;
}

static bool overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes && (const char *)b < (const char *)a + a_bytes;
}

/* Pending copies run in any order: one that depends on another comes after it. */
static int send_dependent(const lsi_cuda_device *d, const lsi_cuda_copied *c)
{
    const lsi_cuda_copies_args *p = &d->pending;

    for (int i = 0; i < p->n; i++)
        if (overlap(c->to, c->bytes, p->of[i].to, p->of[i].bytes) ||
            overlap(c->to, c->bytes, p->of[i].from, p->of[i].bytes) ||
            overlap(c->from, c->bytes, p->of[i].to, p->of[i].bytes))
            return send_pending(d);
    return p->n == LSI_CUDA_COPIES ? send_pending(d) : 0;
}

/* Before anything else is put into the queue. */
static int send_first(const lsi_cuda_device *d, ls_queue q)
{
    return q == d->pending_in ? send_pending(d) : 0;
}

/* `within`: both sides are the device's. */
static int put_copy(ls_device *dev, ls_queue q, void *to, const void *from, size_t bytes, bool within)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;
    const lsi_cuda_copied c = {to, from, (int64_t)bytes};
    int code = 0;

    if (q != LS_QUEUE_FEED && (within || bytes <= SMALL)) {
        code = q != d->pending_in ? send_pending(d) : send_dependent(d, &c);
        d->pending_in = q;
        if (bytes > 0) d->pending.of[d->pending.n++] = c;
        return code;
    }
    code = send_first(d, q);
    return code != 0 ? code : d->api->copy(to, from, bytes, d->stream[q]);
}

int lsi_cuda_drain(const lsi_cuda_device *d)
{
    int code = send_pending(d);

    for (int i = 0; i < LS_QUEUE_DEVICE_N && code == 0; i++) code = d->api->stream_sync(d->stream[i]);
    return code;
}

/* What the device itself could not do: the next who waits hears of it. */
static void note(ls_device *dev, int code)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;

    if (code != 0 && d->failed == 0) d->failed = code;
}

static ls_status make_event(ls_device *dev, ls_event **out, ls_err *err)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    ls_event *e = ls_alloc(LS_MEM_PLAN, sizeof *e);
    int code;

    if (e == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for an event");
    code = d->api->event_create(&e->event, true);
    if (code != 0) {
        ls_free(e);
        return ls_fail(err, LS_DEVICE, "cuda: no event: %s", d->api->error(code));
    }
    *out = e;
    return LS_OK;
}

static void free_event(ls_device *dev, ls_event *e)
{
    lsi_cuda_of(dev)->api->event_destroy(e->event);
    ls_free(e);
}

static void note_branch(lsi_cuda_device *d, ls_queue q);

static void enqueue(ls_device *dev, ls_queue q, const ls_kernel *k, const ls_call *call)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;

    note(dev, send_first(d, q));
    d->now = d->stream[q];
    k->run(k->state, call);
    if (d->branches.used) note_branch(d, q);
}

static void queue_read(ls_device *dev, ls_queue q, const ls_buffer *from, size_t at, void *to, size_t bytes)
{
    note(dev, put_copy(dev, q, to, ls_buffer_address(from, at), bytes, false));
}

static void queue_write(ls_device *dev, ls_queue q, ls_buffer *to, size_t at, const void *from, size_t bytes)
{
    note(dev, put_copy(dev, q, ls_buffer_address(to, at), from, bytes, false));
}

static void queue_move(ls_device *dev, ls_queue q, ls_buffer *to, size_t to_at, const ls_buffer *from,
                       size_t from_at, size_t bytes)
{
    note(dev, put_copy(dev, q, ls_buffer_address(to, to_at), ls_buffer_address(from, from_at), bytes, true));
}

static void mark(ls_device *dev, ls_queue q, ls_event *e)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    note(dev, send_first(d, q));
    note(dev, d->api->event_record(e->event, d->stream[q]));
}

static void queue_wait(ls_device *dev, ls_queue q, ls_event *e)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    if (d->due != NULL) note(dev, send_first(d, q)); /* it is not what has to wait */
    note(dev, d->api->stream_wait(d->stream[q], e->event));
}

static bool reached(ls_device *dev, ls_event *e)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    bool done = true;

    note(dev, d->api->event_done(e->event, &done));
    return done || d->failed != 0;
}

static ls_status join(ls_device *dev, ls_event *e, ls_err *err)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    char why[400];

    note(dev, d->api->event_sync(e->event));
    if (d->failed == 0) return LS_OK;
    lsi_cuda_explain(d, d->failed, why, sizeof why);
    return ls_fail(err, LS_DEVICE, "%s%s", why, d->checks ? "" : " (LOCKSTEP_CUDA_CHECK=1 names the op)");
}

/* Events know how far apart they are; one of them was recorded at a time that is known. */
static uint64_t when(ls_device *dev, ls_event *e)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    float ms = 0;

    (void)d->api->event_elapsed(d->began, e->event, &ms);
    return d->began_ns + (uint64_t)((double)(ms > 0 ? ms : 0) * 1e6);
}

/* -- recordings are CUDA graphs ---------------------------------------------------------------------------
 */

struct ls_recording {
    lsi_cuda_graph *graph;
};

/* -- branches of a recording --
 *
 * A stream that is captured knows the nodes that the next one will come after.  They can be set, so that one
 * stream captures a graph of any form: before a kernel to what it comes after, and behind it they are what
 * others come after. */

/* Behind a kernel, whose nodes are one after the other; where it has none, others come after what it does. */
static void note_branch(lsi_cuda_device *d, ls_queue q)
{
    lsi_cuda_branches *b = &d->branches;
    size_t n = 0;
    int code = d->api->capture_last(d->stream[q], NULL, 0, &n);

    if (code == 0 && LS_GROW(LS_MEM_PLAN, b->nodes, b->n + n, b->cap) &&
        LS_GROW(LS_MEM_PLAN, b->first, b->n_kernels + 2, b->cap_first)) {
        code = d->api->capture_last(d->stream[q], b->nodes + b->n, n, &n);
        b->first[b->n_kernels++] = b->n;
        b->n += n;
        b->first[b->n_kernels] = b->n;
    } else {
        b->failed = true;
    }
    if (code != 0) b->failed = true;
}

static bool has_node(void *const *list, size_t n, const void *node)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == node) return true;
    return false;
}

static void after(ls_device *dev, ls_queue q, const int32_t *kernels, int32_t n)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;
    lsi_cuda_branches *b = &d->branches;
    size_t most = 0, count = 0;
    void **list;

    b->used = !d->in_line && !b->failed;
    if (!b->used) return;
    for (int32_t i = 0; i < n; i++) most += b->first[kernels[i] + 1] - b->first[kernels[i]];
    list = ls_alloc(LS_MEM_PLAN, sizeof *list * (most + 1));
    for (int32_t i = 0; i < n && list != NULL; i++)
        for (size_t k = b->first[kernels[i]]; k < b->first[kernels[i] + 1]; k++)
            if (!has_node(list, count, b->nodes[k])) list[count++] = b->nodes[k];
    if (list == NULL || d->api->capture_after(d->stream[q], list, count) != 0) b->failed = true;
    ls_free(list);
}

static void forget_branches(lsi_cuda_device *d)
{
    ls_free(d->branches.nodes);
    ls_free(d->branches.first);
    d->branches = (lsi_cuda_branches){0};
}

static bool record(ls_device *dev, ls_queue q)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;

    note(dev, send_first(d, q)); /* they are no part of it */
    d->refused = false;
    d->recording = !d->no_graph && d->api->capture(d->stream[q]) == 0;
    return d->recording;
}

static ls_recording *recorded(ls_device *dev, ls_queue q)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;
    ls_recording *r = ls_alloc(LS_MEM_PLAN, sizeof *r);
    lsi_cuda_graph_about about;
    lsi_cuda_graph *graph;
    const lsi_cuda_graph_rules how = {
        .early = !d->not_early, .clears = !d->clears_theirs, .framed = !d->copies_alone};
    const int code = d->api->captured(d->stream[q], &how, &graph, &about);

    d->recording = false;
    if (d->branches.failed) d->refused = true; /* kernels may be there that come after too little */
    forget_branches(d);
    if (code != 0)
        ls_log(LS_LOG_WARN, "cuda: a step cannot be one graph, and its kernels are started one by one: %s",
               d->api->error(code));
    else
        ls_log(LS_LOG_INFO,
               "cuda: a step is a graph of %zu edges; kernels begin early along %zu, and %zu of libraries; "
               "libraries clear %zu bytes in %zu parts and copy %zu in %zu",
               about.edges, about.early, about.programmatic, about.cleared, about.clears, about.copied,
               about.copies);
    if (r != NULL) r->graph = graph;
    if (r != NULL && graph != NULL && !d->refused) return r;
    if (graph != NULL) d->api->graph_destroy(graph);
    ls_free(r);
    return NULL;
}

static void replay(ls_device *dev, ls_queue q, ls_recording *r)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;

    if (d->due != NULL || d->pending_in != q || d->copies_alone) note(dev, send_pending(d));
    if (d->copies_alone) {
        note(dev, d->api->graph_launch(r->graph, NULL, NULL, d->stream[q]));
        return;
    }
    d->before = d->pending;
    d->pending.n = 0;
    d->pending_in = q;
    d->due = r->graph;
}

static void free_recording(ls_device *dev, ls_recording *r)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    if (d->due == r->graph) note(dev, send_pending(d));
    d->api->graph_destroy(r->graph);
    ls_free(r);
}

const ls_queues lsi_cuda_queues = {.make_event = make_event,
                                   .free_event = free_event,
                                   .enqueue = enqueue,
                                   .read = queue_read,
                                   .write = queue_write,
                                   .move = queue_move,
                                   .mark = mark,
                                   .wait = queue_wait,
                                   .reached = reached,
                                   .join = join,
                                   .when = when,
                                   .record = record,
                                   .after = after,
                                   .recorded = recorded,
                                   .replay = replay,
                                   .free_recording = free_recording};

/* -- opening and closing ----------------------------------------------------------------------------------
 */

int lsi_cuda_open_queues(lsi_cuda_device *d)
{
    int code = 0;

    for (int i = 0; i < LS_QUEUE_DEVICE_N && code == 0; i++) code = d->api->stream_create(&d->stream[i]);
    d->now = d->stream[LS_QUEUE_COMPUTE];
    if (code == 0) code = d->api->event_create(&d->began, true);
    if (code == 0) code = d->api->event_record(d->began, d->now);
    if (code == 0) code = d->api->event_sync(d->began);
    d->began_ns = ls_clock_ns();
    return code;
}

void lsi_cuda_close_queues(lsi_cuda_device *d)
{
    if (d->api == NULL) return;
    for (int i = 0; i < LS_QUEUE_DEVICE_N; i++) {
        if (d->stream[i] == NULL) continue;
        (void)d->api->stream_sync(d->stream[i]);
        d->api->stream_destroy(d->stream[i]);
    }
    if (d->began != NULL) d->api->event_destroy(d->began);
}

/* -- between host and device ------------------------------------------------------------------------------
 */

typedef struct transfer_state {
    const lsi_cuda_device *dev;
    size_t bytes;
} transfer_state;

static void run_transfer(void *state, const ls_call *call)
{
    const transfer_state *s = state;
    const lsi_cuda_device *d = s->dev;

    if (s->bytes > 0)
        lsi_cuda_launched(d, call,
                          d->api->copy(call->out[0], call->in[0], s->bytes, lsi_cuda_stream_of(d, call)));
}

ls_status lsi_cuda_plan_transfer(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    const transfer_state s = {lsi_cuda_of(dev), ls_layout_bytes(x->layout, x->dtype, x->shape)};

    return lsi_cuda_kernel_make(out, run_transfer, &s, sizeof s, 0, "copy", err);
}
