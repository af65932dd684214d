/* trace.c: events of a timeline, written as they happen. */
#include "train/trace.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

enum { LEAST_NS = 1000 }; /* shorter work for exchanges is a glance at them, not worth a span */

struct ls_trace {
    FILE *f;
    char path[4200];
    int rank;
    int64_t steps_left, step;
    uint64_t begun; /* of the step that goes on */
    bool active, any;
    const ls_plan *plan; /* that runs */
};

ls_status ls_trace_open(ls_trace **out, const char *folder, int rank, int64_t steps, ls_err *err)
{
    ls_trace *t = ls_alloc(LS_MEM_CLI, sizeof *t);

    *out = t;
    if (t == NULL) return ls_fail(err, LS_NOMEM, "trace: no memory");
    t->rank = rank;
    t->steps_left = steps;
    snprintf(t->path, sizeof t->path, "%s/trace-%05d.json", folder, rank);
    t->f = fopen(t->path, "w");
    if (t->f == NULL) return ls_fail(err, LS_IO, "%s cannot be written", t->path);
    fputs("[", t->f);
    return LS_OK;
}

static void finish(ls_trace *t)
{
    if (t->f == NULL) return;
    fputs("\n]\n", t->f);
    const bool bad = ferror(t->f) != 0;
    if (fclose(t->f) != 0 || bad) ls_log(LS_LOG_WARN, "%s could not be written", t->path);
    t->f = NULL;
}

void ls_trace_close(ls_trace *t)
{
    if (t == NULL) return;
    finish(t);
    ls_free(t);
}

/* Names of ops are words, those of layers come from the model's source: neither needs escaping. */
static void event(ls_trace *t, const char *category, const char *name, const char *layer, uint64_t begun,
                  uint64_t ended)
{
    fprintf(t->f,
            "%s\n{\"ph\":\"X\",\"pid\":%d,\"tid\":0,\"cat\":\"%s\",\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"layer\":\"%s\"}}",
            t->any ? "," : "", t->rank, category, name, (double)begun / 1e3, (double)(ended - begun) / 1e3,
            layer);
    t->any = true;
}

void ls_trace_begin(ls_trace *t, int64_t step)
{
    if (t == NULL || t->f == NULL) return;
    t->active = true;
    t->step = step;
    t->begun = ls_clock_ns();
}

static void note(void *ctx, int node, uint64_t begun, uint64_t ended, uint64_t progressed)
{
    ls_trace *t = ctx;
    const ls_plan_node n = ls_plan_node_at(t->plan, node);

    event(t, n.backward ? "backward" : "node", n.op, n.scope != NULL ? n.scope : "", begun, ended);
    if (progressed - ended >= LEAST_NS) event(t, "exchange", "exchange", "", ended, progressed);
}

ls_status ls_trace_run(ls_trace *t, ls_plan *p, ls_err *err)
{
    if (t == NULL || !t->active) return ls_plan_run(p, err);
    t->plan = p;
    return ls_plan_run_noted(p, note, t, err);
}

void ls_trace_end(ls_trace *t)
{
    char name[40];

    if (t == NULL || !t->active) return;
    snprintf(name, sizeof name, "step %lld", (long long)t->step);
    event(t, "step", name, "", t->begun, ls_clock_ns());
    t->active = false;
    if (--t->steps_left == 0) finish(t);
}
