/* points.c: point clouds: the common box, and a subset of the points. */
#include "data/points.h"

#include <math.h>
#include <stdlib.h>

ls_status ls_box_parse(ls_box *box, const char *text, ls_err *err)
{
    char *end;
    float lo = strtof(text, &end), hi = 0;
    bool fits = end != text && *end == ':';

    if (fits) {
        const char *second = end + 1;
        hi = strtof(second, &end);
        fits = end != second && *end == '\0';
    }
    if (!fits || !isfinite(lo) || !isfinite(hi) || !(lo < hi))
        return ls_fail(err, LS_INVALID, "box \"%s\": write LO:HI with LO below HI, such as -20:55.5, or auto",
                       text);
    *box = (ls_box){.on = true, .lo = lo, .hi = hi};
    return LS_OK;
}

void ls_box_apply(const ls_box *box, float *x, int64_t n)
{
    const float size = box->hi - box->lo;

    for (int64_t i = 0; i < n; i++) x[i] = (x[i] - box->lo) / size;
}

/* One pass: a point is taken with the probability that is left for it, (still wanted) / (still to come),
 * which makes all choices equally likely and keeps the order (Knuth's algorithm S). */
void ls_points_choose(const ls_rng_key *key, uint32_t sample, int64_t n, int64_t wanted, int64_t *chosen)
{
    const uint32_t stream = ls_rng_stream("data.points");
    uint32_t word[4];
    int64_t k = 0;

    LS_BUG_IF(wanted < 0 || wanted > n || n > UINT32_MAX);
    for (int64_t i = 0; k < wanted; i++) {
        if (i % 4 == 0) ls_rng_block(key, stream, sample, (uint32_t)(i / 4), word);
        uint64_t draw = (uint64_t)word[i % 4] * (uint64_t)(n - i) >> 32; /* 0 to n - i - 1 */
        if (draw < (uint64_t)(wanted - k)) chosen[k++] = i;
    }
}

void ls_points_take(const float *in, int64_t channels, int64_t n, const int64_t *chosen, int64_t wanted,
                    float *out)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < wanted; i++) out[c * wanted + i] = in[c * n + chosen[i]];
}
