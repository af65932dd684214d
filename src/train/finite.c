/* finite.c: the checks, and the message that goes with them. */
#include "train/finite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/state.h"
#include "train/session_internal.h"

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
                   "A smaller optimizer.lr or a longer lr.warmup helps%s%s",
                   (long long)at->step, what, isnan(value) ? "not a number" : "infinite", at->lr,
                   what_is_left(at->checkpoints, left, sizeof left),
                   at->checks_gradients ? ""
                                        : "; train.check_gradients=true names the parameter and the rank",
                   at->goes_on ? "" : "; train.on_nonfinite=warn goes on all the same");
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

/* -- what is left to be seen ------------------------------------------------------------------------------
 */

static ls_status look_for_any(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    bool *found = ctx;
    const float *x = chunk;

    (void)offset;
    (void)err;
    for (size_t k = 0; k < bytes / sizeof *x && !*found; k++) *found = !isfinite(x[k]);
    return LS_OK;
}

/* "; of 8 variables 2 are no longer finite, \"conv1.weight\" first" */
static ls_status describe_variables(const ls_state *vars, char *buf, size_t size, ls_err *err)
{
    const char *first = NULL;
    int n = 0, broken = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(vars); i++) {
        const ls_tensor *t = ls_state_at(vars, i);
        bool found = false;
        if (t->dtype != LS_F32 || ls_state_role(vars, i) == LS_VAR_ACCUMULATED) continue;
        LS_TRY(ls_tensor_visit(t, look_for_any, &found, err));
        n++;
        broken += found;
        if (found && first == NULL) first = t->name;
    }
    if (first != NULL)
        snprintf(buf, size, "; of %d variables %d %s no longer finite, \"%s\" first", n, broken,
                 broken == 1 ? "is" : "are", first);
    else
        snprintf(buf, size, "; all %d variables are still finite", n);
out:
    return st;
}

/* "; the batch of rank 1 is not finite in \"image\"", or nothing.  Inputs have the same numbers everywhere.
 */
static ls_status describe_batch(const ls_plan *batch, ls_comm *comm, char *buf, size_t size, ls_err *err)
{
    static const char what[] = "looking for numbers that are not finite";
    const int ranks = comm != NULL ? ls_comm_size(comm) : 1, mine = comm != NULL ? ls_comm_rank(comm) : 0;
    double rank = ranks, input = -1;
    ls_status st = LS_OK;

    for (int i = 0; i < ls_plan_input_count(batch) && input < 0; i++) {
        const ls_tensor *t = ls_plan_input_at(batch, i);
        bool found = false;
        if (t->dtype == LS_F32 && !lsi_session_is_own_input(t->name))
            LS_TRY(ls_tensor_visit(t, look_for_any, &found, err));
        if (found) input = i;
    }
    if (input >= 0) rank = mine;
    if (comm != NULL) {
        LS_TRY(ls_comm_min(comm, &rank, 1, what, err));
        if ((int)rank != mine) input = -1;
        LS_TRY(ls_comm_max(comm, &input, 1, what, err));
    }
    if (input >= 0)
        snprintf(buf, size, "; the batch of rank %d is not finite in \"%s\"", (int)rank,
                 ls_plan_input_at(batch, (int)input)->name);
out:
    return st;
}

ls_status ls_finite_explain(const ls_state *vars, const ls_plan *batch, ls_comm *comm, ls_err *trouble,
                            ls_err *err)
{
    char variables[300] = "", inputs[300] = "";
    ls_status st = LS_OK;
    size_t n;

    LS_TRY(describe_variables(vars, variables, sizeof variables, err));
    if (batch != NULL) LS_TRY(describe_batch(batch, comm, inputs, sizeof inputs, err));
    n = strlen(trouble->text);
    snprintf(trouble->text + n, sizeof trouble->text - n, "%s%s", variables, inputs);
out:
    return st;
}
