/* chamfer_rules.h: what the Chamfer distance and its gradient share. */
#ifndef LS_OPS_CHAMFER_RULES_H
#define LS_OPS_CHAMFER_RULES_H

#include "ops/ops.h"

/* Checks that inputs p and q (given by position) are clouds (B, 3, P) and (B, 3, Q) of one floating type,
 * neither without points: a point of the other cloud would have no nearest one. */
ls_status lsi_chamfer_check(const ls_infer *c, int p, int q, ls_err *err);

#endif
