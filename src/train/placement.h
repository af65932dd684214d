/* placement.h: what ranks keep of a model (setting parallel.strategy), and what follows for their plans. */
#ifndef LS_TRAIN_PLACEMENT_H
#define LS_TRAIN_PLACEMENT_H

#include "train/session.h"

/* LS_INVALID where settings of the strategy contradict each other, or mean nothing. */
ls_status ls_placement_check(ls_config *cfg, ls_err *err) LS_MUST_CHECK;
/* What `ranks` ranks, of which a machine has `here`, keep in pieces; `shards`: those of the reproducible
 * mode, or 0. */
ls_placement ls_placement_of(ls_config *cfg, int ranks, int here, int64_t shards);
/* "every rank has all of the model", "what optimisers remember in 4 pieces", ..., and why it is so. */
const char *ls_placement_text(ls_config *cfg, const ls_placement *place, char *buf, size_t size);
/* ls_session_strategy with that. */
ls_strategy ls_placement_strategy(ls_config *cfg, const ls_placement *place, bool ranks, int64_t update,
                                  ls_part part);
/* How an evaluation beside such a training step is made. */
ls_strategy ls_placement_evaluation(const ls_strategy *how);
/* Where such a step has the model's own variables, for ls_plan_bind_model_take. */
ls_strategy ls_placement_model(const ls_strategy *how);
/* Sets what the ranks of the session keep in pieces; `shards`: those of the reproducible mode, or 0.
 * Collective. */
ls_status ls_session_place(ls_session *s, int64_t shards, ls_err *err) LS_MUST_CHECK;
/* How a part of the session's step is to be made. */
ls_strategy ls_session_part(const ls_session *s, ls_part part);

#endif
