/* collective.c: collectives in closed form: every machine's own link is what holds it up. */
#include <math.h>

#include "predict/collective_internal.h"

/* Machines that are looked at to find the longest way and the most messages of a round. */
enum { SAMPLES = 64, SAMPLED_RANKS = 1024 };

void lsi_cost_add(ls_transfer_cost *a, const ls_transfer_cost *b)
{
    a->seconds += b->seconds;
    a->core_s += b->core_s;
    a->wire_bytes += b->wire_bytes;
    a->latency_s += b->latency_s;
    a->visits += b->visits;
}

ls_transfer_cost lsi_message_inside(const ls_link *inside, double bytes)
{
    ls_transfer_cost c = {.core_s = 2 * (inside->message_s + bytes * inside->core_s_per_byte)};

    c.latency_s = inside->latency_s + 2 * inside->message_s;
    c.seconds = inside->latency_s + fmax(bytes / inside->bytes_s, c.core_s);
    return c;
}

/* -- rounds -----------------------------------------------------------------------------------------------
 */

static double way_latency(const lsi_job *j, int32_t a, int32_t b)
{
    const int32_t size = ls_network_size(j->n);
    int64_t links[LS_ROUTE_MAX];
    double latency;

    if (size > 0) { /* more are asked for than there are: those that are stand for them */
        a %= size;
        b %= size;
        if (a == b) return j->n->node.latency_s;
    }
    ls_network_route(j->n, j->nodes, a, b, links, &latency);
    return latency;
}

/* What a round asks of machines. */
typedef struct demand {
    int32_t crossing; /* messages that leave a machine at a time, at most */
    bool inside;      /* some stay in their machine */
    double latency_s; /* of the longest way */
} demand;

static void look_at(const lsi_job *j, const lsi_round *r, const lsi_rounds *all, int32_t machine, demand *d)
{
    const int32_t per = all->per_node, begin = machine * per;
    const int32_t end = begin + per < all->members ? begin + per : all->members;
    int32_t crossing = 0;

    for (int32_t i = begin; i < end; i++) {
        const int32_t to = lsi_round_target(r, all->members, i);
        double latency;
        if (to < 0) continue;
        if (to / per == machine) {
            d->inside = true;
            continue;
        }
        crossing += all->abreast;
        latency = way_latency(j, machine, to / per);
        if (latency > d->latency_s) d->latency_s = latency;
    }
    if (crossing > d->crossing) d->crossing = crossing;
}

static demand demand_of(const lsi_job *j, const lsi_round *r, const lsi_rounds *all)
{
    int32_t samples = SAMPLED_RANKS / all->per_node;
    demand d = {0};

    if (samples > SAMPLES) samples = SAMPLES;
    if (samples < 4) samples = 4;
    if (samples > j->nodes) samples = j->nodes;
    for (int32_t s = 0; s < samples; s++) look_at(j, r, all, (int32_t)((int64_t)s * j->nodes / samples), &d);
    look_at(j, r, all, j->nodes - 1, &d);
    return d;
}

static ls_transfer_cost round_cost(const lsi_job *j, const lsi_round *r, const lsi_rounds *all)
{
    const ls_link *node = &j->n->node;
    const demand d = demand_of(j, r, all);
    const double bytes = all->wire * r->bytes, core = 2 * (node->message_s + bytes * node->core_s_per_byte);
    ls_transfer_cost c = {0};

    if (d.inside) c = lsi_message_inside(&j->n->inside, r->bytes);
    if (d.crossing > 0) {
        c.seconds = fmax(c.seconds, d.latency_s + fmax(bytes * d.crossing / node->bytes_s, core));
        c.latency_s = fmax(c.latency_s, d.latency_s + 2 * node->message_s);
        c.core_s = fmax(c.core_s, core);
        c.wire_bytes = bytes * d.crossing;
    }
    c.seconds *= r->times;
    c.latency_s *= r->times;
    c.core_s *= r->times;
    c.wire_bytes *= r->times;
    return c;
}

static ls_transfer_cost rounds_cost(const lsi_job *j, const lsi_rounds *all)
{
    ls_transfer_cost sum = {0};

    for (int i = 0; i < all->n; i++) {
        const ls_transfer_cost c = round_cost(j, &all->of[i], all);
        lsi_cost_add(&sum, &c);
    }
    return sum;
}

/* -- our own ----------------------------------------------------------------------------------------------
 */

/* From the first machine to others, all over the network. */
static double longest_way(const lsi_job *j)
{
    const lsi_round far = {.pattern = LSI_SHIFT, .distance = (j->nodes + 1) / 2};
    const lsi_rounds all = {.members = j->nodes, .per_node = 1, .abreast = 1};

    return demand_of(j, &far, &all).latency_s;
}

static ls_transfer_cost ours_between(const lsi_job *j, const ls_transfer *t)
{
    const lsi_ours o = lsi_ours_make(j, t);
    const int32_t last = j->nodes - 1;
    ls_transfer_cost c = {0};

    c.wire_bytes = fmax(lsi_ours_sent(&o, j, 0), lsi_ours_sent(&o, j, last));
    c.core_s = lsi_ours_core(&o, j, c.wire_bytes);
    c.latency_s = o.n_trips * longest_way(j);
    c.seconds = c.latency_s + fmax(c.wire_bytes / j->n->node.bytes_s, c.core_s);
    return c;
}

/* -- all --------------------------------------------------------------------------------------------------
 */

ls_transfer_cost ls_transfer_closed(const ls_network *n, const ls_transfer *t, int32_t ranks,
                                    int32_t per_node)
{
    const lsi_job j = {n, NULL, ranks, per_node, (ranks - 1) / per_node + 1};
    ls_transfer_cost sum, between;
    lsi_rounds rounds;

    if (ranks < 2) return (ls_transfer_cost){0};
    sum = lsi_inside(&j, t);
    if (lsi_is_all_with_all(t)) {
        between = j.nodes > 1 ? ours_between(&j, t) : (ls_transfer_cost){0};
    } else {
        lsi_rounds_make(&rounds, t, ranks, per_node);
        between = rounds_cost(&j, &rounds);
    }
    lsi_cost_add(&sum, &between);
    return sum;
}
