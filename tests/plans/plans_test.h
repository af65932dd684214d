/* plans_test.h: small graphs compiled and written down, for tests of documents. */
#ifndef LS_TESTS_PLANS_PLANS_TEST_H
#define LS_TESTS_PLANS_PLANS_TEST_H

#include "plans/plans.h"

/* In what a graph differs from the usual one. */
typedef struct small_plan {
    bool swapped;      /* sub(b, a) instead of sub(a, b) */
    bool more;         /* one node more */
    const char *input; /* name; NULL: "x" */
    double slope;      /* an attribute; 0: the usual */
    int64_t rows;      /* 0: 4 */
    const char *layer; /* NULL: "first" */
    bool long_chain;   /* hundreds of nodes */
    bool norm;         /* a batch norm, and an update of what it keeps as "kept" */
} small_plan;

/* Compiled for the reference device; the caller releases the document. */
void small_plan_document(const small_plan *how, ls_document *d);

#endif
