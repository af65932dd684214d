/* clock.h: monotonic time. */
#ifndef LS_BASE_CLOCK_H
#define LS_BASE_CLOCK_H

#include <stdint.h>

uint64_t ls_clock_ns(void);    /* since an arbitrary start; never goes back */
double ls_clock_seconds(void); /* the same in seconds */

#endif
