/* counts.c: words of several commands that name several of something: numbers of ranks, strategies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "train/alternatives.h"

enum { RANKS_MAX = 1000000 };

static ls_status bad_counts(const char *option, const char *text, ls_err *err)
{
    return ls_fail(err, LS_INVALID,
                   "%s %s: expected numbers of ranks from 1 to %d, such as 4, or several, 1,2,4 or 1..1024, "
                   "which doubles",
                   option, text, RANKS_MAX);
}

static bool is_among(const int *counts, int n, int count)
{
    for (int i = 0; i < n; i++)
        if (counts[i] == count) return true;
    return false;
}

ls_status cli_counts(const char *option, const char *text, int *counts, int most, int *n, ls_err *err)
{
    const char *at = text;

    *n = 0;
    for (;;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        bool ok = at[0] >= '0' && at[0] <= '9' && first >= 1;
        if (ok && strncmp(end, "..", 2) == 0) {
            at = end + 2;
            ok = at[0] >= '0' && at[0] <= '9';
            last = strtol(at, &end, 10);
        }
        if (!ok || last < first || last > RANKS_MAX || (*end != ',' && *end != '\0'))
            return bad_counts(option, text, err);
        for (long k = first;; k = k * 2 < last ? k * 2 : last) {
            if (*n == most && !is_among(counts, *n, (int)k))
                return ls_fail(err, LS_INVALID, "%s %s: more than %d numbers", option, text, most);
            if (!is_among(counts, *n, (int)k)) counts[(*n)++] = (int)k;
            if (k == last) break;
        }
        if (*end == '\0') return LS_OK;
        at = end + 1;
    }
}

ls_status cli_strategies(ls_config *cfg, const char *wanted, char *out, size_t size, ls_err *err)
{
    const char *all = ls_alternative_strategies(cfg), *list = all;
    char name[32];

    if (wanted == NULL) wanted = ls_config_choice(cfg, "parallel.strategy");
    snprintf(out, size, "%s", strcmp(wanted, "all") == 0 ? all : wanted);
    if (strcmp(wanted, "all") == 0) return LS_OK;
    while (ls_alternative_next(&list, name, sizeof name))
        if (strcmp(name, wanted) == 0) return LS_OK;
    return ls_fail(err, LS_INVALID, "--strategy %s: expected all, or one of: %s", wanted, all);
}
