/* probe.c: measures peak arithmetic and memory bandwidth. */
#include "bench/probe.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "bench/probe_internal.h"

#define MAX_THREADS  1024
#define FMA_SECONDS  0.002 /* shorter than a time slice: some bursts run undisturbed on a busy machine */
#define FMA_TRIES    40
#define READ_ROUNDS  2
#define READ_PARTS   8
#define READ_BYTES   ((size_t)256 << 20) /* a part is long gone from the caches when it is read again */
#define READ_STRIDES 8

/* Scalar multiply-adds, for processors without vectors of our own. */
float lsi_probe_fma_c(int64_t rounds)
{
    float acc[LSI_FMA_C] = {0, 1, 2, 3};

    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < LSI_FMA_C; i++) acc[i] = acc[i] * 0.999f + 0.001f;
    return acc[0] + acc[1] + acc[2] + acc[3];
}

typedef struct fma_job {
    float (*run)(int64_t rounds);
    int64_t rounds;
    volatile float sink[MAX_THREADS];
} fma_job;

static void fma_thread(int thread, int n_threads, void *arg)
{
    fma_job *job = arg;

    (void)n_threads;
    job->sink[thread] = job->run(job->rounds);
}

static double probe_fma(int threads, fma_job *job, int per_round)
{
    double best = 0;

    /* Double the work until one thread needs long enough to be timed: several may be kept waiting by other
     * programs, which must not pass for work. */
    for (job->rounds = 1 << 12;; job->rounds *= 2) {
        double t = ls_clock_seconds();
        job->sink[0] = job->run(job->rounds);
        if (ls_clock_seconds() - t > FMA_SECONDS) break;
    }
    for (int k = 0; k < FMA_TRIES; k++) {
        double t = ls_clock_seconds(), rate;
        ls_parallel_run(threads, fma_thread, job);
        t = ls_clock_seconds() - t;
        rate = 2.0 * (double)per_round * (double)job->rounds * (double)threads / t;
        if (rate > best) best = rate;
    }
    return best;
}

typedef struct memory_job {
    uint64_t *data, *to; /* the part read now; where it is copied, or NULL */
    int64_t words;
    volatile uint64_t sink[MAX_THREADS];
} memory_job;

static void read_thread(int thread, int n_threads, void *arg)
{
    memory_job *job = arg;
    uint64_t sum[READ_STRIDES] = {0}, all = 0;
    int64_t lo, hi;

    ls_parallel_range_grain(job->words, READ_STRIDES, thread, n_threads, &lo, &hi);
    for (int64_t i = lo; i + READ_STRIDES <= hi; i += READ_STRIDES)
        for (int k = 0; k < READ_STRIDES; k++) sum[k] += job->data[i + k];
    for (int k = 0; k < READ_STRIDES; k++) all += sum[k];
    job->sink[thread] = all;
}

static void copy_thread(int thread, int n_threads, void *arg)
{
    memory_job *job = arg;
    int64_t lo, hi;

    ls_parallel_range_grain(job->words, READ_STRIDES, thread, n_threads, &lo, &hi);
    memcpy(job->to + lo, job->data + lo, sizeof *job->data * (size_t)(hi - lo));
}

/* Bytes per second of the best round; a part that is copied goes to the next but one, which is long gone from
 * the caches, too. */
static double probe_memory(int threads, memory_job *job, uint64_t *data, bool copy)
{
    double best = 0;

    job->words = (int64_t)(READ_BYTES / READ_PARTS / sizeof *data);
    for (int k = 0; k < READ_ROUNDS * READ_PARTS; k++) {
        double t, rate;
        job->data = data + k % READ_PARTS * job->words;
        job->to = data + (k + 2) % READ_PARTS * job->words;
        t = ls_clock_seconds();
        ls_parallel_run(threads, copy ? copy_thread : read_thread, job);
        t = ls_clock_seconds() - t;
        rate = (copy ? 2.0 : 1.0) * (double)job->words * (double)sizeof *data / t;
        if (rate > best) best = rate;
    }
    return best;
}

ls_status ls_probe_machine(int threads, ls_probe *out, ls_err *err)
{
    ls_status st = LS_OK;
    fma_job *fma = ls_alloc(LS_MEM_TUNE, sizeof *fma);
    memory_job *memory = ls_alloc(LS_MEM_TUNE, sizeof *memory);
    void *data = ls_alloc(LS_MEM_TUNE, READ_BYTES);
    int per_round = LSI_FMA_C;

    if (threads < 1 || threads > MAX_THREADS) {
        st = ls_fail(err, LS_INVALID, "probe: 1 to %d threads, not %d", MAX_THREADS, threads);
        goto out;
    }
    if (fma == NULL || memory == NULL || data == NULL) {
        st = ls_fail(err, LS_NOMEM, "probe: no memory");
        goto out;
    }
    /* Pages that were never written are all one page of zeros, which lives in the cache. */
    memset(data, 1, READ_BYTES);
    *out = (ls_probe){.isa = "c"};
    fma->run = lsi_probe_fma_c;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *out = (ls_probe){.isa = "avx2"};
        fma->run = lsi_probe_fma_avx2;
        per_round = LSI_FMA_AVX2;
    }
    if (__builtin_cpu_supports("avx512f")) {
        *out = (ls_probe){.isa = "avx512"};
        fma->run = lsi_probe_fma_avx512;
        per_round = LSI_FMA_AVX512;
    }
    out->flop_s = probe_fma(threads, fma, per_round);
    out->read_b_s = probe_memory(threads, memory, data, false);
    out->copy_b_s = probe_memory(threads, memory, data, true);
out:
    ls_free(fma);
    ls_free(memory);
    ls_free(data);
    return st;
}
