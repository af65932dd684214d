/* collective_ours.c: what our own exchange sends (comm/exchange_remote.c).
 *
 * A vector is cut into slices, and slice k is summed on machine k mod H: the others send their part there,
 * and the sum comes back.  A long vector so makes each machine send 2 (H - 1) / H of it.  A very short one
 * has fewer slices than there are machines, and those that have one must hear all and answer all. */
#include <math.h>

#include "comm/collective.h"
#include "predict/collective_internal.h"

#define VECTOR_MOST 1e15 /* floats, beyond which nobody asks */

/* -- inside machines --------------------------------------------------------------------------------------
 */

/* Through shared memory: each rank adds its share of what all have, and the result is there for all. */
static ls_transfer_cost shared_memory(const ls_link *l, const ls_transfer *t, double ranks)
{
    const bool adds = t->kind == LS_TRANSFER_ALL_REDUCE || t->kind == LS_TRANSFER_REDUCE_SCATTER;
    const double meetings = t->kind == LS_TRANSFER_ALL_REDUCE || t->kind == LS_TRANSFER_BARRIER ? 2 : 1;
    const double bytes = t->kind == LS_TRANSFER_BARRIER ? 0
                         : adds                         ? t->bytes * (ranks - 1) / ranks
                                                        : t->bytes / ranks;
    ls_transfer_cost c = {.core_s = meetings * l->message_s + bytes * l->core_s_per_byte};

    c.latency_s = meetings * (l->latency_s + l->message_s);
    c.seconds = meetings * l->latency_s + fmax(bytes / l->bytes_s, c.core_s);
    return c;
}

/* Around a ring of the machine's ranks, and back where there is something to come back. */
static ls_transfer_cost ring_inside(const ls_link *l, const ls_transfer *t, double ranks)
{
    const double trips = t->kind == LS_TRANSFER_ALL_REDUCE ? 2 : 1;
    ls_transfer_cost c;

    if (t->kind == LS_TRANSFER_BARRIER) return shared_memory(l, t, ranks);
    c = lsi_message_inside(l, t->bytes / ranks);
    c.seconds *= trips * (ranks - 1);
    c.core_s *= trips * (ranks - 1);
    c.latency_s *= trips * (ranks - 1);
    return c;
}

ls_transfer_cost lsi_inside(const lsi_job *j, const ls_transfer *t)
{
    const double ranks = lsi_job_ranks(j, 0);

    if (ranks < 2) return (ls_transfer_cost){0};
    if (t->algorithm == LS_ALGORITHM_OURS) return shared_memory(&j->n->inside, t, ranks);
    if (t->algorithm == LS_ALGORITHM_HIERARCHICAL) return ring_inside(&j->n->inside, t, ranks);
    return (ls_transfer_cost){0}; /* it is among their rounds */
}

bool lsi_is_all_with_all(const ls_transfer *t)
{
    return t->algorithm == LS_ALGORITHM_OURS && t->kind != LS_TRANSFER_BARRIER;
}

/* -- between machines -------------------------------------------------------------------------------------
 */

/* Bytes on the wire of a slice, which comm cuts by the floats of a vector, whatever they travel as. */
static double slice_of(const lsi_job *j, double bytes, double wire)
{
    const int64_t n = (int64_t)fmin(bytes / sizeof(float), VECTOR_MOST);

    return wire * (double)ls_exchange_slice(n, j->nodes, j->per_node, true) * (double)sizeof(float);
}

lsi_ours lsi_ours_make(const lsi_job *j, const ls_transfer *t)
{
    const double wire = lsi_wire_of(t);
    lsi_ours o = {
        .kind = t->kind, .bytes = wire * t->bytes, .longest = slice_of(j, INFINITY, wire), .n_trips = 1};

    switch (t->kind) {
    case LS_TRANSFER_ALL_REDUCE:
        o.from_own = o.from_peer = 1;
        o.n_trips = 2;
        o.slice = slice_of(j, t->bytes, wire);
        break;
    case LS_TRANSFER_REDUCE_SCATTER: o.from_peer = 1; break;
    default: o.from_own = 1;
    }
    return o;
}

double lsi_ours_home(const lsi_ours *o, const lsi_job *j, int32_t machine)
{
    double slices, home;

    if (o->kind == LS_TRANSFER_BROADCAST) return machine == 0 ? o->bytes : 0;
    if (o->slice == 0) return o->bytes * lsi_job_ranks(j, machine) / j->ranks;
    slices = ceil(o->bytes / o->slice);
    home = floor((slices - 1 - machine) / j->nodes) + 1; /* k = machine, machine + H, ... < slices */
    if (home < 1) return 0;
    /* The last slice is shorter. */
    return home * o->slice - (fmod(slices - 1, j->nodes) == machine ? slices * o->slice - o->bytes : 0);
}

double lsi_ours_sent(const lsi_ours *o, const lsi_job *j, int32_t machine)
{
    const double home = lsi_ours_home(o, j, machine), others = j->nodes - 1;
    const double out = o->from_own * others * home + o->from_peer * (o->bytes - home);
    const double in = o->from_own * (o->bytes - home) + o->from_peer * others * home;

    return fmax(out, in);
}

double lsi_ours_core(const lsi_ours *o, const lsi_job *j, double sent)
{
    const double slice = o->slice > 0 ? o->slice : o->longest;

    /* Every byte that comes was sent by another: so many are sent and received by all ranks of a machine. */
    return 2 / (double)j->per_node *
           (sent * j->n->node.core_s_per_byte + ceil(sent / slice) * j->n->node.message_s);
}
