/* runs_end.c: `lockstep runs stop` and `lockstep runs rm`. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "grid.h"
#include "runs.h"

/* -- stop -------------------------------------------------------------------------------------------------
 */

/* Once: a stopped process obeys nobody, and whoever waits for it does not see why. */
static void warn_if_stopped(const ls_run_info *i, bool *warned)
{
    if (*warned || !ls_run_is_stopped(i)) return;
    *warned = true;
    ls_log(LS_LOG_WARN,
           "%s: process %lld does not answer because it is stopped (state T); continue it with kill -CONT "
           "%lld, and it writes its checkpoint and ends",
           i->path, (long long)i->owner.pid, (long long)i->owner.pid);
}

static ls_status give_up(const ls_run_info *i, double limit_s, ls_err *err)
{
    const long long pid = (long long)i->owner.pid;

    if (ls_run_is_stopped(i))
        return ls_fail(err, LS_TIMEOUT,
                       "%s has not ended within %g s: process %lld is stopped (state T); kill -CONT %lld "
                       "continues it, and it ends as it was asked",
                       i->path, limit_s, pid, pid);
    return ls_fail(err, LS_TIMEOUT,
                   "%s has not ended within %g s (process %lld); asked once more, it ends at once and keeps "
                   "its last checkpoint",
                   i->path, limit_s, pid);
}

/* Until its owner is gone, or the time is over.  *i is read anew. */
static ls_status wait_for_end(ls_run_info *i, double limit_s, ls_err *err)
{
    const double begin = ls_clock_seconds();
    char path[LS_PATH_MAX];
    bool warned = false;
    ls_status st = LS_OK;

    memcpy(path, i->path, sizeof path);
    while (i->alive) {
        if (ls_clock_seconds() - begin > limit_s) return give_up(i, limit_s, err);
        warn_if_stopped(i, &warned);
        nanosleep(&(struct timespec){0, 100 * 1000 * 1000}, NULL);
        ls_run_info_release(i);
        LS_TRY(ls_run_read(i, path, err));
    }
out:
    return st;
}

static ls_status stop_one(const char *path, const cli_args *args, ls_err *err)
{
    ls_run_info i;
    bool asked = false;
    char buf[LS_PATH_MAX], state[160];
    ls_status st = LS_OK;

    LS_TRY(ls_run_read(&i, path, err));
    LS_TRY(ls_run_ask_to_end(&i, &asked, err));
    if (asked && !args->json) {
        printf("%s: asked process %lld to write a checkpoint and end\n", grid_shown(path, buf, sizeof buf),
               (long long)i.owner.pid);
        ls_output_flush();
    }
    LS_TRY(wait_for_end(&i, args->timeout > 0 ? args->timeout : 600, err));
    runs_state_text(&i, state, sizeof state);
    if (args->json)
        cli_print_json_take(json_pack("{s:s, s:o, s:b, s:s}", "event", "stop", "run", runs_text_json(path),
                                      "asked", asked, "state", ls_run_state_name(i.state)));
    else
        printf("%s: %s%s\n", grid_shown(path, buf, sizeof buf), asked ? "" : "was over before: ", state);
out:
    ls_run_info_release(&i);
    return st;
}

int runs_stop(const cli_args *args)
{
    char path[LS_PATH_MAX];
    int code = CLI_DONE;

    for (int k = 0; k < args->n_settings; k++) {
        ls_err err = {0};
        ls_status st = runs_find(path, args, k, &err);
        if (st == LS_OK) st = stop_one(path, args, &err);
        if (st == LS_OK) continue;
        const int failed = cli_fail("runs", &err);
        if (code == CLI_DONE) code = failed;
    }
    return code;
}

/* -- rm ---------------------------------------------------------------------------------------------------
 */

/* All that is to go, by its path: `last` means another run once the first is gone. */
typedef struct doomed {
    char (*paths)[LS_PATH_MAX];
    int n;
} doomed;

/* Whether the last path is an earlier one, written otherwise. */
static bool is_again(const doomed *d)
{
    struct stat last, other;

    if (lstat(d->paths[d->n - 1], &last) != 0) return false;
    for (int k = 0; k + 1 < d->n; k++)
        if (lstat(d->paths[k], &other) == 0 && other.st_dev == last.st_dev && other.st_ino == last.st_ino)
            return true;
    return false;
}

/* Refuses before anything is removed: of several runs all go, or none. */
static ls_status choose(doomed *d, const cli_args *args, ls_err *err)
{
    ls_run_info i = {0};
    char word[LS_PATH_MAX];
    ls_status st = LS_OK;

    d->paths = ls_alloc(LS_MEM_CLI, (size_t)args->n_settings * sizeof *d->paths);
    if (d->paths == NULL) return ls_fail(err, LS_NOMEM, "no memory for the names of runs");
    for (int k = 0; k < args->n_settings; k++) {
        char *path = d->paths[d->n++];
        LS_TRY(runs_find(path, args, k, err));
        if (is_again(d)) {
            d->n--;
            continue;
        }
        ls_run_info_release(&i);
        LS_TRY(ls_run_read(&i, path, err));
        if (i.alive) {
            st = ls_fail(err, LS_INVALID,
                         "%s is running (process %lld on %s); end it first: lockstep runs stop %s", path,
                         (long long)i.owner.pid, i.owner.host, ls_text_quoted(path, word, sizeof word));
            goto out;
        }
        LS_TRY(ls_run_remove_check(path, err));
    }
out:
    ls_run_info_release(&i);
    return st;
}

/* A script that forgot --yes must not remove anything, and not wait for an answer either. */
static ls_status ask(const doomed *d, bool *yes, ls_err *err)
{
    char buf[LS_PATH_MAX], answer[16] = "";

    if (*yes) return LS_OK;
    if (isatty(STDIN_FILENO) != 1)
        return ls_fail(err, LS_INVALID, "nobody is here to be asked; --yes removes without");
    for (int k = 0; k < d->n; k++) fprintf(stderr, "  %s\n", grid_shown(d->paths[k], buf, sizeof buf));
    fprintf(stderr, "remove %s, with all checkpoints? [y/N] ", d->n == 1 ? "this run" : "these runs");
    *yes = fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
    return LS_OK;
}

int runs_rm(const cli_args *args)
{
    char buf[LS_PATH_MAX];
    json_t *removed = json_array();
    doomed d = {0};
    bool yes = args->yes;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(choose(&d, args, &err));
    LS_TRY(ask(&d, &yes, &err));
    for (int k = 0; k < d.n && yes; k++) {
        LS_TRY(ls_run_remove(d.paths[k], &err));
        json_array_append_new(removed, runs_text_json(d.paths[k]));
        if (!args->json) printf("removed %s\n", grid_shown(d.paths[k], buf, sizeof buf));
    }
    if (args->json) cli_print_json_take(json_pack("{s:s, s:O}", "event", "rm", "removed", removed));
out:
    json_decref(removed);
    ls_free(d.paths);
    return st == LS_OK ? CLI_DONE : cli_fail("runs", &err);
}
