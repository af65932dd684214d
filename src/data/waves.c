/* waves.c: made-up images whose class no single pixel tells.
 *
 * A class is a direction and a length of waves.  An image is a short train of the waves of its class, at a
 * random place, of random phase, strength and colour, on a ground of random colour, under noise.  The mean of
 * many images is the same grey for every class: a linear classifier of pixels finds next to nothing in them,
 * while a network that adds up the answers of filters over all places can learn them. */
#include <math.h>

#include "data_internal.h"

/* Shares of the brightness: ground, waves and noise stay within 0 to 1 together. */
static const double ground_lo = 0.35, ground_hi = 0.65, strength_lo = 0.12, strength_hi = 0.25, noise = 0.1;

/* What is drawn once for an image. */
typedef struct train {
    double x, y;   /* its middle */
    double kx, ky; /* wave vector, radians per pixel */
    double phase;
    double spread; /* of the envelope, pixels */
} train;

static double draw(const ls_rng_key *key, uint32_t stream, uint32_t index, uint64_t i, double lo, double hi)
{
    return lo + (hi - lo) * (double)ls_rng_uniform(ls_rng_word(key, stream, index, i));
}

/* Directions are spread evenly over half a turn, and neighbours also differ in length: 6 or 9 waves would
 * fill the side of an image. */
static train draw_train(const ls_rng_key *key, uint32_t stream, uint32_t index, int64_t class,
                        int64_t classes, double h, double w)
{
    const double pi = 3.14159265358979323846;
    double side = h < w ? h : w, angle = pi * (double)class / (double)classes;
    double k = 2 * pi * (class % 2 != 0 ? 9.0 : 6.0) / side;

    return (train){.x = draw(key, stream, index, 0, 0.25, 0.75) * w,
                   .y = draw(key, stream, index, 1, 0.25, 0.75) * h,
                   .kx = k * cos(angle),
                   .ky = k * sin(angle),
                   .phase = draw(key, stream, index, 2, 0, 2 * pi),
                   .spread = 0.18 * side};
}

static double train_at(const train *t, double x, double y)
{
    double dx = x - t->x, dy = y - t->y;

    return cos(t->kx * dx + t->ky * dy + t->phase) * exp(-(dx * dx + dy * dy) / (2 * t->spread * t->spread));
}

/* Channel i from the waves; `waves` may be where `out` is. */
static void paint(const ls_rng_key *key, uint32_t stream, uint32_t index, int64_t i, int64_t pixels,
                  const float *waves, float *out)
{
    const uint32_t dust = ls_rng_stream("waves.noise");
    const double ground = draw(key, stream, index, (uint64_t)(4 + 2 * i), ground_lo, ground_hi);
    const double colour = draw(key, stream, index, (uint64_t)(5 + 2 * i), 0.4, 1);

    for (int64_t k = 0; k < pixels; k++) {
        double grain = draw(key, dust, index, (uint64_t)(i * pixels + k), -noise, noise);
        out[k] = (float)(ground + colour * (double)waves[k] + grain);
    }
}

void lsi_waves_draw(const ls_rng_key *key, uint32_t index, int64_t class, int64_t classes, int64_t c,
                    int64_t h, int64_t w, float *out)
{
    const uint32_t stream = ls_rng_stream("waves");
    const train t = draw_train(key, stream, index, class, classes, (double)h, (double)w);
    const double strength = draw(key, stream, index, 3, strength_lo, strength_hi);

    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            out[y * w + x] = (float)(strength * train_at(&t, (double)x, (double)y));
    for (int64_t i = c - 1; i >= 0; i--) paint(key, stream, index, i, h * w, out, out + i * h * w);
}
