/* Regions: every thread runs exactly once, every piece is taken once, barriers hold, nested regions run
 * serially, ranges cover. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "check.h"

#define MOST 8

typedef struct counts {
    int calls[MOST]; /* one writer each: threads of a region have distinct numbers */
    int wrong;
} counts;

static void count_call(int thread, int n_threads, void *arg)
{
    counts *c = arg;
    if (thread < 0 || thread >= n_threads) abort();
    c->calls[thread]++;
}

static void each_thread_runs_once(void)
{
    static const int sizes[] = {1, 2, 3, 8, 2, 5, 1, 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        counts c = {0};
        for (int round = 0; round < 50; round++) ls_parallel_run(sizes[i], count_call, &c);
        for (int t = 0; t < MOST; t++) CHECK_EQ_INT(c.calls[t], t < sizes[i] ? 50 : 0);
    }
}

typedef struct shares {
    ls_parallel_pieces pieces;
    atomic_int taken[1000];
} shares;

static void take_pieces(int thread, int n_threads, void *arg)
{
    shares *s = arg;
    (void)thread;
    (void)n_threads;
    for (int64_t i; (i = ls_parallel_take(&s->pieces)) < 1000;) atomic_fetch_add(&s->taken[i], 1);
}

static void each_piece_is_taken_once(void)
{
    static shares s;
    for (int n = 1; n <= MOST; n++) {
        s.pieces = (ls_parallel_pieces){0};
        ls_parallel_run(n, take_pieces, &s);
        for (int i = 0; i < 1000; i++) CHECK_EQ_INT(atomic_load(&s.taken[i]), n);
    }
}

/* In every phase each thread writes its slot, and after the barrier reads its neighbour's. */
typedef struct relay {
    int slot[2][MOST]; /* plain ints: the barrier alone must order them (ThreadSanitizer checks that) */
    int wrong[MOST];
} relay;

static void relay_phases(int thread, int n_threads, void *arg)
{
    relay *r = arg;
    for (int phase = 1; phase <= 200; phase++) {
        r->slot[phase % 2][thread] = phase * 10 + thread;
        ls_parallel_barrier(thread, n_threads);
        int next = (thread + 1) % n_threads;
        if (r->slot[phase % 2][next] != phase * 10 + next) r->wrong[thread]++;
    }
}

static void barriers_hold(void)
{
    for (int n = 1; n <= MOST; n++) {
        relay r = {0};
        ls_parallel_run(n, relay_phases, &r);
        for (int t = 0; t < n; t++) CHECK_EQ_INT(r.wrong[t], 0);
    }
}

/* A nested region must run on the thread that started it, in order. */
typedef struct nest {
    pthread_t self;
    int calls;
    int wrong;
} nest;

static void inner(int thread, int n_threads, void *arg)
{
    nest *n = arg;
    if (!pthread_equal(n->self, pthread_self()) || n_threads != 3 || thread != n->calls) n->wrong++;
    n->calls++;
}

static void outer(int thread, int n_threads, void *arg)
{
    (void)n_threads;
    nest *n = (nest *)arg + thread;
    n->self = pthread_self();
    ls_parallel_run(3, inner, n);
}

static void nested_regions_run_serially(void)
{
    nest n[4] = {0};
    ls_parallel_run(4, outer, n);
    for (int t = 0; t < 4; t++) {
        CHECK_EQ_INT(n[t].calls, 3);
        CHECK_EQ_INT(n[t].wrong, 0);
    }
    /* And the next region is concurrent again: its barrier would abort otherwise. */
    relay r = {0};
    ls_parallel_run(2, relay_phases, &r);
    CHECK_EQ_INT(r.wrong[0] + r.wrong[1], 0);
}

static void *rank_main(void *arg)
{
    relay *r = arg;
    for (int i = 0; i < 5; i++) ls_parallel_run(3, relay_phases, r);
    return NULL;
}

/* Ranks may be threads of one process, each with regions of its own. */
static void several_owners(void)
{
    pthread_t rank[3];
    relay r[3] = {0};
    for (int i = 0; i < 3; i++) REQUIRE(pthread_create(&rank[i], NULL, rank_main, &r[i]) == 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(rank[i], NULL);
        for (int t = 0; t < 3; t++) CHECK_EQ_INT(r[i].wrong[t], 0);
    }
}

static void ranges_cover(void)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 8, 63, 64, 65, 1000, INT64_C(1) << 40};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int n = 1; n <= 9; n++) {
            int64_t end = 0, smallest = INT64_MAX, largest = 0, end16 = 0;
            for (int t = 0; t < n; t++) {
                int64_t lo, hi;
                ls_parallel_range(sizes[i], t, n, &lo, &hi);
                CHECK_EQ_INT(lo, end);
                end = hi;
                if (hi - lo < smallest) smallest = hi - lo;
                if (hi - lo > largest) largest = hi - lo;

                ls_parallel_range_grain(sizes[i], 16, t, n, &lo, &hi);
                CHECK_EQ_INT(lo, end16);
                CHECK(lo % 16 == 0 || lo == sizes[i]);
                CHECK(hi >= lo);
                end16 = hi;
            }
            CHECK_EQ_INT(end, sizes[i]);
            CHECK_EQ_INT(end16, sizes[i]);
            CHECK(largest - smallest <= 1);
        }
    }
}

static void thread_counts(void)
{
    unsetenv("LOCKSTEP_THREADS");
    unsetenv("OMP_NUM_THREADS");
    int cores = ls_parallel_cores();
    CHECK(cores >= 1);
    CHECK_EQ_INT(ls_parallel_default_threads(1), cores);
    CHECK_EQ_INT(ls_parallel_default_threads(cores), 1);
    CHECK_EQ_INT(ls_parallel_default_threads(cores * 10), 1);
    setenv("OMP_NUM_THREADS", "3,2", 1);
    CHECK_EQ_INT(ls_parallel_default_threads(2), 3);
    setenv("LOCKSTEP_THREADS", "5", 1);
    CHECK_EQ_INT(ls_parallel_default_threads(2), 5);
    setenv("LOCKSTEP_THREADS", "5x", 1);
    CHECK_EQ_INT(ls_parallel_default_threads(2), 3);
    setenv("LOCKSTEP_THREADS", "0", 1);
    CHECK_EQ_INT(ls_parallel_default_threads(2), 3);

    cpu_set_t old, one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    REQUIRE(sched_getaffinity(0, sizeof old, &old) == 0 && sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_EQ_INT(ls_parallel_cores(), 1);
    sched_setaffinity(0, sizeof old, &old);
}

static void both_wait_policies_work(void)
{
    unsetenv("OMP_WAIT_POLICY");
    ls_parallel_set_wait_policy(1);
    each_thread_runs_once();
    ls_parallel_set_wait_policy(ls_parallel_cores() + 1);
    each_thread_runs_once();
    barriers_hold();
    if (strcmp(ls_parallel_name(), "openmp") == 0) {
        CHECK_EQ_STR(getenv("OMP_WAIT_POLICY"), "passive");
    } else {
        CHECK_EQ_STR(ls_parallel_name(), "pthread");
    }
}

int main(void)
{
    CHECK_RUN(each_thread_runs_once);
    CHECK_RUN(each_piece_is_taken_once);
    CHECK_RUN(barriers_hold);
    CHECK_RUN(nested_regions_run_serially);
    CHECK_RUN(several_owners);
    CHECK_RUN(ranges_cover);
    CHECK_RUN(thread_counts);
    CHECK_RUN(both_wait_policies_work);
    return CHECK_DONE();
}
