/* lr_schedule.h: the learning rate of every update, as a function of how far training is.
 *
 * That is counted in steps, which are made of samples seen (train/periods.h): a run that goes on with another
 * batch finds its place.
 *
 * The base rate is that of the experiment; a scaling rule turns it into the rate for the global batch (the
 * "peak"); a warm-up leads from one to the other; a schedule lowers the peak as training goes on.  Only
 * "reduce on plateau" has a memory, which is part of a checkpoint. */
#ifndef LS_TRAIN_LR_SCHEDULE_H
#define LS_TRAIN_LR_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ls_lr_scale { LS_LR_SCALE_NONE, LS_LR_SCALE_LINEAR, LS_LR_SCALE_SQRT } ls_lr_scale;
typedef enum ls_lr_warmup { LS_LR_WARMUP_LINEAR, LS_LR_WARMUP_CONSTANT } ls_lr_warmup;
typedef enum ls_lr_rule {
    LS_LR_CONSTANT,
    LS_LR_STEP,    /* times `factor` every `every` steps */
    LS_LR_COSINE,  /* from the peak to `final` along half a cosine */
    LS_LR_LINEAR,  /* from the peak to `final` in a straight line */
    LS_LR_PLATEAU, /* times `factor` after `patience` validations without a better result */
} ls_lr_rule;

typedef struct ls_lr_schedule {
    double base, peak;
    int64_t warmup_steps; /* 0: none */
    ls_lr_warmup warmup;
    ls_lr_rule rule;
    int64_t total_steps; /* cosine, linear: where `final` is reached */
    int64_t hold_steps;  /* cosine, linear: the rate begins to fall here, or at the end of the warm-up */
    int64_t stair_steps; /* cosine, linear: the rate changes only every so many steps; 0: every step */
    int64_t every;       /* step */
    double factor;       /* step, plateau */
    double final;        /* cosine, linear; plateau: the smallest rate */
    int64_t patience;    /* plateau */
} ls_lr_schedule;

/* What "reduce on plateau" remembers; the zero value is the beginning. */
typedef struct ls_plateau {
    bool seen;
    double best;
    int64_t bad, cuts; /* validations since the best; how often the rate was cut */
} ls_plateau;

/* base times 1, batch / reference or the square root of that. */
double ls_lr_peak(ls_lr_scale scale, double base, int64_t global_batch, int64_t reference_batch);

/* The rate of the update that begins after `step` steps and is `length` steps long: 1, unless the run has
 * another batch than it began with.  While warming up linearly it is base + (peak - base) * (step + length) /
 * warmup_steps, so that the last step of the warm-up has the peak; a constant warm-up keeps the base and then
 * jumps.  Momentum needs no correction while the rate grows: our velocities hold gradients, not steps, and
 * are multiplied by the rate of the moment.  That is the form which the correction of Goyal et al.
 * (arXiv:1706.02677, remark 2; Horovod's callback for Keras) restores where the rate is inside the velocity.
 */
double ls_lr_schedule_at(const ls_lr_schedule *s, const ls_plateau *p, double step, double length);

/* Tells a plateau the result of a validation; `better` is by whatever metric and direction the run goes by.
 */
void ls_plateau_note(const ls_lr_schedule *s, ls_plateau *p, double value, bool larger_is_better);

#endif
