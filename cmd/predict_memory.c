/* predict_memory.c: what a rank takes of memory in one row of a table of predictions.
 *
 * A step's program holds for all numbers of ranks, its memory does not: pieces, and what exchanges share,
 * depend on them.  So each row is compiled once more, as `lockstep plan --strategy` does it. */
#include <stdio.h>

#include "base/text.h"
#include "predict_table.h"

/* Activations that are computed again take time, which the step was not predicted with: that of a rank alone
 * has its own plan. */
static void check_recompute(predict_row *r, const predict_way *w, const ls_outline *x)
{
    const bool alone = r->ranks == 1;
    const int predicted = alone ? w->recomputed_alone : w->recomputed;

    if (x->recompute.n_chosen == predicted) return;
    ls_text_fit(
        r->why, sizeof r->why,
        "memory.limit has %d units of the model computed again among %d ranks and %d among the %d that "
        "the step was compiled for: set train.recompute to none or unit",
        x->recompute.n_chosen, r->ranks, predicted, alone ? 1 : w->ranks);
}

ls_status predict_memory_of(const predict_table *t, predict_row *r, const predict_step *s, size_t limit,
                            ls_err *err)
{
    const predict_way *w = &t->way[r->way];
    const ls_alternative way = predict_alternative(w, s, r->ranks);
    char takes[32], may[32];
    ls_outline x = {0};
    ls_status st = LS_OK;

    if (r->why[0] != '\0') return LS_OK;
    st = ls_alternative_open(&way, &x, err);
    if (st == LS_INVALID || st == LS_UNSUPPORTED) { /* of this row alone */
        ls_text_fit(r->why, sizeof r->why, "%s", err->text);
        *err = (ls_err){0};
        st = LS_OK;
        goto out;
    }
    LS_TRY(st);
    r->memory = ls_outline_memory(&x).total;
    r->unfit = limit > 0 && r->memory > limit;
    if (r->unfit)
        ls_text_fit(r->why, sizeof r->why, "takes %s a rank, more than %s",
                    ls_text_bytes((double)r->memory, takes), ls_text_bytes((double)limit, may));
    else
        check_recompute(r, w, &x);
out:
    ls_outline_release(&x);
    return st;
}
