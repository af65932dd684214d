/* parallel_openmp.c: regions on gcc's OpenMP runtime, whose threads oneDNN uses too. */
#include "base/denormals.h"
#include "base/parallel_internal.h"

#ifndef LS_PARALLEL_PTHREAD

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lockstep/status.h"

void ls_parallel_run(int n_threads, ls_parallel_fn fn, void *arg)
{
    LS_BUG_IF(n_threads < 1);
    if (n_threads == 1) {
        fn(0, 1, arg);
        return;
    }
    if (omp_in_parallel() || lsi_parallel_is_serial()) {
        lsi_parallel_run_serially(n_threads, fn, arg);
        return;
    }
    /* OMP_DYNAMIC and OMP_THREAD_LIMIT may grant fewer threads than asked for.  The cut of the work must not
     * depend on that, so such a region does nothing and is then run serially. */
    bool short_of_threads = false;
    const unsigned long mode = ls_denormals_mode();
#pragma omp parallel num_threads(n_threads)
    {
        ls_denormals_take(mode);
        if (omp_get_num_threads() == n_threads) {
            fn(omp_get_thread_num(), n_threads, arg);
        } else if (omp_get_thread_num() == 0) {
            short_of_threads = true;
        }
    }
    if (short_of_threads) lsi_parallel_run_serially(n_threads, fn, arg);
}

void ls_parallel_barrier(int thread, int n_threads)
{
    (void)thread;
    if (n_threads == 1) return;
    LS_BUG_IF(lsi_parallel_is_serial());
#pragma omp barrier
}

/* How often a waiting thread looks before it sleeps.  Measured on two cores (mnist-keras, times of a step
 * over that without spinning): beside a program that keeps one core busy 1000 1.05, 3000 1.13, 10000 1.45,
 * libgomp's default of 300000 7.2; alone all of them 0.92 to 0.98, 1000 as good as any.  In a step of 3 ms
 * the default costs 30 times.
 * With many threads all of them must be woken for each region: on 16 cores of a virtual machine a region
 * costs 25 to 60 us with 1000 and 4 to 20 with 10000, and a step of ResNet-18 in bf16 69 ms, at times 140 to
 * 240, against 57. Beside a program that keeps one of those cores busy it is as with two (mnist-keras: 6.8 ms
 * with 1000, 29 with 30000): threads that spin leave no core to which the displaced one could move.  So many
 * cores spin longer, unless something else runs when the program starts. */
#define SPIN_COUNT      "1000"
#define SPIN_COUNT_MANY "10000"
#define MANY_CORES      8

/* Threads that run or want to, of the whole machine: the second last field of /proc/loadavg is RUNNING/ALL.
 * 1, this one alone, where it cannot be read. */
static int running_now(void)
{
    FILE *f = fopen("/proc/loadavg", "r");
    int running = 1;

    if (f == NULL) return 1;
    if (fscanf(f, "%*s %*s %*s %d/", &running) != 1) running = 1;
    fclose(f);
    return running;
}

/* Whether nothing else keeps a core busy: what only runs for a moment, as the shell that started this program
 * or the last threads of another one, which may spin for 200 ms, is not there at every look. */
static bool is_alone(void)
{
    for (int i = 0; i < 100; i++) {
        if (running_now() <= 1) return true;
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    return false;
}

void ls_parallel_settle(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    /* Set first: the program started again must not come here a second time. */
    const bool longer = ls_parallel_cores() >= MANY_CORES && is_alone();
    if (setenv("GOMP_SPINCOUNT", longer ? SPIN_COUNT_MANY : SPIN_COUNT, 1) == 0)
        execv("/proc/self/exe", argv);
    /* Without /proc the program runs as it is, only slower beside other work. */
}

/* Inside one process libgomp stops spinning by itself when it runs more threads than cores; of other
 * processes it cannot know.  The variable is for those that this process starts. */
void lsi_parallel_apply_wait_policy(int oversubscribed)
{
    if (oversubscribed) setenv("OMP_WAIT_POLICY", "passive", 0);
}

int lsi_parallel_thread_limit(void)
{
    return omp_get_thread_limit();
}

const char *ls_parallel_name(void)
{
    return "openmp";
}

#endif
