/* The folder of a launcher: gone at its end, taken away after a kill, and safe when many launchers begin at
 * once, each of which looks for stale ones. */
#include "launch/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char tmp[] = "/tmp/ls-folder-XXXXXX";

static int count_folders(void)
{
    DIR *dir = opendir(tmp);
    const struct dirent *e;
    int n = 0;

    REQUIRE(dir != NULL);
    while ((e = readdir(dir)) != NULL) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* A process that makes `count` folders in turn and sees each of them stay; its exit status says whether. */
static pid_t make_many(int count)
{
    const pid_t pid = fork();

    if (pid != 0) return pid;
    for (int k = 0; k < count; k++) {
        lsi_folder f = {.lock = -1};
        ls_err err = {0};
        if (lsi_folder_make(&f, &err) != LS_OK) {
            fprintf(stderr, "folder %d: %s\n", k, err.text);
            _exit(1);
        }
        if (access(f.path, R_OK | W_OK | X_OK) != 0) {
            fprintf(stderr, "folder %d: %s has been removed\n", k, f.path);
            _exit(2);
        }
        lsi_folder_remove(&f);
    }
    _exit(0);
}

static void many_begin_at_once(void)
{
    enum { PROCESSES = 8, FOLDERS = 300 };
    pid_t pids[PROCESSES];

    for (int i = 0; i < PROCESSES; i++) pids[i] = make_many(FOLDERS);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        CHECK(waitpid(pids[i], &status, 0) == pids[i]);
        CHECK_EQ_INT(status, 0);
    }
    CHECK_EQ_INT(count_folders(), 0);
}

static void what_the_killed_leave_is_removed(void)
{
    const pid_t pid = fork();

    if (pid == 0) {
        lsi_folder f = {.lock = -1};
        _exit(lsi_folder_make(&f, NULL) == LS_OK ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ_INT(status, 0);
    CHECK_EQ_INT(count_folders(), 1);

    lsi_folder f = {.lock = -1};
    ls_err err = {0};
    CHECK_OK(lsi_folder_make(&f, &err), &err);
    CHECK_EQ_INT(count_folders(), 1);
    CHECK(access(f.path, F_OK) == 0);
    lsi_folder_remove(&f);
    CHECK_EQ_INT(count_folders(), 0);
}

static void touch(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    REQUIRE(fd >= 0);
    close(fd);
}

static bool is_there(const char *folder, const char *name)
{
    char path[256];
    struct stat about;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &about) == 0;
}

/* In a folder that all may write to, names say nothing: neither a link nor somebody else's folder is followed
 * or removed, and a link inside one's own is removed, not what it leads to. */
static void only_own_folders_are_removed(void)
{
    char outside[] = "/tmp/ls-outside-XXXXXX", mine[128], theirs[128], link[128], inner[192];
    lsi_folder f = {.lock = -1};
    ls_err err = {0};

    REQUIRE(mkdtemp(outside) != NULL);
    touch(outside, "kept");
    snprintf(mine, sizeof mine, "%s/lockstep-run-mine00", tmp);
    snprintf(theirs, sizeof theirs, "%s/lockstep-run-theirs", tmp);
    snprintf(link, sizeof link, "%s/lockstep-run-link00", tmp);
    REQUIRE(mkdir(mine, 0700) == 0 && mkdir(theirs, 0777) == 0 && symlink(outside, link) == 0);
    snprintf(inner, sizeof inner, "%s/inner", mine);
    REQUIRE(mkdir(inner, 0700) == 0);
    touch(inner, "file");
    snprintf(inner, sizeof inner, "%s/inner/away", mine);
    REQUIRE(symlink(outside, inner) == 0);
    touch(theirs, "kept");
    const bool foreign = chown(theirs, 65534, 65534) == 0; /* only root may give it away */

    CHECK_OK(lsi_folder_make(&f, &err), &err);
    lsi_folder_remove(&f);
    CHECK(!is_there(tmp, "lockstep-run-mine00"));
    CHECK(is_there(tmp, "lockstep-run-link00"));
    CHECK(is_there(outside, "kept"));
    CHECK(!foreign || is_there(theirs, "kept"));

    unlink(link);
    snprintf(inner, sizeof inner, "%s/kept", theirs);
    unlink(inner);
    rmdir(theirs);
    snprintf(inner, sizeof inner, "%s/kept", outside);
    unlink(inner);
    rmdir(outside);
}

int main(void)
{
    REQUIRE(mkdtemp(tmp) != NULL);
    REQUIRE(setenv("TMPDIR", tmp, 1) == 0);
    CHECK_RUN(what_the_killed_leave_is_removed);
    CHECK_RUN(only_own_folders_are_removed);
    CHECK_RUN(many_begin_at_once);
    rmdir(tmp);
    return CHECK_DONE();
}
