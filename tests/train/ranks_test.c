/* ranks_test.c: experiments on forked ranks. */
#include "ranks_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "comm/comm.h"
#include "train/train.h"

/* Leaves the error where the test finds it, or shows it. */
static void tell(const ranks_job *j, int rank, const ls_err *err)
{
    char path[512];
    FILE *f = NULL;

    snprintf(path, sizeof path, "%s/%s.%d", j->folder, j->name, rank);
    if (j->odd != NULL) f = fopen(path, "w");
    fprintf(f != NULL ? f : stderr, "rank %d: %s\n", rank, err->text);
    if (f != NULL) fclose(f);
}

static int rank_main(const ranks_job *j, ls_comm *comm, int rank)
{
    const char *settings[RANKS_SETTINGS + 2];
    char run[256], ranks[32];
    ls_train_options o = {
        .threads = j->threads > 0 ? j->threads : 1, .comm = comm, .resume = j->resume, .quiet = true};
    ls_experiment x = {0};
    json_t *summary = NULL;
    bool stopped;
    int n = 0;
    ls_err err = {0};
    ls_status st;

    snprintf(run, sizeof run, "%s/%s", j->folder, j->name);
    snprintf(ranks, sizeof ranks, "ranks=%d", j->ranks);
    settings[n++] = ranks;
    for (int i = 0; j->settings[i] != NULL; i++) settings[n++] = j->settings[i];
    if (j->odd != NULL && rank == j->ranks - 1) settings[n++] = j->odd;
    st = ls_experiment_load(&x, j->model, settings, n, &err);
    if (st == LS_OK && rank == 0)
        st = j->resume ? ls_run_open(&o.run, run, 0, &err) : ls_run_create(&o.run, j->model, run, &err);
    if (st == LS_OK) st = ls_train(&x, &o, &summary, &stopped, &err);
    ls_run_close(o.run);
    json_decref(summary);
    ls_experiment_release(&x);
    if (st != LS_OK) tell(j, rank, &err);
    return st == LS_OK ? 0 : 10 - (int)st;
}

/* -- watching ---------------------------------------------------------------------------------------------
 */

#define STUCK_S 20.0 /* whoever waits for so long, while nobody gets anything done, waits for ever */

typedef struct watch {
    ls_comm_heap *heap;
    int n;
    pid_t pids[RANKS_MAX]; /* 0: has ended */
    uint64_t beats;        /* of all ranks, at the last look */
    double since;          /* when that changed */
} watch;

/* Whether all ranks that are left wait for another. */
static bool all_wait(watch *w, char *who, size_t bytes)
{
    uint64_t beats = 0;
    size_t at = 0;
    bool all = true;

    who[0] = '\0';
    for (int r = 0; r < w->n; r++) {
        ls_comm_look look;
        ls_comm_heap_look(w->heap, r, &look);
        beats += look.beats;
        if (w->pids[r] == 0) continue;
        all = all && look.waiting;
        if (at < bytes)
            at += (size_t)snprintf(who + at, bytes - at, "%srank %d in \"%s\" of step %lld",
                                   at > 0 ? ", " : "", r, look.what, (long long)look.step);
    }
    if (beats != w->beats || !all) w->since = ls_clock_seconds();
    w->beats = beats;
    return all;
}

/* Waits for the ranks' ends.  Those that wait for each other are told to end, and say so: a test that only
 * hung would not tell where. */
static void await(watch *w, int codes[RANKS_MAX])
{
    char who[512], why[600];

    for (int left = w->n; left > 0;) {
        for (int r = 0; r < w->n; r++) {
            int status = 0;
            if (w->pids[r] == 0 || waitpid(w->pids[r], &status, WNOHANG) != w->pids[r]) continue;
            codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : 100;
            w->pids[r] = 0;
            left--;
        }
        if (left > 0 && all_wait(w, who, sizeof who) && ls_clock_seconds() - w->since > STUCK_S) {
            snprintf(why, sizeof why, "the ranks wait for each other: %s", who);
            ls_comm_heap_end(w->heap, LS_LOST, why);
        }
        if (left > 0) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

void ranks_each(int ranks, void (*be_rank)(ls_comm *comm, const void *arg), const void *arg)
{
    ls_comm_heap *heap = NULL;
    pid_t pids[RANKS_MAX];
    ls_err err = {0};

    REQUIRE(ranks <= RANKS_MAX);
    REQUIRE_OK(ls_comm_heap_create(&heap, ranks, &err), &err);
    fflush(stdout);
    for (int r = 0; r < ranks; r++) {
        pids[r] = fork();
        REQUIRE(pids[r] >= 0);
        if (pids[r] == 0) {
            ls_comm *comm = NULL;
            REQUIRE_OK(ls_comm_open_local(&comm, ls_comm_heap_fd(heap), r, ranks, &err), &err);
            be_rank(comm, arg);
            ls_comm_close(comm);
            fflush(stdout);
            _exit(CHECK_DONE());
        }
    }
    for (int r = 0; r < ranks; r++) {
        int status = -1;
        CHECK(waitpid(pids[r], &status, 0) == pids[r] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ls_comm_heap_destroy(heap);
}

void ranks_run(const ranks_job *j, int codes[RANKS_MAX])
{
    watch w = {.n = j->ranks, .since = ls_clock_seconds()};
    ls_err err = {0};

    REQUIRE_OK(ls_comm_heap_create(&w.heap, j->ranks, &err), &err);
    /* Runs are compared, to the bit or nearly: none may choose other kernels than another, as by timing. */
    REQUIRE(setenv("LOCKSTEP_TUNE", "off", 1) == 0);
    fflush(stdout);
    for (int r = 0; r < j->ranks; r++) {
        w.pids[r] = fork();
        REQUIRE(w.pids[r] >= 0);
        if (w.pids[r] == 0) {
            ls_comm *comm = NULL;
            int code = 99;
            if (ls_comm_open_local(&comm, ls_comm_heap_fd(w.heap), r, j->ranks, &err) == LS_OK)
                code = rank_main(j, comm, r);
            ls_comm_close(comm);
            _exit(code);
        }
    }
    await(&w, codes);
    ls_comm_heap_destroy(w.heap);
}

int ranks_metric(const ranks_job *j, const char *metric, double *values, int n)
{
    char path[512], line[4096];
    int found = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", j->folder, j->name);
    f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        json_t *o = json_loads(line, 0, NULL);
        const json_t *value = json_object_get(o, metric);
        if (value != NULL && found < n) values[found++] = json_real_value(value);
        json_decref(o);
    }
    if (f != NULL) fclose(f);
    return found;
}

int ranks_losses(const ranks_job *j, double *losses, int n)
{
    return ranks_metric(j, "train/loss_step", losses, n);
}

void ranks_hash(const ranks_job *j, char hash[32])
{
    json_t *summary = ranks_summary(j);
    const char *text = json_string_value(json_object_get(summary, "weights_xxh3"));

    snprintf(hash, 32, "%s", text != NULL ? text : "none");
    json_decref(summary);
}

json_t *ranks_summary(const ranks_job *j)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s/summary.json", j->folder, j->name);
    return json_load_file(path, 0, NULL);
}
