/* agenda.c: what is due at a moment. */
#include "train/agenda.h"

_Static_assert((int)LS_DUE_N < (int)LS_CONTROL_SLOTS,
               "one slot for each decision, and one for the wish to stop");

const char *ls_due_name(ls_due what)
{
    static const char *const names[LS_DUE_PERIODS] = {
        [LS_DUE_REPORT] = "report",         [LS_DUE_VALIDATE] = "validate", [LS_DUE_OUTPUT] = "output",
        [LS_DUE_SAMPLE] = "sample",         [LS_DUE_VERIFY] = "verify",     [LS_DUE_PACE] = "pace",
        [LS_DUE_CHECKPOINT] = "checkpoint",
    };

    return names[what];
}

void ls_agenda_begin(ls_agenda *a, ls_moment now, const double last[LS_DUE_PERIODS])
{
    a->begun = a->before = a->last_output = now;
    for (int i = 0; i < LS_DUE_PERIODS; i++)
        a->last[i] = last != NULL && last[i] >= 0 && last[i] <= now.minutes ? last[i] : now.minutes;
}

static bool is_due(const ls_agenda *a, ls_due what, ls_moment before, ls_moment after)
{
    before.minutes = a->last[what];
    return ls_period_due(a->every[what], a->ruler.epoch_samples, before, after);
}

unsigned ls_agenda_decide(const ls_agenda *a, ls_moment after)
{
    unsigned due = 0;

    for (int i = 0; i < LS_DUE_PERIODS; i++)
        if (i != LS_DUE_OUTPUT && is_due(a, (ls_due)i, a->before, after)) due |= 1u << i;
    if ((due >> LS_DUE_VALIDATE & 1) != 0 && is_due(a, LS_DUE_OUTPUT, a->last_output, after))
        due |= 1u << LS_DUE_OUTPUT;
    if (ls_period_over(a->pause, a->ruler.epoch_samples, a->begun, after)) due |= 1u << LS_DUE_PAUSE;
    if (after.steps >= a->end) due |= 1u << LS_DUE_END;
    return due;
}

void ls_agenda_note(ls_agenda *a, ls_moment after, unsigned due)
{
    a->before = after;
    for (int i = 0; i < LS_DUE_PERIODS; i++)
        if ((due >> i & 1) != 0) a->last[i] = after.minutes;
    if ((due >> LS_DUE_OUTPUT & 1) != 0) a->last_output = after;
}

ls_control ls_control_make(unsigned due, bool stop)
{
    ls_control c = {0};

    for (int i = 0; i < LS_DUE_N; i++) c.slot[i] = due >> i & 1;
    c.slot[LS_DUE_N] = stop;
    return c;
}

unsigned ls_control_due(const ls_control *c)
{
    unsigned due = 0;

    for (int i = 0; i < LS_DUE_N; i++)
        if (c->slot[i] > 0) due |= 1u << i;
    return due;
}

bool ls_control_stop(const ls_control *c)
{
    return c->slot[LS_DUE_N] > 0;
}
