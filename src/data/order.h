/* order.h: the order of samples as a function of seed and epoch.
 *
 * A shuffled list would have to be made, kept and shared; a keyed permutation is asked for one position at a
 * time, so that a run can be entered anywhere and every rank finds its samples by itself. */
#ifndef LS_DATA_ORDER_H
#define LS_DATA_ORDER_H

#include <stdint.h>

/* The index of the sample at `position` (0 to n - 1) of the given epoch.  For fixed seed, epoch and n this is
 * a permutation of 0 to n - 1; it takes the same short time for every n, at most 2^62. */
int64_t ls_order_at(uint64_t seed, uint64_t epoch, int64_t n, int64_t position);

#endif
