/* rundir.c: making and finding run directories. */
#include "train/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/json.h"

static ls_status set_paths(ls_rundir *r, ls_err *err)
{
    if (snprintf(r->checkpoints, sizeof r->checkpoints, "%s/checkpoints", r->path) >=
        (int)sizeof r->checkpoints)
        return ls_fail(err, LS_INVALID, "the run directory's path is longer than %d bytes", LS_PATH_MAX);
    return LS_OK;
}

void ls_rundir_name(ls_rundir *r, const char *name)
{
    char stamp[32];
    unsigned short salt = 0;
    time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt) salt = (unsigned short)getpid();
    snprintf(r->path, sizeof r->path, "runs/%s-%s-%04x", name, stamp, salt);
}

ls_status ls_rundir_join(ls_rundir *r, ls_err *err)
{
    ls_status st = set_paths(r, err);

    return st == LS_OK ? ls_folders_make(r->path, err) : st;
}

ls_status ls_rundir_create(ls_rundir *r, const char *name, const char *path, ls_err *err)
{
    ls_status st = LS_OK;

    if (path != NULL)
        snprintf(r->path, sizeof r->path, "%s", path);
    else
        ls_rundir_name(r, name);
    LS_TRY(set_paths(r, err));
    LS_TRY(ls_folders_make(r->checkpoints, err));
out:
    return st;
}

ls_status ls_rundir_find(ls_rundir *r, const char *name, const char *path, ls_err *err)
{
    const size_t n = strlen(name);
    struct stat info;
    struct dirent *e;
    DIR *d;

    r->path[0] = '\0';
    if (path != NULL) {
        snprintf(r->path, sizeof r->path, "%s", path);
        if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
            return ls_fail(err, LS_INVALID, "%s is no run directory", path);
        return set_paths(r, err);
    }
    d = opendir("runs");
    while (d != NULL && (e = readdir(d)) != NULL) {
        char at[LS_PATH_MAX];
        /* Names end in their time, so the last in the alphabet is the newest; the salt has 5 characters. */
        if (strncmp(e->d_name, name, n) != 0 || e->d_name[n] != '-' || strlen(e->d_name) != n + 21) continue;
        snprintf(at, sizeof at, "runs/%s", e->d_name);
        if (strcmp(at, r->path) > 0) snprintf(r->path, sizeof r->path, "%s", at);
    }
    if (d != NULL) closedir(d);
    if (r->path[0] == '\0')
        return ls_fail(err, LS_INVALID,
                       "there is no run of \"%s\" under runs/ to resume; name it: --resume DIRECTORY", name);
    return set_paths(r, err);
}

ls_status ls_rundir_write_summary(const ls_rundir *r, const json_t *summary, ls_err *err)
{
    char path[LS_PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/summary.json", r->path);
    return ls_json_write(path, summary, err);
}
