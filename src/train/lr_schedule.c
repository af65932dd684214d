/* lr_schedule.c: learning rates by how far training is. */
#include "train/lr_schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

double ls_lr_peak(ls_lr_scale scale, double base, int64_t global_batch, int64_t reference_batch)
{
    const double ratio = (double)global_batch / (double)reference_batch;

    switch (scale) {
    case LS_LR_SCALE_LINEAR: return base * ratio;
    case LS_LR_SCALE_SQRT: return base * sqrt(ratio);
    default: return base;
    }
}

/* The share of the way from where the rate begins to fall to the end of training. */
static double progress(const ls_lr_schedule *s, double step)
{
    const int64_t begin = s->hold_steps > s->warmup_steps ? s->hold_steps : s->warmup_steps;
    const double stair = s->stair_steps > 0 ? step - fmod(step, (double)s->stair_steps) : step;
    const double span = (double)(s->total_steps - begin);
    const double at = span > 0 ? (stair - (double)begin) / span : stair < (double)begin ? 0 : 1;

    return at < 0 ? 0 : at > 1 ? 1 : at;
}

double ls_lr_schedule_at(const ls_lr_schedule *s, const ls_plateau *p, double step, double length)
{
    const double warmup = (double)s->warmup_steps;

    if (step < warmup)
        return s->warmup == LS_LR_WARMUP_CONSTANT
                   ? s->base
                   : s->base + (s->peak - s->base) * fmin(step + length, warmup) / warmup;
    switch (s->rule) {
    case LS_LR_STEP: return s->every > 0 ? s->peak * pow(s->factor, floor(step / (double)s->every)) : s->peak;
    case LS_LR_COSINE: return s->final + (s->peak - s->final) * 0.5 * (1 + cos(pi * progress(s, step)));
    case LS_LR_LINEAR: return s->peak + (s->final - s->peak) * progress(s, step);
    case LS_LR_PLATEAU: return fmax(s->final, s->peak * pow(s->factor, (double)p->cuts));
    default: return s->peak;
    }
}

void ls_plateau_note(const ls_lr_schedule *s, ls_plateau *p, double value, bool larger_is_better)
{
    if (s->rule != LS_LR_PLATEAU || isnan(value)) return;
    if (!p->seen || (larger_is_better ? value > p->best : value < p->best)) {
        p->seen = true;
        p->best = value;
        p->bad = 0;
        return;
    }
    if (++p->bad <= s->patience) return;
    p->bad = 0;
    p->cuts++;
}
