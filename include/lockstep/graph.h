/* graph.h: handles to a graph and its values.
 *
 * A graph is written once, in static single assignment: every op makes new values and changes none.  Errors
 * are sticky: the first one is kept in the graph with the op, the shapes and the source line that caused it;
 * every later call on the broken graph returns an invalid value and does nothing, so a builder needs one
 * check at its end.  A graph belongs to one thread. */
#ifndef LOCKSTEP_GRAPH_H
#define LOCKSTEP_GRAPH_H

#include "lockstep/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A graph: ops and the values between them, what is read from the host, what is kept from step to step, and
 * what is given back. It says what is computed, not when or where: that is a plan's (plan.h).  All that
 * belongs to it lives and goes with it. */
typedef struct ls_graph ls_graph;

/* One tensor in a graph.  Plain data: copy it freely; it is valid as long as its graph. */
typedef struct ls_value {
    ls_graph *g;
    int32_t id; /* negative: the value of a failed call */
} ls_value;

/* Creates an empty graph; the caller owns *out. */
ls_status ls_graph_create(ls_graph **out, ls_err *err) LS_MUST_CHECK;
void ls_graph_destroy(ls_graph *g); /* accepts NULL */

/* LS_OK, or the first error with its text copied to `err`. */
ls_status ls_graph_status(const ls_graph *g, ls_err *err);

/* The value's type and shape; a failed value is f32 with the empty shape (0). */
ls_dtype ls_value_dtype(ls_value v);
ls_shape ls_value_shape(ls_value v);
static inline bool ls_value_ok(ls_value v)
{
    return v.g != NULL && v.id >= 0;
}

/* Records that ops added from here on come from this source line; returns `v` unchanged.  The macros in
 * nn.h call it, which is how an error can name the line of the trial. */
ls_value ls_value_at(ls_value v, const char *file, int line);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
