/* weights.h: a model's variables from a checkpoint of ours or from any safetensors file whose tensors have
 * the names that PyTorch gives them.
 *
 * Names and layouts are the same on both sides, so nothing is mapped but the prefix that some programs put in
 * front of all names ("module.", "_orig_mod.", "model."), and PyTorch's counters of batches, which have no
 * meaning here, are passed over, and so are what an optimiser keeps and the pools of ls_replay.  Numbers of
 * other floating-point types are converted.  What fits is decided for all tensors before the first is read.
 */
#ifndef LS_CKPT_WEIGHTS_H
#define LS_CKPT_WEIGHTS_H

#include "base/text.h"
#include "exec/state.h"

typedef struct ls_weights ls_weights;

/* `path`: a checkpoint, or a file.  LS_INVALID when there is nothing, LS_DATA when it is damaged.  The caller
 * owns *out. */
ls_status ls_weights_open(ls_weights **out, const char *path, ls_err *err) LS_MUST_CHECK;
void ls_weights_close(ls_weights *w); /* accepts NULL */

/* The checkpoint or file that is read; lives as long as w. */
const char *ls_weights_path(const ls_weights *w);
/* XXH3 over all bytes of the safetensors file (as `xxhsum -H3` prints it). */
ls_status ls_weights_hash(const ls_weights *w, uint64_t *hash, ls_err *err) LS_MUST_CHECK;

/* What of it is wanted.  {0}: everything must fit. */
typedef struct ls_weights_wish {
    const char *skip;   /* patterns (base/globs.h) of variables that keep their values; NULL: none */
    bool lenient;       /* variables that are missing or of another shape keep their values, too */
    const char *remedy; /* said where something does not fit: what the user can set; may be NULL */
} ls_weights_wish;

/* What came of it.  Start with {0}; release. */
typedef struct ls_weights_outcome {
    int loaded, skipped;         /* variables */
    int missing, extra, misfits; /* variables without a tensor, tensors without a variable, other shapes */
    int converted;               /* of the loaded ones, from another type of number */
    ls_text differences;         /* a list for people, of bounded length; empty when everything fits */
} ls_weights_outcome;

void ls_weights_outcome_release(ls_weights_outcome *o);

/* Parameters and buffers of `vars` from the tensors of the same name.  Where something does not fit and that
 * is not wanted, LS_INVALID lists it and nothing is read.  LS_DATA when a tensor is damaged: `vars` may then
 * hold anything. */
ls_status ls_weights_load(const ls_weights *w, ls_state *vars, const ls_weights_wish *wish,
                          ls_weights_outcome *out, ls_err *err) LS_MUST_CHECK;

#endif
