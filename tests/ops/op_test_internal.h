/* op_test_internal.h: the harness's own view of a case. */
#ifndef TESTS_OPS_OP_TEST_INTERNAL_H
#define TESTS_OPS_OP_TEST_INTERNAL_H

#include "lockstep/plan.h"
#include "op_test.h"

#define OP_MAX_TENSORS 64

typedef enum op_source_kind {
    OP_SOURCE_FLOAT,
    OP_SOURCE_INDEX,
    OP_SOURCE_KEY,
    OP_SOURCE_STATE,
    OP_SOURCE_COUNTER
} op_source_kind;

/* One input of a case, with its values in double, the same for every run of the case. */
typedef struct op_source {
    char name[16];
    op_source_kind kind;
    ls_shape shape;
    int64_t count;
    double *values;
    bool differentiated;
    ls_value v; /* in the graph of the current run */
} op_source;

typedef struct op_output {
    ls_value v;
    bool in_loss;
} op_output;

struct op_test {
    ls_graph *g;
    ls_dtype dtype; /* of float tensors in the current run */
    op_source in[OP_MAX_TENSORS];
    int n_in;    /* sources made so far in this run */
    int n_known; /* sources with values from an earlier run */
    op_output out[OP_MAX_TENSORS];
    int n_out;
    int64_t length;
    uint64_t seed;
};

/* The results of one run, widened to double. */
typedef struct op_result {
    int n;
    char name[2 * OP_MAX_TENSORS][16];
    int64_t count[2 * OP_MAX_TENSORS];
    double *d[2 * OP_MAX_TENSORS];
} op_result;

#endif
