/* sum_avx2.c: sums on 256-bit vectors.  Wider ones gain nothing, memory is the limit. */
#define SUM_LOOPS lsi_sum_loops_avx2
#include "comm/sum_template.h"
