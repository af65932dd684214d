/* aside.c: see aside.h. */
#include "train/aside.h"

#include "base/alloc.h"

char *ls_aside_room(const ls_session *s, ls_aside_rule wanted)
{
    size_t bytes = 1;

    for (int i = 0; i < ls_state_count(s->state); i++)
        if (wanted(s, i)) bytes += ls_state_at(s->state, i)->bytes;
    return ls_alloc(LS_MEM_CKPT, bytes);
}

/* Copies them, to `room` or (`back`) from it. */
static ls_status copy(const ls_session *s, ls_aside_rule wanted, char *room, bool back, ls_err *err)
{
    size_t at = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(s->state); i++) {
        const ls_tensor *t = ls_state_at(s->state, i);
        if (!wanted(s, i)) continue;
        LS_TRY(back ? ls_tensor_write(t, 0, room + at, t->bytes, err)
                    : ls_tensor_read(t, 0, room + at, t->bytes, err));
        at += t->bytes;
    }
out:
    return st;
}

ls_status ls_aside_take(const ls_session *s, ls_aside_rule wanted, char *room, ls_err *err)
{
    return copy(s, wanted, room, false, err);
}

ls_status ls_aside_put_back(const ls_session *s, ls_aside_rule wanted, char *room, ls_err *err)
{
    return copy(s, wanted, room, true, err);
}
