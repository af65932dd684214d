/* rng.h: counter-based random numbers (Philox 4x32-10, Salmon et al., SC'11).
 *
 * A random number is a pure function of what it is for: seed, named stream, step and *global* sample index.
 * Nothing depends on rank, thread or order of evaluation, so a run gives the same draws on any number of
 * ranks, can be entered at any step, and a gradient can redraw a mask instead of storing it. */
#ifndef LS_BASE_RNG_H
#define LS_BASE_RNG_H

#include <stdint.h>

/* What a random op receives each step; see ls_rng_block. */
typedef struct ls_rng_key {
    uint32_t seed_lo, seed_hi;
    uint32_t step;        /* counts optimiser steps (or micro-steps) since the start of training */
    uint32_t sample_base; /* global index of the first sample of the local batch, within the step */
} ls_rng_key;

/* The raw generator: ten rounds of Philox 4x32. */
void ls_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* A stream number for a name ("encoder.dropout1"): stable across versions, part of the run's identity. */
uint32_t ls_rng_stream(const char *name);

/* Four random words: block `block` (0, 1, ...) of the draws that `stream` makes in this step for the sample
 * `sample` counted from key->sample_base.
 * counter = {block, sample_base + sample, step, stream}, key = {seed_lo, seed_hi}. */
void ls_rng_block(const ls_rng_key *key, uint32_t stream, uint32_t sample, uint32_t block, uint32_t out[4]);

/* Element `i` of a sample's draws: word i % 4 of block i / 4. */
uint32_t ls_rng_word(const ls_rng_key *key, uint32_t stream, uint32_t sample, uint64_t i);

/* Uniform in [0, 1): the upper 24 bits of `word`, exact in fp32. */
float ls_rng_uniform(uint32_t word);

/* Standard normal by Box-Muller from two words; `which` (0 or 1) picks cosine or sine.
 * Element i of a sample's normal draws uses words 2*(i/2) and 2*(i/2)+1, and which = i % 2. */
double ls_rng_normal(uint32_t word_a, uint32_t word_b, int which);

#endif
