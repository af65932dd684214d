/* found.c: reports of guarded steps. */
#include "train/found.h"

#include <math.h>
#include <stdio.h>

#include "exec/results.h"
#include "ops/macros.h"

ls_status ls_found_read(ls_found *out, ls_plan *p, uint64_t run, ls_err *err)
{
    const ls_tensor *report = ls_plan_fetch(p, LS_GUARD_REPORT_NAME),
                    *ranks = ls_plan_fetch(p, LS_GUARD_RANK);
    float x[LS_RESCALE_REPORT];
    ls_status st = LS_OK;

    *out = (ls_found){0};
    if (report == NULL) return LS_OK;
    LS_TRY(ls_plan_result(p, report, run, x, sizeof x, err));
    out->parameter = (int64_t)x[LS_REPORT_FOUND];
    out->scale = (double)x[LS_REPORT_SCALE];
    if (ranks == NULL) return LS_OK;
    LS_TRY(ls_plan_result(p, ranks, run, out->rank, sizeof out->rank, err));
    out->by_rank = true;
out:
    return st;
}

void ls_found_mark(ls_plan *p, int rank)
{
    float slot[LS_GUARD_SLOTS] = {0};

    if (ls_plan_input(p, LS_GUARD_RANK) == NULL) return;
    if (rank >= 0 && rank < LS_FOUND_RANKS) slot[rank % LS_GUARD_SLOTS] = ldexpf(1, rank / LS_GUARD_SLOTS);
    ls_plan_write_input(p, LS_GUARD_RANK, 0, slot, sizeof slot);
}

bool ls_found_on(const ls_found *f, int rank)
{
    return f->by_rank && rank < LS_FOUND_RANKS &&
           ((int)f->rank[rank % LS_GUARD_SLOTS] >> rank / LS_GUARD_SLOTS & 1) != 0;
}

/* "on rank 2 of 4", "on ranks 0, 1 and 3 of 4", "in the sum over 4 ranks". */
static void name_ranks(const ls_found *f, int ranks, char *buf, size_t size)
{
    size_t at = 0;
    int n = 0, named = 0;

    buf[0] = '\0';
    if (!f->by_rank || ranks > LS_FOUND_RANKS) return;
    for (int i = 0; i < ranks; i++) n += ls_found_on(f, i);
    if (n == 0) {
        snprintf(buf, size, " in the sum over %d ranks, of which each is finite", ranks);
        return;
    }
    at += (size_t)snprintf(buf, size, " on rank%s ", n > 1 ? "s" : "");
    for (int i = 0; i < ranks && at < size; i++) {
        if (!ls_found_on(f, i)) continue;
        at += (size_t)snprintf(buf + at, size - at, "%s%d",
                               named == 0      ? ""
                               : named + 1 < n ? ", "
                                               : " and ",
                               i);
        named++;
    }
    if (at < size) snprintf(buf + at, size - at, " of %d", ranks);
}

const char *ls_found_text(const ls_found *f, const ls_graph *record, int ranks, char *buf, size_t size)
{
    const char *name = ls_update_parameter(record, f->parameter - 1);
    char where[512];

    name_ranks(f, ranks, where, sizeof where);
    if (name != NULL)
        snprintf(buf, size, "the gradient of \"%s\" is not finite%s", name, where);
    else
        snprintf(buf, size, "a gradient is not finite%s", where);
    return buf;
}
