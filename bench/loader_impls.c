/* loader_impls.c: does reading an IDX set keep up with training on it?
 *
 * Usage: bench_loader FOLDER [images] [seconds].  FOLDER holds an IDX set of 28 x 28 images (`lockstep data
 * make path=FOLDER` writes one).  First the loader alone: samples/s with 0, 1 and 2 workers, shuffled, in
 * batches of 64. Then steps of the model `mnist` in turns of 50: with their inputs left as they are, and with
 * every batch taken from the loader and copied.  `ratio` is the median over the rounds of the rate with the
 * loader over the rate without; `wait` the share of the time in which the step waited for data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/stats.h"
#include "data/loader.h"
#include "lockstep/trial.h"

enum { BATCH = 64, TURN = 50, MAX_ROUNDS = 200 };

typedef struct trainer {
    const ls_trial *trial;
    ls_config *cfg;
    ls_device *dev;
    ls_state *state;
    ls_step *step;
    ls_plan *plan;
    uint32_t steps;
} trainer;

static ls_status open_trainer(trainer *t, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_trial_find(&t->trial, "mnist", err));
    LS_TRY(ls_config_create(&t->cfg, t->trial, err));
    LS_TRY(ls_trial_build(&t->step, t->trial, t->cfg, LS_TRAIN, err));
    LS_TRY(ls_device_open(&t->dev, "cpu", 0, err));
    ls_parallel_set_wait_policy(ls_parallel_default_threads(1));
    LS_TRY(ls_state_create(&t->state, t->dev, err));
    LS_TRY(ls_plan_compile_take(&t->plan, ls_step_graph_take(t->step), t->dev, t->state, err));
    LS_TRY(ls_state_init(t->state, 1, err));
    ls_step_write_defaults(t->step, t->plan);
    ls_step_write_synthetic(t->step, t->plan, 1);
out:
    return st;
}

static void close_trainer(trainer *t)
{
    ls_plan_destroy(t->plan);
    ls_state_destroy(t->state);
    ls_step_destroy(t->step);
    ls_device_close(t->dev);
    ls_config_destroy(t->cfg);
}

static ls_loader_options options(int workers)
{
    return (ls_loader_options){.batch = BATCH, .n_workers = workers, .shuffle = true, .drop_last = true};
}

static ls_status loader_alone(const ls_dataset *d, int workers, double seconds, ls_err *err)
{
    ls_status st = LS_OK;
    ls_loader *l = NULL;
    ls_batch b;
    ls_loader_options o = options(workers);
    int64_t n = 0;
    double start, spent = 0;

    LS_TRY(ls_loader_create(&l, d, &o, err));
    start = ls_clock_seconds();
    while (spent < seconds) {
        LS_TRY(ls_loader_next(l, &b, err));
        n += b.n;
        spent = ls_clock_seconds() - start;
    }
    printf("loader    %d workers  %10.0f samples/s\n", workers, (double)n / spent);
out:
    ls_loader_destroy(l);
    return st;
}

/* TURN steps; with a loader every batch is copied into the inputs first.  Seconds in *spent. */
static ls_status turn(trainer *t, ls_loader *l, double *spent, ls_err *err)
{
    ls_status st = LS_OK;
    const ls_tensor *image = ls_plan_input(t->plan, "image"), *label = ls_plan_input(t->plan, "label");
    double start = ls_clock_seconds();
    ls_batch b;

    for (int i = 0; i < TURN; i++) {
        if (l) {
            LS_TRY(ls_loader_next(l, &b, err));
            ls_plan_write_input(t->plan, "image", 0, b.fields[0], image->bytes);
            ls_plan_write_input(t->plan, "label", 0, b.fields[1], label->bytes);
        }
        ls_step_write_rng(t->plan, 1, t->steps++, 0);
        LS_TRY(ls_plan_run(t->plan, err));
    }
    *spent = ls_clock_seconds() - start;
out:
    return st;
}

static ls_status in_training(trainer *t, const ls_dataset *d, int workers, double seconds, ls_err *err)
{
    ls_status st = LS_OK;
    static double ratio[MAX_ROUNDS], rate[MAX_ROUNDS];
    ls_loader *l = NULL;
    ls_loader_options o = options(workers);
    double start, with_loader = 0, plain, loaded;
    size_t n = 0;

    LS_TRY(ls_loader_create(&l, d, &o, err));
    for (int i = 0; i < 4; i++) LS_TRY(turn(t, i % 2 ? l : NULL, &plain, err));
    double wait = ls_loader_wait_seconds(l);
    start = ls_clock_seconds();
    while (n < MAX_ROUNDS && ls_clock_seconds() - start < seconds) {
        LS_TRY(turn(t, NULL, &plain, err));
        LS_TRY(turn(t, l, &loaded, err));
        with_loader += loaded;
        rate[n] = BATCH * TURN / loaded;
        ratio[n++] = plain / loaded;
    }
    wait = ls_loader_wait_seconds(l) - wait;
    ls_spread r = ls_spread_of(ratio, n), s = ls_spread_of(rate, n);
    printf("training  %d workers  %10.0f samples/s  ratio %.3f (%.3f to %.3f)  wait %.2f %%\n", workers,
           s.p50, r.p50, r.p16, r.p84, 100 * wait / with_loader);
out:
    ls_loader_destroy(l);
    return st;
}

int main(int argc, char **argv)
{
    ls_status st = LS_OK;
    ls_err err = {0};
    ls_dataset *d = NULL;
    trainer t = {0};
    double seconds = argc > 3 ? atof(argv[3]) : 5;

    ls_parallel_settle(argv);
    if (argc < 2) {
        fprintf(stderr, "usage: bench_loader FOLDER [images] [seconds]\n");
        return 2;
    }
    LS_TRY(ls_dataset_open(&d,
                           &(ls_data_source){.kind = "idx",
                                             .path = argv[1],
                                             .images = argc > 2 ? argv[2] : NULL,
                                             .classes = 10,
                                             .normalise = "mnist"},
                           &err));
    for (int workers = 0; workers <= 2; workers++) LS_TRY(loader_alone(d, workers, seconds / 5, &err));
    LS_TRY(open_trainer(&t, &err));
    for (int workers = 0; workers <= 2; workers++) LS_TRY(in_training(&t, d, workers, seconds, &err));
out:
    if (st != LS_OK) fprintf(stderr, "bench_loader: %s\n", err.text);
    close_trainer(&t);
    ls_dataset_close(d);
    return st != LS_OK;
}
