/* plan.c: running a plan, and what can be asked about one. */
#include <string.h>

#include "base/clock.h"
#include "base/denormals.h"
#include "base/parallel.h"
#include "exec/compile.h"
#include "exec/plan_internal.h"
#include "exec/results.h"

ls_status lsi_plan_outcome(const ls_plan *p, ls_err *err)
{
    const ls_err *why = &p->failure.why;
    char from[LS_SHAPE_TEXT], to[LS_SHAPE_TEXT];
    const ls_node *n;

    if (!p->failure.told) return LS_OK;
    n = p->failure.node != LSI_BETWEEN_RUNS ? p->steps[p->failure.node].node : NULL;
    /* A rank that was lost is no matter of the node that waited for it. */
    if (n == NULL || (n->op->flags & LS_OP_COLLECTIVE) != 0)
        return ls_fail(err, why->status, "%s", why->text);
    if ((why->status == LS_DEVICE || why->status == LS_NOMEM) && n->n_in > 0 &&
        n->n_out > 0) /* its sizes may have to do with it */
        return ls_fail(err, why->status, "%s \"%s\" from %s to %s: %s", n->op->name, n->scope,
                       ls_shape_text(*ls_node_in_shape(p->graph, n, 0), from),
                       ls_shape_text(*ls_node_out_shape(p->graph, n, 0), to), why->text);
    return ls_fail(err, why->status, "%s \"%s\": %s", n->op->name, n->scope, why->text);
}

/* A plan that has failed runs no more.  What was fed since is taken, so that its memory is the caller's
 * again. */
static ls_status refuse(ls_plan *p, ls_err *err)
{
    if (p->queued != NULL) lsi_queued_take_inputs(p);
    return lsi_plan_outcome(p, err);
}

/* Others would take for gradients whatever a rank that has failed gives them: it gives nothing more, and they
 * are told why. */
void lsi_plan_run_node(ls_plan *p, const lsi_step *s)
{
    ls_err why = {0};

    if (p->failure.told && lsi_coll_runs(p->peers, s->node) && lsi_plan_outcome(p, &why) != LS_OK)
        ls_comm_abort(ls_peers_comm(p->peers), why.text);
    s->kernel.run(s->kernel.state, &s->call);
}

/* Nodes of the update that the run before has left are left out where there is none. */
ls_status ls_plan_run(ls_plan *p, ls_err *err)
{
    const bool carried = lsi_coll_carried(p->peers);

    LS_BUG_IF(p->peers != NULL && lsi_peers_absent(p->peers));
    ls_denormals_flush(); /* this thread may not be the one that opened the device */
    if (p->failure.told) return refuse(p, err);
    if (p->queued != NULL) {
        const ls_status st = lsi_queued_run(p, NULL, NULL, err);
        return st == LS_OK ? ls_plan_join(p, err) : st;
    }
    for (int32_t i = 0; i < p->schedule.n; i++) {
        if (p->steps[i].node->carried && !carried) continue;
        lsi_plan_run_node(p, &p->steps[i]);
        if (p->peers != NULL) lsi_coll_progress(p->peers);
    }
    return lsi_plan_outcome(p, err);
}

bool ls_plan_leaves_updates(const ls_plan *p)
{
    for (int32_t i = 0; i < p->schedule.n; i++)
        if (p->steps[i].node->carried) return true;
    return false;
}

bool ls_plan_carries(const ls_plan *p)
{
    return p->queued == NULL && lsi_coll_carried(p->peers);
}

bool ls_plan_failed(const ls_plan *p)
{
    return p->failure.told;
}

ls_status ls_plan_complete(ls_plan *p, ls_err *err)
{
    if (!ls_plan_carries(p)) return LS_OK;
    if (p->failure.told) return refuse(p, err);
    for (int32_t i = 0; i < p->schedule.n; i++) {
        if (!p->steps[i].node->carried) continue;
        lsi_plan_run_node(p, &p->steps[i]);
        lsi_coll_progress(p->peers);
    }
    return lsi_plan_outcome(p, err);
}

ls_status ls_plan_run_noted(ls_plan *p, ls_plan_note note, void *ctx, ls_err *err)
{
    const bool carried = lsi_coll_carried(p->peers);

    LS_BUG_IF(p->peers != NULL && lsi_peers_absent(p->peers));
    ls_denormals_flush(); /* this thread may not be the one that opened the device */
    if (p->failure.told) return refuse(p, err);
    if (p->queued != NULL) return lsi_queued_run(p, note, ctx, err);
    for (int32_t i = 0; i < p->schedule.n; i++) {
        const uint64_t begun = ls_clock_ns();
        uint64_t ended, progressed;
        if (p->steps[i].node->carried && !carried) continue;
        lsi_plan_run_node(p, &p->steps[i]);
        ended = progressed = ls_clock_ns();
        if (p->peers != NULL) {
            lsi_coll_progress(p->peers);
            progressed = ls_clock_ns();
        }
        note(ctx, i, begun, ended, progressed);
    }
    return lsi_plan_outcome(p, err);
}

static const ls_tensor *find(const ls_tensor *t, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(t[i].name, name) == 0) return &t[i];
    return NULL;
}

const ls_tensor *ls_plan_input(const ls_plan *p, const char *name)
{
    return find(p->inputs, p->n_inputs, name);
}

const ls_tensor *ls_plan_fetch(const ls_plan *p, const char *name)
{
    return find(p->fetches, p->n_fetches, name);
}

/* What goes wrong between two runs is what the next one returns. */
static void note(ls_plan *p, ls_status st, const ls_err *err)
{
    if (st != LS_OK) ls_stream_fail(&(ls_stream){&p->failure, LSI_BETWEEN_RUNS}, st, "%s", err->text);
}

/* One thread copies about 10 GB/s, and other threads have nothing to do yet. */
#define WORTH_SHARING (1 << 20)

typedef struct copying {
    char *to;
    const char *from;
    size_t bytes;
} copying;

static void copy_part(int thread, int n_threads, void *arg)
{
    const copying *c = arg;
    int64_t lo, hi;

    ls_parallel_range_grain((int64_t)c->bytes, 4096, thread, n_threads, &lo, &hi);
    memcpy(c->to + lo, c->from + lo, (size_t)(hi - lo));
}

/* Into memory that the host sees, by all threads; false: it is not for that. */
static bool write_together(const ls_plan *p, const ls_tensor *t, size_t offset, const void *from,
                           size_t bytes)
{
    if (bytes < WORTH_SHARING || p->dev->threads < 2 || t->buffer->address == NULL || offset > t->bytes ||
        bytes > t->bytes - offset || ls_buffer_host(t->buffer, 0) == NULL)
        return false;
    ls_parallel_run(p->dev->threads, copy_part,
                    &(copying){ls_buffer_host(t->buffer, t->offset + offset), from, bytes});
    return true;
}

void ls_plan_write_input(ls_plan *p, const char *name, size_t offset, const void *from, size_t bytes)
{
    const ls_tensor *t = ls_plan_input(p, name);
    ls_err err;

    err.status = LS_OK;
    if (t == NULL || (p->queued != NULL && lsi_queued_write(p, t, offset, from, bytes))) return;
    if (p->queued == NULL && write_together(p, t, offset, from, bytes)) return;
    note(p, ls_tensor_write(t, offset, from, bytes, &err), &err);
}

void ls_plan_write_scalar(ls_plan *p, const char *name, double x)
{
    const ls_tensor *t = ls_plan_input(p, name);
    const float value = (float)x;
    ls_err err;

    err.status = LS_OK;
    if (t == NULL || (p->queued != NULL && t->dtype == LS_F32 && t->bytes == sizeof value &&
                      lsi_queued_write(p, t, 0, &value, sizeof value)))
        return;
    note(p, ls_tensor_write_scalar(t, x, &err), &err);
}

int ls_plan_input_count(const ls_plan *p)
{
    return p->n_inputs;
}

const ls_tensor *ls_plan_input_at(const ls_plan *p, int i)
{
    return i >= 0 && i < p->n_inputs ? &p->inputs[i] : NULL;
}

int ls_plan_fetch_count(const ls_plan *p)
{
    return p->n_fetches;
}

const ls_tensor *ls_plan_fetch_at(const ls_plan *p, int i)
{
    return i >= 0 && i < p->n_fetches ? &p->fetches[i] : NULL;
}

double ls_plan_flops(const ls_plan *p)
{
    double sum = 0;

    for (int32_t i = 0; i < p->schedule.n; i++) sum += ls_node_flops(p->graph, p->steps[i].node);
    return sum;
}

/* Processors and accelerators compute from ten to hundred operations in the time that a byte takes. */
#define BUSY_FLOPS_PER_BYTE 8.0

bool lsi_node_computes(const ls_graph *g, const ls_node *n)
{
    return ls_node_flops(g, n) > BUSY_FLOPS_PER_BYTE * ls_node_bytes(g, n);
}

ls_work ls_plan_work(const ls_plan *p)
{
    ls_work w = {0};

    for (int32_t i = 0; i < p->schedule.n; i++) {
        const ls_node *n = p->steps[i].node;
        if (lsi_coll_runs(p->peers, n)) continue;
        if (lsi_node_computes(p->graph, n))
            w.flops += ls_node_flops(p->graph, n);
        else
            w.bytes += ls_node_bytes(p->graph, n);
    }
    return w;
}

uint64_t ls_plan_hash(const ls_plan *p)
{
    return p->hash;
}

uint64_t ls_plan_turns(const ls_plan *p)
{
    return p->graph->turns;
}

uint64_t ls_plan_waits(const ls_plan *p)
{
    return p->graph->waits;
}

int ls_plan_node_count(const ls_plan *p)
{
    return p->schedule.n;
}
