/* choice.h: the choice among kernels for one node, by measurement. */
#ifndef LS_BACKEND_CUDA_CHOICE_H
#define LS_BACKEND_CUDA_CHOICE_H

#include "backend/cuda/cuda.h"

enum { LSI_CUDA_KERNELS = 12 };

typedef struct lsi_cuda_choice {
    ls_device *dev;
    const ls_graph *g;
    const ls_node *n;
    const char *problem; /* text that identifies it, for remembering */
    int n_kernels;
    const char *const *names;
    int guess; /* taken where nothing is timed */
    /* Makes candidate i; LS_UNSUPPORTED: it cannot be had; LS_DEVICE, without text: not now. */
    ls_status (*make)(const void *ctx, int i, ls_kernel *out, ls_err *err);
    const void *ctx;
} lsi_cuda_choice;

/* The fastest, or the one that is remembered, or else the first that can be had.  Candidates are made when
 * they are tried or chosen, and run as they will in a step, within a graph.  LS_UNSUPPORTED when there is
 * none. */
ls_status lsi_cuda_choose(const lsi_cuda_choice *c, ls_kernel *out, ls_err *err) LS_MUST_CHECK;

#endif
