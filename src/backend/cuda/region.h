/* region.h: regions (ops/region.c) as kernels: what can be in one, where its values lie in shared memory, and
 * its source.
 *
 * All of it is arithmetic on graphs and text: it runs without a device. */
#ifndef LS_BACKEND_CUDA_REGION_H
#define LS_BACKEND_CUDA_REGION_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch/region.h"
#include "base/text.h"
#include "ops/ops.h"

enum {
    LSI_REGION_VALUES = 256,
    LSI_REGION_PLACES = 192,
    LSI_REGION_MASKS = 16,
    LSI_REGION_WEIGHTS = 32,
    LSI_REGION_MEMBERS = 64,
    LSI_REGION_EARLY = 8 /* members before the one that makes a place, its memory can be cleared */
};

/* What it is planned for. */
typedef struct lsi_region_machine {
    int processors;
    size_t shared;      /* bytes that a block can have */
    bool rounded;       /* products in tf32 */
    int threads;        /* of a block; 0: as a count of clocks chooses */
    bool updates_apart; /* optimisers are kernels of their own */
} lsi_region_machine;

/* Inputs of an optimiser: rate, loss scale, number of the update, then weights, gradients and states. */
enum { LSI_REGION_UPDATE_LR, LSI_REGION_UPDATE_SCALE, LSI_REGION_UPDATE_T, LSI_REGION_UPDATE_W };

/* When what products read of a place is rounded for them (as source/region.cuh has it). */
typedef enum lsi_region_kept {
    LSI_REGION_AS_IT_IS,
    LSI_REGION_WHEN_STORED,
    LSI_REGION_AFTERWARDS
} lsi_region_kept;

/* Memory of one sample that values share, since some of them are views: C images of H x W, as a map of
 * source/region.cuh has them. */
typedef struct lsi_region_place {
    int c, h, w;                  /* 1, 1 and the number of elements unless a node wants images */
    bool image;                   /* one does */
    int top, left, bottom, right; /* zeros that nodes read around an image */
    bool apart;                   /* lanes read one channel each: channels in different banks, */
    bool far;                     /* or eight pixels of four channels */
    lsi_region_kept kept;
    bool bytes;         /* u8 */
    int first, last;    /* members that make it (-1: it is read from memory) and read it last */
    int plane, row, at; /* floats; `at` is where its memory begins */
} lsi_region_place;

typedef struct lsi_region_value {
    int32_t id; /* in the graph */
    ls_region_kind kind;
    int place;  /* of samples; -1: read where it lies in global memory */
    int input;  /* number among the region's inputs, or -1 */
    int output; /* among its outputs, or -1 */
    int spill; /* of samples that the second kernel reads: floats a sample before it there; -1: it does not */
    int sum;   /* of sums: where in a block's part, or -1: the second kernel makes it alone */
} lsi_region_value;

/* Weights that lie in shared memory, for all samples: rows `pitch` apart. */
typedef struct lsi_region_weights {
    int32_t id;
    int rows, width, pitch, at;
    bool rounded; /* by those who copy them: products alone read them */
} lsi_region_weights;

/* A product of tiles: `rows` x `columns` sums over l2 x l1 x lanes products, as walks of
 * source/region_products.cuh count them, and how it is cut: parts of l2, and tiles that a warp has at
 * once. */
typedef struct lsi_region_product {
    int rows, columns, l2, l1, lanes;
    bool by_channels;
    int split, down, across;
} lsi_region_product;

/* Draws of one stream: nodes that drop the same elements share them. */
typedef struct lsi_region_mask {
    ls_random_attr attr;
    int32_t key;
    int draws, at, last;
} lsi_region_mask;

typedef struct lsi_region {
    const ls_graph *g;
    lsi_region_machine machine;
    int64_t samples;
    int n;
    const ls_node *member[LSI_REGION_MEMBERS];
    lsi_region_product product[LSI_REGION_MEMBERS]; /* rows 0: the member is none */
    const ls_node *dropout[LSI_REGION_MEMBERS];     /* that it applies to its result itself, or NULL */
    lsi_region_value value[LSI_REGION_VALUES];
    int n_values;
    lsi_region_place place[LSI_REGION_PLACES];
    int n_places;
    lsi_region_mask mask[LSI_REGION_MASKS];
    int n_masks;
    lsi_region_weights weights[LSI_REGION_WEIGHTS];
    int n_weights;
    int n_in, n_out;
    int threads, blocks; /* of a block; blocks that a processor has at once */
    int common;          /* floats for all samples: weights, from 0 on */
    int room, each;      /* floats of a sample, behind these: where room for parts of sums begins, and all */
    int sums;            /* floats of a block's part */
    int spilled;         /* floats a sample for the second kernel */
} lsi_region;

/* -- region_take.c ----------------------------------------------------------------------------------------
 */

/* ls_region_rule's question, for a machine. */
bool lsi_region_takes(const lsi_region_machine *m, const ls_graph *g, const ls_node *n, int64_t samples,
                      const ls_region_kind *in, ls_region_kind *out);

/* -- region_product.c -------------------------------------------------------------------------------------
 */

/* Who computes it: warps of a block, with so much room for parts, in floats, and so many blocks that a
 * processor has at once. */
typedef struct lsi_region_crew {
    int warps, room, beside;
} lsi_region_crew;

/* What a member computes, if it is a product of tiles; rows 0 where it is none. */
lsi_region_product lsi_region_product_of(const ls_graph *g, const ls_node *n);
/* Cuts it for these; `stays`: sums stay in registers; `adds`: parts are added up for every sample.  Returns
 * clocks that it takes, by a count; 0: it cannot be cut. */
long lsi_region_cut(lsi_region_product *p, const lsi_region_crew *w, bool stays, bool adds);
/* Floats that its parts take. */
int lsi_region_parts(const lsi_region_product *p);

/* -- region_joined.c --------------------------------------------------------------------------------------
 */

/* Finds dropouts that the members before them apply; none while it is not known what leaves the region. */
void lsi_region_join(lsi_region *r, int n_out, const int32_t *out);
/* Whether the node is one of these: its result is where its operand is. */
bool lsi_region_is_joined(const lsi_region *r, const ls_node *n);

/* -- region_rounded.c -------------------------------------------------------------------------------------
 */

/* Whether nobody but products reads the value from shared memory. */
bool lsi_region_only_products(const lsi_region *r, int32_t id);
/* Chooses `kept` of all places, once it is known who reads them. */
void lsi_region_keep_rounded(lsi_region *r);

/* -- region_plan.c ----------------------------------------------------------------------------------------
 */

/* Describes the region of these members; `in` and `out` are as in ls_region_attr, NULL while it is only asked
 * whether they fit.  False: they do not. */
bool lsi_region_plan(lsi_region *r, const lsi_region_machine *m, const ls_graph *g, int64_t samples, int n,
                     const ls_node *const *members, int n_in, const int32_t *in, int n_out,
                     const int32_t *out);
const lsi_region_value *lsi_region_value_of(const lsi_region *r, int32_t id);
/* Weights in shared memory, or NULL. */
const lsi_region_weights *lsi_region_weights_of(const lsi_region *r, int32_t id);
const lsi_region_mask *lsi_region_mask_of(const lsi_region *r, const ls_node *dropout);
/* Whether zeros are written to all of a place before the node that makes it: windows reach beyond it. */
bool lsi_region_cleared(const lsi_region_place *p);
/* Whether the second kernel makes this node's result: products over samples. */
bool lsi_region_is_outer(const ls_node *n);
/* How many blocks, and what the second kernel needs of memory. */
int lsi_region_grid(const lsi_region *r);
size_t lsi_region_scratch(const lsi_region *r);

/* -- region_update_source.c -------------------------------------------------------------------------------
 */

/* Whether no sum updates more than one variable: the second kernel reads and writes one beside each. */
bool lsi_region_updates_one_each(const lsi_region *r);
/* For all optimisers among the members: what is the same for all elements, as functions; and what the second
 * kernel begins with. */
void lsi_region_add_numbers(ls_text *out, const lsi_region *r);
void lsi_region_add_powers(ls_text *out, const lsi_region *r);
/* In the first kernel: the number of the update is read, and written behind what everybody waits for. */
void lsi_region_add_counts(ls_text *out, const lsi_region *r);
void lsi_region_add_counted(ls_text *out, const lsi_region *r);
/* Whether the sum is a gradient by which a member updates a variable; and if so, an expression for what was
 * before of element `e`, and a statement that writes what comes of gradient `x`. */
bool lsi_region_is_gradient(const lsi_region *r, int32_t id);
void lsi_region_add_before(ls_text *out, const lsi_region *r, int32_t id, const char *e);
void lsi_region_add_update(ls_text *out, const lsi_region *r, int32_t id, const char *e, const char *x);

/* -- region_source.c, region_finish_source.c --------------------------------------------------------------
 */

/* Appends the source of both kernels, `region` and `finish`, and returns the number of blocks of the second,
 * 0 where there is nothing to sum up.  The number of samples is an argument of theirs. */
int lsi_region_source(ls_text *out, const lsi_region *r);
/* The second one, and the threads of its blocks: many where many blocks have left parts. */
int lsi_region_finish_source(ls_text *out, const lsi_region *r);
int lsi_region_finish_threads(const lsi_region *r);

#endif
