/* network_routes.c: the links of a network, and the ways of messages over them.
 *
 * Links are numbered, not stored, so that a network of any size takes no memory:
 *   0 .. N-1   from a machine to its switch          N .. 2N-1   back
 * and behind them, of a fat tree and of a tree, one link up and one down for each switch; a fat tree's stands
 * for all cables of the switch together, among which traffic is assumed to be spread evenly.  Of a dragonfly
 * the links from each router to each of its group, then those from each group to each. */
#include "predict/network_internal.h"

int32_t ls_network_size(const ls_network *n)
{
    const ls_dragonfly *d = &n->dragonfly;
    int32_t machines = 1;

    switch (n->kind) {
    case LS_NETWORK_FLAT: return 0;
    case LS_NETWORK_FAT_TREE:
        for (int32_t i = 0; i < n->n_levels; i++) machines *= n->level[i].children;
        return machines;
    case LS_NETWORK_DRAGONFLY: return d->nodes_per_router * d->routers_per_group * d->groups;
    case LS_NETWORK_TREE: return n->n_nodes;
    }
    return 0;
}

static int32_t machines_of(const ls_network *n, int32_t nodes)
{
    const int32_t size = ls_network_size(n);

    return size > 0 ? size : nodes;
}

int32_t ls_network_leaf(const ls_network *n, int32_t machine)
{
    switch (n->kind) {
    case LS_NETWORK_FLAT: return 0;
    case LS_NETWORK_FAT_TREE: return machine / n->level[0].children;
    case LS_NETWORK_DRAGONFLY: return machine / n->dragonfly.nodes_per_router;
    case LS_NETWORK_TREE: return n->node_switch[machine];
    }
    return 0;
}

/* -- fat trees --------------------------------------------------------------------------------------------
 */

/* How many switches a level has. */
static int32_t switches_of(const ls_network *n, int32_t level)
{
    int32_t count = 1;

    for (int32_t i = level + 1; i < n->n_levels; i++) count *= n->level[i].children;
    return count;
}

static double up_rate(const ls_network *n, int32_t level)
{
    double rate = n->node.bytes_s;

    for (int32_t i = 0; i <= level; i++) rate *= n->level[i].children / n->level[i].taper;
    return rate;
}

static int64_t fat_tree_links(const ls_network *n)
{
    int64_t links = 0;

    for (int32_t i = 0; i + 1 < n->n_levels; i++) links += 2 * (int64_t)switches_of(n, i);
    return links;
}

static double fat_tree_rate(const ls_network *n, int64_t link)
{
    for (int32_t i = 0; i + 1 < n->n_levels; i++) {
        const int64_t here = 2 * (int64_t)switches_of(n, i);
        if (link < here) return up_rate(n, i);
        link -= here;
    }
    return 0;
}

/* Up to the lowest switch that has both below it, and down again. */
static int fat_tree_route(const ls_network *n, int32_t a, int32_t b, int64_t first, int64_t *links,
                          double *latency_s)
{
    int n_links = 0;

    for (int32_t i = 0; i < n->n_levels; i++) {
        const int32_t count = switches_of(n, i);
        a /= n->level[i].children;
        b /= n->level[i].children;
        if (a == b) {
            *latency_s += n->level[i].latency_s;
            return n_links;
        }
        *latency_s += 2 * n->level[i].latency_s;
        links[n_links++] = first + a;
        links[n_links++] = first + count + b;
        first += 2 * (int64_t)count;
    }
    return n_links;
}

/* -- dragonflies ------------------------------------------------------------------------------------------
 */

static int64_t local_link(const ls_dragonfly *d, int32_t group, int32_t from, int32_t to)
{
    return ((int64_t)group * d->routers_per_group + from) * d->routers_per_group + to;
}

static int64_t global_link(const ls_dragonfly *d, int32_t from, int32_t to, int32_t which)
{
    const int64_t local = (int64_t)d->groups * d->routers_per_group * d->routers_per_group;

    return local + ((int64_t)from * d->groups + to) * d->global_links + which;
}

static int64_t dragonfly_links(const ls_network *n)
{
    return global_link(&n->dragonfly, n->dragonfly.groups - 1, n->dragonfly.groups - 1,
                       n->dragonfly.global_links - 1) +
           1;
}

static double dragonfly_rate(const ls_network *n, int64_t link)
{
    const ls_dragonfly *d = &n->dragonfly;
    const int64_t local = global_link(d, 0, 0, 0), r = d->routers_per_group;

    if (link < local) return link % r != link / r % r ? d->local_bytes_s : 0;
    link = (link - local) / d->global_links;
    return link % d->groups != link / d->groups ? d->global_bytes_s / d->global_links : 0;
}

/* Cables to other groups are dealt to the routers of a group in turn.  The router of this group that has
 * cable `which` to `other`. */
static int32_t gateway(const ls_dragonfly *d, int32_t group, int32_t other, int32_t which)
{
    const int64_t before = other < group ? other : other - 1;

    return (int32_t)((before * d->global_links + which) % d->routers_per_group);
}

/* The cable from `group` to `other` that a machine at `router` takes: its own router's, if that has one. */
static int32_t cable_of(const ls_dragonfly *d, int32_t group, int32_t other, int32_t router)
{
    const int32_t r = d->routers_per_group, first = gateway(d, group, other, 0);

    return (router - first + r) % r % d->global_links;
}

static int dragonfly_route(const ls_network *n, int32_t a, int32_t b, int64_t first, int64_t *links,
                           double *latency_s)
{
    const ls_dragonfly *d = &n->dragonfly;
    const int32_t from = a / d->nodes_per_router, to = b / d->nodes_per_router;
    const int32_t from_group = from / d->routers_per_group, to_group = to / d->routers_per_group;
    const int32_t from_router = from % d->routers_per_group, to_router = to % d->routers_per_group;
    int32_t out = to_router, in = to_router, which;
    int n_links = 0;

    *latency_s += d->router_s;
    if (from == to) return 0;
    if (from_group != to_group) {
        /* Whoever is in the lower group chooses, so that both directions go the same way. */
        which = from_group < to_group ? cable_of(d, from_group, to_group, from_router)
                                      : cable_of(d, to_group, from_group, to_router);
        out = gateway(d, from_group, to_group, which);
        in = gateway(d, to_group, from_group, which);
    }
    if (from_router != out) links[n_links++] = first + local_link(d, from_group, from_router, out);
    if (from_group != to_group) {
        links[n_links++] = first + global_link(d, from_group, to_group, which);
        if (in != to_router) links[n_links++] = first + local_link(d, to_group, in, to_router);
    }
    *latency_s += n_links * d->router_s;
    return n_links;
}

/* -- trees ------------------------------------------------------------------------------------------------
 */

static int depth_of(const ls_network *n, int32_t s)
{
    int depth = 0;

    for (; n->switches[s].parent >= 0; s = n->switches[s].parent) depth++;
    return depth;
}

static int tree_route(const ls_network *n, int32_t a, int32_t b, int64_t first, int64_t *links,
                      double *latency_s)
{
    int32_t x = n->node_switch[a], y = n->node_switch[b];
    int dx = depth_of(n, x), dy = depth_of(n, y), n_links = 0;

    while (x != y) {
        const bool up = dx >= dy;
        const int32_t s = up ? x : y;
        links[n_links++] = first + (up ? 0 : n->n_switches) + s;
        *latency_s += n->switches[s].latency_s;
        if (up) {
            x = n->switches[x].parent;
            dx--;
        } else {
            y = n->switches[y].parent;
            dy--;
        }
    }
    *latency_s += n->switches[x].latency_s;
    return n_links;
}

static double tree_rate(const ls_network *n, int64_t link)
{
    const ls_switch *s = &n->switches[link % n->n_switches];

    return s->parent >= 0 ? s->up_bytes_s : 0;
}

/* -- all --------------------------------------------------------------------------------------------------
 */

int64_t ls_network_links(const ls_network *n, int32_t nodes)
{
    const int64_t of_machines = 2 * (int64_t)machines_of(n, nodes);

    switch (n->kind) {
    case LS_NETWORK_FLAT: break;
    case LS_NETWORK_FAT_TREE: return of_machines + fat_tree_links(n);
    case LS_NETWORK_DRAGONFLY: return of_machines + dragonfly_links(n);
    case LS_NETWORK_TREE: return of_machines + 2 * (int64_t)n->n_switches;
    }
    return of_machines;
}

double ls_network_link_rate(const ls_network *n, int32_t nodes, int64_t link)
{
    const int64_t of_machines = 2 * (int64_t)machines_of(n, nodes);

    if (link < of_machines) return n->node.bytes_s;
    switch (n->kind) {
    case LS_NETWORK_FLAT: break;
    case LS_NETWORK_FAT_TREE: return fat_tree_rate(n, link - of_machines);
    case LS_NETWORK_DRAGONFLY: return dragonfly_rate(n, link - of_machines);
    case LS_NETWORK_TREE: return tree_rate(n, link - of_machines);
    }
    return 0;
}

int ls_network_route(const ls_network *n, int32_t nodes, int32_t a, int32_t b, int64_t *links,
                     double *latency_s)
{
    const int64_t machines = machines_of(n, nodes), first = 2 * machines;
    int n_links = 2;

    *latency_s = a != b ? n->node.latency_s : 0;
    if (a == b) return 0;
    links[0] = a;
    links[1] = machines + b;
    switch (n->kind) {
    case LS_NETWORK_FLAT: break;
    case LS_NETWORK_FAT_TREE: n_links += fat_tree_route(n, a, b, first, links + 2, latency_s); break;
    case LS_NETWORK_DRAGONFLY: n_links += dragonfly_route(n, a, b, first, links + 2, latency_s); break;
    case LS_NETWORK_TREE: n_links += tree_route(n, a, b, first, links + 2, latency_s); break;
    }
    return n_links;
}
