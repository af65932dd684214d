/* gpu_idle.c: the share of time in which a GPU runs no kernel, of any program that uses CUDA.
 *
 * A library that CUDA loads into the program (CUPTI records when each kernel ran, also those within a graph):
 *
 *     CUDA_INJECTION64_PATH=build/gpu-idle.so build/lockstep bench resnet18 --device cuda --seconds 2
 *
 * As the program ends it says, of the middle of its longest run of kernels without a rest of 2 ms (of a
 * bench: its timed steps), how much of the time no kernel was running, and how long the longest gap was.
 * Copies from and to the host do not count as kernels.  Records cost time, so gaps are a little longer than
 * they are without it. */
#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER = 4 << 20, ALIGNED = 64, REST = 2000000 /* ns */ };

typedef struct span {
    uint64_t begin, end; /* ns */
} span;

static struct {
    pthread_mutex_t mutex;
    span *at;
    size_t n, room;
} spans = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void add(uint64_t begin, uint64_t end)
{
    if (spans.n == spans.room) {
        const size_t room = spans.room > 0 ? 2 * spans.room : 1 << 16;
        span *at = realloc(spans.at, room * sizeof *at);
        if (at == NULL) return; /* what is there is enough to judge by */
        spans.at = at;
        spans.room = room;
    }
    spans.at[spans.n++] = (span){begin, end};
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(ALIGNED, BUFFER);
    *size = *buffer != NULL ? BUFFER : 0;
    *most = 0; /* as many records as there is room for */
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;

    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&spans.mutex);
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && k->end > k->start) add(k->start, k->end);
    }
    pthread_mutex_unlock(&spans.mutex);
    free(buffer);
}

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The longest run of kernels, by their number, between two rests: [*lo, *hi) of the sorted spans. */
static void longest_run(size_t *lo, size_t *hi)
{
    uint64_t until = 0;
    size_t first = 0;

    *lo = *hi = 0;
    for (size_t i = 0; i <= spans.n; i++) {
        if (i == spans.n || (i > 0 && spans.at[i].begin > until + REST)) {
            if (i - first > *hi - *lo) {
                *lo = first;
                *hi = i;
            }
            first = i;
        }
        if (i < spans.n && spans.at[i].end > until) until = spans.at[i].end;
    }
}

static void say(void)
{
    uint64_t until, idle = 0, longest = 0;
    size_t lo, hi, gaps = 0, margin;

    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    qsort(spans.at, spans.n, sizeof *spans.at, by_begin);
    longest_run(&lo, &hi);
    margin = (hi - lo) / 10;
    lo += margin;
    hi -= margin;
    if (hi <= lo + 1) {
        fprintf(stderr, "gpu_idle: only %zu kernels were recorded\n", spans.n);
        return;
    }
    until = spans.at[lo].end;
    for (size_t i = lo + 1; i < hi; i++) {
        const span *s = &spans.at[i];
        if (s->begin > until) {
            idle += s->begin - until;
            gaps++;
            if (s->begin - until > longest) longest = s->begin - until;
        }
        if (s->end > until) until = s->end;
    }
    fprintf(stderr,
            "gpu_idle: %.2f %% of %.1f ms without a kernel: %zu kernels, %zu gaps, the longest %.1f us\n",
            100.0 * (double)idle / (double)(until - spans.at[lo].begin),
            (double)(until - spans.at[lo].begin) / 1e6, hi - lo, gaps, (double)longest / 1e3);
}

/* The name by which CUDA calls it. */
int InitializeInjection(void);
int InitializeInjection(void)
{
    if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
        fprintf(stderr, "gpu_idle: CUPTI does not record kernels here\n");
    else
        atexit(say);
    return 1;
}
