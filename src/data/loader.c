/* loader.c: worker threads that fill a ring of batches, and the caller who empties it.
 *
 * Batch number k lies in slot k % n_slots.  Workers claim numbers in order under one lock, fill the slot
 * without it (the slot is theirs until they mark it ready), and wait when the ring is full; the caller holds
 * the batch it got last, and options.held before it, until it asks for the next.  What a batch contains is
 * computed from its number, and what happened to it (skipped samples, an error) is kept in its slot and acted
 * upon when its turn comes, so that nothing depends on which worker was faster. */
#include "data/loader.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/order.h"

enum { DEFAULT_DEPTH = 4, MAX_WORKERS = 256, MAX_DEPTH = 4096, MAX_FIELDS = 64 };

typedef struct slot {
    void **fields;
    int64_t *indices;
    ls_batch batch;
    bool ready;
    int64_t n_skipped;
    ls_text notes; /* one line per skipped sample */
    ls_err failure;
} slot;

struct ls_loader {
    const ls_dataset *set;
    ls_loader_options opt;
    int64_t count, global;                              /* samples in an epoch and in a full global batch */
    int64_t first_epoch, first_position, first_batches; /* the epoch in which the loader begins */
    int64_t per_epoch;                                  /* batches of every later one */
    int n_fields, n_slots;
    size_t sample_bytes[MAX_FIELDS]; /* per field */
    slot *slots;

    /* Under `lock`, together with slot.ready. */
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* a slot became free, or the loader stops; a slot became ready */
    int64_t claimed;           /* batches that workers have begun */
    int64_t released;          /* batches that the caller has given back */
    bool stopping;

    /* The caller's alone. */
    int64_t taken; /* batches handed out */
    int64_t position, skipped, skipped_in_epoch, epoch;
    double wait;
    ls_err failure;
    pthread_t *threads;
    int n_threads;
};

/* -- which samples ----------------------------------------------------------------------------------------
 */

static int64_t global_of(const ls_loader_options *o)
{
    return o->global > 0 ? o->global : o->batch * (o->n_ranks ? o->n_ranks : 1);
}

static int64_t batches_in(const ls_loader *l, int64_t samples)
{
    return l->opt.drop_last ? samples / l->global : (samples + l->global - 1) / l->global;
}

void ls_loader_share(int64_t n, int64_t shards, int rank, int n_ranks, int64_t *lo, int64_t *hi,
                     int64_t *first, int64_t *end)
{
    int64_t a, b, skip;

    if (shards == 0) {
        ls_parallel_range(n, rank, n_ranks, lo, hi);
        return;
    }
    /* Whole shards: where one begins depends on their number alone, never on that of ranks. */
    ls_parallel_range(shards, rank, n_ranks, &a, &b);
    ls_parallel_range(n, (int)a, (int)shards, lo, hi);
    if (b > a)
        ls_parallel_range(n, (int)b - 1, (int)shards, &skip, hi);
    else
        *hi = *lo;
    if (first != NULL) *first = a;
    if (end != NULL) *end = b;
}

/* The place of global batch `k`: epoch, position and size; and the part of it that is this rank's. */
static void locate(const ls_loader *l, int64_t k, ls_batch *b)
{
    int64_t lo, hi, within = k, start = l->first_position;

    b->epoch = l->first_epoch;
    if (k >= l->first_batches) {
        b->epoch += 1 + (k - l->first_batches) / l->per_epoch;
        within = (k - l->first_batches) % l->per_epoch;
        start = 0;
    }
    b->global_position = start + within * l->global;
    b->global_n = l->count - b->global_position;
    if (b->global_n > l->global) b->global_n = l->global;
    ls_loader_share(b->global_n, l->opt.shards, l->opt.rank, l->opt.n_ranks, &lo, &hi, NULL, NULL);
    b->position = b->global_position + lo;
    b->n = hi - lo;
}

static int64_t sample_at(const ls_loader *l, int64_t epoch, int64_t position)
{
    return l->opt.shuffle ? ls_order_at(l->opt.seed, (uint64_t)epoch, l->count, position) : position;
}

/* -- filling a slot ---------------------------------------------------------------------------------------
 */

/* Reads one sample as the slot's n-th; the status is that of the set. */
static ls_status read_into(const ls_loader *l, slot *s, int64_t n, int64_t epoch, int64_t position,
                           ls_err *err)
{
    void *fields[MAX_FIELDS];
    int64_t index = sample_at(l, epoch, position);
    const ls_rng_key key = {.seed_lo = (uint32_t)l->opt.seed,
                            .seed_hi = (uint32_t)(l->opt.seed >> 32),
                            .step = (uint32_t)epoch,
                            .sample_base = (uint32_t)position};

    for (int i = 0; i < l->n_fields; i++) fields[i] = (char *)s->fields[i] + (size_t)n * l->sample_bytes[i];
    s->indices[n] = index;
    return ls_dataset_read(l->set, index, l->opt.augment ? &key : NULL, fields, err);
}

static void fill(const ls_loader *l, slot *s, int64_t k)
{
    int64_t n = 0;

    s->n_skipped = 0;
    ls_text_release(&s->notes);
    locate(l, k, &s->batch);
    for (int64_t i = 0; i < s->batch.n; i++) {
        ls_err err = {0};
        ls_status st = read_into(l, s, n, s->batch.epoch, s->batch.position + i, &err);
        if (st == LS_OK) {
            n++;
        } else if (st == LS_DATA && l->opt.on_error == LS_ON_ERROR_SKIP) {
            s->n_skipped++;
            ls_text_add(&s->notes, "%s\n", err.text);
        } else {
            s->failure = err;
            break;
        }
    }
    /* A ring is used again and again: behind the last sample there must not be one of an earlier batch, which
     * some reader of a whole slot would take for this one's. */
    for (int i = 0; i < l->n_fields; i++)
        memset((char *)s->fields[i] + (size_t)n * l->sample_bytes[i], 0,
               (size_t)(l->opt.batch - n) * l->sample_bytes[i]);
    s->batch.n = n;
    s->batch.fields = s->fields;
    s->batch.indices = s->indices;
}

static void *work(void *arg)
{
    ls_loader *l = arg;

    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stopping && l->claimed >= l->released + l->n_slots) pthread_cond_wait(&l->work, &l->lock);
        if (l->stopping) break;
        int64_t k = l->claimed++;
        slot *s = &l->slots[k % l->n_slots];
        pthread_mutex_unlock(&l->lock);
        fill(l, s, k);
        pthread_mutex_lock(&l->lock);
        s->ready = true;
        pthread_cond_signal(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* -- creation ---------------------------------------------------------------------------------------------
 */

static ls_status check_options(const ls_dataset *d, const ls_loader_options *o, ls_err *err)
{
    const ls_field *fields;

    if (o->batch < 1 || o->batch > INT64_C(1) << 40)
        return ls_fail(err, LS_INVALID,
                       "a batch of %" PRId64 " samples (batch.per_rank); it must be 1 or more", o->batch);
    if (o->n_workers < 0 || o->n_workers > MAX_WORKERS)
        return ls_fail(err, LS_INVALID, "%d loader threads (data.workers); there can be 0 to %d",
                       o->n_workers, MAX_WORKERS);
    if (o->depth < 0 || o->depth > MAX_DEPTH)
        return ls_fail(err, LS_INVALID, "%d batches ahead (data.prefetch); there can be 0 to %d", o->depth,
                       MAX_DEPTH);
    if (o->n_ranks < 0 || o->rank < 0 || o->rank >= (o->n_ranks ? o->n_ranks : 1))
        return ls_fail(err, LS_INVALID, "rank %d of %d does not exist", o->rank, o->n_ranks);
    if (o->first < 0) return ls_fail(err, LS_INVALID, "a loader cannot begin at position %" PRId64, o->first);
    int64_t global = global_of(o), lo, hi;
    ls_loader_share(global, o->shards, o->rank, o->n_ranks ? o->n_ranks : 1, &lo, &hi, NULL, NULL);
    if (o->global < 0 || o->shards < 0 || o->shards > INT32_MAX || hi - lo > o->batch)
        return ls_fail(err, LS_INVALID,
                       "rank %d's part of a global batch of %" PRId64 " does not fit a batch of %" PRId64,
                       o->rank, global, o->batch);
    if (o->drop_last && ls_dataset_count(d) < global)
        return ls_fail(err, LS_INVALID,
                       "the set has %" PRId64 " samples, fewer than one global batch of %" PRId64
                       "; use smaller batches (batch.per_rank)",
                       ls_dataset_count(d), global);
    LS_BUG_IF(ls_dataset_fields(d, &fields) > MAX_FIELDS);
    return LS_OK;
}

static void set_places(ls_loader *l)
{
    l->first_epoch = l->opt.first / l->count;
    l->first_position = l->opt.first % l->count;
    l->first_batches = batches_in(l, l->count - l->first_position);
    l->per_epoch = batches_in(l, l->count);
    l->position = l->opt.first;
    l->epoch = l->first_epoch;
}

static void *alloc_field(const ls_loader_memory *m, size_t bytes)
{
    return m->alloc != NULL ? m->alloc(m->ctx, bytes) : ls_alloc(LS_MEM_DATA, bytes);
}

static void free_field(const ls_loader_memory *m, void *p)
{
    if (m->alloc == NULL)
        ls_free(p);
    else if (p != NULL)
        m->free(m->ctx, p);
}

static ls_status make_slots(ls_loader *l, ls_err *err)
{
    l->slots = ls_alloc(LS_MEM_DATA, sizeof *l->slots * (size_t)l->n_slots);
    if (!l->slots) goto nomem;
    for (int k = 0; k < l->n_slots; k++) {
        slot *s = &l->slots[k];
        s->fields = ls_alloc(LS_MEM_DATA, sizeof *s->fields * (size_t)l->n_fields);
        s->indices = ls_alloc(LS_MEM_DATA, sizeof *s->indices * (size_t)l->opt.batch);
        if (!s->fields || !s->indices) goto nomem;
        for (int i = 0; i < l->n_fields; i++) {
            s->fields[i] = alloc_field(&l->opt.memory, l->sample_bytes[i] * (size_t)l->opt.batch);
            if (!s->fields[i]) goto nomem;
        }
    }
    return LS_OK;
nomem:
    return ls_fail(err, LS_NOMEM,
                   "no memory for %d batches of %" PRId64 " samples; lower batch.per_rank or data.prefetch",
                   l->n_slots, l->opt.batch);
}

/* Signals are for the thread that knows what to do with them: workers block all. */
static ls_status start_workers(ls_loader *l, ls_err *err)
{
    sigset_t all, before;
    int rc = 0;

    l->threads = ls_alloc(LS_MEM_DATA, sizeof *l->threads * (size_t)(l->opt.n_workers + 1));
    if (!l->threads) return ls_fail(err, LS_NOMEM, "no memory for loader threads");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (rc == 0 && l->n_threads < l->opt.n_workers) {
        rc = pthread_create(&l->threads[l->n_threads], NULL, work, l);
        if (rc == 0) l->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) return LS_OK;
    return ls_fail(err, LS_NOMEM, "loader thread %d could not be started: %s; lower data.workers",
                   l->n_threads + 1, strerror(rc));
}

ls_status ls_loader_create(ls_loader **out, const ls_dataset *d, const ls_loader_options *options,
                           ls_err *err)
{
    ls_status st = LS_OK;
    ls_loader *l = NULL;
    const ls_field *fields;

    *out = NULL;
    LS_TRY(check_options(d, options, err));
    l = ls_alloc(LS_MEM_DATA, sizeof *l);
    if (!l) return ls_fail(err, LS_NOMEM, "no memory for a loader");
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, NULL);
    l->set = d;
    l->opt = *options;
    if (!l->opt.n_ranks) l->opt.n_ranks = 1;
    l->count = ls_dataset_count(d);
    l->global = global_of(&l->opt);
    l->n_fields = ls_dataset_fields(d, &fields);
    /* One more than the caller may hold is the one that he asks for. */
    l->n_slots = l->opt.held + 1;
    if (l->opt.n_workers) l->n_slots += l->opt.depth ? l->opt.depth : DEFAULT_DEPTH;
    for (int i = 0; i < l->n_fields; i++) l->sample_bytes[i] = ls_dataset_field_bytes(d, i);
    set_places(l);
    LS_TRY(make_slots(l, err));
    LS_TRY(start_workers(l, err));
    *out = l;
    l = NULL;
out:
    ls_loader_destroy(l);
    return st;
}

static void free_slots(ls_loader *l)
{
    for (int k = 0; l->slots && k < l->n_slots; k++) {
        slot *s = &l->slots[k];
        for (int i = 0; s->fields && i < l->n_fields; i++) free_field(&l->opt.memory, s->fields[i]);
        ls_free(s->fields);
        ls_free(s->indices);
        ls_text_release(&s->notes);
    }
    ls_free(l->slots);
}

void ls_loader_destroy(ls_loader *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_threads; i++) pthread_join(l->threads[i], NULL);
    free_slots(l);
    ls_free(l->threads);
    pthread_cond_destroy(&l->done);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
    ls_free(l);
}

/* -- taking batches ---------------------------------------------------------------------------------------
 */

/* The slot of batch `k`, filled. */
static slot *obtain(ls_loader *l, int64_t k)
{
    slot *s = &l->slots[k % l->n_slots];
    double start;

    if (!l->n_threads) {
        start = ls_clock_seconds();
        fill(l, s, k);
        l->wait += ls_clock_seconds() - start;
        return s;
    }
    pthread_mutex_lock(&l->lock);
    if (k > l->opt.held) { /* the oldest is given back */
        l->slots[(k - 1 - l->opt.held) % l->n_slots].ready = false;
        l->released = k - l->opt.held;
        /* One slot became free, so one worker is enough. */
        pthread_cond_signal(&l->work);
    }
    if (!s->ready) {
        start = ls_clock_seconds();
        while (!s->ready) pthread_cond_wait(&l->done, &l->lock);
        l->wait += ls_clock_seconds() - start;
    }
    pthread_mutex_unlock(&l->lock);
    return s;
}

static void log_skipped(const slot *s)
{
    for (const char *line = s->notes.data; line && *line;) {
        const char *end = strchr(line, '\n');
        ls_log(LS_LOG_WARN, "sample skipped: %.*s", (int)(end - line), line);
        line = end + 1;
    }
}

/* Books what happened to the slot; fills l->failure when that was too much. */
static void book(ls_loader *l, const slot *s)
{
    if (s->batch.epoch != l->epoch) l->skipped_in_epoch = 0;
    l->epoch = s->batch.epoch;
    l->skipped += s->n_skipped;
    l->skipped_in_epoch += s->n_skipped;
    log_skipped(s);
    if (s->failure.status != LS_OK)
        l->failure = s->failure;
    else if (l->skipped_in_epoch > l->opt.max_skipped && s->n_skipped)
        ls_fail(&l->failure, LS_DATA,
                "%" PRId64 " damaged samples in epoch %" PRId64 " are more than the %" PRId64
                " that data.max_skipped lets pass; raise it, or mend them (`lockstep data verify` names "
                "all).  The "
                "first here: %.*s",
                l->skipped_in_epoch, l->epoch, l->opt.max_skipped,
                s->notes.data ? (int)strcspn(s->notes.data, "\n") : 0, s->notes.data ? s->notes.data : "");
}

ls_status ls_loader_next(ls_loader *l, ls_batch *batch, ls_err *err)
{
    *batch = (ls_batch){0};
    if (l->failure.status == LS_OK) {
        const slot *s = obtain(l, l->taken++);
        book(l, s);
        if (l->failure.status == LS_OK) {
            *batch = s->batch;
            l->position = s->batch.epoch * l->count + s->batch.global_position + s->batch.global_n;
        }
    }
    if (l->failure.status != LS_OK) return ls_fail(err, l->failure.status, "%s", l->failure.text);
    return LS_OK;
}

int64_t ls_loader_position(const ls_loader *l)
{
    return l->position;
}

int64_t ls_loader_batches_per_epoch(const ls_loader *l)
{
    return l->per_epoch;
}

double ls_loader_wait_seconds(const ls_loader *l)
{
    return l->wait;
}

int64_t ls_loader_skipped(const ls_loader *l)
{
    return l->skipped;
}
