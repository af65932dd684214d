/* folders.c: mkdir -p. */
#include "base/folders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static ls_status make_one(const char *path, ls_err *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return LS_OK;
    return ls_fail(err, ls_folders_status(errno), "%s: the folder cannot be made: %s%s", path,
                   strerror(errno),
                   ls_folders_status(errno) == LS_INVALID ? "; name one where you may write" : "");
}

ls_status ls_folders_status(int number)
{
    return number == EACCES || number == EPERM || number == EROFS || number == ENOENT || number == ENOTDIR
               ? LS_INVALID
               : LS_IO;
}

ls_status ls_folders_make(const char *path, ls_err *err)
{
    char text[4096];
    ls_status st = LS_OK;

    snprintf(text, sizeof text, "%s", path);
    for (char *p = text; *p != '\0'; p++) {
        if (*p != '/' || p == text) continue;
        *p = '\0';
        LS_TRY(make_one(text, err));
        *p = '/';
    }
    LS_TRY(make_one(text, err));
out:
    return st;
}
