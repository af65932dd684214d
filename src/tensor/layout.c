/* layout.c: the layouts that belong to no device, and what a layout's description means. */
#include "tensor/layout.h"

const ls_layout ls_layout_plain = {.name = "plain"};
const ls_layout ls_layout_nhwc = {.name = "nhwc", .rank = 4, .order = {0, 2, 3, 1}};
const ls_layout ls_layout_nlc = {.name = "nlc", .rank = 3, .order = {0, 2, 1}};

bool ls_layout_allowed(const ls_layout *l, ls_dtype t, ls_shape s)
{
    if (l->rank != 0 && s.rank != l->rank) return false;
    if (l->dtypes != 0 && !(l->dtypes & 1u << t)) return false;
    return !l->whole || (s.dim[l->block_axis] > 0 && s.dim[l->block_axis] % l->block == 0);
}

static int64_t round_up(int64_t n, int64_t to)
{
    return to > 1 ? (n + to - 1) / to * to : n;
}

ls_strides ls_layout_strides(const ls_layout *l, ls_shape s)
{
    const bool cut = l->block > 0;
    ls_strides p = {.shape = s, .block = cut ? l->block : 1, .block_axis = l->block_axis};

    LS_BUG_IF(l->rank != 0 && s.rank != l->rank);
    p.count = cut ? round_up(l->block, l->row) : 1;
    for (int i = s.rank - 1; i >= 0; i--) {
        const int axis = l->rank != 0 ? l->order[i] : i;
        int64_t n = s.dim[axis];
        if (cut && axis == l->block_axis) n = round_up(n, l->block) / l->block;
        if (!cut && i == s.rank - 1) n = round_up(n, l->row);
        p.of[axis] = p.count;
        p.count *= n;
    }
    return p;
}

size_t ls_layout_bytes(const ls_layout *l, ls_dtype t, ls_shape s)
{
    return (size_t)ls_layout_strides(l, s).count * ls_dtype_size(t);
}

int64_t ls_strides_place(const ls_strides *s, int64_t i)
{
    int64_t place = 0;

    for (int axis = s->shape.rank - 1; axis >= 0; axis--) {
        const int64_t n = s->shape.dim[axis], at = i % n, block = axis == s->block_axis ? s->block : 1;
        place += at / block * s->of[axis] + at % block;
        i /= n;
    }
    return place;
}
