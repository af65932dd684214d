/* run.c: measures the points of a study, one after another, and keeps each result before the next begins.
 *
 * Requests to stop arrive by a file descriptor (signalfd), so that whoever waits for a point waits for them
 * at the same time, and no state is shared with a signal handler. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/replace.h"
#include "runs/reader.h"
#include "study/study_internal.h"

void ls_study_order(int n_counts, int repeat, int *order)
{
    /* A machine that gets warm or busier in the course of a study would else slow the same counts every time,
     * which looks like scaling. */
    /* Up, down, and each pair begins one place further on; of two counts that would be the same again. */
    const int first = n_counts > 2 ? (repeat - 1) / 2 % n_counts : 0;
    const bool down = repeat % 2 == 0;

    for (int i = 0; i < n_counts; i++) order[i] = (first + (down ? n_counts - 1 - i : i)) % n_counts;
}

/* -- commands ---------------------------------------------------------------------------------------------
 */

typedef struct words {
    const char **argv;
    int n;
    ls_arena *arena;
    bool failed;
} words;

static void add(words *w, const char *word)
{
    w->failed |= word == NULL || w->n + 1 >= LSI_ARGS_MAX;
    if (!w->failed) w->argv[w->n++] = word;
}

/* Whether the run in `dir` was stopped and can go on. */
static bool is_paused(const char *dir)
{
    char checkpoint[LS_PATH_MAX];
    ls_run_info run;
    const bool paused = ls_run_read(&run, dir, NULL) == LS_OK && run.state == LS_RUN_PAUSED &&
                        ls_run_checkpoint(dir, true, checkpoint);

    ls_run_info_release(&run);
    return paused;
}

/* Where a point trains.  A run that was stopped there goes on from its checkpoint; what any other run left
 * there is left alone, and the point takes the next name. */
static ls_status choose_run_dir(lsi_task *task, const ls_study *s, const char *name, ls_arena *arena,
                                ls_err *err)
{
    char runs[LS_STUDY_PATH_MAX], dir[LS_STUDY_PATH_MAX], next[96];
    ls_status st = LS_OK;

    LS_TRY(lsi_study_join(runs, s->dir, "runs", err));
    LS_TRY(ls_folders_make(runs, err));
    LS_TRY(lsi_study_join(dir, runs, name, err));
    for (int k = 2; access(dir, F_OK) == 0 && !(task->resumed = is_paused(dir)); k++) {
        snprintf(next, sizeof next, "%s-try-%d", name, k);
        LS_TRY(lsi_study_join(dir, runs, next, err));
    }
    task->run_dir = ls_arena_strdup(arena, dir);
    if (task->run_dir == NULL) st = ls_fail(err, LS_NOMEM, "no memory");
out:
    return st;
}

static const char no_room[] = "no memory for the command, or too many settings";

ls_status lsi_point_task(lsi_task *task, const ls_study *s, int count, int repeat, ls_arena *arena,
                         ls_err *err)
{
    words w = {.argv = task->words, .arena = arena};
    char batch[64], name[64];
    ls_status st = LS_OK;

    task->run_dir = NULL;
    task->resumed = false;
    lsi_batch_setting(s, batch);
    lsi_point_name(s, count, repeat, name);
    add(&w, s->train ? "train" : "bench");
    add(&w, s->experiment);
    for (int i = 0; i < s->n_settings; i++)
        if (!lsi_sets_batch(s->settings[i])) add(&w, s->settings[i]);
    add(&w, ls_arena_strdup(arena, batch));
    add(&w, "--device");
    add(&w, s->device);
    if (s->train) {
        LS_TRY(choose_run_dir(task, s, name, arena, err));
        add(&w, "--quiet");
    }
    if (!s->train && s->steps > 0) {
        add(&w, "--steps");
        add(&w, ls_arena_printf(arena, "%d", s->steps));
    }
    if (!s->train && s->seconds > 0) {
        add(&w, "--seconds");
        add(&w, ls_arena_printf(arena, "%.9g", s->seconds));
    }
    add(&w, "--json");
    task->n = w.n;
    if (w.failed) st = ls_fail(err, LS_NOMEM, no_room);
out:
    return st;
}

ls_status lsi_point_command(const ls_study *s, int count, int repeat, ls_arena *arena,
                            const char *argv[LSI_ARGS_MAX], ls_err *err)
{
    words w = {.argv = argv, .arena = arena};
    lsi_task task;
    ls_status st = LS_OK;

    LS_TRY(lsi_point_task(&task, s, count, repeat, arena, err));
    add(&w, "lockstep");
    for (int i = 0; i < task.n; i++) add(&w, task.words[i]);
    if (s->ranks_per_node == 0) {
        add(&w, "-n");
        add(&w, ls_arena_printf(arena, "%d", count));
    }
    add(&w, "--threads");
    add(&w, ls_arena_printf(arena, "%d", s->threads));
    if (task.run_dir != NULL)
        add(&w, ls_arena_printf(arena, "--%s=%s", task.resumed ? "resume" : "run-dir", task.run_dir));
    if (w.failed) st = ls_fail(err, LS_NOMEM, no_room);
    argv[w.n] = NULL;
out:
    return st;
}

/* -- points -----------------------------------------------------------------------------------------------
 */

typedef struct round {
    const ls_study *s;
    const ls_study_how *how;
    ls_study_job job;
    int done, all;
} round;

static void tell(const round *r, ls_study_state state, const ls_study_point *p, const char *why)
{
    const ls_study_news news = {&r->job, state, r->done, r->all, p, why};

    if (r->how->tell != NULL) r->how->tell(r->how->tell_ctx, &news);
}

static bool is_stop_asked(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* Looks at the line before it is kept: a file of a point is a result, or it is not there. */
static ls_status keep(const round *r, const ls_text *line, ls_study_point *p, ls_err *err)
{
    char path[LS_STUDY_PATH_MAX];
    ls_status st = LS_OK;

    LS_TRY(ls_study_point_parse(p, line->data != NULL ? line->data : "", line->length, err));
    LS_TRY(lsi_point_fits(r->s, r->job.count, p, err));
    LS_TRY(ls_study_point_path(r->s, r->job.count, r->job.repeat, path, err));
    LS_TRY(ls_replace_file(path, line->data, line->length, err));
out:
    return st;
}

static ls_status measure(round *r, ls_err *err)
{
    const ls_study_runner run = r->how->run != NULL ? r->how->run : ls_study_run_child;
    const char *argv[LSI_ARGS_MAX];
    char name[64], file[96], log[LS_STUDY_PATH_MAX];
    ls_study_point p;
    ls_arena *arena = NULL;
    ls_text line = {0};
    ls_status st = LS_OK;

    lsi_point_name(r->s, r->job.count, r->job.repeat, name);
    snprintf(file, sizeof file, "logs/%s.log", name);
    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    LS_TRY(lsi_point_command(r->s, r->job.count, r->job.repeat, arena, argv, err));
    LS_TRY(lsi_study_join(log, r->s->dir, file, err));
    r->job.argv = argv;
    r->job.log = log;
    tell(r, LS_STUDY_BEGUN, NULL, NULL);
    LS_TRY(run(r->how->run_ctx, &r->job, &line, err));
    st = ls_fail_in(err, keep(r, &line, &p, err), "the last line it printed is no result");
    if (st != LS_OK) goto out;
    r->done++;
    tell(r, LS_STUDY_DONE, &p, NULL);
out:
    ls_fail_in(err, st, "%d %s%s, repeat %d", r->job.count, ls_study_unit(r->s), r->job.count == 1 ? "" : "s",
               r->job.repeat);
    ls_text_release(&line);
    ls_arena_destroy(arena);
    return st;
}

static ls_status visit(round *r, ls_err *err)
{
    ls_study_point p;
    ls_err why = {0};
    bool there;
    ls_status st = lsi_point_load(r->s, r->job.count, r->job.repeat, &p, &there, &why);

    if (st == LS_OK && there) {
        r->done++;
        tell(r, LS_STUDY_KEPT, &p, NULL);
        return LS_OK;
    }
    if (st != LS_OK && st != LS_DATA) return ls_fail(err, st, "%s", why.text);
    if (st == LS_DATA) tell(r, LS_STUDY_DAMAGED, NULL, why.text);
    if (is_stop_asked(r->job.stop_fd)) return ls_fail(err, LS_CANCELLED, "stopped on request");
    return measure(r, err);
}

ls_status ls_study_run(const ls_study *s, const ls_study_how *how, ls_err *err)
{
    round r = {.s = s, .how = how, .all = s->n_counts * s->repeats, .job = {.study = s, .stop_fd = -1}};
    int order[LS_STUDY_COUNTS_MAX];
    sigset_t asked, before;
    ls_status st = LS_OK;

    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    sigprocmask(SIG_BLOCK, &asked, &before);
    r.job.stop_fd = signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r.job.stop_fd < 0) LS_TRY(ls_fail(err, LS_IO, "signalfd: %s", strerror(errno)));
    for (r.job.repeat = 1; r.job.repeat <= s->repeats; r.job.repeat++) {
        ls_study_order(s->n_counts, r.job.repeat, order);
        for (int i = 0; i < s->n_counts; i++) {
            r.job.count = s->counts[order[i]];
            r.job.ranks = ls_study_ranks(s, r.job.count);
            LS_TRY(visit(&r, err));
        }
    }
out:
    if (r.job.stop_fd >= 0) {
        /* The request was answered here: it must not end the program when it is let through. */
        struct signalfd_siginfo info;
        while (read(r.job.stop_fd, &info, sizeof info) == (ssize_t)sizeof info) continue;
        close(r.job.stop_fd);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}
