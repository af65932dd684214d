/* precision.c: what the settings of precision, and of gradients that are not finite, make of a plan. */
#include <stdlib.h>
#include <string.h>

#include "train/session.h"

enum { PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16 }; /* values of precision */

ls_dtype ls_session_compute(ls_config *cfg)
{
    switch (ls_config_int(cfg, "precision")) {
    case PRECISION_BF16: return LS_BF16;
    case PRECISION_FP16: return LS_F16;
    default: return LS_F32;
    }
}

bool ls_session_rounds(ls_config *cfg)
{
    return ls_config_int(cfg, "precision") != PRECISION_FP32;
}

bool ls_session_scales(ls_config *cfg)
{
    return ls_session_compute(cfg) == LS_F16 && strcmp(ls_config_text(cfg, "fp16.loss_scale"), "auto") == 0;
}

/* A scale that changes needs updates that are left out; else they are where the settings say so, and before
 * a run that stops they must not harm the weights. */
static ls_guard guard_of(ls_config *cfg)
{
    const ls_on_nonfinite how = ls_session_on_nonfinite(cfg);

    if (ls_session_scales(cfg) || how == LS_NONFINITE_SKIP) return LS_GUARD_SKIP;
    if (ls_session_compute(cfg) != LS_F16 && !ls_config_bool(cfg, "train.check_gradients"))
        return LS_GUARD_NONE;
    return how == LS_NONFINITE_STOP ? LS_GUARD_SKIP : LS_GUARD_REPORT;
}

ls_on_nonfinite ls_session_on_nonfinite(ls_config *cfg)
{
    return (ls_on_nonfinite)ls_config_int(cfg, "train.on_nonfinite");
}

void ls_session_guard(ls_config *cfg, ls_strategy *how)
{
    how->guard = guard_of(cfg);
    if (ls_session_compute(cfg) != LS_F16) return;
    if (ls_session_scales(cfg)) {
        how->loss_scale = ls_config_real(cfg, "fp16.initial_scale");
        how->scale_growth = (int)ls_config_int(cfg, "fp16.growth_interval");
    } else {
        how->loss_scale =
            strtod(ls_config_text(cfg, "fp16.loss_scale"), NULL); /* checked with the settings */
    }
}
