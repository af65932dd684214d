/* collective_shared.c: collectives whose messages get into one another's way.
 *
 * Where all messages of a round take about as long, ranks go through rounds together, and these are added up.
 * Else ranks that are done go on, and use what others leave idle: they are followed one by one
 * (collective_paced.c), as far as that can be done in a second or two. */
#include <math.h>

#include "predict/collective_internal.h"
#include "predict/share_internal.h"

/* Followed one by one are at most so many, and where rounds are uneven by more than this of their time. */
#define PACED_MOST   4096
#define PACED_SPREAD 0.01

/* The messages of a round that cross machines; messages of a machine's ranks to another's are one flow. */
typedef struct crossing {
    ls_flow *flows;
    int64_t n;
    double most_sent; /* bytes of a machine */
    bool inside;      /* some stay in their machine */
} crossing;

static void gather_flows(crossing *x, const lsi_job *j, const lsi_round *r, const lsi_rounds *all)
{
    const double bytes = all->wire * r->bytes;
    double sent = 0;
    int32_t sender = -1;

    x->n = 0;
    x->most_sent = 0;
    x->inside = false;
    for (int32_t i = 0; i < all->members; i++) {
        const int32_t to = lsi_round_target(r, all->members, i);
        const int32_t a = i / all->per_node, b = to / all->per_node;
        ls_flow *last = x->n > 0 ? &x->flows[x->n - 1] : NULL;
        if (to < 0) continue;
        if (a == b) {
            x->inside = true;
            continue;
        }
        sent = a == sender ? sent + bytes * all->abreast : bytes * all->abreast;
        sender = a;
        x->most_sent = fmax(x->most_sent, sent);
        if (last != NULL && last->from == lsi_place(j->p, a) && last->to == lsi_place(j->p, b))
            last->count += all->abreast;
        else
            x->flows[x->n++] = (ls_flow){lsi_place(j->p, a), lsi_place(j->p, b), all->abreast, bytes};
    }
}

/* The longest latency of flows is in their time; a processor that is slower than the wire is behind it. */
static double longest_latency(const lsi_job *j, const crossing *x)
{
    int64_t links[LS_ROUTE_MAX];
    double most = 0, latency;

    for (int64_t i = 0; i < x->n; i++) {
        ls_network_route(j->n, j->nodes, x->flows[i].from, x->flows[i].to, links, &latency);
        most = fmax(most, latency);
    }
    return most;
}

/* What a round takes, and how much of it the first message was over before the last. */
static ls_status round_cost(ls_transfer_cost *c, double *spread_s, crossing *x, const lsi_job *j,
                            const lsi_round *r, const lsi_rounds *all, ls_err *err)
{
    const ls_link *node = &j->n->node;
    const double core = 2 * (node->message_s + all->wire * r->bytes * node->core_s_per_byte);
    ls_flow_work work = {0};
    double first = INFINITY, last, latency;
    ls_status st = LS_OK;

    *c = (ls_transfer_cost){0};
    gather_flows(x, j, r, all);
    if (x->inside) {
        *c = lsi_message_inside(&j->n->inside, r->bytes);
        first = c->seconds;
    }
    if (x->n > 0) {
        double first_flow;
        LS_TRY(lsi_flows_time(j->n, j->nodes, x->flows, x->n, &first_flow, &last, &work, err));
        latency = longest_latency(j, x);
        first = fmin(first, fmax(first_flow, latency + core));
        c->seconds = fmax(c->seconds, fmax(last, latency + core));
        c->latency_s = fmax(c->latency_s, latency + 2 * node->message_s);
        c->core_s = fmax(c->core_s, core);
    }
    *spread_s = c->seconds > first ? c->seconds - first : 0;
    c->wire_bytes = x->most_sent;
    c->visits = work.visits;
out:
    return st;
}

/* A round like one before takes as long: what comes back goes the way that it came. */
static int same_as_before(const lsi_rounds *all, int i)
{
    for (int k = 0; k < i; k++)
        if (all->of[k].pattern == all->of[i].pattern && all->of[k].distance == all->of[i].distance &&
            all->of[k].bytes == all->of[i].bytes)
            return k;
    return -1;
}

ls_status lsi_rounds_together(ls_transfer_cost *sum, double *spread_s, const lsi_job *j,
                              const lsi_rounds *all, ls_err *err)
{
    crossing x = {.flows = ls_alloc(LS_MEM_CLI, (size_t)all->members * sizeof *x.flows)};
    ls_transfer_cost cost[LSI_ROUNDS_MOST];
    double spread[LSI_ROUNDS_MOST];
    ls_status st = LS_OK;

    *spread_s = 0;
    if (x.flows == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d flows", (int)all->members);
    for (int i = 0; i < all->n; i++) {
        const int before = same_as_before(all, i);
        ls_transfer_cost c;
        if (before >= 0) {
            cost[i] = cost[before];
            cost[i].visits = 0;
            spread[i] = spread[before];
        } else {
            LS_TRY(round_cost(&cost[i], &spread[i], &x, j, &all->of[i], all, err));
        }
        c = cost[i];
        c.seconds *= all->of[i].times;
        c.latency_s *= all->of[i].times;
        c.core_s *= all->of[i].times;
        c.wire_bytes *= all->of[i].times;
        lsi_cost_add(sum, &c);
        *spread_s += spread[i] * all->of[i].times;
    }
out:
    ls_free(x.flows);
    return st;
}

/* Rings are not: a rank is never more than a round ahead of its neighbour. */
static bool is_to_be_paced(const lsi_rounds *all, double seconds, double spread_s)
{
    for (int i = 0; i < all->n; i++)
        if (all->of[i].times > 1) return false;
    return spread_s > PACED_SPREAD * seconds && all->members <= PACED_MOST && all->n > 1;
}

static ls_status rounds_cost(ls_transfer_cost *sum, const lsi_job *j, const lsi_rounds *all, ls_err *err)
{
    ls_transfer_cost c = {0};
    double spread;
    ls_status st = LS_OK;

    LS_TRY(lsi_rounds_together(&c, &spread, j, all, err));
    if (is_to_be_paced(all, c.seconds, spread))
        LS_TRY(lsi_rounds_paced(&c.seconds, &c.visits, c.seconds, j, all, err));
    lsi_cost_add(sum, &c);
out:
    return st;
}

static ls_status ours_between(ls_transfer_cost *sum, const lsi_job *j, const ls_transfer *t, ls_err *err)
{
    const lsi_ours o = lsi_ours_make(j, t);
    ls_transfer_cost c = {0};
    double wire, latency;
    ls_status st = LS_OK;

    LS_TRY(lsi_busiest_link(&o, j, &wire, &latency, &c.visits, err));
    c.wire_bytes = fmax(lsi_ours_sent(&o, j, 0), lsi_ours_sent(&o, j, j->nodes - 1));
    c.core_s = lsi_ours_core(&o, j, c.wire_bytes);
    c.latency_s = o.n_trips * latency;
    c.seconds = c.latency_s + fmax(wire, c.core_s);
    lsi_cost_add(sum, &c);
out:
    return st;
}

ls_status ls_transfer_shared(const ls_network *n, const ls_transfer *t, const ls_job_placement *p,
                             ls_transfer_cost *out, ls_err *err)
{
    const lsi_job j = {n, p, p->ranks, p->ranks_per_node, (p->ranks - 1) / p->ranks_per_node + 1};
    lsi_rounds rounds;

    *out = (ls_transfer_cost){0};
    if (j.ranks < 2) return LS_OK;
    *out = lsi_inside(&j, t);
    if (j.nodes < 2 && lsi_is_all_with_all(t)) return LS_OK;
    if (lsi_is_all_with_all(t)) return ours_between(out, &j, t, err);
    lsi_rounds_make(&rounds, t, j.ranks, j.per_node);
    return rounds_cost(out, &j, &rounds, err);
}
