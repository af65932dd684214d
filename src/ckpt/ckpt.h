/* ckpt.h: checkpoints: what a run needs to go on, in a directory that proves itself whole.
 *
 * A checkpoint is a directory with two files.  `model.safetensors` holds all tensors in the layout that other
 * programs read: 8 bytes of header length (little-endian), a JSON header, the bytes.  Tensors lie without
 * gaps (the layout forbids them), wide element types first and then by name, from an offset that is a
 * multiple of 64.  `manifest.json` says what must be there: type, shape, size and XXH3 of every tensor and of
 * the header, the plan's hash, and a JSON object of the caller's; its last line is the XXH3 of all bytes
 * before it.  Any changed byte of either file is therefore noticed, and reported as LS_DATA with file and
 * tensor.
 *
 * A checkpoint appears under its name only when it is complete and on the disk: it is written to
 * `NAME.partial` beside it, synced and renamed. */
#ifndef LS_CKPT_CKPT_H
#define LS_CKPT_CKPT_H

#include <jansson.h>

#include "exec/state.h"

/* -- writing ----------------------------------------------------------------------------------------------
 */

/* Writes a checkpoint and returns when it is on the disk.  A checkpoint of that name is replaced in one step;
 * on failure it stays as it was and nothing is left behind.  All tensors count as parameters of the model.
 * `state` may be NULL (an empty object).  LS_INVALID for two tensors of one name, LS_IO when the system
 * refuses.
 */
ls_status ls_ckpt_save(const char *dir, const ls_tensor *const *tensors, int n, uint64_t plan_hash,
                       const json_t *state, ls_err *err) LS_MUST_CHECK;
/* The same for all variables of `vars`; optimiser state is marked as such, so that an export leaves it out.
 */
ls_status ls_ckpt_save_state(const char *dir, const ls_state *vars, uint64_t plan_hash, const json_t *state,
                             ls_err *err) LS_MUST_CHECK;
/* Bytes on disk that a checkpoint of these variables needs at most, for ls_ckpt_writer_create. */
size_t ls_ckpt_bytes(const ls_state *vars);
/* "step-00000042" into buf of at least LS_CKPT_NAME bytes; returns buf. */
#define LS_CKPT_NAME 32
const char *ls_ckpt_name(int64_t step, char *buf);
/* The step of a name that ls_ckpt_name made; -1 for any other. */
int64_t ls_ckpt_step_of(const char *name);

/* -- reading ----------------------------------------------------------------------------------------------
 */

typedef struct ls_ckpt ls_ckpt;

/* One tensor of a checkpoint; strings are borrowed from it. */
typedef struct ls_ckpt_tensor {
    const char *name, *file;
    ls_dtype dtype;
    ls_shape shape;
    size_t bytes;
    uint64_t xxh3;
    ls_var_role role;
} ls_ckpt_tensor;

/* "parameter", "buffer", "optimizer" or "accumulated". */
const char *ls_ckpt_role_name(ls_var_role role);

/* Opens and checks everything but the tensors' bytes: manifest, header, sizes.  LS_DATA when something is
 * missing, damaged or contradictory.  The caller owns *out.  A link such as `last` may be given. */
ls_status ls_ckpt_open(ls_ckpt **out, const char *dir, ls_err *err) LS_MUST_CHECK;
void ls_ckpt_close(ls_ckpt *c); /* accepts NULL */

const json_t *ls_ckpt_state(const ls_ckpt *c); /* borrowed; an object */
uint64_t ls_ckpt_plan_hash(const ls_ckpt *c);
const char *ls_ckpt_version(const ls_ckpt *c); /* of the Lockstep that wrote it */
/* The metric it was written with (ls_ckpt_writer_submit); NaN when there was none. */
double ls_ckpt_metric(const ls_ckpt *c);
int ls_ckpt_count(const ls_ckpt *c);
ls_ckpt_tensor ls_ckpt_at(const ls_ckpt *c, int i); /* in the order of the file */

/* Reads one tensor into `to` and checks its hash.  LS_INVALID when there is none of that name, type and
 * shape; LS_DATA when it is damaged: `to` may then hold anything. */
ls_status ls_ckpt_read(const ls_ckpt *c, const char *name, ls_dtype dtype, ls_shape shape, void *to,
                       ls_err *err) LS_MUST_CHECK;
/* Every variable of `vars`, by name.  All names, types and shapes are compared first: when the two do not
 * match, nothing is read, and LS_INVALID names the missing, the surplus and the different ones.  Accumulated
 * gradients are read when the checkpoint has them: it was then taken between two updates. */
ls_status ls_ckpt_load_state(const ls_ckpt *c, ls_state *vars, ls_err *err) LS_MUST_CHECK;

/* The same for parameters and buffers alone, whatever optimiser state either side has: for evaluation, and to
 * start from a model that was trained elsewhere. */
ls_status ls_ckpt_load_model(const ls_ckpt *c, ls_state *vars, ls_err *err) LS_MUST_CHECK;

/* Told of each damage; `tensor` is NULL when it concerns the file as a whole. */
typedef void (*ls_ckpt_on_damage)(void *arg, const char *file, const char *tensor, const char *text);
/* Reads everything.  *bad receives the number of damages, each reported to `fn` (may be NULL); LS_DATA, with
 * the first one in `err`, when there is one.  Does not stop at the first damaged tensor. */
ls_status ls_ckpt_verify(const char *dir, int *bad, ls_ckpt_on_damage fn, void *arg,
                         ls_err *err) LS_MUST_CHECK;

/* What to do about the damaged checkpoint in `dir`, as a part of a sentence: which of those beside it is
 * whole (they are read, the newest first), or that none is. */
void ls_ckpt_remedy(const char *dir, char *text, size_t size);
/* Adds that to an error, if it is LS_DATA.  Returns `st`. */
ls_status ls_ckpt_advise(const char *dir, ls_status st, ls_err *err) LS_MUST_CHECK;

/* The newest checkpoint of `folder` that is whole, all of it read: its path into `path`, which has `size`
 * bytes. Newer ones that are damaged are passed over with a warning that names file and tensor.  LS_DATA when
 * none is left; the text then says what is wrong with the newest. */
ls_status ls_ckpt_find_newest(const char *folder, char *path, size_t size, ls_err *err) LS_MUST_CHECK;

/* XXH3 over name, type, shape and bytes of all parameters and buffers in the order of their names (not over
 * optimiser state): equal for equal models, on any device. */
ls_status ls_weights_xxh3(const ls_state *vars, uint64_t *hash, ls_err *err) LS_MUST_CHECK;

/* -- plain safetensors ------------------------------------------------------------------------------------
 */

/* Writes the parameters and buffers of a checkpoint to one file that other programs read.  They pass in
 * chunks: it takes no memory for a model. */
ls_status ls_ckpt_export(const char *dir, const char *file, ls_err *err) LS_MUST_CHECK;
/* LS_INVALID for a file of weights of another program (PyTorch's .pt, Keras's .h5, ...), with what makes a
 * safetensors file of it; whether the file exists does not matter. */
ls_status ls_ckpt_refuse_foreign(const char *file, ls_err *err) LS_MUST_CHECK;

/* Makes a checkpoint directory, with an empty state, of such a file; LS_INVALID when `dir` is there already.
 * Tensors of types that Lockstep does not have (int64 counters, for instance) are left out with a warning;
 * *left_out (may be NULL) receives how many. */
ls_status ls_ckpt_import(const char *file, const char *dir, int *left_out, ls_err *err) LS_MUST_CHECK;

/* -- writing beside a run ---------------------------------------------------------------------------------
 */

/* A writer keeps the checkpoints of one folder.  It copies what it is given and writes it in a thread of its
 * own, unless it is asked to write at once; `last` and `best` are links to the newest and the best one.  A
 * write that fails warns, leaves the last good one alone, and the run goes on unless ranks are lost.  A
 * writer is used by one thread at a time. */
typedef struct ls_ckpt_writer ls_ckpt_writer;

/* Which checkpoints stay: the `last` newest (at least 1) and the `best` best by metric (0: none for being
 * good).
 */
typedef struct ls_ckpt_keep {
    int last, best;
    bool larger_is_better;
    bool at_once; /* without a copy, for which there may be no memory: the run waits for every write */
} ls_ckpt_keep;

/* Makes `folder` where it is missing, removes what a killed run left half-written, takes note of the
 * checkpoints that are there, and reserves `bytes` (see ls_ckpt_bytes) on the disk.  LS_IO with the figures
 * when the kept checkpoints and one more do not fit. */
ls_status ls_ckpt_writer_create(ls_ckpt_writer **out, const char *folder, ls_ckpt_keep keep, size_t bytes,
                                ls_err *err) LS_MUST_CHECK;
/* Waits for the write under way. Accepts NULL. */
void ls_ckpt_writer_destroy(ls_ckpt_writer *w);

/* Hands over the variables as they are now, to be written as `folder/step-%08lld`.  Returns when they are
 * copied; or written, where that is asked for or ranks have them in pieces (the others serve: exec/pieces.h).
 * Waits for the write before, when that is not done.  `metric` decides about `best`; NaN: none. Fails only
 * when memory or a thread cannot be had, never because of the disk. */
ls_status ls_ckpt_writer_submit(ls_ckpt_writer *w, int64_t step, const ls_state *vars, uint64_t plan_hash,
                                const json_t *state, double metric, ls_err *err) LS_MUST_CHECK;
/* What the other ranks do of it, and of loading, where they have pieces: for ls_pieces_serve. */
ls_status ls_ckpt_assist(const ls_state *vars, ls_err *err) LS_MUST_CHECK;
/* Waits until nothing is under way and says how the newest write ended. */
ls_status ls_ckpt_writer_wait(ls_ckpt_writer *w, ls_err *err);

typedef struct ls_ckpt_writer_stats {
    double submit_s, write_s; /* spent so far by callers of submit, and by the thread */
    int64_t written, failed;
} ls_ckpt_writer_stats;

/* Of finished writes. */
ls_ckpt_writer_stats ls_ckpt_writer_stats_of(ls_ckpt_writer *w);

#endif
