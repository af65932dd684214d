/* fault.c: the list of overflows. */
#include "train/fault.h"

#include <stdlib.h>

/* One "STEP@RANK" at *at, which moves behind it and its comma. */
static bool next(const char **at, long long *step, long long *rank)
{
    char *end;

    *step = strtoll(*at, &end, 10);
    if (end == *at || *end != '@' || *step < 1) return false;
    *at = end + 1;
    *rank = strtoll(*at, &end, 10);
    if (end == *at || *rank < 0 || (*end != ',' && *end != '\0')) return false;
    *at = *end == ',' ? end + 1 : end;
    return true;
}

ls_status ls_fault_overflows(const char **list, ls_err *err)
{
    const char *text = getenv(LS_FAULT_OVERFLOW);
    long long step, rank;

    *list = text != NULL && text[0] != '\0' ? text : NULL;
    for (const char *at = text; at != NULL && *at != '\0';) {
        const char *here = at;
        if (!next(&at, &step, &rank))
            return ls_fail(err, LS_INVALID,
                           LS_FAULT_OVERFLOW
                           "=%.200s: at \"%.40s\" is no STEP@RANK, such as 3@0 (steps count "
                           "from 1)",
                           text, here);
    }
    return LS_OK;
}

int64_t ls_fault_last_rank(const char *list)
{
    long long step, rank, last = -1;

    for (const char *at = list; at != NULL && *at != '\0' && next(&at, &step, &rank);)
        if (rank > last) last = rank;
    return last;
}

bool ls_fault_is_listed(const char *list, int64_t step, int rank)
{
    long long a, b;

    for (const char *at = list; at != NULL && *at != '\0';) {
        if (!next(&at, &a, &b)) return false;
        if (a == step && b == rank) return true;
    }
    return false;
}
