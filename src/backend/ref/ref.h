/* ref.h: the reference backend: every op by its readable kernel, in double precision, on one thread. */
#ifndef LS_BACKEND_REF_REF_H
#define LS_BACKEND_REF_REF_H

#include "backend/backend.h"

extern const ls_backend ls_backend_ref;

/* Plans a node with its op's reference kernel; tensors must be in plain layout.  Other backends use it for
 * ops they have no kernel for. */
ls_status ls_ref_plan(const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err) LS_MUST_CHECK;

#endif
