/* compile.c: from a graph to a plan: passes, kernels, memory, pointers. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "exec/compile.h"
#include "exec/hash.h"
#include "exec/plan_internal.h"
#include "passes/list.h"

enum { LSI_ALIGN = 64 };

/* Where each variable lives has been settled when it got its memory. */
static void settle_homes(ls_plan *p, ls_passage *way)
{
    const bool shares = p->dev->shares && lsi_peers_pieces(p->peers, &way->rank, &way->ranks);

    if (!shares) way->ranks = 0;
    for (int32_t i = 0; i < p->graph->n_vars; i++) {
        ls_var *var = p->graph->vars[i];
        const bool common = lsi_peers_absent(p->peers) || ls_state_shared(p->state, p->state_index[i]);
        if (var->home == LS_HOME_MACHINE && (!shares || !common)) var->home = LS_HOME_RANK;
    }
}

static bool on_host(const void *peers, const ls_node *n)
{
    return lsi_coll_on_host(peers, n);
}

static int rank_of(const void *peers, ls_group group)
{
    return lsi_peers_rank_in(peers, group);
}

uint64_t ls_plan_hash_of(ls_graph *g)
{
    ls_passes_lower(g, &(ls_strategy){0});
    return ls_graph_hash(g);
}

static ls_status run_device_passes(ls_plan *p, ls_passage *way, ls_err *err)
{
    const ls_backend *b = p->dev->backend;

    way->fuses = b->fuses;
    way->regions = b->regions != NULL ? b->regions(p->dev) : NULL;
    way->layouts = b->layouts;
    way->converts = b->converts;
    way->on_host = b->queues != NULL ? on_host : NULL;
    way->host = p->peers;
    way->rank_of = p->peers != NULL ? rank_of : NULL;
    way->schedule = &p->schedule;
    way->memory = &p->memory;
    return ls_passes_run(way, LS_PHASE_DEVICE, err);
}

/* Collectives belong to the communicator, all else to the device. */
static ls_status plan_kernel(ls_plan *p, const ls_node *n, ls_kernel *out, ls_err *err)
{
    if (lsi_coll_runs(p->peers, n)) return lsi_coll_plan(p->peers, p->graph, n, out, err);
    return p->dev->backend->plan(p->dev, p->graph, n, out, err);
}

static size_t value_bytes(const ls_graph *g, int32_t v)
{
    return ls_layout_bytes(g->values[v]->layout, g->values[v]->dtype, g->values[v]->shape);
}

/* Adds what the value takes to the host's or to the device's. */
static void add_size(const ls_plan *p, int32_t v, double *host, double *device)
{
    double *where = p->dev->memory == 0 || p->graph->values[v]->staged ? host : device;

    *where += (double)value_bytes(p->graph, v);
}

/* A node whose operands alone are more than there is can never run: said before kernels are timed on such. */
static ls_status check_node(const ls_plan *p, const ls_node *n, double machine, ls_err *err)
{
    const double own = (double)p->dev->memory;
    double host = 0, device = 0;
    char need[32], limit[32];

    for (int k = 0; k < n->n_in; k++) add_size(p, n->in[k], &host, &device);
    for (int k = 0; k < n->n_out; k++) add_size(p, n->out[k], &host, &device);
    if (host > machine)
        return ls_fail(err, LS_NOMEM,
                       "plan: %s \"%s\" alone needs %s, and this machine has %s; lower batch.per_rank",
                       n->op->name, n->scope, ls_text_bytes(host, need), ls_text_bytes(machine, limit));
    if (device > own)
        return ls_fail(err, LS_NOMEM,
                       "plan: %s \"%s\" alone needs %s, and the device (%s) has %s; lower batch.per_rank",
                       n->op->name, n->scope, ls_text_bytes(device, need), p->dev->backend->name,
                       ls_text_bytes(own, limit));
    return LS_OK;
}

static ls_status check_sizes(const ls_plan *p, ls_err *err)
{
    const double machine = ls_machine_memory();
    ls_status st = LS_OK;

    for (int32_t i = 0; i < p->schedule.n && st == LS_OK; i++)
        st = check_node(p, p->graph->nodes[p->schedule.order[i]], machine, err);
    return st;
}

/* Nor can all of it together where the device alone has no room for it: said with what to do, before anything
 * is taken.  A plan that is only looked at may be larger. */
static ls_status check_whole(const ls_plan *p, ls_err *err)
{
    double need = (double)p->memory.arena_bytes;
    char text[32], limit[32];

    if (p->dev->memory == 0 || p->dev->unbacked) return LS_OK;
    for (int c = 0; c < LS_CAT_N; c++)
        if (c != LS_CAT_COMM) need += (double)p->state_bytes[c];
    if (need <= (double)p->dev->memory) return LS_OK;
    return ls_fail(err, LS_NOMEM,
                   "plan: a step needs %s, and the device (%s) has %s; lower batch.per_rank, or set "
                   "train.recompute=unit%s",
                   ls_text_bytes(need, text), p->dev->backend->name,
                   ls_text_bytes((double)p->dev->memory, limit),
                   p->peers != NULL ? " or parallel.strategy=fsdp" : "");
}

static ls_status plan_kernels(ls_plan *p, const ls_passage *way, ls_err *err)
{
    const ls_device *dev = p->dev;
    const double begun = ls_clock_seconds();

    p->steps = ls_alloc(LS_MEM_PLAN, sizeof *p->steps * ((size_t)p->schedule.n + 1));
    if (p->steps == NULL) return ls_fail(err, LS_NOMEM, "plan: no memory");
    for (int32_t i = 0; i < p->schedule.n; i++) {
        ls_node *n = p->graph->nodes[p->schedule.order[i]];
        if (dev->stop != NULL && *dev->stop != 0)
            return ls_fail(err, LS_CANCELLED, "stopped on request while its step was being compiled");
        if (dev->progress != NULL) dev->progress(dev->progress_arg, i, p->schedule.n);
        ls_status st = plan_kernel(p, n, &p->steps[i].kernel, err);
        p->steps[i].node = n;
        if (st != LS_OK) return ls_fail_in(err, st, "plan: %s \"%s\"", n->op->name, n->scope);
    }
    ls_passes_note(way, "(kernels)", "a kernel for every node", ls_clock_seconds() - begun);
    return LS_OK;
}

/* What ranks exchange lies in memory they share. */
static void place_exchanged(ls_plan *p)
{
    for (int32_t i = 0; i < p->schedule.n; i++)
        if (lsi_coll_runs(p->peers, p->steps[i].node))
            lsi_coll_place(&p->steps[i].kernel, p->graph, &p->schedule, p->steps[i].node);
}

/* What else the host's nodes work on: each value has memory of its own, for there is little of it. */
static ls_status place_staged(ls_plan *p, ls_err *err)
{
    size_t bytes = 0;
    void *memory = NULL;
    ls_status st = LS_OK;

    for (int32_t i = 0; i < p->graph->n_values; i++) {
        ls_vinfo *v = p->graph->values[i];
        if (!v->staged || v->buffer >= 0) continue;
        v->at = bytes;
        bytes += (value_bytes(p->graph, i) + LSI_ALIGN - 1) / LSI_ALIGN * LSI_ALIGN;
    }
    if (bytes == 0) return LS_OK;
    if (!p->dev->unbacked) LS_TRY(ls_staging_alloc(&memory, p->dev, bytes, err));
    p->staging = ls_buffer_of_host(memory, bytes);
out:
    return st;
}

/* Where a run will be recorded, its nodes need not keep the order of the queue (branches.h). */
static bool may_branch(const ls_plan *p)
{
    const ls_queues *q = p->dev->backend->queues;

    for (int32_t i = 0; i < p->schedule.n; i++)
        if (p->steps[i].node->queue != LS_QUEUE_COMPUTE) return false;
    return q != NULL && q->after != NULL;
}

static ls_status plan_memory(ls_plan *p, ls_passage *way, ls_err *err)
{
    const ls_graph *g = p->graph;
    size_t *bytes = ls_alloc(LS_MEM_PLAN, sizeof *bytes * ((size_t)g->n_values + 1));
    size_t *scratch = ls_alloc(LS_MEM_PLAN, sizeof *scratch * ((size_t)p->schedule.n + 1));
    ls_status st = LS_OK;

    if (bytes == NULL || scratch == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan: no memory");
        goto out;
    }
    for (int32_t i = 0; i < g->n_values; i++) bytes[i] = value_bytes(g, i);
    for (int32_t i = 0; i < p->schedule.n; i++) scratch[i] = p->steps[i].kernel.scratch_bytes;
    p->schedule.side_by_side = may_branch(p);
    way->value_bytes = bytes;
    way->scratch_bytes = scratch;
    LS_TRY(ls_passes_run(way, LS_PHASE_MEMORY, err));
out:
    ls_free(bytes);
    ls_free(scratch);
    return st;
}

static ls_status find_memory(ls_plan *p, ls_err *err)
{
    lsi_workspace *w = lsi_state_workspace(p->state);
    ls_status st = LS_OK;

    if (p->memory.kept_bytes > 0) st = ls_buffer_alloc(&p->kept, p->dev, p->memory.kept_bytes, err);
    if (st != LS_OK) return ls_fail_in(err, st, "plan: memory for inputs and results");
    st = lsi_workspace_join(w, p, err);
    if (st != LS_OK) return ls_fail_in(err, st, "plan: memory for one step");
    p->workspace = w;
    return LS_OK;
}

/* A stretch of the arena. */
static ls_operand in_arena(ls_plan *p, size_t offset, size_t bytes)
{
    if (offset < p->memory.kept_bytes) return (ls_operand){&p->kept, offset, bytes};
    return (ls_operand){&p->workspace->memory, offset - p->memory.kept_bytes, bytes};
}

/* Where value v lives; the same for every step, which is why addresses can be stored.  `borrowed` becomes the
 * buffer of a value that lies in no memory of this plan or its state, but where ranks exchange it. */
static ls_operand place_of(ls_plan *p, int32_t v, ls_buffer *borrowed)
{
    const ls_vinfo *root = p->graph->values[ls_graph_storage(p->graph, v)];
    const size_t bytes = value_bytes(p->graph, v);

    if (p->memory.var[v] >= 0) {
        const ls_tensor *t = lsi_state_entry(p->state, p->state_index[p->memory.var[v]]);
        return (ls_operand){t->buffer, t->offset, bytes};
    }
    if (root->buffer >= 0) {
        *borrowed = ls_buffer_of_host(lsi_coll_address(p->peers, root), bytes);
        return (ls_operand){borrowed, 0, bytes};
    }
    if (root->staged) return (ls_operand){&p->staging, root->at, bytes};
    LS_BUG_IF(p->memory.offset[v] == LS_IN_STATE);
    return in_arena(p, p->memory.offset[v], bytes);
}

static void *address(ls_plan *p, int32_t v)
{
    ls_buffer borrowed;
    const ls_operand x = place_of(p, v, &borrowed);

    return ls_buffer_address(x.buffer, x.at);
}

/* Of all nodes, and of those whose operands the host handles by itself. */
static void count_operands(const ls_plan *p, size_t *all, size_t *by_host)
{
    *all = *by_host = 1;
    for (int32_t i = 0; i < p->schedule.n; i++) {
        const ls_node *n = p->steps[i].node;
        *all += (size_t)n->n_in + (size_t)n->n_out;
        if (lsi_coll_on_host(p->peers, n)) *by_host += (size_t)n->n_in + (size_t)n->n_out;
    }
}

void lsi_plan_resolve(ls_plan *p)
{
    size_t at = 0, k = 0;

    for (int32_t i = 0; i < p->schedule.n; i++) {
        const ls_node *n = p->steps[i].node;
        const ls_operand scratch = in_arena(p, p->memory.scratch[i], p->steps[i].kernel.scratch_bytes);
        const int count = n->n_in + n->n_out;
        const bool host = lsi_coll_on_host(p->peers, n);
        p->steps[i].stream = (ls_stream){&p->failure, i};
        p->steps[i].call = (ls_call){.in = p->pointers + at,
                                     .out = p->pointers + at + n->n_in,
                                     .scratch = ls_buffer_address(scratch.buffer, scratch.at),
                                     .stream = &p->steps[i].stream,
                                     .operands = host ? p->operands + k : NULL};
        for (int x = 0; x < count; x++) {
            const int32_t v = x < n->n_in ? n->in[x] : n->out[x - n->n_in];
            p->pointers[at++] = address(p, v);
            if (!host) continue;
            p->operands[k] = place_of(p, v, &p->exchanged[k]);
            k++;
        }
    }
    lsi_queued_forget(p);
}

static ls_status make_calls(ls_plan *p, ls_err *err)
{
    size_t all, by_host;

    count_operands(p, &all, &by_host);
    p->pointers = ls_alloc(LS_MEM_PLAN, sizeof *p->pointers * all);
    p->operands = ls_alloc(LS_MEM_PLAN, sizeof *p->operands * by_host);
    p->exchanged = ls_alloc(LS_MEM_PLAN, sizeof *p->exchanged * by_host);
    if (p->pointers == NULL || p->operands == NULL || p->exchanged == NULL)
        return ls_fail(err, LS_NOMEM, "plan: no memory");
    return LS_OK;
}

/* Value v as those outside see it. */
static ls_tensor handle(ls_plan *p, int32_t v, ls_buffer *borrowed)
{
    const ls_vinfo *x = p->graph->values[v];
    const ls_operand at = place_of(p, v, borrowed);

    return (ls_tensor){x->name, x->dtype, x->shape, at.bytes, at.buffer, at.at};
}

static bool is_seen(const ls_vinfo *v)
{
    return v->kind == LS_VALUE_INPUT || v->fetch;
}

static ls_status list_tensors(ls_plan *p, ls_err *err)
{
    const ls_graph *g = p->graph;
    size_t n = 1, k = 0;

    for (int32_t i = 0; i < g->n_values; i++) n += is_seen(g->values[i]);
    p->inputs = ls_alloc(LS_MEM_PLAN, sizeof *p->inputs * n);
    p->fetches = ls_alloc(LS_MEM_PLAN, sizeof *p->fetches * n);
    p->borrowed = ls_alloc(LS_MEM_PLAN, sizeof *p->borrowed * n);
    if (p->inputs == NULL || p->fetches == NULL || p->borrowed == NULL)
        return ls_fail(err, LS_NOMEM, "plan: no memory");
    for (int32_t i = 0; i < g->n_values; i++) {
        if (!is_seen(g->values[i])) continue;
        const ls_tensor t = handle(p, i, &p->borrowed[k++]);
        if (g->values[i]->kind == LS_VALUE_INPUT) p->inputs[p->n_inputs++] = t;
        if (g->values[i]->fetch) p->fetches[p->n_fetches++] = t;
    }
    return LS_OK;
}

static void count_state_bytes(ls_plan *p)
{
    for (int32_t i = 0; i < p->graph->n_vars; i++) {
        const ls_vinfo *v = p->graph->values[p->graph->vars[i]->first];
        const size_t bytes = ls_layout_bytes(v->layout, v->dtype, v->shape);
        p->state_bytes[v->category] +=
            p->graph->vars[i]->home == LS_HOME_MACHINE ? lsi_peers_part_of(p->peers, bytes) : bytes;
    }
    if (p->peers != NULL) p->state_bytes[LS_CAT_COMM] += ls_peers_bytes(p->peers);
}

ls_status ls_plan_compile_take(ls_plan **out, ls_graph *graph, ls_device *dev, ls_state *state, ls_err *err)
{
    return ls_plan_compile_as(out, graph, &(ls_strategy){0}, dev, state, err);
}

ls_status ls_plan_compile_as(ls_plan **out, ls_graph *graph, const ls_strategy *how, ls_device *dev,
                             ls_state *state, ls_err *err)
{
    ls_status st = LS_OK;
    ls_plan *p = ls_alloc(LS_MEM_PLAN, sizeof *p);
    ls_passage way = {.g = graph, .how = how, .dev = dev};

    *out = NULL;
    if (p == NULL) {
        ls_graph_destroy(graph);
        return ls_fail(err, LS_NOMEM, "plan: no memory");
    }
    p->graph = graph;
    p->dev = dev;
    p->state = state;
    p->peers = ls_state_peers(state);
    way.notes = &p->notes;
    LS_TRY(ls_passes_run(&way, LS_PHASE_PROGRAM, err)); /* all variables are there only then */
    p->hash = ls_graph_hash(graph); /* before the device has its say: ranks on different devices must agree */
    p->state_index = ls_alloc(LS_MEM_PLAN, sizeof *p->state_index * ((size_t)graph->n_vars + 1));
    if (p->state_index == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan: no memory");
        goto out;
    }
    LS_TRY(lsi_state_bind(state, graph, p->state_index, err));
    settle_homes(p, &way);
    LS_TRY(run_device_passes(p, &way, err));
    LS_TRY(check_sizes(p, err));
    LS_TRY(lsi_coll_rooms(p->peers, graph, err));
    LS_TRY(plan_kernels(p, &way, err));
    place_exchanged(p);
    LS_TRY(place_staged(p, err));
    LS_TRY(plan_memory(p, &way, err));
    count_state_bytes(p);
    LS_TRY(check_whole(p, err));
    LS_TRY(make_calls(p, err)); /* before others may tell it that memory has moved */
    LS_TRY(find_memory(p, err));
    lsi_plan_resolve(p);
    LS_TRY(list_tensors(p, err));
    if (p->dev->backend->queues != NULL) LS_TRY(lsi_queued_make(p, err));
    *out = p;
    p = NULL;
out:
    ls_plan_destroy(p);
    return st;
}

/* The graph goes: what is no parameter and no running statistic need not stay in it. */
static void drop_other_variables(ls_graph *g)
{
    int32_t n = 0;

    for (int32_t i = 0; i < g->n_vars; i++)
        if (g->vars[i]->role == LS_VAR_PARAM || g->vars[i]->role == LS_VAR_BUFFER) g->vars[n++] = g->vars[i];
    g->n_vars = n;
}

/* The variables of the program that passes up to `last` make of it; NULL: up to the end. */
static ls_status bind_until(ls_graph *graph, const ls_strategy *how, const char *last, ls_state *state,
                            int *stages, ls_err *err)
{
    ls_passage way = {.g = graph, .how = how, .last = last};
    int *index = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_passes_run(&way, LS_PHASE_PROGRAM, err));
    if (last != NULL) drop_other_variables(graph);
    index = ls_alloc(LS_MEM_PLAN, sizeof *index * ((size_t)graph->n_vars + 1));
    if (index == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan: no memory");
        goto out;
    }
    LS_TRY(lsi_state_bind(state, graph, index, err));
    *stages = graph->n_stages;
out:
    ls_free(index);
    ls_graph_destroy(graph);
    return st;
}

ls_status ls_plan_bind_take(ls_graph *graph, const ls_strategy *how, ls_state *state, int *stages,
                            ls_err *err)
{
    return bind_until(graph, how, NULL, state, stages, err);
}

/* Behind that pass come gradients and optimisers, and what these remember. */
ls_status ls_plan_bind_model_take(ls_graph *graph, const ls_strategy *how, ls_state *state, ls_err *err)
{
    int stages;

    return bind_until(graph, how, "shard", state, &stages, err);
}

ls_status ls_plan_check_turns(ls_graph *graph, const ls_strategy *how, ls_device *dev, ls_state *state,
                              ls_turns *out, ls_err *err)
{
    ls_plan p = {.graph = graph, .dev = dev, .state = state, .peers = ls_state_peers(state)};
    ls_passage way = {.g = graph, .how = how, .dev = dev, .last = "turns"};
    ls_status st = LS_OK;

    LS_TRY(ls_passes_run(&way, LS_PHASE_PROGRAM, err));
    p.state_index = ls_alloc(LS_MEM_PLAN, sizeof *p.state_index * ((size_t)graph->n_vars + 1));
    if (p.state_index == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan: no memory");
        goto out;
    }
    LS_TRY(lsi_state_bind(state, graph, p.state_index, err));
    settle_homes(&p, &way);
    LS_TRY(run_device_passes(&p, &way, err));
    if (out != NULL) *out = (ls_turns){graph->turns, graph->waits};
out:
    ls_schedule_release(&p.schedule);
    ls_free(p.state_index);
    ls_graph_destroy(graph);
    return st;
}

int ls_plan_stages(const ls_plan *p)
{
    return p->graph->n_stages;
}

void ls_plan_destroy(ls_plan *p)
{
    if (p == NULL) return;
    lsi_queued_release(p);
    if (p->workspace != NULL) lsi_workspace_leave(p->workspace, p);
    for (int32_t i = 0; p->steps != NULL && i < p->schedule.n; i++)
        if (p->steps[i].kernel.destroy != NULL) p->steps[i].kernel.destroy(p->steps[i].kernel.state);
    ls_free(p->steps);
    ls_free(p->pointers);
    ls_free(p->operands);
    ls_free(p->exchanged);
    ls_free(p->inputs);
    ls_free(p->fetches);
    ls_free(p->borrowed);
    ls_buffer_free(&p->kept);
    ls_free(p->state_index);
    ls_staging_free(p->dev, p->staging.address);
    ls_schedule_release(&p->schedule);
    ls_memory_release(&p->memory);
    ls_graph_destroy(p->graph);
    ls_free(p);
}
