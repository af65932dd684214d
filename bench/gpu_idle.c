/* gpu_idle.c: the share of time in which a GPU runs no kernel, of any program that uses CUDA.
 *
 * A library that CUDA loads into the program (CUPTI records when each kernel ran, also those within a graph):
 *
 *     CUDA_INJECTION64_PATH=build/gpu-idle.so build/lockstep bench resnet18 --device cuda --seconds 2
 *
 * As the program ends it says, of the middle of its longest run of kernels without a rest of 2 ms (of a
 * bench: its timed steps), how much of the time no kernel was running, how long the longest gap was, between
 * which kernels most of the time without one lies, and which kernels take most time.  Memory that is cleared
 * or copied on the device by the driver counts as a kernel that is called "memset" or "memcpy"; copies from
 * and to the host do not.  Records cost time, so gaps are a little longer than they are without it.  A
 * kernel that was started early and waits (LOCKSTEP_CUDA_EARLY, docs/gpu.md) counts as running: with such
 * kernels only the time of a step tells what is gained.  GPU_IDLE_LINES (12) is the length of the lists. */
#include <ctype.h>
#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 4 << 20, ALIGNED = 64, REST = 2000000 /* ns */, NAME = 44, NAMES = 4096 };

typedef struct span {
    uint64_t begin, end; /* ns */
    int name;            /* its place in `names` */
} span;

/* -- names ------------------------------------------------------------------------------------------------
 *
 * Kernels are few, and CUPTI's own texts need not last. */

static struct {
    char *full, brief[NAME];
} names[NAMES];
static int n_names;

/* The identifiers in a name of C++, as many as fit, without what they are qualified by: enough to know it. */
static void shorten(char *out, const char *name)
{
    size_t n = 0;

    if (strncmp(name, "_Z", 2) != 0) {
        snprintf(out, NAME, "%s", name);
        return;
    }
    for (const char *p = name; *p != '\0';) {
        char *end = (char *)p;
        if (*p == 'L' && islower((unsigned char)p[1]) && strchr(p, 'E') != NULL) { /* a number */
            p = strchr(p, 'E');
            continue;
        }
        const unsigned long length = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : 0;
        if (length == 0 || length > strlen(end)) {
            p = length == 0 && end > p ? end : p + 1;
            continue;
        }
        if (strncmp(end, "_GLOBAL__N_", 11) != 0 && strncmp(end, "_INTERNAL_", 10) != 0 && n + 2 < NAME) {
            n += (size_t)snprintf(out + n, NAME - n, "%s%.*s", n > 0 ? " " : "", (int)length, end);
            if (n >= NAME) n = NAME - 1;
        }
        p = end + length;
    }
    out[n] = '\0';
}

static int name_of(const char *text)
{
    for (int i = 0; i < n_names; i++)
        if (strcmp(names[i].full, text) == 0) return i;
    if (n_names == NAMES - 1 || (names[n_names].full = strdup(text)) == NULL) return NAMES - 1;
    shorten(names[n_names].brief, text);
    return n_names++;
}

static struct {
    pthread_mutex_t mutex;
    span *at;
    size_t n, room;
} spans = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void add(uint64_t begin, uint64_t end, const char *name)
{
    if (end <= begin) return;
    if (spans.n == spans.room) {
        const size_t room = spans.room > 0 ? 2 * spans.room : 1 << 16;
        span *at = realloc(spans.at, room * sizeof *at);
        if (at == NULL) return; /* what is there is enough to judge by */
        spans.at = at;
        spans.room = room;
    }
    spans.at[spans.n++] = (span){begin, end, name_of(name != NULL ? name : "?")};
}

/* What is no kernel, by its size: that tells whose it is. */
static void add_bytes(uint64_t begin, uint64_t end, const char *what, uint64_t bytes)
{
    char name[NAME];

    snprintf(name, sizeof name, "%s of %llu bytes", what, (unsigned long long)bytes);
    add(begin, end, name);
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
        const CUpti_ActivityMemset4 *m = (const CUpti_ActivityMemset4 *)record;
        const CUpti_ActivityMemcpy6 *c = (const CUpti_ActivityMemcpy6 *)record;
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            add(k->start, k->end, k->name);
        else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
            add_bytes(m->start, m->end, "memset", m->bytes);
        else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY && c->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD)
            add_bytes(c->start, c->end, "memcpy", c->bytes);
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

/* -- lists ------------------------------------------------------------------------------------------------
 */

/* Time by the kernel before and the one behind it; of kernels themselves, `before` is -1. */
typedef struct sum {
    int before, behind;
    uint64_t ns;
    size_t n;
} sum;

typedef struct sums {
    sum *at;
    size_t n, room;
} sums;

static void add_to(sums *all, int before, int behind, uint64_t ns)
{
    size_t i = 0;

    while (i < all->n && (all->at[i].before != before || all->at[i].behind != behind)) i++;
    if (i == all->n) {
        if (all->n == all->room) {
            const size_t room = 2 * all->room + 64;
            sum *at = realloc(all->at, room * sizeof *at);
            if (at == NULL) return;
            all->at = at;
            all->room = room;
        }
        all->at[all->n++] = (sum){.before = before, .behind = behind};
    }
    all->at[i].ns += ns;
    all->at[i].n++;
}

static int by_time(const void *a, const void *b)
{
    const sum *x = a, *y = b;

    return (x->ns < y->ns) - (x->ns > y->ns);
}

static void say_sums(sums *all, const char *what, double whole)
{
    const char *wish = getenv("GPU_IDLE_LINES");
    const size_t most = wish != NULL ? strtoul(wish, NULL, 10) : 12;

    if (all->n > 0) qsort(all->at, all->n, sizeof *all->at, by_time);
    for (size_t i = 0; i < all->n && i < most; i++) {
        const sum *s = &all->at[i];
        fprintf(stderr, "gpu_idle: %s %5.2f %%, %6zu times, %7.2f us each: %s%s%s\n", what,
                100.0 * (double)s->ns / whole, s->n, (double)s->ns / 1e3 / (double)s->n,
                s->before >= 0 ? names[s->before].brief : "", s->before >= 0 ? " -> " : "",
                names[s->behind].brief);
    }
    free(all->at);
}

/* Kernels [lo, hi) of the sorted spans. */
static void say_run(size_t lo, size_t hi)
{
    uint64_t until = spans.at[lo].end, idle = 0, longest = 0;
    size_t gaps = 0;
    int last = spans.at[lo].name; /* the kernel that ended last */
    sums between = {0}, kernels = {0};
    double whole;

    for (size_t i = lo + 1; i < hi; i++) {
        const span *s = &spans.at[i];
        add_to(&kernels, -1, s->name, s->end - s->begin);
        if (s->begin > until) {
            idle += s->begin - until;
            gaps++;
            add_to(&between, last, s->name, s->begin - until);
            if (s->begin - until > longest) longest = s->begin - until;
        }
        if (s->end > until) {
            until = s->end;
            last = s->name;
        }
    }
    whole = (double)(until - spans.at[lo].begin);
    fprintf(stderr,
            "gpu_idle: %.2f %% of %.1f ms without a kernel: %zu kernels, %zu gaps, the longest %.1f us\n",
            100.0 * (double)idle / whole, whole / 1e6, hi - lo, gaps, (double)longest / 1e3);
    say_sums(&between, "gap   ", whole);
    say_sums(&kernels, "kernel", whole);
}

static void say(void)
{
    size_t lo, hi, margin;

    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    names[NAMES - 1].full = names[NAMES - 1].brief; /* all that there was no room for */
    snprintf(names[NAMES - 1].brief, NAME, "others");
    if (spans.n > 0) qsort(spans.at, spans.n, sizeof *spans.at, by_begin);
    longest_run(&lo, &hi);
    margin = (hi - lo) / 10;
    lo += margin;
    hi -= margin;
    if (hi <= lo + 1)
        fprintf(stderr, "gpu_idle: only %zu kernels were recorded\n", spans.n);
    else
        say_run(lo, hi);
}

/* The name by which CUDA calls it. */
int InitializeInjection(void);
int InitializeInjection(void)
{
    if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) != CUPTI_SUCCESS)
        fprintf(stderr, "gpu_idle: CUPTI does not record kernels here\n");
    else
        atexit(say);
    return 1;
}
