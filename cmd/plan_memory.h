/* plan_memory.h: the table of memory that `lockstep plan --strategy` shows, and its page. */
#ifndef LS_CMD_PLAN_MEMORY_H
#define LS_CMD_PLAN_MEMORY_H

#include "cli.h"

/* A number of ranks under a strategy. */
typedef struct plan_memory_row {
    int ranks;
    char strategy[32];
    ls_plan_memory memory;
    size_t staging;        /* of the host, beside a device that has memory of its own */
    int recomputed, units; /* units that are computed again, of so many */
    int guessed;           /* kernels that were never timed here */
    int64_t batch;         /* of a rank */
    int64_t largest;       /* batch that fits the limit; 0: none does */
    int64_t widest;        /* model.width, the same; -1: the trial has no such setting */
    char why[256];         /* it cannot be had at all, and all else is 0; "": it can */
} plan_memory_row;

typedef struct plan_memory_table {
    const char *name;
    int64_t batch, global; /* of a rank; of all ranks, where that is set: else 0 */
    size_t limit;          /* 0: none */
    plan_memory_row *rows;
    int n;
    size_t cap;
} plan_memory_table;

/* Writes FOLDER/report.html with the table and charts; `page` receives its path. */
ls_status plan_memory_page(const plan_memory_table *t, const char *folder, char *page, size_t size,
                           ls_err *err) LS_MUST_CHECK;

#endif
