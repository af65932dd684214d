/* make_scenes.c: pictures for translation without pairs: ellipses on a meadow, plain brown ones in A, striped
 * blue ones in B.  Nothing else tells the two apart, so what a translation has to learn can be seen. */
#include <math.h>

#include "base/rng.h"
#include "make_internal.h"

enum { MAX_THINGS = 4, WORDS_PER_THING = 8 };

typedef struct thing {
    float x, y, across, along, cosine, sine; /* centre and half axes as shares of the size, and direction */
    float tone;
} thing;

typedef struct scene {
    thing things[MAX_THINGS];
    int n;
    float light; /* of the meadow */
} scene;

static float between(float lo, float hi, uint32_t word)
{
    return lo + (hi - lo) * ls_rng_uniform(word);
}

static scene make_scene(const ls_rng_key *key, uint32_t index)
{
    const uint32_t stream = ls_rng_stream("scene");
    scene s = {.n = 2 + (int)(ls_rng_word(key, stream, index, 0) % (MAX_THINGS - 1)),
               .light = between(0.8F, 1.1F, ls_rng_word(key, stream, index, 1))};

    for (int i = 0; i < s.n; i++) {
        uint32_t w[WORDS_PER_THING];
        for (int k = 0; k < WORDS_PER_THING; k++)
            w[k] = ls_rng_word(key, stream, index, (uint64_t)((i + 1) * WORDS_PER_THING + k));
        const float angle = between(0, 3.14159F, w[4]);
        s.things[i] = (thing){between(0.1F, 0.9F, w[0]),
                              between(0.1F, 0.9F, w[1]),
                              between(0.1F, 0.18F, w[2]),
                              between(0.18F, 0.32F, w[3]),
                              cosf(angle),
                              sinf(angle),
                              between(0.8F, 1.1F, w[5])};
    }
    return s;
}

/* The colour at (x, y), both from 0 to 1. */
static void colour_at(const scene *s, bool striped, float x, float y, float rgb[3])
{
    const float meadow[3] = {0.30F, 0.55F, 0.25F}, brown[3] = {0.80F, 0.45F, 0.15F},
                blue[3] = {0.25F, 0.45F, 0.95F};

    for (int c = 0; c < 3; c++) rgb[c] = meadow[c] * s->light * (1.25F - 0.5F * y);
    for (int i = 0; i < s->n; i++) {
        const thing *t = &s->things[i];
        const float u = (x - t->x) * t->cosine + (y - t->y) * t->sine,
                    v = (y - t->y) * t->cosine - (x - t->x) * t->sine;
        const float r = u * u / (t->along * t->along) + v * v / (t->across * t->across);
        const bool dark = striped && (int)floorf((u + 8) * 12) % 2 == 0;
        if (r > 1) continue;
        for (int c = 0; c < 3; c++)
            rgb[c] = (striped ? blue : brown)[c] * t->tone * (1.1F - 0.4F * r) * (dark ? 0.3F : 1);
    }
}

void lsi_make_scene(uint64_t seed, int64_t index, bool striped, ls_shape shape, uint8_t *bytes)
{
    const ls_rng_key key = {.seed_lo = (uint32_t)seed, .seed_hi = (uint32_t)(seed >> 32)};
    const int64_t channels = shape.dim[0], h = shape.dim[1], w = shape.dim[2];
    const scene s = make_scene(&key, (uint32_t)index);

    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float rgb[3];
            colour_at(&s, striped, ((float)x + 0.5F) / (float)w, ((float)y + 0.5F) / (float)h, rgb);
            if (channels == 1) rgb[0] = 0.299F * rgb[0] + 0.587F * rgb[1] + 0.114F * rgb[2];
            for (int64_t c = 0; c < channels; c++)
                bytes[(c * h + y) * w + x] = (uint8_t)(fminf(rgb[c], 1) * 255 + 0.5F);
        }
}
