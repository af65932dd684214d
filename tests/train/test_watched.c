/* test_watched.c: what whoever watches a rank sees of it within a step: a sign for every node, also of
 * shards, that a plan is being compiled, and the limits of settings, also in steps that are measured. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "comm/comm.h"
#include "train/evaluate.h"
#include "train/rehearsal.h"
#include "train/stepper.h"

enum { RANKS = 2, SAMPLES = 64, ODD = 3 };

static ls_comm_look look_at(const ls_comm *c)
{
    ls_comm_look look;

    ls_comm_heap_look(ls_comm_heap_of(c), ls_comm_local_rank(c), &look);
    return look;
}

/* What a compiler under way saw. */
typedef struct compiling {
    const ls_comm *c;
    int nodes, not_at_length;
} compiling;

static void note_compiling(void *arg, int done, int all)
{
    compiling *w = arg;

    if (done >= 0) w->nodes = all;
    w->not_at_length += look_at(w->c).doing != LS_COMM_AT_LENGTH;
}

/* A plan for a batch of another size, as a step meets it. */
static int compile_within_step(ls_session *s, compiling *w, ls_err *err)
{
    ls_batch_plan *odd;
    int wrong;

    ls_comm_set_doing(s->comm, LS_COMM_STEPPING);
    s->dev->progress = note_compiling;
    s->dev->progress_arg = w;
    wrong = ls_session_plan(s, LS_TRAIN, 0, ODD, &odd, err) != LS_OK;
    s->dev->progress = NULL;
    if (w->nodes == 0 || w->not_at_length > 0 || look_at(w->c).doing != LS_COMM_STEPPING) {
        printf("compiling %d nodes: %d times not seen as what takes long; then %d\n", w->nodes,
               w->not_at_length, (int)look_at(w->c).doing);
        wrong++;
    }
    return wrong;
}

/* One update of the reproducible mode: every rank has two shards, each of as many nodes. */
static int count_beats(ls_session *s, const ls_update *update, const ls_dataset *data, int nodes, ls_err *err)
{
    const ls_ruler ruler = {SAMPLES, update->samples};
    const ls_lr_schedule schedule = {.base = 0.01, .peak = 0.01};
    ls_stepper stepper = {.session = s,
                          .schedule = &schedule,
                          .data = data,
                          .seed = 1,
                          .update = update->samples,
                          .ruler = &ruler};
    ls_loader *loader = NULL;
    ls_counters c = {0};
    ls_batch b;
    bool done = false;
    double lr;
    const uint64_t before = look_at(s->comm).beats;
    uint64_t beats;
    ls_status st = LS_OK;

    LS_TRY(ls_train_loader(s, update, data, 0, false, &loader, err));
    LS_TRY(ls_loader_next(loader, &b, err));
    LS_TRY(ls_stepper_take(&stepper, &c, &b, &done, &lr, err));
out:
    ls_stepper_release(&stepper);
    ls_loader_destroy(loader);
    beats = look_at(s->comm).beats - before;
    if (done && beats >= 2 * (uint64_t)nodes) return 0;
    printf("a step of 2 shards with %d nodes: %d beats, status %d\n", nodes, (int)beats, (int)st);
    return 1;
}

static int rank_main(ls_comm *c)
{
    static const char *const settings[] = {"data.kind=synthetic",
                                           "data.train_range=0:64",
                                           "data.test_range=64:80",
                                           "reproducible=true",
                                           "parallel.shards=4",
                                           "batch.per_rank=8",
                                           "ranks=2"};
    ls_experiment x = {0};
    ls_session s = {0};
    ls_session_options options;
    ls_update update;
    ls_needs needs = {0};
    ls_dataset *data = NULL;
    compiling seen = {.c = c};
    ls_err err = {0};
    int wrong = 1;
    ls_status st = LS_OK;

    LS_TRY(ls_experiment_load(&x, "mnist", settings, (int)(sizeof settings / sizeof settings[0]), &err));
    update = ls_update_of(x.cfg, RANKS);
    options = ls_update_options(&update, x.cfg);
    options.threads = 1;
    options.comm = c;
    LS_TRY(ls_session_open(&s, x.trial, x.cfg, &options, &err));
    LS_TRY(ls_needs_find(&needs, x.trial, x.cfg, &err));
    LS_TRY(ls_train_data(&x, &needs, LS_SPLIT_TRAIN, &data, &err));
    wrong = compile_within_step(&s, &seen, &err);
    wrong += count_beats(&s, &update, data, seen.nodes, &err);
out:
    if (err.text[0] != '\0') printf("rank %d: %s\n", ls_comm_rank(c), err.text);
    ls_dataset_close(data);
    ls_needs_release(&needs);
    ls_session_release(&s);
    ls_experiment_release(&x);
    return st == LS_OK ? wrong : 1;
}

/* `bench` on two ranks: the watcher hears of the settings before the first step. */
static int measuring_main(ls_comm *c)
{
    static const char *const settings[] = {"batch.per_rank=8", "ranks=2", "parallel.stall_s=0.5",
                                           "parallel.stall_limit=3"};
    ls_experiment x = {0};
    ls_rehearsal r = {0};
    double report = -1, limit = -1;
    bool last = false;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_experiment_load(&x, "mnist", settings, (int)(sizeof settings / sizeof settings[0]), &err));
    ls_comm_heap_stall(ls_comm_heap_of(c), &report, &limit);
    CHECK(report == 0 && limit == 0);
    LS_TRY(ls_comm_barrier(c, "before", &err));
    LS_TRY(ls_rehearsal_open(&r, &x, 1, false, c, &err));
    ls_comm_heap_stall(ls_comm_heap_of(c), &report, &limit);
    CHECK_NEAR(report, 0.5, 1e-9);
    CHECK_NEAR(limit, 1.5, 1e-9);
    LS_TRY(ls_rehearsal_step(&r, &last, &err));
    CHECK_EQ_INT(look_at(c).step, 1);
    CHECK_EQ_INT(look_at(c).doing, LS_COMM_AT_LENGTH); /* what follows may take long */
    last = true;
    LS_TRY(ls_rehearsal_step(&r, &last, &err));
out:
    if (err.text[0] != '\0') printf("rank %d: %s\n", ls_comm_rank(c), err.text);
    ls_rehearsal_release(&r);
    ls_experiment_release(&x);
    return st == LS_OK ? CHECK_DONE() : 1;
}

/* Two processes that meet in a heap; each must return 0. */
static void on_two_ranks(int (*rank_main)(ls_comm *c))
{
    ls_comm_heap *heap = NULL;
    pid_t pids[RANKS];
    ls_err err = {0};

    REQUIRE_OK(ls_comm_heap_create(&heap, RANKS, &err), &err);
    REQUIRE(setenv("LOCKSTEP_TUNE", "off", 1) == 0);
    fflush(stdout);
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        REQUIRE(pids[r] >= 0);
        if (pids[r] == 0) {
            ls_comm *c = NULL;
            int wrong = 1;
            if (ls_comm_open_local(&c, ls_comm_heap_fd(heap), r, RANKS, &err) == LS_OK) wrong = rank_main(c);
            ls_comm_close(c);
            fflush(stdout);
            _exit(wrong);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        int status = -1;
        CHECK_EQ_INT(waitpid(pids[r], &status, 0), pids[r]);
        CHECK_EQ_INT(status, 0);
    }
    ls_comm_heap_destroy(heap);
}

static void nodes_of_shards_and_compilers_are_seen(void)
{
    on_two_ranks(rank_main);
}

static void measured_steps_have_limits(void)
{
    on_two_ranks(measuring_main);
}

int main(void)
{
    CHECK_RUN(measured_steps_have_limits);
    CHECK_RUN(nodes_of_shards_and_compilers_are_seen);
    return CHECK_DONE();
}
