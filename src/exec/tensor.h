/* tensor.h (internal): what the layers above need of tensors beyond lockstep/plan.h. */
#ifndef LS_EXEC_TENSOR_H
#define LS_EXEC_TENSOR_H

#include "lockstep/plan.h"

/* The reverse of ls_tensor_visit: `make` is handed chunks and writes every byte of each, in place where the
 * host can see the memory.  Where it cannot, what `make` finds in a chunk means nothing. */
typedef ls_status (*ls_tensor_make)(void *ctx, void *chunk, size_t offset, size_t bytes, ls_err *err);
ls_status ls_tensor_fill(const ls_tensor *t, ls_tensor_make make, void *ctx, ls_err *err) LS_MUST_CHECK;

/* XXH3 over all bytes, beginning with `seed`. */
ls_status ls_tensor_hash(const ls_tensor *t, uint64_t seed, uint64_t *hash, ls_err *err) LS_MUST_CHECK;

#endif
