/* newest.c: which checkpoint of a folder to go on from. */
#include <dirent.h>
#include <errno.h>
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
    st = ls_fail(err, LS_DATA, "%s: there is no whole checkpoint%s%s", folder,
                 first.text[0] != '\0' ? ": " : "", first.text);
out:
    return st;
}
