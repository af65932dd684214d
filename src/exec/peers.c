/* peers.c: who takes part, what exchanges take, and who keeps shared variables. */
#include "base/alloc.h"
#include "exec/links.h"
#include "exec/peers_internal.h"
#include "exec/plan_internal.h"

ls_status ls_peers_create(ls_peers **out, ls_comm *comm, const ls_peers_options *o, ls_err *err)
{
    ls_peers *p = ls_alloc(LS_MEM_PLAN, sizeof *p);

    *out = p;
    if (p == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    p->comm = comm;
    p->how = *o;
    return LS_OK;
}

ls_status ls_peers_create_absent(ls_peers **out, int ranks, int here, const ls_peers_options *o, ls_err *err)
{
    ls_comm *absent = NULL;
    ls_status st = LS_OK;

    *out = NULL;
    LS_TRY(ls_comm_open_absent(&absent, ranks, here, err));
    ls_comm_set_shard_group(absent, o->shard_group);
    LS_TRY(ls_peers_create(out, absent, o, err));
    (*out)->absent = absent;
    absent = NULL;
out:
    ls_comm_close(absent);
    return st;
}

void ls_peers_destroy(ls_peers *p)
{
    if (p == NULL) return;
    lsi_links_release(p);
    for (int i = 0; i < p->n; i++) ls_exchange_destroy(p->buckets[i].x);
    for (int i = 0; i < p->n_rooms; i++) {
        ls_shared_destroy(p->rooms[i]->memory);
        ls_free(p->rooms[i]);
    }
    ls_free(p->rooms);
    ls_comm_close(p->absent);
    ls_free(p->buckets);
    ls_free(p);
}

int ls_peers_buckets(const ls_peers *p)
{
    return p->n;
}

size_t ls_peers_bucket_bytes(const ls_peers *p, int bucket)
{
    return (size_t)p->buckets[bucket].how.n * sizeof(float);
}

int ls_plan_next_bucket(const ls_plan *p, int32_t *at)
{
    while (*at < p->schedule.n) {
        const lsi_step *s = &p->steps[(*at)++];
        if (lsi_coll_runs(p->peers, s->node) && lsi_coll_begins(s->node) && lsi_coll_bucket(&s->kernel) >= 0)
            return lsi_coll_bucket(&s->kernel);
    }
    return -1;
}

double ls_plan_traffic(const ls_plan *p)
{
    double sum = 0;

    for (int32_t i = 0; p->peers != NULL && i < p->schedule.n; i++) {
        const lsi_step *s = &p->steps[i];
        if (!lsi_coll_runs(p->peers, s->node) || s->node->op->coll_op != LS_COLL_OP_START) continue;
        const ls_exchange_options *o = &p->peers->buckets[lsi_coll_bucket(&s->kernel)].how;
        const double ranks = ls_group_size(p->peers->comm, o->group),
                     bytes = (double)o->n * (double)sizeof(float) * (ranks - 1) / ranks;
        sum += o->kind == LS_COLL_ALL_REDUCE ? 2 * bytes : bytes;
    }
    return sum;
}

/* Of the exchanges in that room (NULL: of those in none) while they are under way.  In a room they follow one
 * another; messages of the next may be there before this rank has done with the one before it. */
static size_t transit_bytes(const ls_peers *p, const ls_exchange_room *room)
{
    ls_transit sum = {{0}}, most = {{0}};

    for (int i = 0; i < p->n; i++) {
        ls_transit one;
        if (p->buckets[i].x == NULL || p->buckets[i].how.room != room) continue;
        ls_exchange_transit(p->comm, &p->buckets[i].how, &one);
        for (int k = 0; k < LS_TRANSIT_SIZES; k++) {
            sum.bytes[k] += one.bytes[k];
            if (one.bytes[k] > most.bytes[k]) most.bytes[k] = one.bytes[k];
        }
    }
    for (int k = 0; k < LS_TRANSIT_SIZES && room != NULL; k++)
        if (sum.bytes[k] > 2 * most.bytes[k]) sum.bytes[k] = 2 * most.bytes[k];
    return ls_transit_bytes(&sum);
}

size_t ls_peers_bytes(const ls_peers *p)
{
    size_t sum = lsi_links_bytes(p) + transit_bytes(p, NULL);

    for (int i = 0; i < p->n; i++)
        if (p->buckets[i].x != NULL) sum += ls_exchange_bytes(p->comm, &p->buckets[i].how);
    for (int i = 0; i < p->n_rooms; i++) {
        const lsi_room *r = p->rooms[i];
        sum += transit_bytes(p, &r->room);
        const int sharers =
            r->group == LS_GROUP_ALL ? ls_comm_local_size(p->comm) : ls_group_size(p->comm, r->group);
        sum += ls_exchange_room_bytes(p->comm, r->group, &r->room) / (size_t)sharers;
    }
    return sum;
}

ls_comm *ls_peers_comm(const ls_peers *p)
{
    return p->comm;
}

int lsi_peers_rank(const ls_peers *p)
{
    return p != NULL ? ls_comm_rank(p->comm) : 0;
}

int lsi_peers_rank_in(const ls_peers *p, ls_group group)
{
    return p != NULL ? ls_group_rank(p->comm, group) : 0;
}

bool lsi_peers_absent(const ls_peers *p)
{
    return p != NULL && ls_comm_absent(p->comm);
}

/* -- shared variables ---------------------------------------------------------------------------------------
 */

bool lsi_peers_pieces(const ls_peers *p, int *rank, int *ranks)
{
    if (p == NULL || !p->how.share) return false;
    *rank = ls_comm_local_rank(p->comm);
    *ranks = ls_comm_local_size(p->comm);
    return *ranks > 1;
}

ls_comm *lsi_peers_sharing(const ls_peers *p)
{
    if (p == NULL || !p->how.share || lsi_peers_absent(p)) return NULL;
    return ls_comm_size(p->comm) > ls_comm_hosts(p->comm) ? p->comm : NULL;
}

size_t lsi_peers_part_of(const ls_peers *p, size_t bytes)
{
    const size_t keepers = p != NULL && p->how.share ? (size_t)ls_comm_local_size(p->comm) : 1;

    return (bytes + keepers - 1) / keepers;
}

bool lsi_peers_first_here(const ls_peers *p)
{
    return ls_comm_local_rank(p->comm) == 0;
}
