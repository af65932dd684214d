/* trace.c: events of a timeline, written step by step. */
#include "train/trace.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "exec/document.h"
#include "exec/results.h"

enum { LEAST_NS = 1000 }; /* shorter work for exchanges is a glance at them, not worth a span */

/* A plan that has run, and what its nodes are. */
typedef struct known_plan {
    const ls_plan *plan;
    ls_document document;
} known_plan;

/* What went on; written when the step is over, so that writing takes none of its time. */
typedef struct span {
    const ls_doc_node *n; /* NULL: work on exchanges */
    uint64_t begun, ended;
} span;

struct ls_trace {
    FILE *f;
    char path[4200];
    int rank;
    int64_t steps_left, step;
    uint64_t begun; /* of the step that goes on */
    bool active, any;
    known_plan *known;
    int n_known;
    size_t cap;
    const ls_document *now; /* of the plan that runs */
    span *spans;
    int64_t n_spans;
    size_t spans_cap;
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
    for (int i = 0; i < t->n_known; i++) ls_document_release(&t->known[i].document);
    ls_free(t->known);
    ls_free(t->spans);
    ls_free(t);
}

/* Names of ops are words, those of layers come from the model's source: neither needs escaping.  `id` is the
 * node's in the plan's document; -1: it is none. */
static void event(ls_trace *t, const char *category, const char *name, const char *layer, int32_t id,
                  uint64_t begun, uint64_t ended)
{
    fprintf(t->f,
            "%s\n{\"ph\":\"X\",\"pid\":%d,\"tid\":0,\"cat\":\"%s\",\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"layer\":\"%s\"",
            t->any ? "," : "", t->rank, category, name, (double)begun / 1e3, (double)(ended - begun) / 1e3,
            layer);
    if (id >= 0) fprintf(t->f, ",\"id\":%d", (int)id);
    fprintf(t->f, "}}");
    t->any = true;
}

static const char *category(const ls_doc_node *n)
{
    if (n->waits) return "wait";
    if (strcmp(n->queue, "comm") == 0) return "exchange";
    if (n->updates) return "update";
    return n->backward ? "backward" : "node";
}

void ls_trace_begin(ls_trace *t, int64_t step)
{
    if (t == NULL || t->f == NULL) return;
    t->active = true;
    t->step = step;
    t->begun = ls_clock_ns();
}

/* There is room: ls_trace_run has seen to it. */
static void note(void *ctx, int node, uint64_t begun, uint64_t ended, uint64_t progressed)
{
    ls_trace *t = ctx;

    t->spans[t->n_spans++] = (span){&t->now->nodes[node], begun, ended};
    if (progressed - ended >= LEAST_NS) t->spans[t->n_spans++] = (span){NULL, ended, progressed};
}

/* A plan of an odd batch may be gone, and another one where it was. */
static bool is_of(const known_plan *k, const ls_plan *p)
{
    return k->plan == p && k->document.hash == ls_plan_hash(p) &&
           k->document.n_nodes == ls_plan_node_count(p);
}

static ls_status know(ls_trace *t, const ls_plan *p, ls_err *err)
{
    ls_status st;

    for (int i = 0; i < t->n_known; i++) {
        t->now = &t->known[i].document;
        if (is_of(&t->known[i], p)) return LS_OK;
    }
    if (!LS_GROW(LS_MEM_CLI, t->known, t->n_known + 1, t->cap))
        return ls_fail(err, LS_NOMEM, "trace: no memory");
    t->known[t->n_known].plan = p;
    st = ls_document_make(&t->known[t->n_known].document, p, err);
    t->now = &t->known[t->n_known++].document;
    return st;
}

ls_status ls_trace_start(ls_trace *t, ls_plan *p, ls_err *err)
{
    ls_status st;

    if (t == NULL || !t->active) return ls_plan_start(p, err);
    st = know(t, p, err);
    if (st == LS_OK && !LS_GROW(LS_MEM_CLI, t->spans, t->n_spans + 2 * t->now->n_nodes, t->spans_cap))
        st = ls_fail(err, LS_NOMEM, "trace: no memory");
    return st == LS_OK ? ls_plan_run_noted(p, note, t, err) : st;
}

static void write_spans(ls_trace *t)
{
    for (int64_t i = 0; i < t->n_spans; i++) {
        const span *x = &t->spans[i];
        if (x->n != NULL)
            event(t, category(x->n), x->n->op, x->n->layer, x->n->id, x->begun, x->ended);
        else
            event(t, "exchange", "exchange", "", -1, x->begun, x->ended);
    }
    t->n_spans = 0;
}

void ls_trace_end(ls_trace *t)
{
    const uint64_t ended = ls_clock_ns();
    char name[40];

    if (t == NULL || !t->active) return;
    write_spans(t);
    snprintf(name, sizeof name, "step %lld", (long long)t->step);
    event(t, "step", name, "", -1, t->begun, ended);
    t->active = false;
    if (--t->steps_left == 0) finish(t);
}
