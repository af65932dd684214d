/* session_inputs.c: what the trainer itself writes into plans and reads of them: rates, numbers of ranks,
 * sums.
 */
#include <stdio.h>
#include <string.h>

#include "exec/results.h"
#include "exec/state.h"
#include "train/session_internal.h"

bool lsi_session_is_rate(const char *input)
{
    return strcmp(input, "lr") == 0 || strncmp(input, "lr.", 3) == 0;
}

void ls_session_write_lr(const ls_session *s, const ls_batch_plan *p, double factor, double again)
{
    int n = 0;

    for (int i = 0; i < ls_plan_input_count(p->plan) && n < LS_SESSION_LRS; i++) {
        const ls_tensor *t = ls_plan_input_at(p->plan, i);
        char other[128];
        if (!lsi_session_is_rate(t->name)) continue;
        snprintf(other, sizeof other, LS_RATE_AGAIN "%s", t->name);
        ls_plan_write_scalar(p->plan, other, s->lr[n] * again);
        ls_plan_write_scalar(p->plan, t->name, s->lr[n++] * factor);
    }
}

void ls_session_write_scalar(const ls_batch_plan *p, const char *name, double value)
{
    ls_plan_write_scalar(p->plan, name, value);
}

void ls_session_write_control(const ls_batch_plan *p, const ls_control *c)
{
    float slot[LS_CONTROL_SLOTS];

    for (int i = 0; i < LS_CONTROL_SLOTS; i++) slot[i] = (float)c->slot[i];
    ls_plan_write_input(p->plan, LS_CONTROL, 0, slot, sizeof slot);
}

ls_status ls_session_read_control(const ls_batch_plan *p, ls_control *c, ls_err *err)
{
    const ls_tensor *t = ls_plan_fetch(p->plan, LS_CONTROL);
    float slot[LS_CONTROL_SLOTS];
    ls_status st;

    if (t == NULL) return LS_OK;
    st = ls_tensor_read(t, 0, slot, sizeof slot, err);
    for (int i = 0; st == LS_OK && i < LS_CONTROL_SLOTS; i++) c->slot[i] = (double)slot[i];
    return st;
}

ls_status ls_session_clear_sums(const ls_session *s, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(s->state); i++)
        if (ls_state_role(s->state, i) == LS_VAR_ACCUMULATED)
            LS_TRY(ls_tensor_zero(ls_state_at(s->state, i), err));
out:
    return st;
}

static ls_status scale(const ls_tensor *t, double factor, ls_err *err)
{
    float piece[1024];
    ls_status st = LS_OK;

    for (size_t at = 0, n; at < t->bytes; at += n) {
        n = t->bytes - at < sizeof piece ? t->bytes - at : sizeof piece;
        LS_TRY(ls_tensor_read(t, at, piece, n, err));
        for (size_t k = 0; k < n / sizeof *piece; k++) piece[k] *= (float)factor;
        LS_TRY(ls_tensor_write(t, at, piece, n, err));
    }
out:
    return st;
}

ls_status ls_session_scale_sums(const ls_session *s, double factor, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(s->state); i++) {
        const ls_tensor *t = ls_state_at(s->state, i);
        if (ls_state_role(s->state, i) == LS_VAR_ACCUMULATED && t->dtype == LS_F32)
            LS_TRY(scale(t, factor, err));
    }
out:
    return st;
}
