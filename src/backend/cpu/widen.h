/* widen.h: f32 kernels on tensors stored as bf16 or f16. */
#ifndef LS_BACKEND_CPU_WIDEN_H
#define LS_BACKEND_CPU_WIDEN_H

#include "backend/cpu/cpu.h"

/* Plans the node as if its 16-bit floats were f32 and wraps the kernel in conversions: what is stored is 16
 * bits wide, what is computed is not.  LS_UNSUPPORTED without text when the node has no 16-bit floats or the
 * planner declines. */
ls_status lsi_plan_widened(lsi_cpu_planner planner, ls_device *dev, const ls_graph *g, const ls_node *n,
                           ls_kernel *out, ls_err *err) LS_MUST_CHECK;

/* How such a kernel is called: "wide_" and the name of the f32 kernel; `to` has room for LSI_WIDE_NAME. */
#define LSI_WIDE_NAME 40
void lsi_wide_name(char *to, const char *impl);

/* `count` numbers of type t (LS_BF16 or LS_F16) to f32, or back. */
void lsi_widen(float *wide, const void *narrow, ls_dtype t, int64_t count, int threads);
void lsi_narrow(void *narrow, const float *wide, ls_dtype t, int64_t count, int threads);

#endif
