/* test_tensor.c: tensors by read, write, copy, zero and visit, in memory that the host sees and in memory
 * that it does not. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "exec/tensor.h"
#include "hidden.h"
#include "tensors.h"

/* It fails so, with `part` in its words. */
#define CHECK_REFUSED(call, want, part)                                                                      \
    do {                                                                                                     \
        err = (ls_err){0};                                                                                   \
        CHECK_STATUS(call, want, &err);                                                                      \
        CHECK_CONTAINS(err.text, part);                                                                      \
    } while (0)

/* A tensor of n floats that begins 8 bytes into a buffer of `dev` (NULL: of the host's), with as much behind.
 */
typedef struct part {
    ls_buffer memory;
    ls_tensor t;
} part;

enum { GAP = 8 };

static void open_part(part *p, ls_device *dev, int64_t n)
{
    const size_t bytes = sizeof(float) * (size_t)n;
    ls_err err = {0};

    REQUIRE_OK(ls_buffer_alloc(&p->memory, dev, bytes + 2 * GAP, &err), &err);
    REQUIRE_OK(ls_buffer_zero(&p->memory, 0, bytes + 2 * GAP, &err), &err);
    p->t = (ls_tensor){"part", LS_F32, LS_SHAPE(n), bytes, &p->memory, GAP};
}

/* Nothing outside the tensor was written. */
static void close_part(part *p)
{
    const char zero[GAP] = {0};
    char before[GAP], after[GAP];
    ls_err err = {0};

    REQUIRE_OK(ls_buffer_read(&p->memory, 0, before, GAP, &err), &err);
    REQUIRE_OK(ls_buffer_read(&p->memory, p->memory.bytes - GAP, after, GAP, &err), &err);
    CHECK_EQ_MEM(before, zero, GAP);
    CHECK_EQ_MEM(after, zero, GAP);
    ls_buffer_free(&p->memory);
    ls_buffer_free(&p->memory); /* does no harm */
}

static void on_both(void (*test)(ls_device *dev))
{
    ls_device *hidden = hidden_open();

    test(NULL);
    test(hidden);
    CHECK_EQ_INT(hidden_live(), 0);
    ls_device_close(hidden);
}

/* -- ranges -----------------------------------------------------------------------------------------------
 */

static void ranges_of(ls_device *dev)
{
    const float x[4] = {1, 2, 3, 4};
    float y[4] = {0};
    part p;
    ls_err err = {0};

    open_part(&p, dev, 4);
    CHECK_OK(ls_tensor_write(&p.t, 0, x, sizeof x, &err), &err);
    CHECK_OK(ls_tensor_read(&p.t, 4, y, 8, &err), &err);
    CHECK(y[0] == 2 && y[1] == 3 && y[2] == 0);
    CHECK_OK(ls_tensor_write(&p.t, 12, x, 4, &err), &err);
    CHECK_OK(ls_tensor_read(&p.t, 0, y, sizeof y, &err), &err);
    CHECK(y[0] == 1 && y[2] == 3 && y[3] == 1);
    CHECK_OK(ls_tensor_zero(&p.t, &err), &err);
    CHECK_NEAR(tensor_get(&p.t, 0), 0, 0);
    close_part(&p);
}

static void ranges(void)
{
    on_both(ranges_of);
}

/* The buffer would have room: it is the tensor that has not. */
static void beyond_the_end_of(ls_device *dev)
{
    float y[8] = {0};
    part p;
    ls_err err = {0};

    open_part(&p, dev, 4);
    CHECK_REFUSED(ls_tensor_read(&p.t, 0, y, 17, &err), LS_INVALID,
                  "tensor \"part\": reading 17 bytes from byte 0: it has 16");
    CHECK_REFUSED(ls_tensor_write(&p.t, 12, y, 8, &err), LS_INVALID,
                  "tensor \"part\": writing 8 bytes from byte 12: it has 16");
    CHECK_REFUSED(ls_tensor_write(&p.t, 17, y, 0, &err), LS_INVALID, "");
    CHECK_REFUSED(ls_tensor_read(&p.t, SIZE_MAX, y, 2, &err), LS_INVALID, "");
    CHECK_REFUSED(ls_tensor_read(&p.t, 2, y, SIZE_MAX, &err), LS_INVALID, "");
    CHECK_REFUSED(ls_buffer_read(&p.memory, 30, y, 4, &err), LS_INVALID,
                  "reading of 4 bytes from byte 30: there are 32");
    CHECK_REFUSED(ls_buffer_zero(&p.memory, 33, 0, &err), LS_INVALID, "");
    close_part(&p);
}

static void beyond_the_end(void)
{
    on_both(beyond_the_end_of);
}

static ls_status never(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    (void)ctx, (void)chunk, (void)offset, (void)bytes;
    return ls_fail(err, LS_INVALID, "called");
}

static void no_bytes_of(ls_device *dev)
{
    part p;
    uint64_t hash = 0, same = 1;
    ls_err err = {0};

    open_part(&p, dev, 0);
    CHECK_OK(ls_tensor_read(&p.t, 0, NULL, 0, &err), &err);
    CHECK_OK(ls_tensor_write(&p.t, 0, NULL, 0, &err), &err);
    CHECK_OK(ls_tensor_zero(&p.t, &err), &err);
    CHECK_OK(ls_tensor_copy(&p.t, &p.t, &err), &err);
    CHECK_OK(ls_tensor_visit(&p.t, never, NULL, &err), &err);
    CHECK_OK(ls_tensor_hash(&p.t, 7, &hash, &err), &err);
    CHECK_OK(ls_tensor_hash(&p.t, 7, &same, &err), &err);
    CHECK(hash == same);
    close_part(&p);
}

static void no_bytes(void)
{
    on_both(no_bytes_of);
}

/* -- scalars and copies -----------------------------------------------------------------------------------
 */

static void scalars_of(ls_device *dev)
{
    part one, two;
    double x = 0;
    ls_err err = {0};

    open_part(&one, dev, 1);
    open_part(&two, dev, 2);
    CHECK_OK(ls_tensor_write_scalar(&one.t, 0.1, &err), &err);
    CHECK_OK(ls_tensor_read_scalar(&one.t, &x, &err), &err);
    CHECK(x == (double)0.1f);
    CHECK_REFUSED(ls_tensor_read_scalar(&two.t, &x, &err), LS_INVALID,
                  "tensor \"part\" is f32 (2,), not one f32");
    one.t.dtype = LS_I32;
    CHECK_REFUSED(ls_tensor_write_scalar(&one.t, 1, &err), LS_INVALID, "");
    close_part(&one);
    close_part(&two);
}

static void scalars(void)
{
    on_both(scalars_of);
}

/* From the host to a device, within it, to another and back; more bytes than pass at a time. */
static void copies(void)
{
    enum { N = 10000 };
    static float x[N], y[N];
    ls_device *hidden = hidden_open();
    part a, b, c, d;
    ls_err err = {0};

    for (int i = 0; i < N; i++) x[i] = (float)i;
    open_part(&a, NULL, N);
    open_part(&b, hidden, N);
    open_part(&c, hidden, N);
    open_part(&d, NULL, N);
    tensor_write(&a.t, x, sizeof x);
    CHECK_OK(ls_tensor_copy(&b.t, &a.t, &err), &err);
    CHECK_OK(ls_tensor_copy(&c.t, &b.t, &err), &err);
    CHECK_OK(ls_tensor_copy(&d.t, &c.t, &err), &err);
    tensor_read(&d.t, y, sizeof y);
    CHECK_EQ_MEM(x, y, sizeof x);
    CHECK_OK(ls_tensor_copy(&d.t, &d.t, &err), &err);
    tensor_read(&d.t, y, sizeof y);
    CHECK_EQ_MEM(x, y, sizeof x);
    d.t.shape = LS_SHAPE(N / 2);
    d.t.bytes /= 2;
    CHECK_REFUSED(ls_tensor_copy(&d.t, &a.t, &err), LS_INVALID,
                  "tensor \"part\" is f32 (5000,) and cannot take a copy of \"part\", f32 (10000,)");
    d.t.bytes *= 2;
    close_part(&a);
    close_part(&b);
    close_part(&c);
    close_part(&d);
    ls_device_close(hidden);
}

/* -- chunks -----------------------------------------------------------------------------------------------
 */

typedef struct looked {
    size_t chunks, at;
    double sum;
    const void *chunk;
} looked;

static ls_status add_up(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    looked *l = ctx;

    if (offset != l->at) return ls_fail(err, LS_INVALID, "at %zu, not %zu", offset, l->at);
    for (size_t i = 0; i < bytes / sizeof(float); i++) l->sum += (double)((const float *)chunk)[i];
    l->at += bytes;
    l->chunk = chunk;
    return l->chunks++ == 1 && l->sum < 0 ? ls_fail(err, LS_CANCELLED, "enough") : LS_OK;
}

static ls_status count_up(void *ctx, void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    (void)ctx, (void)err;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)chunk)[i] = (float)((offset / sizeof(float) + i) % 1000);
    return LS_OK;
}

enum { MANY = 700001 }; /* three chunks, the last an odd one */

static void chunks_of(ls_device *dev)
{
    looked l = {0};
    part p;
    double want = 0;
    ls_err err = {0};

    for (int i = 0; i < MANY; i++) want += i % 1000;
    open_part(&p, dev, MANY);
    CHECK_OK(ls_tensor_fill(&p.t, count_up, NULL, &err), &err);
    CHECK_OK(ls_tensor_visit(&p.t, add_up, &l, &err), &err);
    CHECK_NEAR(l.sum, want, 0);
    CHECK_EQ_INT(l.at, sizeof(float) * MANY);
    CHECK_EQ_INT(l.chunks, dev == NULL ? 1 : 3);
    if (dev == NULL) CHECK(l.chunk == (const char *)p.memory.address + GAP); /* the memory itself: no copy */
    close_part(&p);
}

static void chunks(void)
{
    on_both(chunks_of);
}

static void who_looks_may_end_it(void)
{
    ls_device *hidden = hidden_open();
    looked l = {.sum = -1e30};
    part p;
    ls_err err = {0};

    open_part(&p, hidden, MANY);
    CHECK_REFUSED(ls_tensor_visit(&p.t, add_up, &l, &err), LS_CANCELLED, "enough");
    CHECK_EQ_INT(l.chunks, 2);
    close_part(&p);
    ls_device_close(hidden);
}

/* A hash says what the bytes are, not where they lie or how they were read. */
static void hashes_are_of_bytes(void)
{
    ls_device *hidden = hidden_open();
    part a, b;
    uint64_t x = 0, y = 1;
    ls_err err = {0};

    open_part(&a, NULL, MANY);
    open_part(&b, hidden, MANY);
    CHECK_OK(ls_tensor_fill(&a.t, count_up, NULL, &err), &err);
    CHECK_OK(ls_tensor_copy(&b.t, &a.t, &err), &err);
    CHECK_OK(ls_tensor_hash(&a.t, 3, &x, &err), &err);
    CHECK_OK(ls_tensor_hash(&b.t, 3, &y, &err), &err);
    CHECK(x == y);
    CHECK_OK(ls_tensor_hash(&b.t, 4, &y, &err), &err);
    CHECK(x != y);
    tensor_put(&b.t, MANY - 1, -1);
    CHECK_OK(ls_tensor_hash(&b.t, 3, &y, &err), &err);
    CHECK(x != y);
    close_part(&a);
    close_part(&b);
    ls_device_close(hidden);
}

static void a_transfer_that_fails_is_told(void)
{
    ls_device *hidden = hidden_open();
    looked l = {0};
    uint64_t hash;
    part p;
    ls_err err = {0};

    open_part(&p, hidden, MANY);
    CHECK_OK(ls_tensor_zero(&p.t, &err), &err);
    for (int n = 1; n <= 3; n++) {
        l = (looked){0};
        hidden_fail_at(n);
        CHECK_REFUSED(ls_tensor_visit(&p.t, add_up, &l, &err), LS_DEVICE, "");
        CHECK_EQ_STR(err.text, "tensor \"part\": the device is gone");
        CHECK_EQ_INT(l.chunks, n - 1);
        CHECK_REFUSED(ls_tensor_hash(&p.t, 0, &hash, &err), LS_DEVICE, "");
        CHECK_REFUSED(ls_tensor_fill(&p.t, count_up, NULL, &err), LS_DEVICE, "");
    }
    hidden_fail_at(0);
    close_part(&p);
    ls_device_close(hidden);
}

/* -- far --------------------------------------------------------------------------------------------------
 */

/* In a process of its own: what becomes of one that follows an address of a buffer, or of one that was freed.
 */
static bool dies(const char *address)
{
    int status = 0;
    const pid_t child = fork();

    REQUIRE(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer has one of its own */
        _exit(*(const volatile char *)address == 0);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void addresses_of_far_lead_nowhere(void)
{
    ls_device *far = hidden_open();
    float x[2];
    part p;
    ls_buffer b;
    void *address;
    ls_err err = {0};

    open_part(&p, far, 4);
    CHECK(!p.memory.host_visible);
    CHECK(ls_buffer_host(&p.memory, 0) == NULL);
    address = p.memory.address;
    CHECK(dies(address));
    close_part(&p);
    CHECK(dies(address));
    REQUIRE_OK(ls_buffer_alloc(&b, far, sizeof x, &err), &err);
    CHECK(b.address != address); /* what was freed stays dead */
    REQUIRE_OK(ls_buffer_read(&b, 0, x, sizeof x, &err), &err);
    CHECK(isnan(x[0]) && isnan(x[1])); /* noise */
    ls_buffer_free(&b);
    CHECK_REFUSED(ls_buffer_alloc(&b, far, SIZE_MAX / 2, &err), LS_NOMEM, "bytes cannot be had");
    ls_device_close(far);
}

int main(void)
{
    CHECK_RUN(ranges);
    CHECK_RUN(beyond_the_end);
    CHECK_RUN(no_bytes);
    CHECK_RUN(scalars);
    CHECK_RUN(copies);
    CHECK_RUN(chunks);
    CHECK_RUN(who_looks_may_end_it);
    CHECK_RUN(hashes_are_of_bytes);
    CHECK_RUN(a_transfer_that_fails_is_told);
    CHECK_RUN(addresses_of_far_lead_nowhere);
    return CHECK_DONE();
}
