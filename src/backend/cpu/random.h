/* random.h: vectors of Philox words (base/rng.h), exactly those that ls_rng_word gives; per instruction set.
 */
#ifndef LS_BACKEND_CPU_RANDOM_H
#define LS_BACKEND_CPU_RANDOM_H

#include "base/rng.h"

/* The key in the memory of an i32 (4) tensor. */
ls_rng_key lsi_key_of(const void *input);

/* Words are made this many at a time: buffers have room for that many more than asked for. */
#define LSI_WORDS_SLACK 64

typedef struct lsi_random_table {
    const char *impl;
    /* Words 4*block .. 4*block+n-1 of a sample; up to LSI_WORDS_SLACK - 1 words behind them are written too.
     */
    void (*words)(const ls_rng_key *key, uint32_t stream, uint32_t sample, uint32_t block, int64_t n,
                  uint32_t *out);
    /* y = x * scale, or 0 where word >> 8 < limit; y may equal x. */
    void (*drop)(const uint32_t *words, uint32_t limit, float scale, const float *x, float *y, int64_t n);
    /* The same with one word for each of n planes of `pixels` elements, one behind the other. */
    void (*drop_planes)(const uint32_t *words, uint32_t limit, float scale, const float *x, float *y,
                        int64_t n, int64_t pixels);
    /* The same as drop on n pixels of 16 channels; the word of channel c and pixel i is words[c * stride +
     * i]. */
    void (*drop16)(const uint32_t *words, int64_t stride, uint32_t limit, float scale, const float *x,
                   float *y, int64_t n);
} lsi_random_table;
extern const lsi_random_table lsi_random_avx512, lsi_random_avx2;

#endif
