/* epilogue.h: what comes after a product whose library does not do it (module/epilogue.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_EPILOGUE_H
#define LS_BACKEND_CUDA_LAUNCH_EPILOGUE_H

#include "lockstep/tensor.h"

/* y[o][c][i] = act(y[o][c][i] + bias[c]), in place; act is an ls_act. */
typedef struct lsi_cuda_epilogue_args {
    void *y;
    const void *bias; /* NULL: none */
    ls_dtype dtype;   /* of y */
    ls_dtype bias_dtype;
    int64_t outer, channels, inner;
    int act;
    float slope;
} lsi_cuda_epilogue_args;

#endif
