/* library.c: what is common to problems for libraries. */
#include "backend/cuda/module/library.h"

#include <cublasLt.h>
#include <cudnn.h>

static int ways(const lsi_cuda_library *l)
{
    return l->ways;
}

static int prepare(lsi_cuda_library *l, int way, size_t *workspace)
{
    const int code = lsi_cuda_enter();

    return code != 0 ? code : l->prepare(l, way, workspace);
}

static int run(lsi_cuda_library *l, int way, void *const *operands, void *workspace, lsi_cuda_stream s)
{
    const int code = lsi_cuda_enter();

    return code != 0 ? code : l->run(l, way, operands, workspace, s);
}

static void drop(lsi_cuda_library *l)
{
    if (l != NULL && lsi_cuda_enter() == 0) l->drop(l);
}

static int product(lsi_cuda_library **out, const lsi_cuda_product *p)
{
    const int code = lsi_cuda_enter();

    return code != 0 ? code : lsi_cuda_product_make(out, p);
}

static int conv(lsi_cuda_library **out, const lsi_cuda_conv *p)
{
    const int code = lsi_cuda_enter();

    return code != 0 ? code : lsi_cuda_conv_make(out, p);
}

const char *lsi_cuda_library_error(int code)
{
    return code >= LSI_CUDA_CUDNN ? cudnnGetErrorString((cudnnStatus_t)(code - LSI_CUDA_CUDNN))
                                  : cublasLtGetStatusString((cublasStatus_t)(code - LSI_CUDA_CUBLAS));
}

void lsi_cuda_library_versions(lsi_cuda_about *about)
{
    about->cublaslt = (long long)cublasLtGetVersion();
    about->cudnn = (long long)cudnnGetVersion();
}

void lsi_cuda_fill_libraries(lsi_cuda_api *api)
{
    api->product = product;
    api->conv = conv;
    api->ways = ways;
    api->prepare = prepare;
    api->run = run;
    api->drop = drop;
}
