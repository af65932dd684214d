/* check_internal.h: what comes before what, for the proofs (relation.c). */
#ifndef LS_PASSES_CHECK_INTERNAL_H
#define LS_PASSES_CHECK_INTERNAL_H

#include "passes/check.h"

typedef struct lsi_relation {
    const ls_graph *g;
    uint64_t *before; /* a row of bits per node: the nodes that come before it */
    size_t words;     /* of a row */
} lsi_relation;

/* From the edges of the graph and, with a schedule, from the order within each queue.  Fails where there is a
 * circle. */
ls_status lsi_relation_make(lsi_relation *r, const ls_graph *g, const ls_schedule *s,
                            ls_err *err) LS_MUST_CHECK;
void lsi_relation_release(lsi_relation *r);

/* Whether a is over before b begins. */
static inline bool lsi_before(const lsi_relation *r, int32_t a, int32_t b)
{
    return (r->before[(size_t)b * r->words + (size_t)a / 64] >> (a % 64) & 1) != 0;
}

/* "node 12 (conv2d \"layer1.conv\")" for messages. */
#define LSI_NODE_NAME 160
const char *lsi_node_name(const ls_graph *g, int32_t node, char buf[LSI_NODE_NAME]);

#endif
