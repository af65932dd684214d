/* clock.c: monotonic time from the operating system. */
#include "base/clock.h"

#include <time.h>

uint64_t ls_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock and a valid address */
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

double ls_clock_seconds(void)
{
    return (double)ls_clock_ns() * 1e-9;
}
