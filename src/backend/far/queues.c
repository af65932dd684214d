/* queues.c: the queues and one thread that works them off, late and in any order that is legal.
 *
 * What comes next is drawn from the seed among the queues whose first command may run; a queue that is drawn
 * stays the favourite for a while, so that it gets far ahead of the others.  And the thread does nothing
 * until it has to: it works when somebody waits for an event, just until that is reached, and now and then
 * when so many commands have come as were drawn.  Whoever takes a device for faster than it says finds old
 * bytes.
 *
 * The host and the thread do not meet by chance: the host orders work (`order`), and what an order may touch
 * are the commands that were there when it was given.  With one thread that runs plans, the same seed gives
 * the same order of commands. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "backend/far/far_internal.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/rng.h"

struct ls_event {
    uint64_t marked, reached; /* how often */
    uint64_t ordered;         /* the mark up to which work was ordered by somebody who asked */
    uint64_t when;
};

typedef enum kind { KERNEL, READ, WRITE, MARK, WAIT, REPLAY } kind;

typedef struct command {
    kind kind;
    uint64_t number; /* over all queues, from 1 */
    const ls_kernel *kernel;
    const ls_call *call;
    ls_recording *recording;
    ls_event *event;
    uint64_t mark; /* of the event */
    void *to;
    const void *from;
    size_t bytes;
} command;

typedef struct queue {
    command *ring;
    size_t cap, first, n;
} queue;

/* Work that the host has ordered: so many commands, or all until the event. */
typedef struct order {
    uint64_t commands;
    ls_event *until;
    uint64_t mark;
    uint64_t last; /* no command after this one */
} order;

enum { ORDERS = 64, FIRST_ROOM = 1024, MOST_LATE = 300, MOST_AT_ONCE = 60, MOST_FAVOURED = 64 };

struct lsi_far_line {
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work, done;
    queue queues[LS_QUEUE_DEVICE_N];
    order orders[ORDERS];
    uint64_t ordered, carried_out; /* orders, over all time */
    uint64_t numbered, executed;   /* commands */
    uint64_t emptied;              /* the command up to which somebody wanted the queues empty */
    bool closing, failed;
    ls_rng_key key;
    uint64_t drawn;       /* by the thread */
    uint64_t host_drawn;  /* by the host, which has numbers of its own */
    uint64_t until_order; /* commands that still may come before some are ordered */
    int favourite;
    uint64_t favoured_for;   /* commands */
    ls_recording *recording; /* that is being made; of the host's alone */
};

/* A kernel of a recording, and those of it that it comes after. */
typedef struct recorded_kernel {
    const ls_kernel *kernel;
    const ls_call *call;
    int32_t *before, n_before;
} recorded_kernel;

struct ls_recording {
    recorded_kernel *list;
    int32_t n;
    size_t cap;
    recorded_kernel next; /* what the next one comes after; n_before is -1: the one before it */
    bool failed;          /* there was no memory */
    bool *done;           /* per kernel, while it is replayed */
    ls_rng_key key;
    uint64_t drawn;
};

static lsi_far_line *line_of(ls_device *dev)
{
    return ((lsi_far *)dev)->line;
}

static uint64_t draw(lsi_far_line *l, uint32_t stream, uint64_t *count, uint64_t below)
{
    return ls_rng_word(&l->key, stream, 0, (*count)++) % below;
}

/* -- the thread -------------------------------------------------------------------------------------------
 */

static const command *first_of(const queue *q)
{
    return &q->ring[q->first];
}

static bool can_run(const queue *q, uint64_t last)
{
    return q->n > 0 && first_of(q)->number <= last &&
           (first_of(q)->kind != WAIT || first_of(q)->event->reached >= first_of(q)->mark);
}

/* The queue to go on with, or -1. */
static int choose(lsi_far_line *l, uint64_t last)
{
    int ready[LS_QUEUE_DEVICE_N], n = 0;

    if (l->favoured_for == 0) {
        l->favourite = (int)draw(l, 0, &l->drawn, LS_QUEUE_DEVICE_N);
        l->favoured_for = 1 + draw(l, 0, &l->drawn, MOST_FAVOURED);
    }
    l->favoured_for--;
    if (can_run(&l->queues[l->favourite], last)) return l->favourite;
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++)
        if (can_run(&l->queues[q], last)) ready[n++] = q;
    return n > 0 ? ready[draw(l, 0, &l->drawn, (uint64_t)n)] : -1;
}

static bool is_ready(const ls_recording *r, int32_t i)
{
    if (r->done[i]) return false;
    for (int32_t k = 0; k < r->list[i].n_before; k++)
        if (!r->done[r->list[i].before[k]]) return false;
    return true;
}

/* All kernels, in any order that is legal: the first that is ready behind a place that is drawn. */
static void replay_all(ls_recording *r)
{
    memset(r->done, 0, (size_t)r->n * sizeof *r->done);
    for (int32_t left = r->n; left > 0; left--) {
        int32_t i = (int32_t)(ls_rng_word(&r->key, 2, 0, r->drawn++) % (uint64_t)r->n);
        for (int32_t tries = 0; !is_ready(r, i); tries++) {
            LS_BUG_IF(tries > r->n);
            i = (i + 1) % r->n;
        }
        r->list[i].kernel->run(r->list[i].kernel->state, r->list[i].call);
        r->done[i] = true;
    }
}

/* Without the lock. */
static void execute(const command *c)
{
    if (c->kind == REPLAY) replay_all(c->recording);
    if (c->kind == KERNEL) c->kernel->run(c->kernel->state, c->call);
    if (c->kind == READ || c->kind == WRITE) memcpy(c->to, c->from, c->bytes);
}

static bool is_carried_out(const order *o)
{
    return o->until != NULL ? o->until->reached >= o->mark : o->commands == 0;
}

static void carry_out(lsi_far_line *l, order *o)
{
    while (!is_carried_out(o)) {
        const int at = choose(l, o->last);
        queue *q;
        command c;
        if (at < 0) return;
        q = &l->queues[at];
        c = *first_of(q);
        q->first = (q->first + 1) % q->cap;
        q->n--;
        pthread_mutex_unlock(&l->lock);
        execute(&c);
        pthread_mutex_lock(&l->lock);
        l->executed++;
        if (c.kind == MARK) {
            c.event->reached = c.mark;
            c.event->when = ls_clock_ns();
            pthread_cond_broadcast(&l->done);
        }
        if (o->commands > 0) o->commands--;
    }
}

static void *work(void *arg)
{
    lsi_far_line *l = arg;

    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->closing && l->carried_out == l->ordered) pthread_cond_wait(&l->work, &l->lock);
        if (l->carried_out == l->ordered) break;
        carry_out(l, &l->orders[l->carried_out % ORDERS]);
        l->carried_out++;
        pthread_cond_broadcast(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* -- orders, with the lock --------------------------------------------------------------------------------
 */

static void give_order(lsi_far_line *l, uint64_t commands, ls_event *until)
{
    while (l->ordered - l->carried_out == ORDERS) pthread_cond_wait(&l->done, &l->lock);
    l->orders[l->ordered++ % ORDERS] =
        (order){commands, until, until != NULL ? until->marked : 0, l->numbered};
    pthread_cond_signal(&l->work);
}

/* Room for twice as many. */
static void grow(lsi_far_line *l, queue *q)
{
    const size_t cap = 2 * q->cap;
    command *ring = ls_alloc(LS_MEM_PLAN, sizeof *ring * cap);

    if (ring == NULL) { /* then there is less to choose from */
        give_order(l, UINT64_MAX, NULL);
        return;
    }
    for (size_t i = 0; i < q->n; i++) ring[i] = q->ring[(q->first + i) % q->cap];
    ls_free(q->ring);
    *q = (queue){ring, cap, 0, q->n};
}

static void put(ls_device *dev, ls_queue at, command c)
{
    lsi_far_line *l = line_of(dev);
    queue *q = &l->queues[at];

    pthread_mutex_lock(&l->lock);
    if (q->n == q->cap) grow(l, q);
    while (q->n == q->cap) pthread_cond_wait(&l->done, &l->lock);
    if (c.kind == MARK) c.mark = ++c.event->marked;
    if (c.kind == WAIT) c.mark = c.event->marked;
    c.number = ++l->numbered;
    q->ring[(q->first + q->n++) % q->cap] = c;
    if (l->until_order-- == 0) {
        l->until_order = draw(l, 1, &l->host_drawn, MOST_LATE);
        give_order(l, 1 + draw(l, 1, &l->host_drawn, MOST_AT_ONCE), NULL);
    }
    pthread_mutex_unlock(&l->lock);
}

void lsi_far_drain(lsi_far *d)
{
    lsi_far_line *l = d->line;
    uint64_t all, orders;

    pthread_mutex_lock(&l->lock);
    all = l->numbered;
    /* Ordered also when all is executed already, which is chance. */
    if (l->emptied < all) give_order(l, UINT64_MAX, NULL);
    l->emptied = all;
    orders = l->ordered; /* they know events, which may be freed next */
    while (l->executed < all || l->carried_out < orders) pthread_cond_wait(&l->done, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

/* -- the table --------------------------------------------------------------------------------------------
 */

static ls_status make_event(ls_device *dev, ls_event **out, ls_err *err)
{
    (void)dev;
    *out = ls_alloc(LS_MEM_PLAN, sizeof **out);
    return *out != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "far: no memory for an event");
}

/* A queue may still have to pass by. */
static void free_event(ls_device *dev, ls_event *e)
{
    lsi_far_drain((lsi_far *)dev);
    ls_free(e);
}

static void keep(ls_recording *r, const ls_kernel *k, const ls_call *call)
{
    recorded_kernel *x;

    if (!LS_GROW(LS_MEM_PLAN, r->list, r->n + 1, r->cap)) {
        r->failed = true;
        return;
    }
    x = &r->list[r->n++];
    *x = r->next;
    x->kernel = k;
    x->call = call;
    if (x->n_before < 0) {
        x->before = ls_alloc(LS_MEM_PLAN, sizeof *x->before);
        x->n_before = r->n > 1 && x->before != NULL;
        if (x->n_before > 0) x->before[0] = r->n - 2;
        r->failed = r->failed || x->before == NULL;
    }
    r->next = (recorded_kernel){.n_before = -1};
}

static void enqueue(ls_device *dev, ls_queue q, const ls_kernel *k, const ls_call *call)
{
    if (line_of(dev)->recording != NULL) {
        keep(line_of(dev)->recording, k, call);
        return;
    }
    put(dev, q, (command){.kind = KERNEL, .kernel = k, .call = call});
}

static void read_later(ls_device *dev, ls_queue q, const ls_buffer *from, size_t at, void *to, size_t bytes)
{
    put(dev, q, (command){.kind = READ, .to = to, .from = lsi_far_bytes(from, at), .bytes = bytes});
}

static void write_later(ls_device *dev, ls_queue q, ls_buffer *to, size_t at, const void *from, size_t bytes)
{
    put(dev, q, (command){.kind = WRITE, .to = lsi_far_bytes(to, at), .from = from, .bytes = bytes});
}

static void move_later(ls_device *dev, ls_queue q, ls_buffer *to, size_t to_at, const ls_buffer *from,
                       size_t from_at, size_t bytes)
{
    put(dev, q,
        (command){.kind = WRITE,
                  .to = lsi_far_bytes(to, to_at),
                  .from = lsi_far_bytes(from, from_at),
                  .bytes = bytes});
}

static void mark(ls_device *dev, ls_queue q, ls_event *e)
{
    put(dev, q, (command){.kind = MARK, .event = e});
}

static void wait_for(ls_device *dev, ls_queue q, ls_event *e)
{
    put(dev, q, (command){.kind = WAIT, .event = e});
}

/* Who asks wants it: it is worked on from then on. */
static bool is_reached(ls_device *dev, ls_event *e)
{
    lsi_far_line *l = line_of(dev);
    bool reached;

    pthread_mutex_lock(&l->lock);
    reached = e->reached >= e->marked;
    /* Ordered also when it is reached already, which is chance. */
    if (e->ordered < e->marked) {
        e->ordered = e->marked;
        give_order(l, 0, e);
    }
    pthread_mutex_unlock(&l->lock);
    return reached;
}

static ls_status join(ls_device *dev, ls_event *e, ls_err *err)
{
    lsi_far_line *l = line_of(dev);
    uint64_t goal;

    (void)err;
    pthread_mutex_lock(&l->lock);
    goal = e->marked;
    if (e->ordered < goal) give_order(l, 0, e); /* see is_reached */
    e->ordered = goal;
    while (e->reached < goal) pthread_cond_wait(&l->done, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return LS_OK;
}

static uint64_t when(ls_device *dev, ls_event *e)
{
    lsi_far_line *l = line_of(dev);
    uint64_t ns;

    pthread_mutex_lock(&l->lock);
    ns = e->when;
    pthread_mutex_unlock(&l->lock);
    return ns;
}

/* -- recordings -------------------------------------------------------------------------------------------
 */

static bool record(ls_device *dev, ls_queue q)
{
    lsi_far_line *l = line_of(dev);

    (void)q;
    l->recording = ls_alloc(LS_MEM_PLAN, sizeof *l->recording);
    if (l->recording == NULL) return false;
    l->recording->next.n_before = -1;
    l->recording->key = l->key;
    l->recording->drawn = draw(l, 1, &l->host_drawn, UINT64_MAX);
    return true;
}

static void after(ls_device *dev, ls_queue q, const int32_t *kernels, int32_t n)
{
    ls_recording *r = line_of(dev)->recording;

    (void)q;
    ls_free(r->next.before);
    r->next.before = ls_alloc(LS_MEM_PLAN, sizeof *kernels * ((size_t)n + 1));
    r->next.n_before = r->next.before != NULL ? n : -1;
    r->failed = r->failed || r->next.before == NULL; /* without its edges it would replay in another order */
    for (int32_t i = 0; i < r->next.n_before; i++) {
        LS_BUG_IF(kernels[i] < 0 || kernels[i] >= r->n);
        r->next.before[i] = kernels[i];
    }
}

/* Nothing is replayed any more: who frees it has waited. */
static void free_recording(ls_device *dev, ls_recording *r)
{
    lsi_far_drain((lsi_far *)dev);
    for (int32_t i = 0; i < r->n; i++) ls_free(r->list[i].before);
    ls_free(r->next.before);
    ls_free(r->list);
    ls_free(r->done);
    ls_free(r);
}

static ls_recording *recorded(ls_device *dev, ls_queue q)
{
    ls_recording *r = line_of(dev)->recording;

    (void)q;
    line_of(dev)->recording = NULL;
    r->done = ls_alloc(LS_MEM_PLAN, (size_t)r->n + 1);
    if (!r->failed && r->done != NULL) return r;
    free_recording(dev, r);
    return NULL;
}

static void replay(ls_device *dev, ls_queue q, ls_recording *r)
{
    put(dev, q, (command){.kind = REPLAY, .recording = r});
}

const ls_queues lsi_far_queues = {.make_event = make_event,
                                  .free_event = free_event,
                                  .enqueue = enqueue,
                                  .read = read_later,
                                  .write = write_later,
                                  .move = move_later,
                                  .mark = mark,
                                  .wait = wait_for,
                                  .reached = is_reached,
                                  .join = join,
                                  .when = when,
                                  .record = record,
                                  .after = after,
                                  .recorded = recorded,
                                  .replay = replay,
                                  .free_recording = free_recording};

/* -- opening ----------------------------------------------------------------------------------------------
 */

ls_status lsi_far_line_open(lsi_far *d, uint64_t seed, ls_err *err)
{
    lsi_far_line *l = ls_alloc(LS_MEM_PLAN, sizeof *l);
    sigset_t all, before;
    bool room = true;
    int rc;

    if (l == NULL) return ls_fail(err, LS_NOMEM, "far: no memory");
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) {
        l->queues[q].ring = ls_alloc(LS_MEM_PLAN, sizeof(command) * FIRST_ROOM);
        l->queues[q].cap = FIRST_ROOM;
        room = room && l->queues[q].ring != NULL;
    }
    l->key = (ls_rng_key){.seed_lo = (uint32_t)seed, .seed_hi = (uint32_t)(seed >> 32)};
    l->until_order = draw(l, 1, &l->host_drawn, MOST_LATE);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, NULL);
    d->line = l;
    sigfillset(&all); /* signals are for the thread that knows what to do with them */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = room ? pthread_create(&l->thread, NULL, work, l) : ENOMEM;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->failed = rc != 0;
    return rc == 0 ? LS_OK : ls_fail(err, LS_NOMEM, "far: no thread: %s", strerror(rc));
}

void lsi_far_line_close(lsi_far *d)
{
    lsi_far_line *l = d->line;

    if (l == NULL) return;
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
    if (!l->failed) pthread_join(l->thread, NULL);
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) ls_free(l->queues[q].ring);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->lock);
    ls_free(l);
    d->line = NULL;
}
