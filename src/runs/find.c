/* find.c: which run is meant. */
#include <string.h>

#include "base/text.h"
#include "runs/manage.h"
#include "runs/owner_internal.h"

const char *ls_run_time_text(double t, char buf[32])
{
    lsi_time_text(t, buf);
    if (strlen(buf) > 19) buf[10] = ' ';
    buf[buf[0] != '\0' ? 19 : 0] = '\0';
    return buf;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    const size_t n = strlen(text), m = strlen(with);

    return m <= n && strcmp(text + n - m, with) == 0;
}

/* How well it fits: the directory's name, the experiment's, a part of the first. */
typedef enum fit { NO, PART, EXPERIMENT, WHOLE } fit;

static fit fit_of(const ls_run_info *i, const char *given)
{
    if (strcmp(i->folder, given) == 0) return WHOLE;
    if (strcmp(i->name, given) == 0) return EXPERIMENT;
    return begins(i->folder, given) || ends(i->folder, given) ? PART : NO;
}

static ls_status none(const ls_runs *list, const char *given, const char *folder, ls_err *err)
{
    return ls_fail(
        err, LS_INVALID, "there is no run \"%.200s\"%s%s/%s", given, list->n > 0 ? " in " : ": ", folder,
        list->n > 0 ? "; `lockstep runs list` shows them" : " holds no run; `lockstep train` makes one");
}

static ls_status several(const ls_runs *list, const char *given, fit best, int n, ls_err *err)
{
    ls_text names = {0};
    int shown = 0;

    for (int k = 0; k < list->n && shown < 4; k++) {
        if (fit_of(&list->items[k], given) != best) continue;
        ls_text_add(&names, "%s%s", shown++ > 0 ? ", " : "", list->items[k].folder);
    }
    ls_fail(err, LS_INVALID, "\"%.100s\" may be any of %d runs: %.600s%s; write more of the name, or `last`",
            given, n, names.data != NULL ? names.data : "", n > shown ? ", ..." : "");
    ls_text_release(&names);
    return LS_INVALID;
}

ls_status ls_run_find(char path[LS_PATH_MAX], const char *given, const char *folder, ls_err *err)
{
    ls_runs list = {0};
    fit best = NO;
    ls_status st = LS_OK;
    int n = 0, at = -1;

    path[0] = '\0';
    if (given[0] == '\0') return ls_fail(err, LS_INVALID, "a run's name is empty");
    if (strcmp(given, "last") != 0 && strlen(given) < LS_PATH_MAX && ls_run_is_one(given)) {
        memcpy(path, given, strlen(given) + 1);
        return LS_OK;
    }
    LS_TRY(ls_runs_scan(&list, folder, err));
    for (int k = 0; k < list.n; k++) {
        const fit f = strcmp(given, "last") == 0 ? (k == 0 ? WHOLE : NO) : fit_of(&list.items[k], given);
        if (f == NO || f < best) continue;
        n = f > best ? 1 : n + 1;
        if (f > best) at = k;
        best = f;
    }
    if (n == 1)
        memcpy(path, list.items[at].path, LS_PATH_MAX);
    else
        st = n == 0 ? none(&list, given, folder, err) : several(&list, given, best, n, err);
out:
    ls_runs_release(&list);
    return st;
}
