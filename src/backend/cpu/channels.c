/* channels.c: the view of a tensor by channels, and the cutting of per-channel reductions among threads. */
#include "backend/cpu/channels.h"

#include <string.h>

#include "base/parallel.h"

lsi_channels lsi_channels_of(ls_shape shape, int axis, const ls_layout *layout, bool merge)
{
    lsi_channels v = {.n = 1, .c = shape.dim[axis], .s = 1};

    for (int i = 0; i < axis; i++) v.n *= shape.dim[i];
    for (int i = axis + 1; i < shape.rank; i++) v.s *= shape.dim[i];
    if (layout == &lsi_layout_c16) {
        v.lanes = true;
        v.sn = v.c * v.s;
        v.sb = 16 * v.s;
        v.sp = 16;
    } else if (v.s == 1) {
        v.lanes = true;
        v.sn = v.sp = v.c;
        v.sb = 16;
        if (merge) {
            v.s = v.n;
            v.n = 1;
        }
    }
    return v;
}

typedef struct job_call {
    const lsi_channel_job *j;
    const void *ctx;
    double *partial;           /* (threads, tasks, n_sums * unit) */
    ls_parallel_shares shares; /* of apply: what a thread has reduced is in its cache */
} job_call;

static int64_t units_of(const lsi_channel_job *j)
{
    int unit = j->view.lanes ? j->unit : 1;

    return (j->view.c + unit - 1) / unit;
}

static int64_t group_size(const lsi_channel_job *j)
{
    return j->view.n * j->view.s / j->groups;
}

/* Whether whole tasks can be dealt out without leaving a thread idle for long. */
static bool enough_tasks(const lsi_channel_job *j)
{
    int64_t tasks = j->groups * units_of(j), turns = (tasks + j->threads - 1) / j->threads;

    return (double)(turns * j->threads) <= 1.25 * (double)tasks;
}

static void place_of(const lsi_channel_job *j, int64_t task, int64_t *group, int64_t *ch, int *n_ch)
{
    int64_t units = units_of(j);
    int unit = j->view.lanes ? j->unit : 1;

    *group = task / units;
    *ch = task % units * unit;
    *n_ch = j->view.c - *ch < unit ? (int)(j->view.c - *ch) : unit;
}

static void whole_tasks(int thread, int n_threads, void *arg)
{
    const job_call *c = arg;
    const lsi_channel_job *j = c->j;
    int64_t size = group_size(j), t, end, group, ch;
    int n_ch;

    ls_parallel_range(j->groups * units_of(j), thread, n_threads, &t, &end);
    for (; t < end; t++) {
        double sums[LSI_SUMS_MAX * LSI_UNIT_MAX] = {0};
        place_of(j, t, &group, &ch, &n_ch);
        j->reduce(c->ctx, group, ch, group * size, (group + 1) * size, sums);
        j->finish(c->ctx, group, ch, n_ch, sums);
        if (j->apply != NULL) j->apply(c->ctx, group, ch, group * size, (group + 1) * size);
    }
}

static size_t sums_per_task(const lsi_channel_job *j)
{
    return (size_t)(j->n_sums * (j->view.lanes ? j->unit : 1));
}

static void shared_reduce(int thread, int n_threads, void *arg)
{
    const job_call *c = arg;
    const lsi_channel_job *j = c->j;
    int64_t tasks = j->groups * units_of(j), size = group_size(j), lo, hi, group, ch;
    size_t width = sums_per_task(j);
    int n_ch;

    ls_parallel_range(size, thread, n_threads, &lo, &hi);
    for (int64_t t = 0; t < tasks; t++) {
        double *sums = c->partial + ((size_t)thread * (size_t)tasks + (size_t)t) * width;
        /* Also for a thread that has nothing to add: all are joined. */
        memset(sums, 0, width * sizeof *sums);
        place_of(j, t, &group, &ch, &n_ch);
        if (lo < hi) j->reduce(c->ctx, group, ch, group * size + lo, group * size + hi, sums);
    }
}

static void shared_apply(int thread, int n_threads, void *arg)
{
    job_call *c = arg;
    const lsi_channel_job *j = c->j;
    ls_parallel_walk w = ls_parallel_walk_begin(&c->shares, thread, n_threads);
    int64_t tasks = j->groups * units_of(j), size = group_size(j), lo, hi, group, ch;
    int n_ch;

    for (int64_t t; (t = ls_parallel_walk_next(&w, tasks)) >= 0;) {
        ls_parallel_range(size, w.share, w.n, &lo, &hi);
        place_of(j, t, &group, &ch, &n_ch);
        if (lo < hi) j->apply(c->ctx, group, ch, group * size + lo, group * size + hi);
    }
}

/* In the order of threads, whoever was first: bits follow from the number of threads, never from their
 * timing. */
static void join_partials(const job_call *c)
{
    const lsi_channel_job *j = c->j;
    size_t tasks = (size_t)(j->groups * units_of(j)), width = sums_per_task(j);
    int64_t group, ch;
    int n_ch;

    for (size_t t = 0; t < tasks; t++) {
        double *sums = c->partial + t * width;
        for (size_t thread = 1; thread < (size_t)j->threads; thread++)
            for (size_t k = 0; k < width; k++) sums[k] += c->partial[(thread * tasks + t) * width + k];
        place_of(j, (int64_t)t, &group, &ch, &n_ch);
        j->finish(c->ctx, group, ch, n_ch, sums);
    }
}

size_t lsi_channel_job_scratch(const lsi_channel_job *j)
{
    size_t doubles;

    if (j->threads == 1 || enough_tasks(j)) return 0;
    doubles = (size_t)j->threads * (size_t)(j->groups * units_of(j)) * sums_per_task(j);
    return (doubles * sizeof(double) + 63) & ~(size_t)63;
}

void lsi_channel_job_run(const lsi_channel_job *j, const void *ctx, void *scratch)
{
    job_call c = {.j = j, .ctx = ctx, .partial = scratch};

    if (j->view.c == 0 || j->groups == 0) return;
    if (j->threads == 1 || enough_tasks(j)) {
        ls_parallel_run(j->threads, whole_tasks, &c);
        return;
    }
    ls_parallel_run(j->threads, shared_reduce, &c);
    join_partials(&c);
    if (j->apply != NULL) ls_parallel_run(j->threads, shared_apply, &c);
}

static void apply_all(int thread, int n_threads, void *arg)
{
    const job_call *c = arg;
    const lsi_channel_job *j = c->j;
    int64_t units = units_of(j), lo, hi;
    int unit = j->view.lanes ? j->unit : 1;

    ls_parallel_range(units * j->view.n * j->view.s, thread, n_threads, &lo, &hi);
    /* Image by image, and unit by unit inside it: the order of memory. */
    while (lo < hi) {
        int64_t image = lo / (units * j->view.s), u = lo / j->view.s % units, p = lo % j->view.s;
        int64_t n = j->view.s - p < hi - lo ? j->view.s - p : hi - lo;
        int64_t at = image * j->view.s + p;
        j->apply(c->ctx, 0, u * unit, at, at + n);
        lo += n;
    }
}

void lsi_channel_job_apply(const lsi_channel_job *j, const void *ctx)
{
    job_call c = {.j = j, .ctx = ctx};

    if (j->view.c * j->view.n * j->view.s > 0) ls_parallel_run(j->threads, apply_all, &c);
}
