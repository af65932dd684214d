/* alloc.c: tagged, counted, zeroed memory.
 *
 * A block is a header of 64 bytes followed by the caller's bytes, so that both are aligned to a cache line.
 * The counters are relaxed atomics: each is exact by itself, and nobody derives an order from them. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE      ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define MAGIC     UINT64_C(0x6c6f636b73746570)

typedef struct header {
    size_t bytes;
    ls_mem_tag tag;
    uint64_t magic; /* tells our blocks from other pointers and from blocks already freed */
} header;

_Static_assert(sizeof(header) <= LINE, "the header must fit in front of the aligned block");

static atomic_uint_fast64_t n_tries;   /* allocations asked for */
static atomic_uint_fast64_t n_allocs;  /* allocations made */
static atomic_uint_fast64_t fail_from; /* 0, or the number of the first try that must fail */
static atomic_size_t live[LS_MEM_N], live_total, peak;

static void count_up(ls_mem_tag tag, size_t bytes)
{
    atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&live[tag], bytes, memory_order_relaxed);
    size_t total = atomic_fetch_add_explicit(&live_total, bytes, memory_order_relaxed) + bytes;
    size_t old = atomic_load_explicit(&peak, memory_order_relaxed);
    while (old < total && !atomic_compare_exchange_weak_explicit(&peak, &old, total, memory_order_relaxed,
                                                                 memory_order_relaxed))
        ;
}

static void count_down(ls_mem_tag tag, size_t bytes)
{
    atomic_fetch_sub_explicit(&live[tag], bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_total, bytes, memory_order_relaxed);
}

static bool must_fail(void)
{
    uint64_t try = atomic_fetch_add_explicit(&n_tries, 1, memory_order_relaxed) + 1;
    uint64_t from = atomic_load_explicit(&fail_from, memory_order_relaxed);
    return from && try >= from;
}

static header *header_of(void *p)
{
    header *h = (header *)(void *)((char *)p - LINE);
    LS_BUG_IF(h->magic != MAGIC);
    return h;
}

void *ls_alloc(ls_mem_tag tag, size_t bytes)
{
    LS_BUG_IF((int)tag < 0 || tag >= LS_MEM_N);
    if (must_fail() || bytes > SIZE_MAX / 2) return NULL;

    /* Large blocks start on a huge page and ask for huge pages: measured 5-10 % on whole training steps. */
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
    size_t total = (LINE + bytes + align - 1) / align * align;
    char *raw = aligned_alloc(align, total);
    if (!raw) return NULL;
    if (align == HUGE_PAGE) (void)madvise(raw, total, MADV_HUGEPAGE); /* advice: refusal changes nothing */
    memset(raw, 0, LINE + bytes);

    header *h = (header *)(void *)raw;
    *h = (header){.bytes = bytes, .tag = tag, .magic = MAGIC};
    count_up(tag, bytes);
    return raw + LINE;
}

void *ls_realloc(ls_mem_tag tag, void *p, size_t bytes)
{
    void *q = ls_alloc(tag, bytes);
    if (!q || !p) return q;
    size_t old = header_of(p)->bytes;
    memcpy(q, p, old < bytes ? old : bytes);
    ls_free(p);
    return q;
}

char *ls_strdup(ls_mem_tag tag, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = ls_alloc(tag, n);
    if (copy) memcpy(copy, text, n);
    return copy;
}

void ls_free(void *p)
{
    if (!p) return;
    header *h = header_of(p);
    count_down(h->tag, h->bytes);
    h->magic = 0;
    free(h);
}

ls_mem_stats ls_mem_stats_now(void)
{
    ls_mem_stats s = {.n_allocs = atomic_load_explicit(&n_allocs, memory_order_relaxed),
                      .peak_bytes = atomic_load_explicit(&peak, memory_order_relaxed)};
    for (int t = 0; t < LS_MEM_N; t++) s.live_bytes[t] = atomic_load_explicit(&live[t], memory_order_relaxed);
    return s;
}

const char *ls_mem_tag_name(ls_mem_tag tag)
{
    switch (tag) {
    case LS_MEM_GRAPH: return "graph";
    case LS_MEM_PLAN: return "plan";
    case LS_MEM_TENSOR: return "tensor";
    case LS_MEM_TUNE: return "tune";
    case LS_MEM_CLI: return "cli";
    case LS_MEM_TEST: return "test";
    case LS_MEM_N: break;
    }
    return "unknown";
}

void ls_mem_fail_at(uint64_t n)
{
    uint64_t tries = atomic_load_explicit(&n_tries, memory_order_relaxed);
    atomic_store_explicit(&fail_from, n ? tries + n : 0, memory_order_relaxed);
}
