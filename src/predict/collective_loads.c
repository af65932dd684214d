/* collective_loads.c: what links carry when all machines send to all: the busiest one says how long it takes.
 *
 * Machines at one switch have the same ways from there on, so ways are looked up once for each two switches,
 * not for each two machines. */
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "predict/collective_internal.h"
#include "predict/link_table.h"

/* -- bytes by link ----------------------------------------------------------------------------------------
 */

typedef struct loads {
    lsi_link_table table;
    double *bytes; /* by place in the table */
    size_t capacity;
} loads;

static bool add_load(loads *l, int64_t link, double bytes)
{
    const int32_t place = lsi_link_table_place(&l->table, link);

    if (place < 0 || !LS_GROW(LS_MEM_CLI, l->bytes, place + 1, l->capacity)) return false;
    l->bytes[place] += bytes;
    return true;
}

/* -- switches with machines of the job --------------------------------------------------------------------
 */

typedef struct leaf {
    int32_t number, machine; /* of the network; one of the job's that is there */
    double machines, home;   /* how many are there, and what is at home with them */
} leaf;

static int by_number(const void *a, const void *b)
{
    const int32_t x = ((const leaf *)a)->number, y = ((const leaf *)b)->number;

    return x < y ? -1 : x > y;
}

static int32_t place_of(const lsi_job *j, int32_t machine)
{
    return j->p != NULL ? lsi_place(j->p, machine) : machine;
}

/* One entry for each switch; returns how many. */
static int32_t gather_leaves(leaf *leaves, const lsi_ours *o, const lsi_job *j)
{
    int32_t n = 0;

    for (int32_t m = 0; m < j->nodes; m++)
        leaves[m] = (leaf){ls_network_leaf(j->n, place_of(j, m)), place_of(j, m), 1, lsi_ours_home(o, j, m)};
    qsort(leaves, (size_t)j->nodes, sizeof *leaves, by_number);
    for (int32_t m = 0; m < j->nodes; m++) {
        if (n > 0 && leaves[n - 1].number == leaves[m].number) {
            leaves[n - 1].machines++;
            leaves[n - 1].home += leaves[m].home;
        } else {
            leaves[n++] = leaves[m];
        }
    }
    return n;
}

static bool add_ways(loads *l, const lsi_ours *o, const lsi_job *j, const leaf *leaves, int32_t n,
                     double *latency_s)
{
    int64_t links[LS_ROUTE_MAX];

    for (int32_t a = 0; a < n; a++)
        for (int32_t b = 0; b < n; b++) {
            const double bytes = o->from_own * leaves[a].home * leaves[b].machines +
                                 o->from_peer * leaves[b].home * leaves[a].machines;
            double latency;
            int n_links;
            if (a == b) continue;
            n_links = ls_network_route(j->n, j->nodes, leaves[a].machine, leaves[b].machine, links, &latency);
            if (latency > *latency_s) *latency_s = latency;
            for (int k = 2; k < n_links; k++) /* the first two are the machines' own */
                if (!add_load(l, links[k], bytes)) return false;
        }
    return true;
}

/* Two machines at one switch have a way, too. */
static double near_latency(const lsi_job *j)
{
    int64_t links[LS_ROUTE_MAX];
    double latency = 0;

    ls_network_route(j->n, j->nodes, place_of(j, 0), place_of(j, 1), links, &latency);
    return latency;
}

ls_status lsi_busiest_link(const lsi_ours *o, const lsi_job *j, double *seconds, double *latency_s,
                           int64_t *visits, ls_err *err)
{
    leaf *leaves = ls_alloc(LS_MEM_CLI, (size_t)j->nodes * sizeof *leaves);
    loads l = {0};
    int32_t n = 0;
    bool enough = leaves != NULL;

    *seconds = 0;
    *latency_s = near_latency(j);
    if (enough) {
        n = gather_leaves(leaves, o, j);
        enough = add_ways(&l, o, j, leaves, n, latency_s);
    }
    for (int32_t m = 0; m < j->nodes; m++)
        *seconds = fmax(*seconds, lsi_ours_sent(o, j, m) / j->n->node.bytes_s);
    for (int32_t i = 0; enough && i < l.table.n; i++)
        *seconds = fmax(*seconds, l.bytes[i] / ls_network_link_rate(j->n, j->nodes, l.table.links[i]));
    *visits = (int64_t)n * n;
    lsi_link_table_release(&l.table);
    ls_free(l.bytes);
    ls_free(leaves);
    return enough ? LS_OK : ls_fail(err, LS_NOMEM, "no memory for the links of %d machines", (int)j->nodes);
}
