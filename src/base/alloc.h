/* alloc.h: the only place where Lockstep takes memory.
 *
 * Every allocation carries a tag, so that "where did the memory go" is a table, and passes a hook that
 * tests use to make the n-th allocation fail.  The counters are process-wide atomics: they exist to prove
 * that a planned step allocates nothing, which must be true of the whole process.  All functions here may be
 * called from any thread. */
#ifndef LS_BASE_ALLOC_H
#define LS_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

typedef enum ls_mem_tag {
    LS_MEM_GRAPH,  /* nodes, values, names: everything that lives in a graph's arena */
    LS_MEM_PLAN,   /* schedules, kernels' states, tables of a compiled plan */
    LS_MEM_TENSOR, /* device memory: the plan's arena and persistent variables */
    LS_MEM_TUNE,   /* buffers of timing runs while kernels are chosen; gone before the first step */
    LS_MEM_COMM,   /* communicators and exchanges, without the memory that ranks share */
    LS_MEM_CKPT,   /* checkpoints: their tables and the copy that is being written */
    LS_MEM_DATA,   /* data sets held in memory, and the batches of a loader */
    LS_MEM_CLI,    /* command line, reports, text */
    LS_MEM_TEST,
    LS_MEM_N
} ls_mem_tag;

/* Zeroed memory, aligned to 64 bytes, or NULL.  `bytes` of 0 gives a valid pointer. */
void *ls_alloc(ls_mem_tag tag, size_t bytes) LS_MUST_CHECK;
/* Grows or shrinks, keeping contents; new bytes are zero.  On failure NULL, and `p` stays valid. */
void *ls_realloc(ls_mem_tag tag, void *p, size_t bytes) LS_MUST_CHECK;
char *ls_strdup(ls_mem_tag tag, const char *text) LS_MUST_CHECK;
void ls_free(void *p); /* accepts NULL */

typedef struct ls_mem_stats {
    uint64_t n_allocs;           /* allocations made since the process started */
    size_t live_bytes[LS_MEM_N]; /* by tag, as asked for (without headers and padding) */
    size_t peak_bytes;           /* largest sum of live_bytes so far, or since ls_mem_restart_peak */
} ls_mem_stats;

ls_mem_stats ls_mem_stats_now(void);
/* From now on peak_bytes is of what comes: for measuring what something takes on its way. */
void ls_mem_restart_peak(void);
const char *ls_mem_tag_name(ls_mem_tag tag);

/* Test hook: the n-th allocation from now (1 = the next) and all after it fail until called with 0. */
void ls_mem_fail_at(uint64_t n);

/* An arena: many small objects that die together.  Not thread-safe. */
typedef struct ls_arena ls_arena;

ls_status ls_arena_create(ls_arena **out, ls_mem_tag tag, ls_err *err) LS_MUST_CHECK;
void ls_arena_destroy(ls_arena *arena); /* accepts NULL; frees everything taken from it */
/* Zeroed, aligned to 16 bytes; NULL when memory cannot be had. */
void *ls_arena_alloc(ls_arena *arena, size_t bytes) LS_MUST_CHECK;
char *ls_arena_strdup(ls_arena *arena, const char *text) LS_MUST_CHECK;
char *ls_arena_printf(ls_arena *arena, const char *fmt, ...) LS_PRINTF(2, 3) LS_MUST_CHECK;

#endif
