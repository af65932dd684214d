/* gauges.c: one thread that looks, one that writes. */
#include "train/gauges.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "events/metrics.h"

enum { PERIOD_S = 1, VALUES = 4 }; /* numbers of a device */

/* What all devices showed at one time. */
typedef struct look {
    int64_t step;
    double epoch, time_s;
    int n;
    ls_gauge of[LS_GAUGES_MOST];
} look;

struct ls_gauges {
    ls_gauges_options o;
    double began;     /* by the clock, when o.seconds was true */
    char path[4200];  /* of the file, which is opened when there is something to write */
    ls_metrics *file; /* the trainer's, as are the next two */
    bool failed;      /* the file cannot be had, which was said */
    look *taken;      /* a list that takes turns with `looks` */
    size_t taken_cap;
    pthread_t thread;
    pthread_cond_t wake;  /* `end` has become true */
    pthread_mutex_t lock; /* guards all that follows */
    look *looks;          /* not yet written */
    size_t n, cap;
    int64_t step;
    double epoch;
    bool end;
};

/* -- the thread that looks --------------------------------------------------------------------------------
 */

/* False: nothing will ever be seen. */
static bool look_once(ls_gauges *g)
{
    look now = {.n = 0};

    now.n = g->o.dev->backend->gauges(g->o.dev, g->o.ranks, now.of);
    now.time_s = g->o.seconds + ls_clock_seconds() - g->began;
    if (now.n == 0) return false;
    pthread_mutex_lock(&g->lock);
    now.step = g->step;
    now.epoch = g->epoch;
    if (LS_GROW(LS_MEM_CLI, g->looks, g->n + 1, g->cap)) g->looks[g->n++] = now;
    pthread_mutex_unlock(&g->lock);
    return true;
}

/* Until `until` by the clock, or the end; true: the end. */
static bool rest(ls_gauges *g, double until)
{
    struct timespec t = {(time_t)until, (long)(1e9 * (until - floor(until)))};
    bool end;

    pthread_mutex_lock(&g->lock);
    while (!g->end && pthread_cond_timedwait(&g->wake, &g->lock, &t) != ETIMEDOUT) continue;
    end = g->end;
    pthread_mutex_unlock(&g->lock);
    return end;
}

static void *watch(void *arg)
{
    ls_gauges *g = arg;
    double next = ls_clock_seconds();

    while (look_once(g)) {
        /* A look that took longer than a second leaves out others, and is not made up for. */
        next = fmax(next + PERIOD_S, ls_clock_seconds());
        if (rest(g, next)) break;
    }
    return NULL;
}

/* -- the thread that trains -------------------------------------------------------------------------------
 */

static bool start(ls_gauges *g)
{
    pthread_condattr_t how;
    sigset_t all, before;
    bool ok;

    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC); /* that of base/clock.h */
    pthread_cond_init(&g->wake, &how);
    pthread_condattr_destroy(&how);
    /* Signals are for the thread that trains. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ok = pthread_create(&g->thread, NULL, watch, g) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static void destroy(ls_gauges *g)
{
    pthread_cond_destroy(&g->wake);
    pthread_mutex_destroy(&g->lock);
    ls_metrics_close(g->file);
    ls_free(g->looks);
    ls_free(g->taken);
    ls_free(g);
}

void ls_gauges_open(ls_gauges **out, const ls_gauges_options *o)
{
    ls_gauges *g = o->dev->backend->gauges != NULL ? ls_alloc(LS_MEM_CLI, sizeof *g) : NULL;

    *out = NULL;
    if (g == NULL) return;
    g->o = *o;
    g->began = ls_clock_seconds();
    g->step = o->resumed_at > 0 ? o->resumed_at : 0;
    if (o->rank == 0)
        snprintf(g->path, sizeof g->path, "%s/gpu.jsonl", o->folder);
    else
        snprintf(g->path, sizeof g->path, "%s/gpu-%d.jsonl", o->folder, o->rank);
    g->o.folder = NULL; /* the caller's */
    if (start(g))
        *out = g;
    else
        destroy(g);
}

static void open_file(ls_gauges *g)
{
    ls_err err = {0};

    if (g->file != NULL || g->failed) return;
    g->failed = ls_metrics_open(&g->file, g->path, g->o.resumed_at >= 0 ? g->o.resumed_at : LS_METRICS_NEW,
                                NULL, &err) != LS_OK;
    if (g->failed) ls_log(LS_LOG_WARN, "%s: power and load are not kept", err.text);
}

static void write_look(ls_gauges *g, const look *l, ls_events *ev)
{
    char name[LS_GAUGES_MOST * VALUES][48];
    ls_metric value[LS_GAUGES_MOST * VALUES];
    int n = 0;

    for (int i = 0; i < l->n; i++) {
        const ls_gauge *d = &l->of[i];
        const ls_metric shown[VALUES] = {{"utilization_percent", 100 * d->utilization},
                                         {"memory_mib", d->memory_bytes / (1 << 20)},
                                         {"power_w", d->power_w},
                                         {"temperature_c", d->temperature_c}};
        for (int k = 0; k < VALUES; k++) {
            if (isnan(shown[k].value)) continue; /* the device does not say */
            snprintf(name[n], sizeof name[n], "gpu/%d/%s", d->device, shown[k].name);
            value[n] = (ls_metric){name[n], shown[k].value};
            n++;
        }
    }
    for (int k = 0; k < n; k++) ls_events_scalar(ev, value[k].name, l->step, value[k].value);
    ls_metrics_write(g->file, &(ls_metrics_line){l->step, l->epoch, l->time_s, value, n});
}

bool ls_gauges_note(ls_gauges *g, int64_t step, double epoch)
{
    bool any;

    if (g == NULL) return false;
    pthread_mutex_lock(&g->lock);
    g->step = step;
    g->epoch = epoch;
    any = g->n > 0;
    pthread_mutex_unlock(&g->lock);
    return any;
}

/* The list that was written last is the thread's to fill again. */
void ls_gauges_write(ls_gauges *g, ls_events *ev)
{
    look *list;
    size_t n, cap;

    if (g == NULL) return;
    pthread_mutex_lock(&g->lock);
    list = g->looks;
    n = g->n;
    cap = g->cap;
    g->looks = g->taken;
    g->cap = g->taken_cap;
    g->n = 0;
    pthread_mutex_unlock(&g->lock);
    g->taken = list;
    g->taken_cap = cap;
    if (n > 0) open_file(g);
    for (size_t i = 0; i < n; i++) write_look(g, &list[i], ev);
}

void ls_gauges_close(ls_gauges *g, bool keep, ls_events *ev)
{
    if (g == NULL) return;
    pthread_mutex_lock(&g->lock);
    g->end = true;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    if (keep) ls_gauges_write(g, ev);
    destroy(g);
}
