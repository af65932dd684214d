/* yardstick.c: what the GPU can do at most: a large product of numbers as networks have them, and a copy of
 * more than any cache holds, each by events around several in a row. */
#include <stdio.h>

#include "backend/cuda/library.h"

enum { SIDE = 8192, RUNS = 10, WARM = 3, STAMP = 1 << 20 };
#define COPIED ((size_t)512 << 20)

typedef struct bench {
    const lsi_cuda_device *dev;
    lsi_cuda_library *library;
    int way;
    void *operand[3], *workspace;
    size_t bytes;
} bench;

static bool product(bench *b)
{
    return b->dev->api->run(b->library, b->way, b->operand, b->workspace, b->dev->now) == 0;
}

static bool copy(bench *b)
{
    return b->dev->api->copy(b->operand[0], b->operand[1], b->bytes, b->dev->now) == 0;
}

/* Seconds of one; 0 when it cannot be run. */
static double timed(bench *b, bool (*once)(bench *b))
{
    const lsi_cuda_api *api = b->dev->api;
    lsi_cuda_event begun = NULL, ended = NULL;
    float ms = 0;
    bool ok = api->event_create(&begun, true) == 0 && api->event_create(&ended, true) == 0;

    for (int i = 0; i < WARM && ok; i++) ok = once(b);
    ok = ok && api->event_record(begun, b->dev->now) == 0;
    for (int i = 0; i < RUNS && ok; i++) ok = once(b);
    ok = ok && api->event_record(ended, b->dev->now) == 0 && api->event_sync(ended) == 0 &&
         api->event_elapsed(begun, ended, &ms) == 0;
    if (begun != NULL) api->event_destroy(begun);
    if (ended != NULL) api->event_destroy(ended);
    return ok ? (double)ms * 1e-3 / RUNS : 0;
}

/* Numbers between -1 and 1: of equal ones, products take less power and are faster than a network's. */
static bool fill(const bench *b, void *to, size_t bytes, ls_dtype type)
{
    uint8_t *stamp = ls_alloc(LS_MEM_TUNE, STAMP);
    bool ok = stamp != NULL;

    for (size_t i = 0; ok && i < STAMP / 4; i++) {
        const uint32_t drawn = (uint32_t)(i * 2654435761U) ^ (uint32_t)(i >> 7) * 40503U;
        const float x = (float)(drawn >> 8) / (float)(1 << 23) - 1;
        if (type == LS_F32)
            ((float *)(void *)stamp)[i] = x;
        else /* bf16: the upper halves of floats, whose exponents are small */
            ((uint32_t *)(void *)stamp)[i] = (drawn & 0x807f807fU) | 0x3f003f00U;
    }
    for (size_t at = 0; ok && at < bytes; at += STAMP)
        ok = b->dev->api->copy((char *)to + at, stamp, bytes - at < STAMP ? bytes - at : STAMP,
                               b->dev->now) == 0;
    ok = ok && b->dev->api->stream_sync(b->dev->now) == 0;
    ls_free(stamp);
    return ok;
}

static bool take(bench *b, int i, size_t bytes)
{
    return b->dev->api->alloc(&b->operand[i], bytes) == 0;
}

static double time_product(bench *b, ls_dtype type, bool tf32)
{
    const lsi_cuda_product p = {.m = SIDE,
                                .n = SIDE,
                                .k = SIDE,
                                .batch = 1,
                                .lda = SIDE,
                                .ldb = SIDE,
                                .ldc = SIDE,
                                .dtype = type,
                                .out = type,
                                .math = tf32 ? LSI_CUDA_TF32 : LSI_CUDA_EXACT};
    const size_t bytes = (size_t)SIDE * SIDE * ls_dtype_size(type);
    lsi_cuda_library_node node = {.n = 3, .bytes = {bytes, bytes, bytes}, .bias = -1};
    size_t workspace = 0;
    char text[64];
    double s = 0;

    if (b->dev->api->product(&b->library, &p) != 0) return 0;
    snprintf(text, sizeof text, "yardstick %s%s", ls_dtype_name(type), tf32 ? " tf32" : "");
    node.problem = text;
    node.library = b->library;
    b->way = lsi_cuda_library_way(b->dev, &node, &workspace);
    if (b->way >= 0 && take(b, 0, bytes) && take(b, 1, bytes) && take(b, 2, bytes) &&
        b->dev->api->alloc(&b->workspace, workspace + 1) == 0 && fill(b, b->operand[0], bytes, type) &&
        fill(b, b->operand[1], bytes, type))
        s = timed(b, product);
    b->dev->api->drop(b->library);
    return s;
}

static void release(bench *b)
{
    for (int i = 0; i < 3; i++) {
        b->dev->api->free(b->operand[i]);
        b->operand[i] = NULL;
    }
    b->dev->api->free(b->workspace);
    b->workspace = NULL;
}

bool lsi_cuda_measure(ls_device *dev, ls_dtype type, ls_yardstick *out)
{
    bench b = {.dev = lsi_cuda_of(dev)};
    const ls_dtype of = type == LS_F32 ? LS_F32 : LS_BF16;
    const bool tf32 = of == LS_F32 && dev->tf32;
    double s;

    *out = (ls_yardstick){.devices = b.dev->exactly ? 1 : b.dev->devices};
    if (lsi_cuda_drain(b.dev) != 0) return false;
    s = time_product(&b, of, tf32);
    release(&b);
    if (s > 0) out->flop_s = 2.0 * SIDE * SIDE * SIDE / s;
    snprintf(out->what, sizeof out->what, "%s products", tf32 ? "tf32" : of == LS_F32 ? "fp32" : "bf16");
    b.bytes = COPIED;
    s = take(&b, 0, COPIED) && take(&b, 1, COPIED) ? timed(&b, copy) : 0;
    release(&b);
    if (s > 0) out->copy_b_s = 2.0 * (double)COPIED / s;
    return out->flop_s > 0 && out->copy_b_s > 0;
}
