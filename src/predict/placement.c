/* placement.c: where in the network the machines of a job are, and whether they can get into one another's
 * way there. */
#include <stdlib.h>

#include "base/rng.h"
#include "predict/network_internal.h"

static ls_status check_list(const ls_job_placement *p, int32_t size, ls_err *err)
{
    ls_status st = LS_OK;
    const int32_t room = size > 0 ? size : LSI_MACHINES_MOST;
    uint8_t *taken = ls_alloc(LS_MEM_CLI, (size_t)room / 8 + 1);

    if (taken == NULL) return ls_fail(err, LS_NOMEM, "no memory for a placement");
    for (int32_t i = 0; i < p->nodes && st == LS_OK; i++) {
        const int32_t m = p->node[i];
        if (m < 0 || m >= room)
            st = ls_fail(err, LS_INVALID, "the placement names machine %d, the network has 0 to %d", (int)m,
                         (int)room - 1);
        else if (taken[m / 8] >> m % 8 & 1)
            st = ls_fail(err, LS_INVALID, "the placement names machine %d twice", (int)m);
        else
            taken[m / 8] |= (uint8_t)(1u << m % 8);
    }
    ls_free(taken);
    return st;
}

/* The first p->nodes of a shuffle of all machines. */
static ls_status draw(ls_job_placement *p, int32_t size, ls_err *err)
{
    const ls_rng_key key = {.seed_lo = (uint32_t)p->seed, .seed_hi = (uint32_t)(p->seed >> 32)};
    const uint32_t stream = ls_rng_stream("placement");
    int32_t *all = ls_alloc(LS_MEM_CLI, (size_t)size * sizeof *all);

    if (all == NULL) return ls_fail(err, LS_NOMEM, "no memory for a placement");
    for (int32_t i = 0; i < size; i++) all[i] = i;
    for (int32_t i = 0; i < p->nodes; i++) {
        const uint64_t word = ls_rng_word(&key, stream, 0, (uint64_t)i);
        const int32_t j = i + (int32_t)(word * (uint64_t)(size - i) >> 32);
        p->node[i] = all[j];
        all[j] = all[i];
    }
    ls_free(all);
    return LS_OK;
}

ls_status ls_job_placement_fill(ls_job_placement *p, const ls_network *n, ls_err *err)
{
    const int32_t size = ls_network_size(n);

    if (size > 0 && p->nodes > size)
        return ls_fail(err, LS_INVALID,
                       "%d machines are asked for, and the network %s has %d: ask for fewer ranks, more on a "
                       "machine, or another network",
                       (int)p->nodes, n->name, (int)size);
    switch (p->kind) {
    case LS_PLACE_CONTIGUOUS:
        for (int32_t i = 0; i < p->nodes; i++) p->node[i] = i;
        return LS_OK;
    case LS_PLACE_RANDOM: return draw(p, size > 0 ? size : p->nodes, err);
    case LS_PLACE_LIST: return check_list(p, size, err);
    }
    return LS_OK;
}

/* -- blocking ---------------------------------------------------------------------------------------------
 */

/* Whether a link of this rate holds up machines on either side of it that all send across. */
static bool is_slow(const ls_network *n, int32_t below, int32_t all, double rate)
{
    const int32_t crossing = below < all - below ? below : all - below;

    return crossing * n->node.bytes_s > rate * (1 + 1e-9);
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return x < y ? -1 : x > y;
}

/* How many machines from i on, which are in order, have the same switch, `span` of them to one. */
static int32_t run_of(const int32_t *at, int32_t i, int32_t n, int32_t span)
{
    int32_t run = 1;

    while (i + run < n && at[i + run] / span == at[i] / span) run++;
    return run;
}

static bool fat_tree_blocks(const ls_network *n, const int32_t *at, int32_t nodes)
{
    double rate = n->node.bytes_s;
    int32_t span = 1;

    for (int32_t level = 0; level + 1 < n->n_levels; level++) {
        rate *= n->level[level].children / n->level[level].taper;
        span *= n->level[level].children;
        for (int32_t i = 0, run; i < nodes; i += run) {
            run = run_of(at, i, nodes, span);
            if (is_slow(n, run, nodes, rate)) return true;
        }
    }
    return false;
}

/* Ways between groups cross others in the routers where cables end: that is for the solver to find out. */
static bool dragonfly_blocks(const ls_network *n, const int32_t *at, int32_t nodes)
{
    const ls_dragonfly *d = &n->dragonfly;
    int32_t most = 0, second = 0;

    if (run_of(at, 0, nodes, d->nodes_per_router * d->routers_per_group) < nodes) return true;
    for (int32_t i = 0, run; i < nodes; i += run) {
        run = run_of(at, i, nodes, d->nodes_per_router);
        second = run > most ? most : run > second ? run : second;
        if (run > most) most = run;
    }
    return second * n->node.bytes_s > d->local_bytes_s * (1 + 1e-9);
}

static bool tree_blocks(const ls_network *n, const int32_t *at, int32_t nodes, int32_t *below)
{
    for (int32_t i = 0; i < nodes; i++)
        for (int32_t s = n->node_switch[at[i]]; s >= 0; s = n->switches[s].parent) below[s]++;
    for (int32_t s = 0; s < n->n_switches; s++)
        if (n->switches[s].parent >= 0 && is_slow(n, below[s], nodes, n->switches[s].up_bytes_s)) return true;
    return false;
}

bool ls_network_blocks(const ls_network *n, const ls_job_placement *p)
{
    int32_t *at, *below;
    bool blocks = true; /* also where memory runs out: the solver then says so */

    if (n->kind == LS_NETWORK_FLAT || p->nodes < 2) return false;
    at = ls_alloc(LS_MEM_CLI, (size_t)p->nodes * sizeof *at);
    below = ls_alloc(LS_MEM_CLI, ((size_t)n->n_switches + 1) * sizeof *below);
    if (at != NULL && below != NULL) {
        for (int32_t i = 0; i < p->nodes; i++) at[i] = lsi_place(p, i);
        qsort(at, (size_t)p->nodes, sizeof *at, ascending);
        blocks = n->kind == LS_NETWORK_FAT_TREE    ? fat_tree_blocks(n, at, p->nodes)
                 : n->kind == LS_NETWORK_DRAGONFLY ? dragonfly_blocks(n, at, p->nodes)
                                                   : tree_blocks(n, at, p->nodes, below);
    }
    ls_free(at);
    ls_free(below);
    return blocks;
}
