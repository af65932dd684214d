/* test_queues.c: queues, events and staging of `far`: what is ordered happens in order, and what is not may
 * happen in any; nothing happens before it must. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"

enum { FLOATS = 64, SEEDS = 40 };
#define BYTES (FLOATS * sizeof(float))

static ls_device *dev;
static const ls_queues *to;

static void open_with(uint64_t seed)
{
    char text[32];
    ls_err err = {0};

    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    setenv("LOCKSTEP_FAR_SEED", text, 1);
    REQUIRE_OK(ls_device_open(&dev, "far", 1, &err), &err);
    to = dev->backend->queues;
    REQUIRE(to != NULL);
}

static ls_event *event(void)
{
    ls_event *e = NULL;
    ls_err err = {0};

    REQUIRE_OK(to->make_event(dev, &e, &err), &err);
    return e;
}

static void join(ls_event *e)
{
    ls_err err = {0};

    REQUIRE_OK(to->join(dev, e, &err), &err);
}

static float *staging(void)
{
    void *p = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_staging_alloc(&p, dev, BYTES, &err), &err);
    return p;
}

static void fill(float *x, float value)
{
    for (int i = 0; i < FLOATS; i++) x[i] = value;
}

static ls_buffer buffer_of(float value)
{
    ls_buffer b;
    float x[FLOATS];
    ls_err err = {0};

    fill(x, value);
    REQUIRE_OK(ls_buffer_alloc(&b, dev, BYTES, &err), &err);
    CHECK(!b.host_visible);
    REQUIRE_OK(ls_buffer_write(&b, 0, x, BYTES, &err), &err);
    return b;
}

/* -- kernels that leave a trace ---------------------------------------------------------------------------
 */

static struct {
    int n;
    int told[256];
} trace;

static void leave(void *state, const ls_call *call)
{
    (void)call;
    if (trace.n < (int)(sizeof trace.told / sizeof trace.told[0])) trace.told[trace.n++] = *(int *)state;
}

static int place_of(int number)
{
    for (int i = 0; i < trace.n; i++)
        if (trace.told[i] == number) return i;
    return -1;
}

static void put(ls_queue q, ls_kernel *k, int *number)
{
    static const ls_call call = {0};

    *k = (ls_kernel){.run = leave, .state = number};
    to->enqueue(dev, q, k, &call);
}

/* -- tests ------------------------------------------------------------------------------------------------
 */

/* Eight on each queue; number 3 of the copy queue comes after number 5 of the compute queue. */
static void run_three_queues(bool *other_first, bool *reversed)
{
    ls_kernel kernels[LS_QUEUE_DEVICE_N][8];
    int numbers[LS_QUEUE_DEVICE_N][8];
    ls_event *between = event(), *ends[LS_QUEUE_DEVICE_N];

    trace.n = 0;
    for (int i = 0; i < 8; i++)
        for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) {
            numbers[q][i] = 10 * q + i;
            if (q == LS_QUEUE_COPY && i > 2) continue;
            put((ls_queue)q, &kernels[q][i], &numbers[q][i]);
            if (q == LS_QUEUE_COMPUTE && i == 5) to->mark(dev, LS_QUEUE_COMPUTE, between);
        }
    to->wait(dev, LS_QUEUE_COPY, between);
    for (int i = 3; i < 8; i++) put(LS_QUEUE_COPY, &kernels[LS_QUEUE_COPY][i], &numbers[LS_QUEUE_COPY][i]);
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) {
        ends[q] = event();
        CHECK(to->reached(dev, ends[q])); /* never marked */
        to->mark(dev, (ls_queue)q, ends[q]);
    }
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) join(ends[q]);
    CHECK_EQ_INT(trace.n, 8 * LS_QUEUE_DEVICE_N);
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++)
        for (int i = 1; i < 8; i++) CHECK(place_of(10 * q + i - 1) < place_of(10 * q + i));
    CHECK(place_of(5) < place_of(10 * LS_QUEUE_COPY + 3));
    CHECK(to->reached(dev, between) && to->when(dev, between) <= to->when(dev, ends[LS_QUEUE_COPY]));
    *other_first = *other_first || place_of(10 * LS_QUEUE_COMM + 7) < place_of(0);
    *reversed = *reversed || place_of(10 * LS_QUEUE_COMM) > place_of(7);
    to->free_event(dev, between);
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) to->free_event(dev, ends[q]);
}

static void queues_are_ordered_by_events_alone(void)
{
    bool other_first = false, reversed = false;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_with(seed);
        run_three_queues(&other_first, &reversed);
        ls_device_close(dev);
    }
    CHECK(other_first && reversed); /* one queue was all before another, in either order */
}

static void the_seed_decides(void)
{
    int first[256], n = 0;
    bool unused = false;

    for (int again = 0; again < 2; again++) {
        open_with(77);
        run_three_queues(&unused, &unused);
        if (again > 0) CHECK(n == trace.n && memcmp(first, trace.told, sizeof *first * (size_t)n) == 0);
        n = trace.n;
        memcpy(first, trace.told, sizeof first);
        ls_device_close(dev);
    }
}

/* Two rounds on all queues; between them the queues are emptied, at once or when the first is over. */
static void run_two_rounds(uint64_t seed, bool patient)
{
    enum { EACH = 20 };
    static ls_kernel kernels[2][LS_QUEUE_DEVICE_N][EACH];
    static int numbers[2][LS_QUEUE_DEVICE_N][EACH];
    ls_event *ends[LS_QUEUE_DEVICE_N];
    ls_buffer b;
    float back[FLOATS];
    ls_err err = {0};

    open_with(seed);
    trace.n = 0;
    b = buffer_of(0);
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) ends[q] = event();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < EACH; i++)
            for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) {
                numbers[round][q][i] = 1000 * round + 100 * q + i;
                put((ls_queue)q, &kernels[round][q][i], &numbers[round][q][i]);
            }
        for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) to->mark(dev, (ls_queue)q, ends[q]);
        for (int q = 0; q < LS_QUEUE_DEVICE_N; q++)
            while (!to->reached(dev, ends[q]) && patient) continue;
        CHECK_OK(ls_buffer_read(&b, 0, back, BYTES, &err), &err);
    }
    CHECK_EQ_INT(trace.n, 2 * LS_QUEUE_DEVICE_N * EACH);
    for (int q = 0; q < LS_QUEUE_DEVICE_N; q++) to->free_event(dev, ends[q]);
    ls_buffer_free(&b);
    ls_device_close(dev);
}

/* How fast the device's thread and the host are has no part in it. */
static void the_seed_alone_decides(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        int first[256];
        run_two_rounds(seed, false);
        memcpy(first, trace.told, sizeof first);
        run_two_rounds(seed, true);
        CHECK(memcmp(first, trace.told, sizeof *first * (size_t)trace.n) == 0);
    }
}

/* What nobody may do: to change what a queue is to read.  ThreadSanitizer would say so. */
static bool is_changed_on_its_way(ls_buffer *b, float *x, ls_event *e)
{
#ifdef __SANITIZE_THREAD__
    (void)b, (void)x, (void)e;
    return true;
#else
    float back[FLOATS];
    ls_err err = {0};

    to->write(dev, LS_QUEUE_COPY, b, 0, x, BYTES);
    fill(x, 3);
    to->mark(dev, LS_QUEUE_COPY, e);
    join(e);
    REQUIRE_OK(ls_buffer_read(b, 0, back, BYTES, &err), &err);
    return back[0] == 3;
#endif
}

/* Copies are late: what becomes of the host's memory before the event is what the device gets. */
static void staging_belongs_to_the_queue(void)
{
    int changed = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        float *x, back[FLOATS];
        ls_buffer b;
        ls_event *e;
        ls_err err = {0};
        open_with(seed);
        x = staging();
        e = event();
        b = buffer_of(0);
        fill(x, 1);
        to->write(dev, LS_QUEUE_COPY, &b, 0, x, BYTES);
        to->mark(dev, LS_QUEUE_COPY, e);
        join(e);
        fill(x, 2); /* after the event nobody minds */
        CHECK_OK(ls_buffer_read(&b, 0, back, BYTES, &err), &err);
        CHECK(back[0] == 1 && back[FLOATS - 1] == 1);
        changed += is_changed_on_its_way(&b, x, e);
        ls_buffer_free(&b);
        to->free_event(dev, e);
        ls_staging_free(dev, x);
        ls_device_close(dev);
    }
    CHECK(changed > SEEDS / 2);
}

static void reading_comes_when_the_event_says_so(void)
{
    int early = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        float *x;
        ls_buffer b;
        ls_event *e;
        open_with(seed);
        x = staging();
        e = event();
        b = buffer_of(4);
        to->read(dev, LS_QUEUE_COPY, &b, 0, x, BYTES);
        to->mark(dev, LS_QUEUE_COPY, e);
        early += !to->reached(dev, e);
        while (!to->reached(dev, e)) continue; /* asking is enough to get there */
        CHECK(x[0] == 4 && x[FLOATS - 1] == 4);
        ls_buffer_free(&b);
        to->free_event(dev, e);
        ls_staging_free(dev, x);
        ls_device_close(dev);
    }
    CHECK(early > SEEDS / 2);
}

/* A buffer's own functions come after all that was enqueued. */
static void what_is_synchronous_comes_after_the_queues(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        float *x, back[FLOATS];
        ls_buffer a, b;
        ls_err err = {0};
        open_with(seed);
        x = staging();
        a = buffer_of(0);
        b = buffer_of(0);
        fill(x, 5);
        to->write(dev, LS_QUEUE_COMM, &a, 0, x, BYTES);
        CHECK_OK(ls_buffer_copy(&b, 0, &a, 0, BYTES, &err), &err);
        to->write(dev, LS_QUEUE_COPY, &a, 0, x, BYTES);
        CHECK_OK(ls_buffer_zero(&a, 0, BYTES / 2, &err), &err);
        CHECK_OK(ls_buffer_read(&a, 0, back, BYTES, &err), &err);
        CHECK(back[0] == 0 && back[FLOATS - 1] == 5);
        CHECK_OK(ls_buffer_read(&b, 0, back, BYTES, &err), &err);
        CHECK(back[0] == 5);
        to->write(dev, LS_QUEUE_COMPUTE, &a, 0, x, BYTES);
        ls_buffer_free(&a); /* also after it */
        ls_buffer_free(&b);
        ls_staging_free(dev, x);
        ls_device_close(dev);
    }
}

/* So is staging memory freed, as an error does that leaves a transfer on its way. */
static void staging_is_freed_after_the_queues(void)
{
    const size_t large = (size_t)8 << 20; /* the system takes it back at once */

    for (uint64_t seed = 1; seed <= 5; seed++) {
        void *x = NULL;
        ls_buffer b;
        char last = 0;
        ls_err err = {0};
        open_with(seed);
        REQUIRE_OK(ls_staging_alloc(&x, dev, large, &err), &err);
        REQUIRE_OK(ls_buffer_alloc(&b, dev, large, &err), &err);
        memset(x, 7, large);
        to->write(dev, LS_QUEUE_COPY, &b, 0, x, large);
        ls_staging_free(dev, x);
        CHECK_OK(ls_buffer_read(&b, large - 1, &last, 1, &err), &err);
        CHECK_EQ_INT(last, 7);
        ls_buffer_free(&b);
        ls_device_close(dev);
    }
}

/* A device either opens or says why not; what has opened takes commands without more memory. */
static void memory_that_ends(void)
{
    bool opened = false;

    for (uint64_t n = 1; n < 100 && !opened; n++) {
        ls_err err = {0};
        ls_mem_fail_at(n);
        opened = ls_device_open(&dev, "far", 1, &err) == LS_OK;
        CHECK(opened || err.status == LS_NOMEM);
        ls_mem_fail_at(opened ? 1 : 0);
        if (opened) {
            dev->backend->queues->mark(dev, LS_QUEUE_COPY, dev->end[LS_QUEUE_COPY]);
            CHECK_OK(dev->backend->queues->join(dev, dev->end[LS_QUEUE_COPY], &err), &err);
            ls_device_close(dev);
        }
        ls_mem_fail_at(0);
    }
    CHECK(opened);
}

/* More than any queue has room for at first, and nobody waits until the end. */
static void queues_grow(void)
{
    static ls_kernel kernel;
    static int number;
    static const ls_call call = {0};
    ls_event *e;

    open_with(3);
    e = event();
    number = 9;
    trace.n = 0;
    kernel = (ls_kernel){.run = leave, .state = &number};
    for (int i = 0; i < 10000; i++) to->enqueue(dev, LS_QUEUE_COMPUTE, &kernel, &call);
    to->mark(dev, LS_QUEUE_COMPUTE, e);
    join(e);
    CHECK_EQ_INT(trace.n, (int)(sizeof trace.told / sizeof trace.told[0]));
    to->free_event(dev, e);
    ls_device_close(dev);
}

static void host_devices_have_none(void)
{
    void *p = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&dev, "ref", 1, &err), &err);
    CHECK(dev->backend->queues == NULL);
    REQUIRE_OK(ls_staging_alloc(&p, dev, 100, &err), &err);
    CHECK((uintptr_t)p % 64 == 0 && ((char *)p)[99] == 0);
    ls_staging_free(dev, p);
    ls_staging_free(dev, NULL);
    ls_device_close(dev);
}

int main(void)
{
    CHECK_RUN(queues_are_ordered_by_events_alone);
    CHECK_RUN(the_seed_decides);
    CHECK_RUN(the_seed_alone_decides);
    CHECK_RUN(staging_belongs_to_the_queue);
    CHECK_RUN(reading_comes_when_the_event_says_so);
    CHECK_RUN(what_is_synchronous_comes_after_the_queues);
    CHECK_RUN(staging_is_freed_after_the_queues);
    CHECK_RUN(memory_that_ends);
    CHECK_RUN(queues_grow);
    CHECK_RUN(host_devices_have_none);
    return CHECK_DONE();
}
