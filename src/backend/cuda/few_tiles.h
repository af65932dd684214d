/* few_tiles.h: how the kernels for few channels (source/few*.cuh) can divide a problem.
 *
 * Which division is best depends on sizes, type and device in ways that are measured, not computed: a problem
 * has a few of them, each of which is a kernel of its own. */
#ifndef LS_BACKEND_CUDA_FEW_TILES_H
#define LS_BACKEND_CUDA_FEW_TILES_H

#include "backend/cuda/api.h"
#include "base/text.h"

typedef enum lsi_few_pass { LSI_FEW_TO_MANY, LSI_FEW_FROM_MANY, LSI_FEW_WEIGHTS } lsi_few_pass;

typedef struct lsi_few_problem {
    lsi_cuda_few p;
    lsi_few_pass pass;
    ls_dtype dtype; /* of all tensors */
    bool exact;     /* f32: products are as exact as f32; else their operands are rounded to 19 bits */
    bool biased;
    ls_act act;
    float slope;
} lsi_few_problem;

/* What it means for each pass stands in source/few.cuh. */
typedef struct lsi_few_tile {
    int warps, blocks, rows, tiles, stages, strip, band, columns, segment;
} lsi_few_tile;

enum { LSI_FEW_TILES = 4 };

/* A square kernel between plain NHWC maps: what tests and measurements ask for. */
lsi_cuda_few lsi_few_square(int n, int h, int w, int f, int m, int k, int stride, int pad);

/* What of a device decides. */
typedef struct lsi_few_machine {
    int processors;
    size_t shared; /* bytes of shared memory that a block can have */
} lsi_few_machine;

/* The divisions that are worth trying on the device; 0: the problem is not for these kernels. */
int lsi_few_tiles(const lsi_few_problem *f, const lsi_few_machine *m, lsi_few_tile out[LSI_FEW_TILES]);

size_t lsi_few_shared(const lsi_few_problem *f, const lsi_few_tile *t); /* bytes of a block */
lsi_cuda_start lsi_few_start(const lsi_few_problem *f, const lsi_few_tile *t, int processors);
/* Of the weight gradient: the blocks that leave sums, and the bytes these take. */
int lsi_few_sums(const lsi_few_problem *f, const lsi_few_tile *t);
size_t lsi_few_scratch(const lsi_few_problem *f, const lsi_few_tile *t);

/* The source of the kernel, `few`. */
void lsi_few_source(ls_text *out, const lsi_few_problem *f, const lsi_few_tile *t);

/* The argument of the kernel: as source/few.cuh has it. */
typedef struct lsi_few_arguments {
    const void *few, *many, *weights, *bias;
    void *out;
    float *partial;
    int n;
} lsi_few_arguments;

#endif
