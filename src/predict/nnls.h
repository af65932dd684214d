/* nnls.h: linear least squares whose unknowns are not negative: times and rates are not. */
#ifndef LS_PREDICT_NNLS_H
#define LS_PREDICT_NNLS_H

#include <stdbool.h>

enum { LS_NNLS_MAX = 16 };

/* Normal equations, filled row by row.  Starts as {.n = unknowns}. */
typedef struct ls_nnls {
    int n;
    double gram[LS_NNLS_MAX][LS_NNLS_MAX], right[LS_NNLS_MAX];
} ls_nnls;

/* One more equation: row . x = y, times `weight`. */
void ls_nnls_add(ls_nnls *a, const double *row, double y, double weight);
/* x >= 0 with the least sum of weighted squares (Lawson and Hanson; Bro and de Jong's form).  Unknowns that
 * no equation has, or that others say already, are 0. */
void ls_nnls_solve(const ls_nnls *a, double *x);
/* The variance of each x that is above 0 for equations with variance 1 (of weighted rows); 0 of the others,
 * and of those that no equation has or that others say already. */
void ls_nnls_variance(const ls_nnls *a, const double *x, double *variance);

#endif
