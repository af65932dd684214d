/* scan.c: all runs of a folder, the newest first. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "runs/reader.h"
#include "runs/run_internal.h"

/* By content, then by name, so that the order is always the same. */
static int newest_first(const void *a, const void *b)
{
    const ls_run_info *x = a, *y = b;
    const double tx = isfinite(x->opened) ? x->opened : 0, ty = isfinite(y->opened) ? y->opened : 0;

    if (tx != ty) return tx < ty ? 1 : -1;
    return strcmp(y->folder, x->folder);
}

ls_status ls_runs_scan(ls_runs *list, const char *folder, ls_err *err)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    ls_status st = LS_OK;

    *list = (ls_runs){0};
    if (d == NULL && errno == ENOENT) return LS_OK;
    if (d == NULL) return ls_fail(err, LS_IO, "%s: %s", folder, strerror(errno));
    while ((e = readdir(d)) != NULL) {
        char path[LS_PATH_MAX];
        if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN))
            continue;
        if (lsi_run_path(path, folder, e->d_name, NULL) != LS_OK) continue;
        if (!LS_GROW(LS_MEM_CLI, list->items, list->n + 1, list->capacity)) {
            st = ls_fail(err, LS_NOMEM, "no memory for a list of runs");
            goto out;
        }
        ls_err why = {0};
        if (ls_run_read(&list->items[list->n], path, &why) == LS_OK) {
            list->n++;
            continue;
        }
        ls_run_info_release(&list->items[list->n]);
        if (why.status == LS_NOMEM) LS_TRY(ls_fail(err, LS_NOMEM, "%s", why.text));
    }
    if (list->n > 1) qsort(list->items, (size_t)list->n, sizeof *list->items, newest_first);
out:
    closedir(d);
    return st;
}

void ls_runs_release(ls_runs *list)
{
    for (int i = 0; i < list->n; i++) ls_run_info_release(&list->items[i]);
    ls_free(list->items);
    *list = (ls_runs){0};
}

ls_status ls_runs_newest(char path[LS_PATH_MAX], const char *folder, const char *name, ls_err *err)
{
    ls_runs list;
    ls_status st = LS_OK;

    path[0] = '\0';
    LS_TRY(ls_runs_scan(&list, folder, err));
    for (int i = 0; i < list.n && path[0] == '\0'; i++)
        if (name == NULL || strcmp(list.items[i].name, name) == 0)
            memcpy(path, list.items[i].path, sizeof list.items[i].path);
    if (path[0] == '\0')
        st =
            ls_fail(err, LS_INVALID, "there is no run%s%s%s under %s/ to resume; name it: --resume=DIRECTORY",
                    name != NULL ? " of \"" : "", name != NULL ? name : "", name != NULL ? "\"" : "", folder);
out:
    ls_runs_release(&list);
    return st;
}
