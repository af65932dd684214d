/* fit.h: the links of a network from exchanges that were timed (`lockstep bench --collectives`).
 *
 * Links are such that the closed forms of collective.h, for the way our own exchange goes, miss the measured
 * times by as little as they can, relative to each time: a millisecond is not worth more than a microsecond.
 * What the measurements do not say is said in words. */
#ifndef LS_PREDICT_FIT_H
#define LS_PREDICT_FIT_H

#include "bench/collectives.h"

typedef struct ls_network ls_network; /* predict/network.h */

/* Figures of an ls_link, in its order. */
typedef enum ls_fit_figure {
    LS_FIT_LATENCY,
    LS_FIT_RATE,
    LS_FIT_MESSAGE,
    LS_FIT_CORE,
    LS_FIT_FIGURES
} ls_fit_figure;

typedef struct ls_fit_link {
    bool measured; /* false: nothing is known of it, and all figures are 0 */
    double figure[LS_FIT_FIGURES];
    /* Relative standard errors; NaN: not determined, or not to be told from 0. */
    double error[LS_FIT_FIGURES];
} ls_fit_link;

enum { LS_FIT_NOTES = 16 };
#define LS_FIT_LONG (256 << 10) /* bytes of a vector that takes a time worth predicting */

typedef struct ls_fit {
    ls_fit_link inside, node;
    int used;                  /* measured times that it was made from */
    double error;              /* relative standard error of times computed from it, of long vectors */
    double error_per_doubling; /* by which times of the most ranks were missed by the others; 0: not known */
    int32_t measured_ranks, measured_nodes, ranks_per_node;
    char note[LS_FIT_NOTES][256]; /* what could not be determined, and why */
    int n_notes;
} ls_fit;

/* Of n results of any number of ranks and machines.  LS_DATA where there are none to fit. */
ls_status ls_fit_network(ls_fit *out, const ls_collective_time *of, int n, ls_err *err) LS_MUST_CHECK;
/* The network's links and errors, of a flat network; texts and arena are the caller's.  A link that was not
 * measured gets the figures of the other one: `measured_nodes` below 2 says so of `node`, `measured_per_node`
 * below 2 of `inside`. */
void ls_fit_fill(const ls_fit *f, ls_network *n);

const char *ls_fit_figure_name(ls_fit_figure f); /* as in the file: "latency_s" */

#endif
