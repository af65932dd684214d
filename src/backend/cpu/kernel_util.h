/* kernel_util.h: what the planners of the vector kernels share.
 *
 * A planner fills a small state on its stack and hands it to lsi_kernel_make, which copies it to the heap;
 * the same kernel source exists once per instruction set, and LSI_PICK takes the table of the best one. */
#ifndef LS_BACKEND_CPU_KERNEL_UTIL_H
#define LS_BACKEND_CPU_KERNEL_UTIL_H

#include <string.h>

#include "backend/cpu/c16.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "base/parallel.h"
#include "ops/ops.h"

/* The table of kernels for this processor, or NULL when it has neither instruction set. */
#define LSI_PICK(avx512, avx2) (lsi_has_avx512() ? &(avx512) : lsi_has_avx2() ? &(avx2) : NULL)

/* The same among the tables of a family for elements of type t; NULL for other types. */
#define LSI_PICK_STORED(t, family)                                                                           \
    ((t) == LS_F32    ? LSI_PICK(family##_avx512, family##_avx2)                                             \
     : (t) == LS_BF16 ? LSI_PICK(family##_bf16_avx512, family##_bf16_avx2)                                   \
     : (t) == LS_F16  ? LSI_PICK(family##_f16_avx512, family##_f16_avx2)                                     \
                      : NULL)

/* Below this many elements waking a second thread costs more than it saves. */
#define LSI_SMALL 16384

static inline int lsi_threads_for(const ls_device *dev, int64_t elements)
{
    return elements < LSI_SMALL ? 1 : dev->threads;
}

static inline ls_status lsi_kernel_make(ls_kernel *out, void (*run)(void *, const ls_call *),
                                        const void *state, size_t bytes, size_t scratch_bytes,
                                        const char *impl, ls_err *err)
{
    void *copy = ls_alloc(LS_MEM_PLAN, bytes);

    if (copy == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory for a kernel");
    memcpy(copy, state, bytes);
    *out = (ls_kernel){run, ls_free, copy, scratch_bytes, impl};
    return LS_OK;
}

static inline const ls_vinfo *lsi_in(const ls_graph *g, const ls_node *n, int i)
{
    return g->values[n->in[i]];
}
static inline const ls_vinfo *lsi_out(const ls_graph *g, const ls_node *n, int k)
{
    return g->values[n->out[k]];
}

/* Writes and reads single elements of any floating type but f64. */
static inline void lsi_put_float(void *to, ls_dtype t, int64_t at, float value)
{
    if (t == LS_F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] = t == LS_BF16 ? ls_bf16_from_f32(value) : ls_f16_from_f32(value);
}
static inline float lsi_get_float(const void *from, ls_dtype t, int64_t at)
{
    if (t == LS_F32) return ((const float *)from)[at];
    return t == LS_BF16 ? ls_bf16_to_f32(((const uint16_t *)from)[at])
                        : ls_f16_to_f32(((const uint16_t *)from)[at]);
}

/* Inputs lo..hi-1 are of type t and in layout l. */
static inline bool lsi_ins_are(const ls_graph *g, const ls_node *n, int lo, int hi, ls_dtype t,
                               const ls_layout *l)
{
    for (int i = lo; i < hi; i++)
        if (lsi_in(g, n, i)->dtype != t || lsi_in(g, n, i)->layout != l) return false;
    return true;
}
static inline bool lsi_outs_are(const ls_graph *g, const ls_node *n, int lo, int hi, ls_dtype t,
                                const ls_layout *l)
{
    for (int k = lo; k < hi; k++)
        if (lsi_out(g, n, k)->dtype != t || lsi_out(g, n, k)->layout != l) return false;
    return true;
}

/* Every input and output is f32 and plain. */
static inline bool lsi_plain_f32(const ls_graph *g, const ls_node *n)
{
    return lsi_ins_are(g, n, 0, n->n_in, LS_F32, &ls_layout_plain) &&
           lsi_outs_are(g, n, 0, n->n_out, LS_F32, &ls_layout_plain);
}

#endif
