/* queues.c: queues are streams, events are events. */
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"
#include "base/clock.h"
#include "base/log.h"

struct ls_event {
    lsi_cuda_event event;
};

int lsi_cuda_drain(const lsi_cuda_device *d)
{
    int code = 0;

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

static void enqueue(ls_device *dev, ls_queue q, const ls_kernel *k, const ls_call *call)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;

    d->now = d->stream[q];
    k->run(k->state, call);
}

static void queue_read(ls_device *dev, ls_queue q, const ls_buffer *from, size_t at, void *to, size_t bytes)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    note(dev, d->api->copy(to, ls_buffer_address(from, at), bytes, d->stream[q]));
}

static void queue_write(ls_device *dev, ls_queue q, ls_buffer *to, size_t at, const void *from, size_t bytes)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    note(dev, d->api->copy(ls_buffer_address(to, at), from, bytes, d->stream[q]));
}

static void mark(ls_device *dev, ls_queue q, ls_event *e)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    note(dev, d->api->event_record(e->event, d->stream[q]));
}

static void queue_wait(ls_device *dev, ls_queue q, ls_event *e)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

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

    note(dev, d->api->event_sync(e->event));
    if (d->failed == 0) return LS_OK;
    return ls_fail(err, LS_DEVICE, "cuda: %s%s", d->api->error(d->failed),
                   d->checks ? "" : " (LOCKSTEP_CUDA_CHECK=1 names the op)");
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
    void *graph;
};

static bool record(ls_device *dev, ls_queue q)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;

    d->refused = false;
    d->recording = !d->no_graph && d->api->capture(d->stream[q]) == 0;
    return d->recording;
}

static ls_recording *recorded(ls_device *dev, ls_queue q)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;
    ls_recording *r = ls_alloc(LS_MEM_PLAN, sizeof *r);
    void *graph;
    const int code = d->api->captured(d->stream[q], &graph);

    d->recording = false;
    if (code != 0)
        ls_log(LS_LOG_WARN, "cuda: a step cannot be one graph, and its kernels are started one by one: %s",
               d->api->error(code));
    if (r != NULL) r->graph = graph;
    if (r != NULL && graph != NULL && !d->refused) return r;
    if (graph != NULL) d->api->graph_destroy(graph);
    ls_free(r);
    return NULL;
}

static void replay(ls_device *dev, ls_queue q, ls_recording *r)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    note(dev, d->api->graph_launch(r->graph, d->stream[q]));
}

static void free_recording(ls_device *dev, ls_recording *r)
{
    lsi_cuda_of(dev)->api->graph_destroy(r->graph);
    ls_free(r);
}

const ls_queues lsi_cuda_queues = {.make_event = make_event,
                                   .free_event = free_event,
                                   .enqueue = enqueue,
                                   .read = queue_read,
                                   .write = queue_write,
                                   .mark = mark,
                                   .wait = queue_wait,
                                   .reached = reached,
                                   .join = join,
                                   .when = when,
                                   .record = record,
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
