/* layouts.c: which layout each op wants its tensors in.
 *
 * Convolutions work channels last, maps and weights; ops that can work on either order take what is there
 * (map_layouts.h).  Whatever has no rule is plain. */
#include "backend/cuda/kernel_util.h"
#include "backend/map_layouts.h"

void lsi_cuda_layouts(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                      const ls_layout **in, const ls_layout **out)
{
    ls_map_query q = {&ls_layout_nhwc, g, n, have, in, out};

    if (lsi_cuda_of(dev)->plain) return;
    if (n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx || n->op == &ls_op_conv2d_dw) {
        for (int i = 0; i < 2; i++) ls_map_set_in(&q, i, true);
        ls_map_set_out(&q, 0, true);
    } else if (n->op == &ls_op_cast) {
        ls_map_follow(&q, 0);
    } else {
        ls_map_rule(&q);
    }
}
