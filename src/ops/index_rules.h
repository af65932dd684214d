/* index_rules.h: the test that keeps labels and row numbers, which come from data, inside their tables. */
#ifndef LS_OPS_INDEX_RULES_H
#define LS_OPS_INDEX_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether an index, widened to double, lies in 0..n-1. */
static inline bool lsi_index_ok(double index, int64_t n)
{
    return index >= 0 && index < (double)n;
}

#endif
