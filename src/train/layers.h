/* layers.h: a model as a person looks at it: its layers with shapes, parameters and arithmetic.
 *
 * Layers are those the trial named.  FLOPs count as publications do (bench/flops.h), per sample: forward, and
 * of the whole step with its backward pass.  What belongs to no layer is in a row of its own where it counts.
 */
#ifndef LS_TRAIN_LAYERS_H
#define LS_TRAIN_LAYERS_H

#include <jansson.h>

#include "base/text.h"
#include "lockstep/nn.h"
#include "train/session.h"

enum { LS_LAYER_NAME = 128, LS_LAYER_ROWS = 32 };

typedef struct ls_layer {
    char name[LS_LAYER_NAME];
    int n;          /* layers that this row stands for */
    ls_shape shape; /* of the output, with the batch; rank 0 when there is no one shape */
    int64_t params;
    double forward, step; /* FLOPs per sample */
} ls_layer;

typedef struct ls_layers {
    ls_layer *rows;
    int n;
    int64_t batch, params; /* params: of the whole model */
    double forward, step;
} ls_layers;

/* The layers of a compiled training step, in the order of the forward pass.  With more than `max_rows` (0: no
 * limit), those with the same first parts of their names share a row: layer1.0.conv1 and layer1.0.bn1 become
 * layer1.0; when that is not enough, the middle rows share one.  Release in any case. */
ls_status ls_layers_of(ls_layers *out, const ls_step *step, const ls_plan *plan, int max_rows,
                       ls_err *err) LS_MUST_CHECK;
/* Those of a session's step, all its stages added up: what a later one computes again counts again. */
ls_status ls_layers_of_session(ls_layers *out, const ls_session *s, int max_rows, ls_err *err) LS_MUST_CHECK;
void ls_layers_release(ls_layers *l);

/* Appends the table. */
ls_status ls_layers_table(const ls_layers *l, ls_text *out, ls_err *err) LS_MUST_CHECK;
/* {"event": "model", "layers": [{"name", "shape", "parameters", "forward_flops", "step_flops"}, ...],
 * "parameters", "forward_flops", "step_flops"}: FLOPs per sample, shapes with the batch. */
json_t *ls_layers_json(const ls_layers *l);

#endif
