/* b16.h: products of bf16 numbers with sums in fp32, by AMX tiles or by AVX-512's dot products of pairs.
 *
 * Both multiply the same packed blocks, so that packing and drivers exist once.  A *term* is 32 numbers deep:
 * of A, rows of 32 consecutive numbers; of B, 16 columns as 16 pairs: number k of column c stands at
 * [k / 2][c][k % 2], 512 numbers in all.  Drivers (gemm_b16*.c, conv_b16*.c) hold the loops and know no
 * instructions; kernels neither allocate nor start threads. */
#ifndef LS_BACKEND_CPU_B16_H
#define LS_BACKEND_CPU_B16_H

#include <stdatomic.h>
#include <string.h>

#include "backend/cpu/conv.h"
#include "lockstep/tensor.h"

enum {
    LSI_B16_DEEP = 32,   /* numbers of a term */
    LSI_B16_COLS = 16,   /* columns of a block of B */
    LSI_B16_ROWS = 32,   /* most rows of A at once */
    LSI_B16_BLOCKS = 2,  /* most blocks of B at once */
    LSI_B16_BLOCK = 512, /* numbers of one block of one term of B */
    LSI_B16_WIDE = LSI_B16_BLOCKS * LSI_B16_COLS
};

/* c[r][16 * j + i] [+]= sum over terms t and k of a[a_off[t] + r * a_row + k] * b[j * b_block + t *
 * 512][k][i]. A must be readable, and c writable, for rows rounded up to 16. */
typedef struct lsi_b16_product {
    const uint16_t *a;
    const int64_t *a_off;
    int64_t a_row;
    const uint16_t *b;
    int64_t b_block;
    int64_t n_terms;
    float *c;
    int64_t c_row;
    bool add;
} lsi_b16_product;

typedef struct lsi_b16_kernels {
    const char *name;
    /* Each thread calls `begin` before its products and `end` after them. */
    void (*begin)(void);
    void (*end)(void);
    void (*multiply)(int rows, int blocks, const lsi_b16_product *p);
} lsi_b16_kernels;
extern const lsi_b16_kernels lsi_b16_amx;        /* b16_amx.c */
extern const lsi_b16_kernels lsi_b16_avx512bf16; /* b16_avx512bf16.c */

/* What this processor has, after trying it; asked once (b16.c).  LOCKSTEP_CPU_ISA holds back: see isa.h. */
bool lsi_has_amx(void);
bool lsi_has_avx512bf16(void);
/* The better of the two, or NULL. */
const lsi_b16_kernels *lsi_b16_kernels_here(void);
/* Its name, or "none": a part of what choices among kernels are remembered by, since processors of one name,
 * and runs with LOCKSTEP_CPU_ISA, have different ones. */
static inline const char *lsi_b16_name_here(void)
{
    const lsi_b16_kernels *k = lsi_b16_kernels_here();

    return k != NULL ? k->name : "none";
}

/* -- packing and unpacking (b16_pack_avx512bf16.c); t is LS_F32, which is rounded to nearest even, or LS_BF16
 * ---
 */

/* to[0..n) = from[0..n) */
void lsi_b16_round(const void *from, ls_dtype t, uint16_t *to, int64_t n);
/* to[0..n) = from[0], from[step], ... */
void lsi_b16_round_every(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to);
/* Rows of A: to[r * to_row + l] for r < rows, l < k, and zeros up to a multiple of 32 of k.  Stored rows are
 * `ld` apart; `trans`: columns are. */
void lsi_b16_pack_a(const void *from, ls_dtype t, int64_t ld, bool trans, int64_t rows, int64_t k,
                    uint16_t *to, int64_t to_row);
/* One block of B, all its terms: k x cols (at most 16); stored rows are `ld` apart, `trans`: columns are.
 * What is missing is zero. */
void lsi_b16_pack_b(const void *from, ls_dtype t, int64_t ld, bool trans, int64_t cols, int64_t k,
                    uint16_t *to);

/* The same of numbers anywhere: number k of column c stands at k * step + c * col. */
void lsi_b16_pack_strided(const void *from, ls_dtype t, int64_t step, int64_t col, int64_t cols, int64_t k,
                          uint16_t *to);
/* The same for all taps of a filter at once, one term deep: number k of column c of tap i stands at k * step
 * + c
 * * col + i, and goes to the block to[i]. */
void lsi_b16_pack_taps(const void *from, ls_dtype t, int64_t step, int64_t col, int64_t cols, int64_t k,
                       int taps, uint16_t *const *to);
/* Sums turned round: to[c * to_row + r] = the sum over `parts` p of from[r][p * part + c], for n <= 16 rows r
 * and cols <= 16 columns c. */
void lsi_b16_give(const float *const *from, int64_t n, int64_t cols, int parts, int64_t part, ls_dtype t,
                  void *to, int64_t to_row);

/* to[i] = the sum over `parts` p of from[p * part + i], i < n, a multiple of 16. */
void lsi_b16_sum_parts(const float *from, int64_t n, int parts, int64_t part, float *to);
/* to[i] = from[places[i]] */
void lsi_b16_pick(const float *from, const int32_t *places, int64_t n, ls_dtype t, void *to);

/* What becomes of a tile of sums. */
typedef struct lsi_b16_end {
    ls_dtype type;    /* of the results */
    const void *bias; /* of its columns, or NULL */
    ls_dtype bias_type;
    lsi_conv_act act;
    float slope;
} lsi_b16_end;
/* to[r * to_row + i] = act(c[r * c_row + i] + bias[i]), r < rows, i < cols <= 16. */
void lsi_b16_store(const lsi_b16_end *e, const float *c, int64_t c_row, int64_t rows, int64_t cols, void *to,
                   int64_t to_row);

/* Lines of 16 channels, `step` numbers apart, to lines `to_step` apart. */
void lsi_b16_copy_lines(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to, int64_t to_step);
/* Lines are the 16 channels of a pixel, `step` numbers apart.  As pairs: to[2 * c + h] of lines 2p + h goes
 * to to + 32 * p. `n` lines; an odd one is paired with zeros. */
void lsi_b16_pair_lines(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to);
/* Transposed: to[c * to_row + p] for 16 channels c and n lines p. */
void lsi_b16_turn_lines(const void *from, ls_dtype t, int64_t step, int64_t n, uint16_t *to, int64_t to_row);

/* Whether a thread has packed what belongs to it, so that others may read it. */
typedef struct lsi_b16_packed {
    _Alignas(64) atomic_bool whole;
} lsi_b16_packed;

static inline bool lsi_b16_type(ls_dtype t)
{
    return t == LS_F32 || t == LS_BF16;
}

/* The element at `at` of a tensor of type t. */
static inline const void *lsi_b16_at(const void *base, ls_dtype t, int64_t at)
{
    return (const char *)base + at * (t == LS_F32 ? 4 : 2);
}

/* One number, to nearest even. */
static inline uint16_t lsi_b16_of(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x0040u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
/* Number `at` of a tensor of type t. */
static inline uint16_t lsi_b16_get(const void *base, ls_dtype t, int64_t at)
{
    return t == LS_F32 ? lsi_b16_of(((const float *)base)[at]) : ((const uint16_t *)base)[at];
}

static inline int64_t lsi_round_up(int64_t v, int64_t to)
{
    return (v + to - 1) / to * to;
}

#endif
