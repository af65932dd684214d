/* memory.c: memory of plans and variables by what it is for. */
#include "exec/memory.h"

#include <string.h>

#include "exec/plan_internal.h"
#include "exec/queued_internal.h"

static void add(ls_plan_memory *m, const size_t by_category[LS_CAT_N])
{
    m->weights += by_category[LS_CAT_WEIGHT];
    m->gradients += by_category[LS_CAT_GRADIENT];
    m->optimizer += by_category[LS_CAT_OPTIMIZER];
    m->activations += by_category[LS_CAT_ACTIVATION];
    m->scratch += by_category[LS_CAT_SCRATCH];
    m->comm += by_category[LS_CAT_COMM];
    for (int i = 0; i < LS_CAT_N; i++) m->total += by_category[i];
}

static size_t shared_bytes(const ls_plan *p)
{
    return p->memory.arena_bytes - p->memory.kept_bytes;
}

/* What it needs of the memory that it has in turn with others. */
static void add_shared(ls_plan_memory *m, const ls_plan *p)
{
    size_t by_category[LS_CAT_N];

    for (int c = 0; c < LS_CAT_N; c++)
        by_category[c] = p->memory.by_category[c] - p->memory.kept_by_category[c];
    add(m, by_category);
}

ls_plan_memory ls_plan_memory_of(const ls_plan *p)
{
    ls_plan_memory m = {0};

    ls_memory_add_plan(&m, p);
    add_shared(&m, p);
    add(&m, p->state_bytes);
    return m;
}

/* Inputs on their way are where activations come from. */
void ls_memory_add_plan(ls_plan_memory *m, const ls_plan *p)
{
    const size_t inputs = lsi_flights_bytes(p);

    add(m, p->memory.kept_by_category);
    m->activations += inputs;
    m->total += inputs;
}

void ls_memory_add_plans(ls_plan_memory *m, ls_plan *const *plans, int n)
{
    const ls_plan *largest = NULL;

    for (int i = 0; i < n; i++) {
        ls_memory_add_plan(m, plans[i]);
        if (largest == NULL || shared_bytes(plans[i]) > shared_bytes(largest)) largest = plans[i];
    }
    if (largest != NULL) add_shared(m, largest);
}

void ls_memory_add_state(ls_plan_memory *m, const ls_state *s)
{
    size_t by_category[LS_CAT_N] = {0};

    lsi_state_bytes(s, by_category);
    add(m, by_category);
}

void ls_memory_add_workspace(ls_plan_memory *m, ls_state *s)
{
    add(m, lsi_state_workspace(s)->by_category);
}

static bool has_variable(const ls_plan *p, const char *name)
{
    for (int32_t i = 0; i < p->graph->n_vars; i++)
        if (strcmp(p->graph->vars[i]->name, name) == 0) return true;
    return false;
}

/* The variables of plan k that none before it has. */
static void add_own_variables(ls_plan *const *plans, int k, size_t by_category[LS_CAT_N])
{
    const ls_graph *g = plans[k]->graph;

    for (int32_t i = 0; i < g->n_vars; i++) {
        const ls_vinfo *v = g->values[g->vars[i]->first];
        bool known = !lsi_state_copies(g->vars[i]->role);
        for (int before = 0; before < k && !known; before++)
            known = has_variable(plans[before], g->vars[i]->name);
        if (!known) by_category[v->category] += ls_layout_bytes(v->layout, v->dtype, v->shape);
    }
}

void ls_memory_add_lanes(ls_plan_memory *m, ls_plan *const *plans, int n, int lanes)
{
    size_t variables[LS_CAT_N] = {0};

    for (int k = 0; k < n; k++) add_own_variables(plans, k, variables);
    for (int i = 0; i < lanes; i++) {
        ls_memory_add_plans(m, plans, n);
        add(m, variables);
    }
}

size_t ls_memory_staging(const ls_plan *p)
{
    return p->staging.bytes + lsi_flights_staging(p);
}

ls_plan_layout ls_memory_layout(const ls_plan *p)
{
    return (ls_plan_layout){p->memory.arena_bytes, p->memory.live_bytes};
}

void ls_memory_add_comm(ls_plan_memory *m, size_t bytes)
{
    m->comm += bytes;
    m->total += bytes;
}
