/* map_layouts.h: layouts of ops that work on feature maps in more than one order of their elements.
 *
 * A backend has one layout that its convolutions like (blocked channels, channels last).  Which nodes begin
 * with it is the backend's own affair; those that can work on either order take what is there, so that a map,
 * once in that layout, stays so until something (a reshape, a linear layer) needs the plain one.  That half
 * is the same for all and stands here. */
#ifndef LS_BACKEND_MAP_LAYOUTS_H
#define LS_BACKEND_MAP_LAYOUTS_H

#include "graph/graph.h"

/* One question of the layout pass (ls_layout_rule), for the backend's layout of maps. */
typedef struct ls_map_query {
    const ls_layout *layout;
    const ls_graph *g;
    const ls_node *n;
    const ls_layout *const *have;
    const ls_layout **in, **out; /* plain until they are set */
} ls_map_query;

/* Whether the value could be in the layout. */
bool ls_map_allowed(const ls_map_query *q, int32_t value);
/* Asks for input i or output k in the layout, if `wanted` and the node has it and it may be.  Variables may
 * be read through a copy, but are never made so: the world outside sees them. */
void ls_map_set_in(ls_map_query *q, int i, bool wanted);
void ls_map_set_out(ls_map_query *q, int k, bool wanted);

/* Everything of the shape of input `lead` follows its layout; the rest stays plain. */
void ls_map_follow(ls_map_query *q, int lead);
/* The rule of an op that takes what is there: element-wise ones, norms, pools, paddings and their gradients.
 * Nothing happens for others. */
void ls_map_rule(ls_map_query *q);

#endif
