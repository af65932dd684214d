/* conv_blocked.c: weight reorders and scratch for the implementations for channel-blocked maps. */
#include "backend/cpu/conv_blocked.h"

void *lsi_bump_take(lsi_bump *b, size_t bytes)
{
    void *p = b->base ? b->base + b->used : NULL;

    b->used += (bytes + 63) & ~(size_t)63;
    return p;
}

bool lsi_conv_blocked_ok(const lsi_conv_problem *p)
{
    return p->x_layout == &lsi_layout_c16 && p->y_layout == &lsi_layout_c16 && p->groups == 1 && p->ci > 0 &&
           p->co > 0 && p->ci % LSI_LINE == 0 && p->co % LSI_LINE == 0 && p->n >= 0 && p->hi > 0 &&
           p->wi > 0 && p->ho > 0 && p->wo > 0 && p->kh > 0 && p->kw > 0 && p->sh > 0 && p->sw > 0 &&
           p->dh > 0 && p->dw > 0 && p->threads > 0 && lsi_conv_kernels_get() != NULL;
}

static int64_t count_used(const lsi_weight_block *b)
{
    int64_t n = 0;

    for (int64_t t = 0; t < b->taps; t++) n += b->used[t];
    return n;
}

/* Few of many taps (a map smaller than the kernel): element by element.  k_step and o_step lie between
 * reduced and between produced channels. */
static void pick_taps(const lsi_weight_block *b, const float *src, int64_t k_step, int64_t o_step)
{
    for (int64_t t = 0; t < b->taps; t++) {
        if (!b->used[t]) continue;
        for (int64_t k = 0; k < LSI_LINE; k++) {
            float *to = b->to + t * b->to_tap + k * b->to_row;
            for (int64_t o = 0; o < LSI_LINE; o++) to[o] = src[o * o_step + k * k_step + t];
        }
    }
}

/* Sixteen rows (output channels) of 16 * taps floats lie at a distance of ci * taps; they are transposed in
 * squares, and column c is input channel c / taps, tap c % taps. */
void lsi_weights_fwd(const lsi_conv_kernels *k, const lsi_weight_block *b, int64_t co_b, int64_t ci_b)
{
    const int64_t row = b->ci * b->taps;
    const float *src = b->w + co_b * LSI_LINE * row + ci_b * LSI_LINE * b->taps;
    float unused[LSI_LINE];

    if (b->used && 4 * count_used(b) <= b->taps) {
        pick_taps(b, src, b->taps, row);
        return;
    }
    for (int64_t c0 = 0; c0 < LSI_LINE * b->taps; c0 += LSI_LINE) {
        float *to[LSI_LINE];
        bool any = false;
        for (int j = 0; j < LSI_LINE; j++) {
            const int64_t ch = (c0 + j) / b->taps, t = (c0 + j) % b->taps;
            const bool use = !b->used || b->used[t];
            to[j] = use ? b->to + t * b->to_tap + ch * b->to_row : unused;
            any |= use;
        }
        if (any) k->transpose_in(src + c0, row, to);
    }
}

/* One output channel at a time: 16 rows (input channels) of `taps` floats, transposed. */
void lsi_weights_dx(const lsi_conv_kernels *k, const lsi_weight_block *b, int64_t co_b, int64_t ci_b)
{
    const int64_t row = b->ci * b->taps;
    const float *src = b->w + co_b * LSI_LINE * row + ci_b * LSI_LINE * b->taps;

    if (b->used && 4 * count_used(b) <= b->taps) {
        pick_taps(b, src, row, b->taps);
        return;
    }
    for (int64_t o = 0; o < LSI_LINE; o++, src += row) {
        for (int64_t t0 = 0; t0 < b->taps; t0 += LSI_LINE) {
            const int n = (int)lsi_min64(LSI_LINE, b->taps - t0);
            float *to[LSI_LINE];
            for (int j = 0; j < n; j++)
                to[j] = !b->used || b->used[t0 + j] ? b->to + (t0 + j) * b->to_tap + o * b->to_row : NULL;
            k->transpose_cols(src + t0, b->taps, n, to);
        }
    }
}

void lsi_weights_from_blocks(const lsi_conv_kernels *k, const float *from, int64_t from_tap,
                             const lsi_dw_block *b, int64_t co_b, int64_t ci_b)
{
    const int64_t row = b->ci * b->taps;
    const float zero[LSI_LINE] = {0};
    float *dst = b->dw + co_b * LSI_LINE * row + ci_b * LSI_LINE * b->taps;

    for (int64_t c0 = 0; c0 < LSI_LINE * b->taps; c0 += LSI_LINE) {
        const float *src[LSI_LINE];
        for (int j = 0; j < LSI_LINE; j++) {
            const int64_t ch = (c0 + j) / b->taps, t = (c0 + j) % b->taps;
            src[j] = !b->used || b->used[t] ? from + t * from_tap + ch * LSI_LINE : zero;
        }
        k->transpose_out(src, dst + c0, row);
    }
}
