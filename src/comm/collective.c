/* collective.c: which table is asked, what holds for all of them, and the table of ranks that are not there.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "comm/exchange_internal.h"

const char *ls_collective_name(ls_collective kind)
{
    static const char *const names[] = {
        "none", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier",
    };

    return names[kind];
}

const char *ls_group_text(ls_group group)
{
    static const char *const text[] = {"", " group=machine", " group=shard"};

    return text[group];
}

int ls_group_size(const ls_comm *c, ls_group group)
{
    if (group == LS_GROUP_SHARD && c->shard_group > 0) return c->shard_group;
    return group == LS_GROUP_ALL ? c->size : c->local_size;
}

int ls_group_rank(const ls_comm *c, ls_group group)
{
    if (group == LS_GROUP_SHARD && c->shard_group > 0) return c->local_rank % c->shard_group;
    return group == LS_GROUP_ALL ? c->rank : c->local_rank;
}

const ls_collectives *ls_comm_collectives(const ls_comm *c)
{
    if (c->heap == NULL) return &lsi_absent_collectives;
    if (c->size == 1) return &lsi_self_collectives;
    return c->remote != NULL ? &lsi_mpi_collectives : &lsi_shared_collectives;
}

int ls_group_member(const ls_comm *c, ls_group group, int i)
{
    return group == LS_GROUP_ALL || c->remote == NULL ? i : c->remote->ranks_of[c->remote->host_of[0]][i];
}

void ls_comm_set_shard_group(ls_comm *c, int ranks)
{
    LS_BUG_IF(ranks < 0 || (ranks > 0 && c->local_size % ranks != 0));
    c->shard_group = ranks;
}

/* Those of a machine need no network, and one rank nobody. */
static const ls_collectives *table_for(const ls_comm *c, const ls_exchange_options *o)
{
    if (c->heap == NULL || o->group == LS_GROUP_ALL) return ls_comm_collectives(c);
    return ls_group_size(c, o->group) == 1 ? &lsi_self_collectives : &lsi_shared_collectives;
}

ls_status ls_exchange_create(ls_exchange **out, ls_comm *c, const ls_exchange_options *o, ls_err *err)
{
    const ls_collectives *how = table_for(c, o);
    const ls_status st = how->make(out, c, o, err);

    if (st == LS_OK) (*out)->how = how;
    return st;
}

void ls_exchange_destroy(ls_exchange *x)
{
    if (x != NULL) x->how->destroy(x);
}

size_t ls_exchange_bytes(const ls_comm *c, const ls_exchange_options *o)
{
    return table_for(c, o)->bytes(c, o);
}

void ls_exchange_start(ls_exchange *x, float weight)
{
    x->how->start(x, weight);
}

bool ls_exchange_progress(ls_exchange *x)
{
    return x->how->progress(x);
}

bool ls_exchange_work(ls_exchange *x)
{
    return x->how->work(x);
}

ls_status ls_exchange_wait(ls_exchange *x, ls_err *err)
{
    return x->how->wait(x, err);
}

int ls_exchange_parts(const ls_exchange *x)
{
    return x->n_parts;
}

void ls_exchange_part_range(const ls_exchange *x, int j, int64_t *first, int64_t *end)
{
    LS_BUG_IF(j < 0 || j >= x->n_parts);
    *first = x->part[j].first;
    *end = x->part[j].end;
}

float *ls_exchange_part(ls_exchange *x, int j)
{
    return j < x->n_parts ? x->part_at[j] : NULL;
}

const float *ls_exchange_result(const ls_exchange *x)
{
    return x->result;
}

double ls_exchange_exposed_seconds(const ls_exchange *x)
{
    return (double)x->exposed_ns * 1e-9;
}

ls_status lsi_group_barrier(ls_comm *c, ls_group group, const char *what, bool (*work)(void *ctx), void *ctx,
                            ls_err *err)
{
    const lsi_meanwhile m = {work, ctx};
    const uint64_t begun = ls_clock_ns();
    ls_status st;

    if (group != LS_GROUP_ALL || c->remote == NULL) return ls_comm_machine_barrier(c, what, work, ctx, err);
    /* Between machines every rank has slices of its own: nobody else sends them while it waits here. */
    st = lsi_barrier(c, what, &m, err);
    c->exposed_ns += ls_clock_ns() - begun;
    return st;
}

/* -- ranks that are not there -------------------------------------------------------------------------------
 */

static ls_status make_absent(ls_exchange **out, ls_comm *c, const ls_exchange_options *o, ls_err *err)
{
    *out = ls_alloc(LS_MEM_COMM, sizeof **out);
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", o->name);
    (*out)->c = c;
    return LS_OK;
}

static void destroy_absent(ls_exchange *x)
{
    ls_free(x);
}

const ls_collectives lsi_absent_collectives = {
    .name = "exchange",
    .make = make_absent,
    .destroy = destroy_absent,
    .bytes = lsi_exchange_bytes,
};

ls_status ls_comm_open_absent(ls_comm **out, int ranks, int here, ls_err *err)
{
    ls_comm *c = ls_alloc(LS_MEM_COMM, sizeof *c);

    *out = c;
    if (c == NULL) return ls_fail(err, LS_NOMEM, "no memory for a communicator");
    c->kind = "absent";
    c->size = ranks;
    c->local_size = here > 0 && here < ranks ? here : ranks;
    c->hosts = (ranks + c->local_size - 1) / c->local_size;
    return LS_OK;
}

bool ls_comm_absent(const ls_comm *c)
{
    return c->heap == NULL;
}
