/* nnls.c: non-negative least squares by active sets, on normal equations with columns of length 1. */
#include "predict/nnls.h"

#include <math.h>
#include <string.h>

/* A column whose part that others do not say is shorter than this, squared, says nothing of its own. */
#define DEPENDENT 1e-12

void ls_nnls_add(ls_nnls *a, const double *row, double y, double weight)
{
    const double w = weight * weight;

    for (int i = 0; i < a->n; i++) {
        for (int k = 0; k < a->n; k++) a->gram[i][k] += w * row[i] * row[k];
        a->right[i] += w * row[i] * y;
    }
}

/* The lower factor of the free part of the scaled matrix; false: column *bad depends on those before it. */
static bool factor(const ls_nnls *a, const int *free, int n, double l[LS_NNLS_MAX][LS_NNLS_MAX], int *bad)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            const int p = free[i], q = free[k];
            double sum = a->gram[p][q] / sqrt(a->gram[p][p] * a->gram[q][q]);
            for (int j = 0; j < k; j++) sum -= l[i][j] * l[k][j];
            if (i == k && sum < DEPENDENT) {
                *bad = i;
                return false;
            }
            l[i][k] = i == k ? sqrt(sum) : sum / l[k][k];
        }
    return true;
}

/* L L' x = b, in place. */
static void substitute(double l[LS_NNLS_MAX][LS_NNLS_MAX], int n, double *x)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) x[i] -= l[i][k] * x[k];
        x[i] /= l[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
}

/* Least squares over the free columns alone; false: they depend on one another, and *bad is one that does. */
static bool solve_free(const ls_nnls *a, const bool *is_free, double *x, int *bad)
{
    double l[LS_NNLS_MAX][LS_NNLS_MAX], b[LS_NNLS_MAX];
    int free[LS_NNLS_MAX] = {0}, n = 0;

    for (int i = 0; i < a->n; i++)
        if (is_free[i]) free[n++] = i;
    if (!factor(a, free, n, l, bad)) {
        *bad = free[*bad];
        return false;
    }
    for (int i = 0; i < n; i++) b[i] = a->right[free[i]] / sqrt(a->gram[free[i]][free[i]]);
    substitute(l, n, b);
    memset(x, 0, sizeof *x * (size_t)a->n);
    for (int i = 0; i < n; i++) x[free[i]] = b[i] / sqrt(a->gram[free[i]][free[i]]);
    return true;
}

/* The column along which the sum of squares falls most; -1: along none. */
static int steepest(const ls_nnls *a, const bool *is_free, const bool *is_out, const double *x)
{
    double most = 1e-10;
    int best = -1;

    for (int i = 0; i < a->n; i++) {
        double slope = a->right[i];
        if (is_free[i] || is_out[i] || !(a->gram[i][i] > 0)) continue;
        for (int k = 0; k < a->n; k++) slope -= a->gram[i][k] * x[k];
        /* By how much the column's own length explains what is left, against all of it. */
        slope /= sqrt(a->gram[i][i]) * (fabs(a->right[i]) / sqrt(a->gram[i][i]) + 1e-300);
        if (slope > most) {
            most = slope;
            best = i;
        }
    }
    return best;
}

/* From x towards `to` as far as nothing becomes negative; what has become 0 is free no more. */
static void step(const ls_nnls *a, bool *is_free, double *x, const double *to)
{
    double share = 1;

    for (int i = 0; i < a->n; i++)
        if (is_free[i] && to[i] <= 0 && x[i] / (x[i] - to[i]) < share) share = x[i] / (x[i] - to[i]);
    for (int i = 0; i < a->n; i++) {
        if (!is_free[i]) continue;
        x[i] += share * (to[i] - x[i]);
        if (to[i] <= 0 && x[i] <= 1e-12 * fabs(to[i])) {
            x[i] = 0;
            is_free[i] = false;
        }
    }
}

static bool all_positive(const ls_nnls *a, const bool *is_free, const double *x)
{
    for (int i = 0; i < a->n; i++)
        if (is_free[i] && x[i] <= 0) return false;
    return true;
}

void ls_nnls_solve(const ls_nnls *a, double *x)
{
    bool is_free[LS_NNLS_MAX] = {false}, is_out[LS_NNLS_MAX] = {false};
    double to[LS_NNLS_MAX];
    int next, bad;

    memset(x, 0, sizeof *x * (size_t)a->n);
    for (int turn = 0; turn < 10 * LS_NNLS_MAX; turn++) {
        next = steepest(a, is_free, is_out, x);
        if (next < 0) return;
        is_free[next] = true;
        if (!solve_free(a, is_free, to, &bad)) {
            is_free[next] = false;
            is_out[next] = true;
            continue;
        }
        for (int inner = 0; inner < LS_NNLS_MAX && !all_positive(a, is_free, to); inner++) {
            step(a, is_free, x, to);
            if (!solve_free(a, is_free, to, &bad)) is_free[bad] = false;
        }
        for (int i = 0; i < a->n; i++) x[i] = to[i] > 0 ? to[i] : 0;
        if (x[next] <= 0) is_out[next] = true; /* by rounding alone: not again */
    }
}

void ls_nnls_variance(const ls_nnls *a, const double *x, double *variance)
{
    double l[LS_NNLS_MAX][LS_NNLS_MAX];
    int free[LS_NNLS_MAX] = {0}, n = 0, bad;

    memset(variance, 0, sizeof *variance * (size_t)a->n);
    for (int i = 0; i < a->n; i++)
        if (x[i] > 0 && a->gram[i][i] > 0) free[n++] = i;
    while (!factor(a, free, n, l, &bad)) {
        n--;
        for (int i = bad; i < n; i++) free[i] = free[i + 1];
    }
    for (int i = 0; i < n; i++) {
        double unit[LS_NNLS_MAX] = {0};
        unit[i] = 1;
        substitute(l, n, unit);
        variance[free[i]] = unit[i] / a->gram[free[i]][free[i]];
    }
}
