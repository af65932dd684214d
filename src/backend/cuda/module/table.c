/* table.c: lockstep-cuda.so's one symbol. */
#include "backend/cuda/module/device.h"

__attribute__((visibility("default"))) const lsi_cuda_api *ls_cuda_module(void);

const lsi_cuda_api *ls_cuda_module(void)
{
    static lsi_cuda_api api; /* filled alike however often */

    api.version = LSI_CUDA_VERSION;
    lsi_cuda_fill_device(&api);
    lsi_cuda_fill_graphs(&api);
    lsi_cuda_fill_libraries(&api);
    lsi_cuda_fill_compile(&api);
#define LSI_CUDA_ENTRY(name) api.launch.name = lsi_cuda_##name;
    LSI_CUDA_LAUNCHERS(LSI_CUDA_ENTRY)
#undef LSI_CUDA_ENTRY
    return &api;
}
