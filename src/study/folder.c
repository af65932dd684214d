/* folder.c: the folder of a study: making it, finding out whose it is, moving it out of the way. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/replace.h"
#include "base/whole.h"
#include "study/predicted.h"
#include "study/study_internal.h"

enum { FILE_BYTES_MAX = 8 << 20 };

ls_status lsi_study_join(char path[LS_STUDY_PATH_MAX], const char *folder, const char *name, ls_err *err)
{
    const int n = snprintf(path, LS_STUDY_PATH_MAX, "%s/%s", folder, name);

    if (n >= 0 && n < LS_STUDY_PATH_MAX) return LS_OK;
    return ls_fail(err, LS_INVALID, "%.200s...: the path is too long", folder);
}

ls_status lsi_study_read(const char *path, char **bytes, size_t *n, ls_err *err)
{
    return ls_whole_plain(bytes, n, path, FILE_BYTES_MAX, err);
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static bool is_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* The folder that `path`, a folder or its study.json, means; "" when there is no study. */
static void folder_of(const char *path, char dir[LS_STUDY_PATH_MAX])
{
    char file[LS_STUDY_PATH_MAX];
    size_t n = strlen(path);
    const size_t own = sizeof LSI_STUDY_FILE - 1;

    dir[0] = '\0';
    if (lsi_study_join(file, path, LSI_STUDY_FILE, NULL) == LS_OK && is_file(file)) {
        while (n > 1 && path[n - 1] == '/') n--;
        snprintf(dir, LS_STUDY_PATH_MAX, "%.*s", (int)n, path);
    } else if (n >= own && n < LS_STUDY_PATH_MAX && strcmp(path + n - own, LSI_STUDY_FILE) == 0 &&
               is_file(path)) {
        n -= own;
        while (n > 1 && path[n - 1] == '/') n--;
        snprintf(dir, LS_STUDY_PATH_MAX, "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : ".");
    }
}

bool ls_study_is_one(const char *path)
{
    char dir[LS_STUDY_PATH_MAX];

    folder_of(path, dir);
    return dir[0] != '\0';
}

ls_status ls_study_load(ls_study *s, const char *path, ls_err *err)
{
    char dir[LS_STUDY_PATH_MAX], file[LS_STUDY_PATH_MAX];
    char *text = NULL;
    size_t n;
    ls_status st = LS_OK;

    *s = (ls_study){0};
    folder_of(path, dir);
    if (dir[0] == '\0') return ls_fail(err, LS_INVALID, "%s is no study: there is no " LSI_STUDY_FILE, path);
    LS_TRY(lsi_study_join(file, dir, LSI_STUDY_FILE, err));
    LS_TRY(lsi_study_read(file, &text, &n, err));
    st = ls_fail_in(err, ls_study_parse(s, text, n, err), "%s", file);
    snprintf(s->dir, sizeof s->dir, "%s", dir);
out:
    ls_free(text);
    return st;
}

/* -- making -----------------------------------------------------------------------------------------------
 */

static ls_status write_description(const ls_study *s, ls_err *err)
{
    char file[LS_STUDY_PATH_MAX];
    ls_text text = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_study_text(s, &text, err));
    LS_TRY(lsi_study_join(file, s->dir, LSI_STUDY_FILE, err));
    LS_TRY(ls_replace_file(file, text.data, text.length, err));
out:
    ls_text_release(&text);
    return st;
}

static ls_status make_folders(const ls_study *s, ls_err *err)
{
    static const char *const names[] = {"points", "logs"};
    char path[LS_STUDY_PATH_MAX];
    ls_status st = LS_OK;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        LS_TRY(lsi_study_join(path, s->dir, names[i], err));
        LS_TRY(ls_folders_make(path, err));
    }
out:
    return st;
}

/* DIR-before-20260102-030405: nothing that was measured is thrown away. */
static ls_status move_aside(const char *dir, char *aside, ls_err *err)
{
    char to[LS_STUDY_PATH_MAX], stamp[32];
    const time_t now = time(NULL);
    struct tm tm;
    int n = 0;

    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    do {
        const int length = n == 0 ? snprintf(to, sizeof to, "%s-before-%s", dir, stamp)
                                  : snprintf(to, sizeof to, "%s-before-%s-%d", dir, stamp, n);
        if (length >= (int)sizeof to) return ls_fail(err, LS_INVALID, "%.200s...: the path is too long", dir);
    } while (access(to, F_OK) == 0 && n++ < 100);
    if (rename(dir, to) != 0)
        return ls_fail(err, ls_folders_status(errno), "%s: cannot be renamed to %s: %s", dir, to,
                       strerror(errno));
    if (aside != NULL) snprintf(aside, LS_STUDY_PATH_MAX, "%s", to);
    return LS_OK;
}

/* What the study had before and `s` does not ask for belongs to it, too. */
static ls_status join_counts(ls_study *s, const ls_study *before, ls_err *err)
{
    int all[LS_STUDY_COUNTS_MAX], n = 0;

    for (int i = 0, k = 0; i < s->n_counts || k < before->n_counts; n++) {
        const int a = i < s->n_counts ? s->counts[i] : LS_STUDY_RANKS_MAX + 1;
        const int b = k < before->n_counts ? before->counts[k] : LS_STUDY_RANKS_MAX + 1;
        if (n == LS_STUDY_COUNTS_MAX)
            return ls_fail(err, LS_INVALID, "%s: more than %d counts in one study", s->dir,
                           LS_STUDY_COUNTS_MAX);
        all[n] = a < b ? a : b;
        if (a <= b) i++;
        if (b <= a) k++;
    }
    memcpy(s->counts, all, sizeof all[0] * (size_t)n);
    s->n_counts = n;
    if (before->repeats > s->repeats) s->repeats = before->repeats;
    return LS_OK;
}

/* A study that only shows its results does not care what goes on around it. */
static ls_status join_busy(ls_study *s, const ls_study *before, ls_err *err)
{
    ls_study_points p = {0};
    const ls_status st = ls_study_points_load(&p, s, err);

    if (before->busy > s->busy || p.n_there == s->n_counts * s->repeats) s->busy = before->busy;
    ls_study_points_release(&p);
    return st;
}

/* What was said before points were measured holds: another calibration would be another study. */
static ls_status check_predicted(const ls_study *s, ls_err *err)
{
    ls_predicted *p = s->predicted_by[0] != '\0' ? ls_alloc(LS_MEM_CLI, sizeof *p) : NULL;
    bool there;
    ls_status st = LS_OK;

    if (s->predicted_by[0] == '\0') return LS_OK;
    if (p == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    LS_TRY(ls_predicted_load(p, s, &there, err));
    if (there && strcmp(p->hash, s->predicted_by) != 0)
        st = ls_fail(
            err, LS_INVALID,
            "%s was predicted with another calibration, %s (xxh3 %s; now %s), and keeps what it has.  "
            "Leave --predict out to go on with that, or use --fresh to begin anew there (what is there "
            "is kept under another name)",
            s->dir, p->calibration, p->hash, s->predicted_by);
out:
    ls_free(p);
    return st;
}

static ls_status go_on(ls_study *s, ls_err *err)
{
    ls_study before = {0};
    ls_text text = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_study_load(&before, s->dir, err));
    if (ls_study_differences(&before, s, &text) != 0)
        st = ls_fail(err, LS_INVALID,
                     "%s holds another study (there and now): %s.  Use --fresh to begin anew there (what is "
                     "there is kept under another name), or --dir for another folder",
                     s->dir, text.data != NULL ? text.data : "");
    else
        st = check_predicted(s, err);
    if (st == LS_OK) st = join_counts(s, &before, err);
    if (st == LS_OK) st = join_busy(s, &before, err);
out:
    ls_text_release(&text);
    ls_study_release(&before);
    return st;
}

/* studies/NAME-MODE; a name with slashes is no path. */
static void default_dir(ls_study *s)
{
    snprintf(s->dir, sizeof s->dir, "studies/%.200s-%s%s", s->name, ls_study_mode_name(s->mode),
             s->train ? "-trained" : "");
    for (char *p = s->dir + sizeof "studies/" - 1; *p != '\0'; p++)
        if (*p == '/' || *p == '\n') *p = '-';
}

ls_status ls_study_open(ls_study *s, const char *dir, bool fresh, char *aside, ls_err *err)
{
    struct stat info;
    ls_status st = LS_OK;
    bool is_new;

    if (aside != NULL) aside[0] = '\0';
    if (dir == NULL)
        default_dir(s);
    else if (dir[0] == '\0' || strlen(dir) > LS_STUDY_PATH_MAX - 256)
        return ls_fail(err, LS_INVALID, "--dir: the path is empty or too long");
    else
        snprintf(s->dir, sizeof s->dir, "%s", dir);
    for (size_t n = strlen(s->dir); n > 1 && s->dir[n - 1] == '/'; n--) s->dir[n - 1] = '\0';
    is_new = !ls_study_is_one(s->dir);
    /* rmdir takes an empty folder only: one with files in it is somebody's. */
    if (is_new && stat(s->dir, &info) == 0 && (!S_ISDIR(info.st_mode) || rmdir(s->dir) != 0))
        return ls_fail(err, LS_INVALID, "%s is there and is no study; use --dir for another folder", s->dir);
    if (!is_new && fresh) {
        LS_TRY(move_aside(s->dir, aside, err));
        is_new = true;
    }
    if (!is_new) LS_TRY(go_on(s, err));
    LS_TRY(make_folders(s, err));
    LS_TRY(write_description(s, err));
out:
    return st;
}
