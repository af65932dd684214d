/* macros.h: what a trial records and passes expand: ops that stand for further nodes and have no kernels.
 *
 * A training step is recorded as forward passes and, for every ls_minimise, two nodes: `gradients` of the
 * loss, and `update` of the parameters by them.  Between the two is where batches, stages and ranks come in
 * (passes/passes.h): they change what an update gets, or what becomes of gradients, and layers know nothing
 * of it. `own_piece` stands for what differs between ranks (passes/own_piece.c).  They are not in LS_OPS,
 * since no plan contains one. */
#ifndef LS_OPS_MACROS_H
#define LS_OPS_MACROS_H

#include "ops/ops.h"

extern const ls_op ls_op_gradients, ls_op_update, ls_op_keep, ls_op_own_piece;

/* In: y, the seed if there is one, x1..xn; out: the gradients of the sum of seed * y with respect to each x.
 */
typedef struct ls_gradients_attr {
    int n;
    bool seeded;
    bool wide; /* gradients of 16-bit tensors are f32 */
} ls_gradients_attr;
/* The first of n gradients.  An invalid seed means ones.  `in` is room for n + 2 values. */
ls_value ls_gradients(ls_value y, ls_value seed, int n, const ls_value *x, ls_value *in);

/* In: learning rate, loss scale, n weights, n gradients; out: the next versions of the weights.  Its scope is
 * "optimizer.<name>": calls with one name share what the optimiser remembers. */
enum { LS_UPDATE_LR, LS_UPDATE_SCALE, LS_UPDATE_W, LS_UPDATE_TEXT = 512 };
typedef struct ls_update_attr {
    const ls_op *rule;           /* the optimiser */
    ls_optim_attr how;           /* n is the number of weights */
    char params[LS_UPDATE_TEXT]; /* the globs of the call, for messages; cut where they are longer */
    int number;                  /* of the bucket that its gradients travel in, where shards are added up */
    int first;                   /* parameters of the calls before it */
} ls_update_attr;
/* The first of the n weights; `in` holds all inputs. */
ls_value ls_update(const ls_value *in, const ls_update_attr *a);
/* Weight k and gradient k of an update, as values of its graph, and the `gradients` node they come from; NULL
 * where they are something else. */
int32_t ls_update_weight(const ls_node *update, int k);
int32_t ls_update_gradient(const ls_node *update, int k);
const ls_node *ls_update_gradients(const ls_graph *g, const ls_node *update);
/* The name of parameter number k of all calls of a record; NULL: there are fewer. */
const char *ls_update_parameter(const ls_graph *record, int64_t k);

/* In: pool (C, D), filled (C, 1), x (N, D), slots i32 (N), places i32 (N); out: the next versions of pool and
 * filled, where row i of x is in its slot unless that is -1.  With by_place, x (R, D) and slots f32 (R, 1)
 * are sums over batches or ranks, with a row for every place of an update; slots are numbered from 1, 0 is
 * none, and there are no places. */
enum { LS_KEEP_POOL, LS_KEEP_FILLED, LS_KEEP_X, LS_KEEP_SLOTS, LS_KEEP_PLACES };
typedef struct ls_keep_attr {
    bool by_place;
    int number; /* as in an update */
} ls_keep_attr;
ls_value ls_keep(const ls_value *in, ls_keep_attr a);

/* This rank's piece of a tensor, where the ranks of a group have one each. */
typedef struct ls_own_piece_attr {
    int ranks;
    ls_group group;
} ls_own_piece_attr;
ls_value ls_own_piece(ls_value x, int ranks, ls_group group);

#endif
