/* folder.c: lists folders. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "folder_internal.h"

bool lsi_folder_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The type as the directory has it; where that is unknown or a link, the file is asked. */
static bool is_folder(const lsi_folder *f, const struct dirent *e)
{
    char path[4096];

    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK) return e->d_type == DT_DIR;
    snprintf(path, sizeof path, "%s/%s", f->path, e->d_name);
    return lsi_folder_exists(path);
}

static ls_status add(lsi_folder *f, ls_arena *arena, size_t *room, const char *name, ls_err *err)
{
    char *copy = ls_arena_strdup(arena, name);

    if (!copy || !LS_GROW(LS_MEM_DATA, f->names, f->n + 1, *room))
        return ls_fail(err, LS_NOMEM, "%s: no memory for a list of its files", f->path);
    f->names[f->n++] = copy;
    return LS_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

ls_status lsi_folder_list(lsi_folder *f, ls_arena *arena, const char *path, lsi_folder_what what, ls_err *err)
{
    ls_status st = LS_OK;
    const struct dirent *e;
    size_t room = 0;
    DIR *dir = NULL;

    *f = (lsi_folder){.path = ls_arena_strdup(arena, path)};
    if (!f->path) return ls_fail(err, LS_NOMEM, "no memory for the name of a folder");
    dir = opendir(path);
    if (!dir)
        return ls_fail(err, LS_DATA, "%s: the folder cannot be read: %s; check the path of the data", path,
                       strerror(errno));
    while ((e = readdir(dir)) != NULL) {
        if (e->d_name[0] == '.') continue;
        bool folder = is_folder(f, e);
        if (folder && what == LSI_FOLDER_FILES) {
            st = ls_fail(err, LS_DATA, "%s/%s: is a folder where only images are expected", path, e->d_name);
            goto out;
        }
        if (folder == (what == LSI_FOLDER_FOLDERS)) LS_TRY(add(f, arena, &room, e->d_name, err));
    }
    if (f->n == 0) {
        st = ls_fail(err, LS_DATA, "%s: holds no %s; check the path and the layout of the data", path,
                     what == LSI_FOLDER_FILES ? "images" : "folders of classes");
        goto out;
    }
    qsort(f->names, (size_t)f->n, sizeof *f->names, compare);
out:
    closedir(dir);
    return st;
}

void lsi_folder_release(lsi_folder *f)
{
    ls_free(f->names);
    *f = (lsi_folder){0};
}
