/* newest.c: which checkpoint of a folder to go on from, or to take in the place of a damaged one. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ckpt/ckpt_internal.h"

/* The largest step below `limit` that `folder` has a checkpoint of; -1: none. */
static ls_status newest_below(const char *folder, int64_t limit, int64_t *step, ls_err *err)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    *step = -1;
    if (d == NULL) return ls_fail(err, LS_DATA, "%s: cannot be read: %s", folder, strerror(errno));
    while ((e = readdir(d)) != NULL) {
        int64_t s = ls_ckpt_step_of(e->d_name);
        if (s > *step && s < limit) *step = s;
    }
    closedir(d);
    return LS_OK;
}

ls_status ls_ckpt_find_newest(const char *folder, char *path, size_t size, ls_err *err)
{
    char name[LS_CKPT_NAME];
    ls_err first = {0};
    int64_t step = INT64_MAX;
    ls_status st = LS_OK;

    for (;;) {
        ls_err why = {0};
        int bad;
        LS_TRY(newest_below(folder, step, &step, err));
        if (step < 0) break;
        LS_TRY(lsi_io_join(path, size, folder, ls_ckpt_name(step, name), err));
        st = ls_ckpt_verify(path, &bad, NULL, NULL, &why);
        if (st != LS_DATA) return st == LS_OK ? st : ls_fail(err, st, "%s", why.text);
        ls_log(LS_LOG_WARN, "%s; an older checkpoint is taken if there is one", why.text);
        ls_fail(&first, st, "%s", why.text);
    }
    st =
        ls_fail(err, LS_DATA,
                "%s: there is no whole checkpoint%s%s; put a copy of one in its place, or remove that folder "
                "to begin from the beginning",
                folder, first.text[0] != '\0' ? ": " : "", first.text);
out:
    return st;
}

/* Whether both names lead to one directory. */
static bool is_same(const char *a, const char *b)
{
    char one[PATH_MAX], other[PATH_MAX];

    return realpath(a, one) != NULL && realpath(b, other) != NULL && strcmp(one, other) == 0;
}

/* The newest whole checkpoint beside the one in `dir`. */
static bool find_other(const char *dir, char path[LSI_PATH])
{
    char folder[LSI_PATH], name[LS_CKPT_NAME];
    int64_t step = INT64_MAX;
    int bad;

    lsi_io_parent(dir, folder, sizeof folder);
    while (newest_below(folder, step, &step, NULL) == LS_OK && step >= 0) {
        if (lsi_io_join(path, LSI_PATH, folder, ls_ckpt_name(step, name), NULL) != LS_OK) return false;
        if (!is_same(path, dir) && ls_ckpt_verify(path, &bad, NULL, NULL, NULL) == LS_OK) return true;
    }
    return false;
}

void ls_ckpt_remedy(const char *dir, char *text, size_t size)
{
    char other[LSI_PATH];

    if (find_other(dir, other))
        snprintf(text, size, "take %s, which is whole, or put a copy of this one in its place", other);
    else
        snprintf(text, size, "put a copy of it in its place: there is no whole checkpoint beside it");
}

ls_status lsi_advise(ls_status st, ls_err *err, const char *remedy)
{
    const size_t n = err != NULL ? strlen(err->text) : 0;

    if (st == LS_DATA && err != NULL) snprintf(err->text + n, sizeof err->text - n, "; %s", remedy);
    return st;
}

ls_status ls_ckpt_advise(const char *dir, ls_status st, ls_err *err)
{
    char text[LSI_PATH + 128];

    if (st != LS_DATA || err == NULL) return st; /* to look for another one takes time */
    ls_ckpt_remedy(dir, text, sizeof text);
    return lsi_advise(st, err, text);
}
