/* breaks.c: the questions, and when they are asked. */
#include "train/breaks.h"

#include "base/clock.h"
#include "train/team.h"

#define BREAK_S 0.25 /* between two questions */

ls_breaks ls_breaks_begin(ls_session *s)
{
    s->given_up = false;
    return (ls_breaks){.session = s, .every = 1, .left = 1, .asked = ls_clock_seconds()};
}

/* Rank 0's: batches that take BREAK_S, as long as the last ones took; at most twice as many as before, since
 * the first may be no measure. */
static int64_t next_after(ls_breaks *b)
{
    const double now = ls_clock_seconds(), took = now - b->asked, most = 2 * (double)b->every,
                 fit = took > 0 ? (double)b->every * BREAK_S / took : most;

    b->asked = now;
    return fit >= most ? 2 * b->every : fit > 1 ? (int64_t)fit : 1;
}

ls_status ls_breaks_after(ls_breaks *b, int64_t more, ls_err *err)
{
    ls_session *s = b->session;
    double said[2] = {0}; /* how many were asked to stop; when the next question comes */
    ls_status st = LS_OK;

    if (s->stop == NULL || more == 0 || --b->left > 0) return LS_OK;
    said[0] = *s->stop > 0;
    said[1] = s->rank == 0 ? (double)next_after(b) : 0;
    LS_TRY(ls_team_add(s->comm, said, 2, "asking whether to stop", err));
    b->every = b->left = (int64_t)said[1];
    if (said[0] > 0) {
        s->given_up = true;
        st = ls_fail(err, LS_CANCELLED, "asked to stop: the evaluation is given up");
    }
out:
    return st;
}
