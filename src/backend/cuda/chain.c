/* chain.c: the kernel of a chain of element-wise functions, generated and compiled. */
#include "backend/cuda/chain.h"

#include "backend/cuda/chain_source.h"
#include "backend/cuda/compiled.h"

void *lsi_cuda_chain_kernel(lsi_cuda_device *dev, const lsi_cuda_chain_args *a)
{
    const char *const name = "chain";
    ls_text source = {0};
    void *kernel = NULL;

    if (!lsi_cuda_can_compile(dev)) return NULL;
    lsi_cuda_chain_source(&source, a);
    if (source.failed || !lsi_cuda_compiled(dev, "chain", source.data, 1, &name, &kernel)) kernel = NULL;
    ls_text_release(&source);
    return kernel;
}
