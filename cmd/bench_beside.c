/* bench_beside.c: `lockstep bench --beside N`: N more ranks take the same steps meanwhile, each for itself:
 * what memory, caches and clocks that are shared cost a rank, without any exchange.
 *
 * They are ranks like all others (started, bound to cores and watched by the launcher), but the communicator
 * only tells them when to begin; what they compute is a step of one rank. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "bench.h"

enum { WARM_STEPS = 3, STEPS_KEPT = 512 };

/* A rank's last steps, written by it alone. */
typedef struct beside_steps {
    _Atomic int64_t n; /* all that it has taken; the latest is at (n - 1) % STEPS_KEPT */
    double seconds[STEPS_KEPT];
} beside_steps;

struct bench_shared {
    _Atomic bool over;
    beside_steps of[]; /* of every rank but the first */
};

static size_t shared_bytes(int n)
{
    return sizeof(bench_shared) + (size_t)n * sizeof(beside_steps);
}

ls_status bench_beside_open(bench_beside *b, int n, const cli_ranks *r, ls_err *err)
{
    void *shared;

    if (n == 0) return LS_OK;
    shared = mmap(NULL, shared_bytes(n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return ls_fail(err, LS_NOMEM, "--beside %d: no memory", n);
    *b = (bench_beside){.n = n, .shared = shared, .options = r->options};
    b->options.ranks = n + 1;
    b->options.total = 0;
    return ls_launch_detect(&b->start, &b->options, ls_launch_env, NULL, err);
}

void bench_beside_close(bench_beside *b)
{
    if (b->shared != NULL) munmap(b->shared, shared_bytes(b->n));
    *b = (bench_beside){0};
}

/* The first rank compiles alone: whoever chooses kernels must have the machine to itself, and the others find
 * its choices. */
ls_status bench_beside_begin(const bench_beside *b, ls_err *err)
{
    ls_status st = LS_OK;

    if (b->n == 0) return LS_OK;
    LS_TRY(ls_comm_barrier(b->comm, "compiling", err));
    LS_TRY(ls_comm_barrier(b->comm, "the first steps beside one another", err));
out:
    return st;
}

void bench_beside_end(const bench_beside *b)
{
    if (b->n > 0) atomic_store(&b->shared->over, true);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_beside_step(const bench_beside *b, int i)
{
    const beside_steps *s = &b->shared->of[i];
    const int64_t all = atomic_load(&s->n), n = all < STEPS_KEPT ? all : STEPS_KEPT;
    double sorted[STEPS_KEPT];

    if (n == 0) return NAN;
    for (int64_t k = 0; k < n; k++) sorted[k] = s->seconds[k];
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    return sorted[n / 2];
}

static ls_status take_steps(bench_shared *shared, beside_steps *mine, ls_rehearsal *x, ls_err *err)
{
    bool last = false;
    ls_status st = LS_OK;

    while (!atomic_load(&shared->over)) {
        const int64_t n = atomic_load(&mine->n);
        const double begin = ls_clock_seconds();
        LS_TRY(ls_rehearsal_step(x, &last, err));
        mine->seconds[n % STEPS_KEPT] = ls_clock_seconds() - begin;
        atomic_store(&mine->n, n + 1);
    }
out:
    return st;
}

ls_status bench_beside_run(const bench_beside *b, const bench_job *j, const ls_place *place, ls_err *err)
{
    ls_rehearsal x = {0};
    bool last = false;
    ls_status st = LS_OK;

    LS_TRY(ls_comm_barrier(b->comm, "compiling", err));
    LS_TRY(ls_rehearsal_open(&x, &j->ranks[0].experiment, place->threads, j->real[0], NULL, err));
    for (int i = 0; i < WARM_STEPS; i++) LS_TRY(ls_rehearsal_step(&x, &last, err));
    LS_TRY(ls_comm_barrier(b->comm, "the first steps beside one another", err));
    LS_TRY(take_steps(b->shared, &b->shared->of[place->rank - 1], &x, err));
out:
    ls_rehearsal_release(&x);
    return st;
}
