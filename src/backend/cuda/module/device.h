/* device.h: what the files of the module share. */
#ifndef LS_BACKEND_CUDA_MODULE_DEVICE_H
#define LS_BACKEND_CUDA_MODULE_DEVICE_H

#include "backend/cuda/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before any call of CUDA's that depends on the device: a new thread begins with device 0. */
int lsi_cuda_enter(void);

/* The parts of the table. */
void lsi_cuda_fill_device(lsi_cuda_api *api);
void lsi_cuda_fill_libraries(lsi_cuda_api *api);
void lsi_cuda_fill_compile(lsi_cuda_api *api);

/* Statuses of libraries among CUDA's errors: from these numbers on. */
enum { LSI_CUDA_CUBLAS = 100000, LSI_CUDA_CUDNN = 200000 };
const char *lsi_cuda_library_error(int code);
void lsi_cuda_library_versions(lsi_cuda_about *about);

/* A chain whose kernel was compiled (chain_launch.c). */
int lsi_cuda_launch_chain(lsi_cuda_stream s, const lsi_cuda_chain_args *a);

#ifdef __cplusplus
}
#endif

#endif
