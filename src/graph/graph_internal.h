/* graph_internal.h: shared by the files of graph. */
#ifndef LS_GRAPH_GRAPH_INTERNAL_H
#define LS_GRAPH_GRAPH_INTERNAL_H

#include "graph/graph.h"

/* One more value, of no node and no variable; NULL when memory runs out. */
ls_vinfo *lsi_graph_new_value(ls_graph *g, ls_dtype dtype, ls_shape shape);
/* Takes in a node or a variable that is complete; false when memory runs out. */
bool lsi_graph_append_node(ls_graph *g, ls_node *n);
bool lsi_graph_append_var(ls_graph *g, ls_var *var);

#endif
