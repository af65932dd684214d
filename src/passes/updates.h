/* updates.h: updates that several nodes make together, for the passes that order nodes around them.
 *
 * With several ranks an update is one optimiser node for every bucket of gradients (nn/minimise.c), chained
 * by the counter t.  Where ranks of a machine keep the variables once (decision 13), each rank writes a piece
 * of every bucket, and ranks meet only before the first node and after the last.  For everybody else such
 * nodes are one: whatever reads an old version of any of their variables comes before the first of them,
 * whatever reads a new version after the last.  All other updates are nodes by themselves. */
#ifndef LS_PASSES_UPDATES_H
#define LS_PASSES_UPDATES_H

#include "graph/graph.h"

typedef struct lsi_updates {
    int32_t *first, *last; /* per node: of the update it belongs to; the node itself where it is alone */
    int32_t n;             /* nodes that were there */
} lsi_updates;

/* Looks at all nodes of the graph as it is; the arrays lie in its arena.  False: no memory. */
bool lsi_updates_find(const ls_graph *g, lsi_updates *out);
/* Whether `value` is handed on inside the update that `node` belongs to (the counter): it is one rank's own
 * and read by nobody else. */
bool lsi_update_hands_on(const ls_graph *g, const lsi_updates *u, int32_t node, int32_t value);

#endif
