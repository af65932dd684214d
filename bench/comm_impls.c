/* comm_impls.c: how fast ranks add up a vector, and how long they take to meet.
 *
 * Usage: bench_comm [ranks] [most MiB], which forks ranks of this machine (2 unless given); or under mpirun,
 * which then takes turns with MPI_Allreduce where the build has MPI.  GB/s count the bytes of the vector once
 * per all-reduce; the median of the rounds counts.  Parts are not refilled between exchanges, as they are not
 * in MPI_Allreduce. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/comm.h"

#ifdef LS_BENCH_MPI
#include <mpi.h>
#endif

enum { ROUNDS = 9 };
#define ROUND_BYTES (64.0 * 1024 * 1024) /* a round moves at least so much, or one vector */

typedef struct subject {
    ls_comm *c;
    ls_exchange *x;
    float *from, *to; /* of MPI_Allreduce */
    int64_t n;
    ls_err err;
} subject;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

static void stop(const subject *s)
{
    fprintf(stderr, "rank %d: %s\n", ls_comm_rank(s->c), s->err.text);
    exit(1);
}

static void together(subject *s)
{
    if (ls_comm_barrier(s->c, "next round", &s->err) != LS_OK) stop(s);
}

static void exchange(subject *s)
{
    ls_exchange_start(s->x, 1);
    if (ls_exchange_wait(s->x, &s->err) != LS_OK) stop(s);
}

static void barrier(subject *s)
{
    if (ls_comm_barrier(s->c, "barrier", &s->err) != LS_OK) stop(s);
}

static void gather(subject *s)
{
    uint64_t mine = 1, all[256];

    if (ls_comm_gather_all(s->c, &mine, sizeof mine, all, "gather", &s->err) != LS_OK) stop(s);
}

#ifdef LS_BENCH_MPI
static void mpi_allreduce(subject *s)
{
    MPI_Allreduce(s->from, s->to, (int)s->n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void mpi_barrier(subject *s)
{
    (void)s;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void mpi_gather(subject *s)
{
    uint64_t mine = 1, all[256];

    (void)s;
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
}
#endif

/* Median seconds of one call of `ours` and of `theirs` (NULL: 0), in turns. */
static void time_both(subject *s, void (*ours)(subject *), void (*theirs)(subject *), int repeats,
                      double out[2])
{
    double seconds[2][ROUNDS] = {{0}};
    void (*call[2])(subject *) = {ours, theirs};

    for (int r = -1; r < ROUNDS; r++) /* the first round is not counted */
        for (int k = 0; k < 2; k++) {
            if (call[k] == NULL) continue;
            together(s);
            double begun = ls_clock_seconds();
            for (int i = 0; i < repeats; i++) call[k](s);
            if (r >= 0) seconds[k][r] = (ls_clock_seconds() - begun) / repeats;
        }
    for (int k = 0; k < 2; k++) out[k] = median(seconds[k], ROUNDS);
}

static void bench_vector(subject *s, double kib, bool mpi)
{
    ls_exchange_options o = {.name = "bench", .n = (int64_t)(kib * 256)};
    double bytes = kib * 1024, t[2];
    void (*theirs)(subject *) = NULL;
    int repeats = bytes < ROUND_BYTES ? (int)(ROUND_BYTES / bytes) : 1;

    if (repeats > 500) repeats = 500;
    s->n = o.n;
    if (ls_exchange_create(&s->x, s->c, &o, &s->err) != LS_OK) stop(s);
#ifdef LS_BENCH_MPI
    if (mpi) {
        theirs = mpi_allreduce;
        s->from = ls_alloc(LS_MEM_TEST, (size_t)bytes);
        s->to = ls_alloc(LS_MEM_TEST, (size_t)bytes);
        if (s->from == NULL || s->to == NULL) exit(1);
    }
#else
    (void)mpi;
#endif
    for (int j = 0; j < ls_exchange_parts(s->x); j++)
        for (int64_t i = 0; i < s->n; i++) ls_exchange_part(s->x, j)[i] = 1;
    time_both(s, exchange, theirs, repeats, t);
    if (ls_comm_rank(s->c) == 0) {
        printf("%10.0f KiB %10.2f GB/s %10.1f us", kib, bytes / t[0] * 1e-9, t[0] * 1e6);
        if (t[1] > 0)
            printf("   MPI %8.2f GB/s %10.1f us   %5.2f x", bytes / t[1] * 1e-9, t[1] * 1e6, t[1] / t[0]);
        printf("\n");
        fflush(stdout);
    }
    ls_free(s->from);
    ls_free(s->to);
    s->from = s->to = NULL;
    ls_exchange_destroy(s->x);
}

static void bench_meeting(subject *s, const char *name, void (*ours)(subject *), void (*theirs)(subject *))
{
    double t[2];

    time_both(s, ours, theirs, 2000, t);
    if (ls_comm_rank(s->c) != 0) return;
    printf("%14s %28.2f us", name, t[0] * 1e6);
    if (t[1] > 0) printf("   MPI %24.2f us   %5.2f x", t[1] * 1e6, t[1] / t[0]);
    printf("\n");
}

static void bench(ls_comm *c, double most_mib, bool mpi)
{
    static const double kib[] = {4, 256, 1024, 4096, 16384, 65536, 262144};
    subject s = {.c = c};

    if (ls_comm_rank(c) == 0)
        printf("%d ranks on %d hosts, %s\n", ls_comm_size(c), ls_comm_hosts(c), ls_comm_kind(c));
#ifdef LS_BENCH_MPI
    bench_meeting(&s, "barrier", barrier, mpi ? mpi_barrier : NULL);
    bench_meeting(&s, "gather 8 B", gather, mpi ? mpi_gather : NULL);
#else
    bench_meeting(&s, "barrier", barrier, NULL);
    bench_meeting(&s, "gather 8 B", gather, NULL);
#endif
    for (size_t i = 0; i < sizeof kib / sizeof *kib; i++)
        if (kib[i] <= most_mib * 1024) bench_vector(&s, kib[i], mpi);
}

/* Forks `ranks` ranks; each runs the benchmark. */
static int bench_forked(int ranks, double most_mib)
{
    ls_err err = {0};
    ls_comm_heap *heap;
    ls_comm *c;
    int failed = 0, status;

    if (ls_comm_heap_create(&heap, ranks, &err) != LS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < ranks; i++) {
        if (fork() != 0) continue;
        if (ls_comm_open_local(&c, ls_comm_heap_fd(heap), i, ranks, &err) != LS_OK) {
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
        bench(c, most_mib, false);
        fflush(stdout);
        ls_comm_close(c);
        _exit(0);
    }
    while (wait(&status) > 0) failed |= status;
    ls_comm_heap_destroy(heap);
    return failed != 0;
}

int main(int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 2;
    double most_mib = argc > 2 ? atof(argv[2]) : 256;
    ls_err err = {0};
    ls_comm *c;

    if (getenv("OMPI_COMM_WORLD_SIZE") == NULL && getenv("PMI_SIZE") == NULL)
        return bench_forked(ranks, most_mib);
    if (ls_comm_open_mpi(&c, &err) != LS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    bench(c, most_mib, true);
    ls_comm_close(c);
    return 0;
}
