/* memory.c: memory of plans and variables by what it is for. */
#include "exec/memory.h"

#include "exec/plan_internal.h"

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

ls_plan_memory ls_plan_memory_of(const ls_plan *p)
{
    ls_plan_memory m = {0};

    add(&m, p->memory.by_category);
    add(&m, p->state_bytes);
    return m;
}

void ls_memory_add_plan(ls_plan_memory *m, const ls_plan *p)
{
    add(m, p->memory.by_category);
}

void ls_memory_add_state(ls_plan_memory *m, const ls_state *s)
{
    size_t by_category[LS_CAT_N] = {0};

    lsi_state_bytes(s, by_category);
    add(m, by_category);
}

void ls_memory_add_comm(ls_plan_memory *m, size_t bytes)
{
    m->comm += bytes;
    m->total += bytes;
}
