/* shape.c: logical shapes. */
#include <stdio.h>
#include <string.h>

#include "lockstep/tensor.h"

ls_shape ls_shape_make(int rank, const int64_t *dim)
{
    LS_BUG_IF(rank < 0 || rank > LS_MAX_RANK);
    ls_shape s = {.rank = rank};
    if (rank > 0) memcpy(s.dim, dim, (size_t)rank * sizeof *dim);
    return s;
}

int64_t ls_shape_count(ls_shape s)
{
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    return n;
}

bool ls_shape_valid(ls_shape s)
{
    if (s.rank < 0 || s.rank > LS_MAX_RANK) return false;
    int64_t bytes = 8;
    for (int i = 0; i < s.rank; i++) {
        if (s.dim[i] < 0) return false;
        if (s.dim[i] > 0 && __builtin_mul_overflow(bytes, s.dim[i], &bytes)) return false;
    }
    return true;
}

bool ls_shape_equal(ls_shape a, ls_shape b)
{
    return a.rank == b.rank && memcmp(a.dim, b.dim, (size_t)a.rank * sizeof *a.dim) == 0;
}

const char *ls_shape_text(ls_shape s, char *buf)
{
    /* Six dimensions of at most 20 characters with separators fit in LS_SHAPE_TEXT. */
    int n = snprintf(buf, LS_SHAPE_TEXT, "(");
    for (int i = 0; i < s.rank; i++) {
        n += snprintf(buf + n, (size_t)(LS_SHAPE_TEXT - n), "%s%lld", i ? ", " : "", (long long)s.dim[i]);
    }
    /* (5,) as in Python, so that a vector is not taken for a number in brackets. */
    snprintf(buf + n, (size_t)(LS_SHAPE_TEXT - n), s.rank == 1 ? ",)" : ")");
    return buf;
}

bool ls_shape_broadcast(ls_shape a, ls_shape b, ls_shape *out)
{
    ls_shape r = {.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int i = 1; i <= r.rank; i++) { /* counted from the last dimension */
        int64_t x = i <= a.rank ? a.dim[a.rank - i] : 1;
        int64_t y = i <= b.rank ? b.dim[b.rank - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        r.dim[r.rank - i] = x == 1 ? y : x;
    }
    *out = r;
    return true;
}
