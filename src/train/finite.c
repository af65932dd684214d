/* finite.c: the checks, and the message that goes with them. */
#include "train/finite.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "exec/state.h"

/* "step-00000500 in .../checkpoints stays", or that there is none. */
static const char *what_is_left(const char *folder, char *buf, size_t size)
{
    char link[4200], name[256];
    ssize_t n;

    snprintf(link, sizeof link, "%s/last", folder);
    n = readlink(link, name, sizeof name - 1);
    if (n > 0)
        snprintf(buf, size, "the last checkpoint, %s/%.*s, stays", folder, (int)n, name);
    else
        snprintf(buf, size, "there is no checkpoint yet");
    return buf;
}

static ls_status fail(const char *what, double value, const ls_finite_place *at, ls_err *err)
{
    char left[1024];

    return ls_fail(err, LS_DIVERGED,
                   "step %lld: %s is %s at learning rate %g: the training has diverged; %s. "
                   "A smaller optimizer.lr or a longer lr.warmup helps; train.check_gradients=true names the "
                   "parameter and "
                   "the rank, train.on_nonfinite=warn goes on all the same",
                   (long long)at->step, what, isnan(value) ? "not a number" : "infinite", at->lr,
                   what_is_left(at->checkpoints, left, sizeof left));
}

ls_status ls_finite_fail(const char *what, const ls_finite_place *at, ls_err *err)
{
    char left[1024];

    return ls_fail(
        err, LS_DIVERGED,
        "step %lld: %s at learning rate %g: the training has diverged; %s. A smaller optimizer.lr or "
        "a longer lr.warmup helps; train.on_nonfinite=skip leaves such updates out",
        (long long)at->step, what, at->lr, what_is_left(at->checkpoints, left, sizeof left));
}

ls_status ls_finite_metrics(const ls_metric_sums *m, const ls_finite_place *at, ls_err *err)
{
    for (int i = 0; i < m->n; i++)
        if (!isfinite(m->sum[i])) return fail(m->name[i], m->sum[i], at, err);
    return LS_OK;
}

typedef struct looking {
    const char *name;
    const ls_finite_place *at;
} looking;

static ls_status look(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const looking *l = ctx;
    const float *x = chunk;

    (void)offset;
    for (size_t k = 0; k < bytes / sizeof *x; k++)
        if (!isfinite(x[k])) return fail(l->name, (double)x[k], l->at, err);
    return LS_OK;
}

ls_status ls_finite_state(const ls_state *vars, const ls_finite_place *at, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(vars); i++) {
        const ls_tensor *t = ls_state_at(vars, i);
        /* What an update that was left out has not taken is in no checkpoint, and the next sum begins anew.
         */
        if (ls_state_role(vars, i) == LS_VAR_ACCUMULATED && !ls_state_pending(vars)) continue;
        if (t->dtype == LS_F32) LS_TRY(ls_tensor_visit(t, look, &(looking){t->name, at}, err));
    }
out:
    return st;
}
