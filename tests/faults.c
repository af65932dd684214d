/* faults.c: a scenario under an allocator that fails at the n-th call, for all n. */
#include "faults.h"

#include <stdio.h>

#include "base/alloc.h"
#include "check.h"

static size_t live_bytes(void)
{
    ls_mem_stats s = ls_mem_stats_now();
    size_t sum = 0;
    for (int t = 0; t < LS_MEM_N; t++) sum += s.live_bytes[t];
    return sum;
}

void check_faults(const char *name, check_scenario scenario, void *arg)
{
    enum { MOST = 1000000 }; /* a scenario that never succeeds must end too */
    size_t before = live_bytes();
    uint64_t n = 1;
    printf("%s: ", name); /* said before, for a scenario that crashes */
    fflush(stdout);
    for (; n < MOST; n++) {
        ls_err err = {0};
        ls_mem_fail_at(n);
        ls_status st = scenario(arg, &err);
        ls_mem_fail_at(0);
        bool ok = CHECK_EQ_INT(live_bytes(), before);
        if (st == LS_OK) break;
        ok &= CHECK_STATUS(st, LS_NOMEM, &err);
        ok &= CHECK(err.status == LS_NOMEM && err.text[0] != '\0');
        if (!ok) {
            printf("with allocation %llu failing\n", (unsigned long long)n);
            return;
        }
    }
    CHECK(n < MOST);
    CHECK(n > 1); /* a scenario that allocates nothing proves nothing */
    printf("%llu faults\n", (unsigned long long)n - 1);
}
