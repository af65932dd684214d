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

#ifdef __cplusplus
}
#endif

#endif
