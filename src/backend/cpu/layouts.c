/* layouts.c: which layout each op wants its tensors in.
 *
 * Convolutions with many channels on both sides work on blocked maps (C16); ops that can work on either take
 * what is there (map_layouts.h).  Ops without a kernel of this backend's own run the reference kernel, which
 * is plain. */
#include "backend/cpu/c16.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/map_layouts.h"
#include "ops/ops.h"

/* Vector kernels exist for the types that networks compute in, and for the indices of their pools. */
const ls_layout lsi_layout_c16 = {.name = "c16",
                                  .rank = 4,
                                  .order = {0, 1, 2, 3},
                                  .block = 16,
                                  .block_axis = 1,
                                  .whole = true,
                                  .dtypes = 1u << LS_F32 | 1u << LS_BF16 | 1u << LS_F16 | 1u << LS_U8};

#define FEW_CHANNELS 4 /* up to here, kernels for few channels take or give plain maps */

static void conv_rule(ls_map_query *q)
{
    const ls_conv_attr *a = q->n->attr;
    bool dx = q->n->op == &ls_op_conv2d_dx, dw = q->n->op == &ls_op_conv2d_dw;
    int32_t xv = dx ? q->n->out[0] : q->n->in[0];
    int32_t yv = dx ? q->n->in[0] : dw ? q->n->in[1] : q->n->out[0];
    int64_t ci = q->g->values[xv]->shape.dim[1], co = q->g->values[yv]->shape.dim[1];
    bool ci_many = ci % 16 == 0 && ls_map_allowed(q, xv), co_many = co % 16 == 0 && ls_map_allowed(q, yv);
    bool simple = a->groups == 1 && a->act <= LS_ACT_TANH; /* anything else runs the reference kernel */
    bool x_blocked = simple && ci_many && (co_many || co <= FEW_CHANNELS);
    bool y_blocked = simple && co_many && (ci_many || ci <= FEW_CHANNELS);

    if (dx) {
        ls_map_set_out(q, 0, x_blocked);
        ls_map_set_in(q, 0, y_blocked);
    } else {
        ls_map_set_in(q, 0, x_blocked);
        if (dw)
            ls_map_set_in(q, 1, y_blocked);
        else
            ls_map_set_out(q, 0, y_blocked);
    }
}

void lsi_cpu_layouts(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                     const ls_layout **in, const ls_layout **out)
{
    ls_map_query q = {&lsi_layout_c16, g, n, have, in, out};

    (void)dev;
    if (lsi_cpu_planner_of(n->op) == NULL && !(n->op->flags & LS_OP_VIEW)) return;
    if (!lsi_has_avx2() && !lsi_has_avx512()) return; /* kernels for blocked maps are vector code */
    if (n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx || n->op == &ls_op_conv2d_dw)
        conv_rule(&q);
    else if (n->op == &ls_op_dropout)
        ls_map_follow(&q, 0);
    else
        ls_map_rule(&q);
}
