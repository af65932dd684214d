/* places.c: see places.h. */
#include "backend/cuda/places.h"

bool lsi_cuda_channels_last(const ls_vinfo *v)
{
    return v->layout == &ls_layout_nhwc || v->layout == &ls_layout_nlc;
}

void lsi_cuda_memory_order(const ls_layout *l, ls_shape s, int *order)
{
    LS_BUG_IF(l->block != 0 || l->row != 0); /* nobody makes such for this backend */
    for (int i = 0; i < s.rank; i++) order[i] = l->rank > 0 ? l->order[i] : i;
}

void lsi_cuda_strides(const ls_layout *l, ls_shape s, int64_t *stride)
{
    int order[LS_MAX_RANK];
    int64_t step = 1;

    lsi_cuda_memory_order(l, s, order);
    for (int i = s.rank - 1; i >= 0; i--) {
        stride[order[i]] = step;
        step *= s.dim[order[i]];
    }
}

lsi_cuda_map lsi_cuda_map_of(const ls_vinfo *v)
{
    lsi_cuda_map m = {1, 1, 1, lsi_cuda_channels_last(v)};

    if (v->shape.rank > 0) m.n = v->shape.dim[0];
    if (v->shape.rank > 1) m.c = v->shape.dim[1];
    for (int i = 2; i < v->shape.rank; i++) m.s *= v->shape.dim[i];
    if (m.s == 1) m.channels_last = true; /* both at once: the channels are neighbours */
    return m;
}
