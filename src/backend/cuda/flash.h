/* flash.h: attention whose scores never leave the processor (module/flash.cu). */
#ifndef LS_BACKEND_CUDA_FLASH_H
#define LS_BACKEND_CUDA_FLASH_H

#include "backend/cuda/cuda.h"

/* Whether there is a kernel for this attention, self_attention or gradient of one: numbers of 16 bits, in
 * heads of a common width. */
bool lsi_cuda_can_flash(const ls_graph *g, const ls_node *n);
/* For such a node. */
ls_status lsi_cuda_plan_flash(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err);

#endif
