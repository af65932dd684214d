/* probe.c: measures peak arithmetic and memory bandwidth of all ranks at once. */
#include "bench/probe.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "bench/machine.h"
#include "bench/probe_internal.h"

#define MAX_THREADS 1024
#define FMA_ROUNDS  (1 << 13) /* tens of microseconds: many pieces in a slot */
#define PIECE_WORDS ((int64_t)1 << 15)
#define STRIDES     8
/* A machine's buffers together are larger than any cache; those of many ranks are smaller each. */
#define MACHINE_BYTES ((size_t)512 << 20)
#define MOST_BYTES    ((size_t)256 << 20)
#define LEAST_BYTES   ((size_t)32 << 20)

/* Scalar multiply-adds, for processors without vectors of our own. */
float lsi_probe_fma_c(int64_t rounds)
{
    float acc[LSI_FMA_C] = {0, 1, 2, 3};

    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < LSI_FMA_C; i++) acc[i] = acc[i] * 0.999f + 0.001f;
    return acc[0] + acc[1] + acc[2] + acc[3];
}

/* -- one thread -------------------------------------------------------------------------------------------
 */

typedef struct thread_work {
    float slots[LS_PROBE_SLOTS];
    uint64_t *data; /* its part of the buffer */
    int64_t words, at;
    uint64_t sink; /* what is computed must be wanted */
    float fma_sink;
} thread_work;

typedef struct probe_job {
    int kind; /* LS_PROBE_FMA, ... */
    float (*fma)(int64_t rounds);
    int per_round;
    double start; /* when the first slot begins */
    uint64_t *data;
    int64_t words;
    thread_work *of; /* by thread */
} probe_job;

static double read_piece(thread_work *w, int64_t words)
{
    const uint64_t *from = w->data + w->at;
    uint64_t sum[STRIDES] = {0};

    for (int64_t i = 0; i + STRIDES <= words; i += STRIDES)
        for (int k = 0; k < STRIDES; k++) sum[k] += from[i + k];
    for (int k = 0; k < STRIDES; k++) w->sink += sum[k];
    w->at = w->at + 2 * words <= w->words ? w->at + words : 0;
    return (double)words * sizeof *from;
}

/* From the lower half of the thread's part to the upper one. */
static double copy_piece(thread_work *w, int64_t words)
{
    const int64_t half = w->words / 2;

    memcpy(w->data + half + w->at, w->data + w->at, sizeof *w->data * (size_t)words);
    w->at = w->at + 2 * words <= half ? w->at + words : 0;
    return 2.0 * (double)words * sizeof *w->data;
}

static double do_piece(const probe_job *job, thread_work *w)
{
    const int64_t part = job->kind == LS_PROBE_COPY ? w->words / 2 : w->words;
    const int64_t words = part < PIECE_WORDS ? part : PIECE_WORDS;

    if (job->kind == LS_PROBE_READ) return read_piece(w, words);
    if (job->kind == LS_PROBE_COPY) return copy_piece(w, words);
    w->fma_sink += job->fma(FMA_ROUNDS);
    return 2.0 * job->per_round * FMA_ROUNDS;
}

static void work_thread(int thread, int n_threads, void *arg)
{
    const probe_job *job = arg;
    thread_work *w = &job->of[thread];
    double t0 = ls_clock_seconds() - job->start;

    (void)n_threads;
    while (t0 < LS_PROBE_SLOTS * LS_PROBE_SLOT_S) {
        const double work = do_piece(job, w), t1 = ls_clock_seconds() - job->start;
        ls_probe_credit(w->slots, t0, t1, work);
        t0 = t1;
    }
}

/* Pages that were never written are all one page of zeros, which lives in the cache. */
static void touch_thread(int thread, int n_threads, void *arg)
{
    const probe_job *job = arg;
    thread_work *w = &job->of[thread];
    int64_t lo, hi;

    ls_parallel_range_grain(job->words, STRIDES, thread, n_threads, &lo, &hi);
    w->data = job->data + lo;
    w->words = hi - lo;
    memset(w->data, 1, sizeof *w->data * (size_t)w->words);
}

void ls_probe_credit(float slots[LS_PROBE_SLOTS], double t0, double t1, double work)
{
    const int first = t0 > 0 ? (int)fmin(t0 / LS_PROBE_SLOT_S, LS_PROBE_SLOTS) : 0;

    for (int i = first; i < LS_PROBE_SLOTS && i * LS_PROBE_SLOT_S < t1; i++) {
        const double from = fmax(t0, i * LS_PROBE_SLOT_S), to = fmin(t1, (i + 1) * LS_PROBE_SLOT_S);
        if (to > from) slots[i] += (float)(work * ((to - from) / (t1 - t0)));
    }
}

/* -- one rank ---------------------------------------------------------------------------------------------
 */

static void choose_fma(probe_job *job, ls_probe *out)
{
    *out = (ls_probe){.isa = "c"};
    job->fma = lsi_probe_fma_c;
    job->per_round = LSI_FMA_C;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *out = (ls_probe){.isa = "avx2"};
        job->fma = lsi_probe_fma_avx2;
        job->per_round = LSI_FMA_AVX2;
    }
    if (__builtin_cpu_supports("avx512f")) {
        *out = (ls_probe){.isa = "avx512"};
        job->fma = lsi_probe_fma_avx512;
        job->per_round = LSI_FMA_AVX512;
    }
}

/* When the last rank of this machine is there.  Its ranks share a clock. */
typedef struct arrival {
    char machine[LS_MACHINE_NAME_MAX];
    double at;
} arrival;

static ls_status agree_on_start(const arrival *me, arrival *all, ls_comm *comm, double *start, ls_err *err)
{
    arrival mine = *me;
    ls_status st = LS_OK;

    if (comm != NULL) LS_TRY(ls_comm_barrier(comm, "before the probe", err));
    mine.at = *start = ls_clock_seconds();
    if (comm == NULL) return LS_OK;
    LS_TRY(ls_comm_gather_all(comm, &mine, sizeof mine, all, "starting the probe", err));
    for (int r = 0; r < ls_comm_size(comm); r++)
        if (strcmp(all[r].machine, mine.machine) == 0) *start = fmax(*start, all[r].at);
out:
    return st;
}

static ls_status work_all(probe_job *job, int threads, ls_comm *comm, ls_probe_work *mine, ls_err *err)
{
    const size_t ranks = comm != NULL ? (size_t)ls_comm_size(comm) : 1;
    arrival *all = ls_alloc(LS_MEM_TUNE, sizeof *all * ranks), me = {0};
    ls_status st = LS_OK;

    if (all == NULL) return ls_fail(err, LS_NOMEM, "probe: no memory");
    memcpy(me.machine, mine->machine, sizeof me.machine);
    for (job->kind = 0; job->kind < LS_PROBE_KINDS; job->kind++) {
        float *done = mine->done[job->kind];
        for (int t = 0; t < threads; t++) {
            memset(job->of[t].slots, 0, sizeof job->of[t].slots);
            job->of[t].at = 0;
        }
        LS_TRY(agree_on_start(&me, all, comm, &job->start, err));
        ls_parallel_run(threads, work_thread, job);
        for (int t = 0; t < threads; t++)
            for (int i = 0; i < LS_PROBE_SLOTS; i++) done[i] += job->of[t].slots[i];
    }
out:
    ls_free(all);
    return st;
}

static size_t bytes_of(ls_comm *comm)
{
    const size_t share = MACHINE_BYTES / (comm != NULL ? (size_t)ls_comm_local_size(comm) : 1);

    return share > MOST_BYTES ? MOST_BYTES : share < LEAST_BYTES ? LEAST_BYTES : share;
}

/* -- all ranks --------------------------------------------------------------------------------------------
 */

void ls_probe_combine(const ls_probe_work *of, int ranks, ls_probe *out)
{
    double peak[LS_PROBE_KINDS] = {0};

    for (int r = 0; r < ranks; r++) {
        double slots[LS_PROBE_KINDS][LS_PROBE_SLOTS] = {{0}};
        int first = 0;
        while (strcmp(of[first].machine, of[r].machine) != 0) first++;
        if (first != r) continue; /* its machine has been counted */
        for (int k = r; k < ranks; k++) {
            if (strcmp(of[k].machine, of[r].machine) != 0) continue;
            for (int kind = 0; kind < LS_PROBE_KINDS; kind++)
                for (int i = 0; i < LS_PROBE_SLOTS; i++) slots[kind][i] += (double)of[k].done[kind][i];
        }
        for (int kind = 0; kind < LS_PROBE_KINDS; kind++) {
            double best = 0;
            for (int i = 0; i < LS_PROBE_SLOTS; i++) best = fmax(best, slots[kind][i]);
            peak[kind] += best / LS_PROBE_SLOT_S;
        }
    }
    out->flop_s = peak[LS_PROBE_FMA];
    out->read_b_s = peak[LS_PROBE_READ];
    out->copy_b_s = peak[LS_PROBE_COPY];
}

ls_status ls_probe_machine(int threads, ls_comm *comm, ls_probe *out, ls_err *err)
{
    const int ranks = comm != NULL ? ls_comm_size(comm) : 1;
    const size_t bytes = bytes_of(comm);
    probe_job job = {.words = (int64_t)(bytes / sizeof *job.data)};
    ls_probe_work mine = {0}, *all = NULL;
    ls_status st = LS_OK;

    if (threads < 1 || threads > MAX_THREADS)
        return ls_fail(err, LS_INVALID, "probe: 1 to %d threads, not %d", MAX_THREADS, threads);
    job.data = ls_alloc(LS_MEM_TUNE, bytes);
    job.of = ls_alloc(LS_MEM_TUNE, sizeof *job.of * (size_t)threads);
    all = ls_alloc(LS_MEM_TUNE, sizeof *all * (size_t)ranks);
    if (job.data == NULL || job.of == NULL || all == NULL) {
        st = ls_fail(err, LS_NOMEM, "probe: no memory");
        goto out;
    }
    lsi_machine_name(mine.machine, comm);
    choose_fma(&job, out);
    ls_parallel_run(threads, touch_thread, &job);
    LS_TRY(work_all(&job, threads, comm, &mine, err));
    all[0] = mine;
    if (comm != NULL) LS_TRY(ls_comm_gather_all(comm, &mine, sizeof mine, all, "adding up the probe", err));
    ls_probe_combine(all, ranks, out);
out:
    ls_free(job.data);
    ls_free(job.of);
    ls_free(all);
    return st;
}
