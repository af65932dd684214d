/* random_rules.h: what the ops that draw random numbers share. */
#ifndef LS_OPS_RANDOM_RULES_H
#define LS_OPS_RANDOM_RULES_H

#include "base/rng.h"
#include "ops/ops.h"

/* Checks that input i is a random key: i32 (4). */
ls_status lsi_check_key(const ls_infer *c, int i, ls_err *err);
/* Shape rule of ops without other inputs: f32 of the shape in the attributes, whose dimension 0 counts
 * samples.  f32 in every run: a draw is the same number everywhere. */
ls_status lsi_infer_random(ls_infer *c, ls_err *err);
/* The key in a widened i32 tensor; its elements are raw bits. */
ls_rng_key lsi_random_key(const ls_ref_tensor *t);
void lsi_random_attr_text(const void *attr, char *buf, size_t n);

/* A draw: element e of a sample. */
typedef double (*lsi_draw)(const ls_rng_key *key, const ls_random_attr *a, uint32_t sample, uint64_t e);
/* The reference kernel of ops that fill a tensor with draws. */
void lsi_ref_random(const ls_ref_call *c, lsi_draw draw);

#endif
