/* make_map.c: synthetic maps that look like weak-lensing maps: smooth, positive, most of it dark, a few
 * bright peaks.
 *
 * A Gaussian random field is the sum of plane waves with random amplitudes whose power falls with the square
 * of the wave number; its exponential is the log-normal field that models the density of matter.  The values
 * are brought to -1..1 by a fixed factor, so that their distribution has the log-normal's heavy tail: half of
 * the pixels lie below -0.8, one in 450 above 0. */
#include <math.h>

#include "make_internal.h"

enum { WAVES = 8, AXIS = 2 * WAVES + 1 }; /* whole waves across a map, at most */
#define SPREAD 0.6                        /* standard deviation of the logarithm */
#define TOP    4.0                        /* so many of them above the mean is white */
#define TURN   6.283185307179586

/* Two normal numbers for wave (kx, ky) of a map. */
static void draw_wave(const ls_rng_key *key, int64_t index, int kx, int ky, double amplitude[2])
{
    const uint32_t stream = ls_rng_stream("make.map");
    const uint64_t at = (uint64_t)((kx * AXIS + ky + WAVES) * 2);
    const uint32_t a = ls_rng_word(key, stream, (uint32_t)index, at);
    const uint32_t b = ls_rng_word(key, stream, (uint32_t)index, at + 1);

    amplitude[0] = ls_rng_normal(a, b, 0);
    amplitude[1] = ls_rng_normal(a, b, 1);
}

/* Standard deviation of the wave: power 1/k^2 inside the circle.  Waves k and -k are the same: of each pair
 * one is taken. */
static double strength(int kx, int ky)
{
    const int k2 = kx * kx + ky * ky;

    return k2 == 0 || k2 > WAVES * WAVES || (kx == 0 && ky < 0) ? 0 : 1 / sqrt((double)k2);
}

/* One row of the field.  Along y the waves of each kx add up to one complex amplitude, which then goes along
 * x.
 */
static void add_row(double waves[WAVES + 1][AXIS][2], double y, int64_t side, float *row)
{
    double along[WAVES + 1][2];

    for (int kx = 0; kx <= WAVES; kx++) {
        along[kx][0] = along[kx][1] = 0;
        for (int i = 0; i < AXIS; i++) {
            const double c = cos(TURN * (i - WAVES) * y), s = sin(TURN * (i - WAVES) * y);
            along[kx][0] += waves[kx][i][0] * c - waves[kx][i][1] * s;
            along[kx][1] += waves[kx][i][0] * s + waves[kx][i][1] * c;
        }
    }
    for (int64_t x = 0; x < side; x++) {
        /* exp(i kx angle) for all kx by powers of the first. */
        const double angle = TURN * (double)x / (double)side, c = cos(angle), s = sin(angle);
        double re = 1, im = 0, sum = 0;
        for (int kx = 0; kx <= WAVES; kx++) {
            const double next = re * c - im * s;
            sum += along[kx][0] * re - along[kx][1] * im;
            im = re * s + im * c;
            re = next;
        }
        row[x] = (float)sum;
    }
}

void lsi_make_map(const lsi_make_part *p, int64_t index, float *out)
{
    const ls_rng_key key = {.seed_lo = (uint32_t)p->options->seed,
                            .seed_hi = (uint32_t)(p->options->seed >> 32)};
    const int64_t side = p->options->maps;
    double waves[WAVES + 1][AXIS][2], power = 0;

    for (int kx = 0; kx <= WAVES; kx++)
        for (int ky = -WAVES; ky <= WAVES; ky++) {
            double *wave = waves[kx][ky + WAVES];
            const double s = strength(kx, ky);
            draw_wave(&key, index, kx, ky, wave);
            wave[0] *= s;
            wave[1] *= s;
            power += s * s;
        }
    for (int64_t y = 0; y < side; y++) {
        float *row = out + y * side;
        add_row(waves, (double)y / (double)side, side, row);
        for (int64_t x = 0; x < side; x++) {
            /* Of each wave the real part counts: it has the variance of one amplitude. */
            const double g = row[x] / sqrt(power), v = 2 * exp(SPREAD * (g - TOP)) - 1;
            row[x] = (float)(v < 1 ? v : 1);
        }
    }
}
