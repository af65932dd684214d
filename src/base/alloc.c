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
    void *mapping;  /* large blocks: what munmap wants back; NULL for blocks from malloc */
    size_t mapping_bytes;
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

/* Sanitizers watch malloc, not mappings of our own. */
#ifdef LS_SANITIZED
#define MAP_LARGE false
#else
#define MAP_LARGE true
#endif

/* A large block is a mapping of its own, on huge pages where the system has them (fewer TLB misses).  Its
 * pages come zeroed when they are first touched, so a block that is only planned with costs nothing. */
static header *map_block(size_t bytes)
{
    size_t total = LINE + bytes + HUGE_PAGE;
    char *raw = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *start;
    header *h;

    if (raw == MAP_FAILED) return NULL;
    start = raw + (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    (void)madvise(start, LINE + bytes, MADV_HUGEPAGE); /* advice: refusal changes nothing */
    h = (header *)(void *)start;
    h->mapping = raw;
    h->mapping_bytes = total;
    return h;
}

void *ls_alloc(ls_mem_tag tag, size_t bytes)
{
    LS_BUG_IF((int)tag < 0 || tag >= LS_MEM_N);
    if (must_fail() || bytes > SIZE_MAX / 2) return NULL;

    header *h;
    if (MAP_LARGE && bytes >= HUGE_PAGE) {
        h = map_block(bytes);
    } else {
        h = aligned_alloc(LINE, (LINE + bytes + LINE - 1) / LINE * LINE);
        if (h) memset(h, 0, LINE + bytes);
    }
    if (!h) return NULL;
    h->bytes = bytes;
    h->tag = tag;
    h->magic = MAGIC;
    count_up(tag, bytes);
    return (char *)h + LINE;
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
    if (h->mapping)
        munmap(h->mapping, h->mapping_bytes);
    else
        free(h);
}

ls_mem_stats ls_mem_stats_now(void)
{
    ls_mem_stats s = {.n_allocs = atomic_load_explicit(&n_allocs, memory_order_relaxed),
                      .peak_bytes = atomic_load_explicit(&peak, memory_order_relaxed)};
    for (int t = 0; t < LS_MEM_N; t++) s.live_bytes[t] = atomic_load_explicit(&live[t], memory_order_relaxed);
    return s;
}

void ls_mem_restart_peak(void)
{
    atomic_store_explicit(&peak, atomic_load_explicit(&live_total, memory_order_relaxed),
                          memory_order_relaxed);
}

const char *ls_mem_tag_name(ls_mem_tag tag)
{
    switch (tag) {
    case LS_MEM_GRAPH: return "graph";
    case LS_MEM_PLAN: return "plan";
    case LS_MEM_TENSOR: return "tensor";
    case LS_MEM_TUNE: return "tune";
    case LS_MEM_COMM: return "comm";
    case LS_MEM_CKPT: return "ckpt";
    case LS_MEM_DATA: return "data";
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
