/* library.h: a problem that was given to a library, whichever it is. */
#ifndef LS_BACKEND_CUDA_MODULE_LIBRARY_H
#define LS_BACKEND_CUDA_MODULE_LIBRARY_H

#include "backend/cuda/module/device.h"

/* The first member of what each library has. */
struct lsi_cuda_library {
    int ways;
    int (*prepare)(lsi_cuda_library *l, int way, size_t *workspace);
    int (*run)(lsi_cuda_library *l, int way, void *const *operands, void *workspace, lsi_cuda_stream s);
    void (*drop)(lsi_cuda_library *l);
};

int lsi_cuda_product_make(lsi_cuda_library **out, const lsi_cuda_product *p);
int lsi_cuda_conv_make(lsi_cuda_library **out, const lsi_cuda_conv *p);

#endif
