/* parallel.c: what does not depend on the thread runtime: how work is cut, and how many threads to use. */
#include "base/parallel.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/parallel_internal.h"
#include "lockstep/status.h"

static _Thread_local int serial_depth;

void lsi_parallel_run_serially(int n_threads, ls_parallel_fn fn, void *arg)
{
    serial_depth++;
    for (int t = 0; t < n_threads; t++) fn(t, n_threads, arg);
    serial_depth--;
}

int lsi_parallel_is_serial(void)
{
    return serial_depth > 0;
}

void ls_parallel_range(int64_t n, int thread, int n_threads, int64_t *lo, int64_t *hi)
{
    LS_BUG_IF(n_threads < 1 || thread < 0 || thread >= n_threads || n < 0);
    /* The first n % n_threads parts have one element more. */
    int64_t part = n / n_threads, rest = n % n_threads;
    *lo = part * thread + (thread < rest ? thread : rest);
    *hi = *lo + part + (thread < rest);
}

void ls_parallel_range_grain(int64_t n, int64_t grain, int thread, int n_threads, int64_t *lo, int64_t *hi)
{
    LS_BUG_IF(grain < 1);
    int64_t units = n / grain + (n % grain != 0);
    ls_parallel_range(units, thread, n_threads, lo, hi);
    *lo = *lo < units ? *lo * grain : n;
    *hi = *hi < units ? *hi * grain : n;
}

int ls_parallel_cores(void)
{
    /* The kernel refuses a mask smaller than its own; grow until it fits. */
    for (int cpus = CPU_SETSIZE; cpus <= CPU_SETSIZE * 64; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        if (!set) break;
        bool ok = sched_getaffinity(0, bytes, set) == 0;
        int n = ok ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (ok) return n > 0 ? n : 1;
    }
    return 1;
}

/* A positive number at the start of the variable ("4" or OpenMP's "4,2"), else 0. */
static int threads_from_env(const char *name)
{
    const char *text = getenv(name);
    if (!text) return 0;
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || (*end != '\0' && *end != ',') || n < 1 || n > 65536) return 0;
    return (int)n;
}

int ls_parallel_default_threads(int local_ranks)
{
    int n = threads_from_env("LOCKSTEP_THREADS");
    if (!n) n = threads_from_env("OMP_NUM_THREADS");
    if (!n) n = ls_parallel_cores() / (local_ranks > 1 ? local_ranks : 1);
    int limit = lsi_parallel_thread_limit();
    if (n > limit) n = limit;
    return n > 1 ? n : 1;
}

void ls_parallel_set_wait_policy(int threads_on_machine)
{
    lsi_parallel_apply_wait_policy(threads_on_machine > ls_parallel_cores());
}
