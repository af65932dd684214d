/* folder.c: lists folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "data_internal.h"
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

bool lsi_is_image(const uint8_t *bytes, size_t n)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, jpeg[3] = {0xff, 0xd8, 0xff};

    return (n > sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0) ||
           (n > sizeof png && memcmp(bytes, png, sizeof png) == 0);
}

/* Whether a file is meant as an image: by its ending, or else by its first bytes, so that one by an odd name
 * counts and notes.txt does not.  Only the latter are opened: a folder may hold millions. */
static bool is_image(const lsi_folder *f, const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"};
    const char *dot = strrchr(name, '.');
    uint8_t start[16];
    char path[4096 + 512];
    ssize_t n = 0;

    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    n = read(fd, start, sizeof start);
    close(fd);
    return n > 0 && lsi_is_image(start, (size_t)n);
}

static ls_status add(lsi_folder *f, ls_arena *arena, size_t *room, const char *name, ls_err *err)
{
    char *copy = ls_arena_strdup(arena, name);

    if (!copy || !LS_GROW(LS_MEM_DATA, f->names, f->n + 1, *room))
        return ls_fail(err, LS_NOMEM, "%s: no memory for a list of its files", f->path);
    f->names[f->n++] = copy;
    return LS_OK;
}

/* The first by name is kept, so that every rank says the same. */
static ls_status leave_out(lsi_folder *f, ls_arena *arena, const char *name, ls_err *err)
{
    f->n_others++;
    if (f->other && strcmp(f->other, name) <= 0) return LS_OK;
    f->other = ls_arena_strdup(arena, name);
    return f->other ? LS_OK : ls_fail(err, LS_NOMEM, "%s: no memory for a list of its files", f->path);
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
    if (!dir && errno == ENOENT)
        return ls_fail(err, LS_DATA, "%s: " LSI_MISSING " or folder; check the path of the data", path);
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
        if (folder != (what == LSI_FOLDER_FOLDERS)) continue;
        if (folder || is_image(f, e->d_name))
            LS_TRY(add(f, arena, &room, e->d_name, err));
        else
            LS_TRY(leave_out(f, arena, e->d_name, err));
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
