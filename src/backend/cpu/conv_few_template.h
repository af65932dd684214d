/* conv_few_template.h: the vector code of conv_few.h, compiled once per instruction set.
 *
 * A "line" is the 16 channels of one pixel of the wide map: VPB vectors.  NV vectors (one or more lines of
 * neighbouring channel blocks) are handled together as a group of channels. */
#include <string.h>

#include "backend/cpu/conv_few.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/conv_vec.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/vec_transpose.h"

V_INLINE int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

V_INLINE int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Where vector v of a group lies, counted from the group's first line; `plane` floats per channel block. */
V_INLINE int64_t vector_at(int v, int64_t plane)
{
    return v / VPB * plane + v % VPB * VW;
}

/* Rows of the thin map under a band, with the zeros around the map made real. */
typedef struct padded {
    const float *data;  /* row 0, column 0 under the band's first tap */
    int64_t row, plane; /* floats from row to row and from channel to channel */
} padded;

static bool needs_padding(const lsi_few *f)
{
    return f->pt || f->pl || lsi_few_rows(f, f->ho) > f->hi || lsi_few_cols(f) > f->wi;
}

static padded pad_rows(const lsi_few *f, int64_t sample, int64_t oy, int64_t rows, float *buffer)
{
    const float *map = f->thin + sample * f->n_thin * f->hi * f->wi;
    const int64_t cols = lsi_few_cols(f), need = lsi_few_rows(f, rows), top = oy * f->sh - f->pt;
    const int64_t left = min64(f->pl, cols), mid = max64(min64(f->wi, cols - left), 0);

    if (!needs_padding(f)) return (padded){map + top * f->wi, f->wi, f->hi * f->wi};
    for (int64_t i = 0; i < f->n_thin; i++) {
        for (int64_t r = 0; r < need; r++) {
            float *to = buffer + (i * need + r) * cols;
            const int64_t iy = top + r;
            if (iy < 0 || iy >= f->hi) {
                memset(to, 0, (size_t)cols * sizeof *to);
                continue;
            }
            memset(to, 0, (size_t)left * sizeof *to);
            memcpy(to + left, map + (i * f->hi + iy) * f->wi, (size_t)mid * sizeof *to);
            memset(to + left + mid, 0, (size_t)(cols - left - mid) * sizeof *to);
        }
    }
    return (padded){buffer, cols, need * cols};
}

static int64_t padded_floats(const lsi_few *f)
{
    return needs_padding(f) ? f->n_thin * lsi_few_rows(f, f->band) * lsi_few_cols(f) : 0;
}

/* out[i] = act(out[i] + bias) for a row of one channel. */
static void finish_row(float *out, int64_t n, float bias, lsi_conv_act act, float slope)
{
    const vf b = v_set(bias);

    for (int64_t i = 0; i < n; i += VW) {
        const int64_t left = min64(n - i, VW);
        v_store_n(out + i, v_act(v_add(v_load_n(out + i, left), b), act, slope), left);
    }
}

#include "backend/cpu/conv_few_to_thin_template.h"
#include "backend/cpu/conv_few_to_wide_template.h"
#include "backend/cpu/conv_few_weights_template.h"

static bool can(const lsi_few *f, lsi_conv_pass pass)
{
    if (pass == LSI_CONV_FWD) return f->sw <= 2;
    return pass == LSI_CONV_DX || f->dw == 1;
}

static size_t scratch_floats(const lsi_few *f, lsi_conv_pass pass)
{
    switch (pass) {
    case LSI_CONV_FWD: return to_wide_floats(f);
    case LSI_CONV_DX: return to_thin_floats(f);
    case LSI_CONV_DW: break;
    }
    return weights_floats(f);
}
