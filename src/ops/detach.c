/* detach: x, seen by autodiff as a constant. */
#include "ops/shape_rules.h"

const ls_op ls_op_detach = {
    .name = "detach",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_VIEW | LS_OP_NO_GRAD,
    .infer = lsi_infer_same,
};

ls_value ls_detach(ls_value x)
{
    return ls_graph_add(x.g, &ls_op_detach, 1, &x, NULL);
}
