/* test_resume_ranks.c: a run goes on with other ranks, another batch or other accumulation: epochs, learning
 * rate, validations and the end come after the samples that they would have come after; in the reproducible
 * mode with the same bits.  Gradients that a checkpoint of an older version holds count once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ckpt/ckpt.h"
#include "ranks_test.h"
#include "train/evaluate.h"
#include "train/stepper.h"

static char folder[] = "/tmp/lockstep-resume-ranks-XXXXXX";

enum { EPOCH = 150, OWN = 16, PER_EPOCH = 10, EPOCHS = 6, MOST = 400 };

#define COMMON                                                                                               \
    "data.kind=synthetic", "data.train_range=0:150", "data.test_range=150:166", "train.report_every=1sa",    \
        "train.validate_every=1ep", "train.epochs=6"

static void train(const ranks_job *j)
{
    int codes[RANKS_MAX];

    ranks_run(j, codes);
    for (int r = 0; r < j->ranks; r++)
        if (!CHECK_EQ_INT(codes[r], 0)) printf("  %s, rank %d of %d\n", j->name, r, j->ranks);
}

/* What the schedule means: a warm-up of 15 steps of 16 samples, then half a cosine to the end of the sixth
 * epoch.  An update begins after `seen` samples and has up to `update`. */
static double expected_lr(int64_t seen, int update)
{
    const double at = (double)(seen / EPOCH * PER_EPOCH) + (double)(seen % EPOCH) / OWN, warmup = 15,
                 all = EPOCHS * PER_EPOCH;

    if (at < warmup) return 0.1 + (0.4 - 0.1) * fmin(at + (double)update / OWN, warmup) / warmup;
    return 0.4 * 0.5 * (1 + cos(3.14159265358979323846 * (at - warmup) / (all - warmup)));
}

typedef struct part {
    int ranks;
    const char *batch, *accumulate; /* settings */
    int update;                     /* samples of an update */
    const char *pause;
} part;

/* Trains the parts one after the other and looks at every learning rate that was reported. */
static void go_on(const char *name, const part *parts, int n, const char *seed)
{
    double lr[MOST];
    int64_t seen = 0;
    int k = 0, n_lr;
    ranks_job last = {.folder = folder, .name = name};
    json_t *summary;

    for (int i = 0; i < n; i++) {
        /* The rate is scaled to 0.4 by hand: with another batch it would be another one, as it should. */
        const ranks_job j = {.folder = folder,
                             .name = name,
                             .model = "mnist",
                             .ranks = parts[i].ranks,
                             .resume = i > 0,
                             .settings = {COMMON, "optimizer.lr=0.1", "lr.scale=linear", "lr.warmup=15st",
                                          "lr.schedule=cosine", parts[i].batch, parts[i].accumulate, seed,
                                          parts[i].update == 48   ? "lr.reference_batch=12"
                                          : parts[i].update == 24 ? "lr.reference_batch=6"
                                          : parts[i].update == 8  ? "lr.reference_batch=2"
                                                                  : "lr.reference_batch=4",
                                          parts[i].pause}};
        train(&j);
        last = j;
    }
    n_lr = ranks_metric(&last, "lr", lr, MOST);
    for (int i = 0; i < n && k < n_lr; i++) {
        const int64_t until = i + 1 < n ? seen + 75 : (int64_t)EPOCHS * EPOCH;
        for (; seen < until && k < n_lr; k++) {
            const int64_t left = EPOCH - seen % EPOCH;
            if (!CHECK(fabs(lr[k] - expected_lr(seen, parts[i].update)) < 1e-8))
                printf("  %s: rate %g after %lld samples, not %g\n", name, lr[k], (long long)seen,
                       expected_lr(seen, parts[i].update));
            seen += left < parts[i].update ? left : parts[i].update;
        }
    }
    CHECK_EQ_INT(k, n_lr);
    CHECK_EQ_INT(seen, EPOCHS * EPOCH);
    summary = ranks_summary(&last);
    CHECK_EQ_INT(json_integer_value(json_object_get(summary, "epochs")), EPOCHS);
    CHECK_EQ_INT(json_integer_value(json_object_get(summary, "steps")), n_lr);
    CHECK_EQ_STR(json_string_value(json_object_get(summary, "state")), "completed");
    json_decref(summary);
    CHECK_EQ_INT(ranks_metric(&last, "val/loss_epoch", lr, MOST), EPOCHS);
}

/* Each process but the last pauses after half an epoch; the next may have another batch. */
#define PAUSE "train.pause_after=75sa"

static int first_seed = 1, last_seed = 1;

static void other_ranks(void)
{
    static const part parts[] = {
        {1, "batch.per_rank=16", "parallel.accumulate=1", 16, PAUSE},
        {2, "batch.per_rank=8", "parallel.accumulate=1", 16, PAUSE},
        {4, "batch.per_rank=12", "parallel.accumulate=1", 48, PAUSE},
        {3, "batch.per_rank=8", "parallel.accumulate=1", 24, "train.pause_after=none"}};

    for (int seed = first_seed; seed <= last_seed; seed++) {
        char name[32], setting[32];
        snprintf(name, sizeof name, "ranks-%d", seed);
        snprintf(setting, sizeof setting, "seed=%d", seed);
        go_on(name, parts, 4, setting);
    }
}

static void other_batches_and_accumulation(void)
{
    static const part parts[] = {
        {1, "batch.per_rank=16", "parallel.accumulate=1", 16, PAUSE},
        {1, "batch.per_rank=8", "parallel.accumulate=3", 24, PAUSE},
        {2, "batch.global=48", "parallel.accumulate=2", 48, PAUSE},
        {1, "batch.per_rank=8", "parallel.accumulate=1", 8, "train.pause_after=none"}};

    go_on("batches", parts, 4, "seed=1");
}

/* The same bits, whoever computes. */
static void reproducible(void)
{
    static const int ranks[] = {1, 2, 4, 3};
    char hash[2][32];

    for (int chain = 0; chain < 2; chain++) {
        ranks_job j = {.folder = folder, .name = chain ? "chain" : "whole", .model = "mnist"};
        for (int i = 0; i < (chain ? 4 : 1); i++) {
            j = (ranks_job){.folder = folder,
                            .name = chain ? "chain" : "whole",
                            .model = "mnist",
                            .ranks = ranks[i],
                            .resume = i > 0,
                            .settings = {COMMON, "reproducible=true", "batch.global=16", "lr.schedule=cosine",
                                         "lr.warmup=1ep", chain && i < 3 ? PAUSE : "train.pause_after=none"}};
            train(&j);
        }
        ranks_hash(&j, hash[chain]);
    }
    CHECK(strlen(hash[0]) == 16);
    CHECK_EQ_STR(hash[1], hash[0]);
}

/* -- a checkpoint within an update ------------------------------------------------------------------------
 */

#define MICRO                                                                                                \
    "data.kind=synthetic", "data.train_range=0:150", "data.test_range=150:166", "train.report_every=1st",    \
        "train.validate_every=none", "batch.global=24", "parallel.accumulate=3"

/* Takes the run's checkpoint of its first update one batch further, as older versions wrote them. */
static void step_into_the_update(const char *name)
{
    static const char *const settings[] = {MICRO, "ranks=1"};
    const ls_experiment none = {0};
    ls_session_options options;
    ls_session s = {0};
    ls_experiment x = none;
    ls_dataset *data = NULL;
    ls_loader *loader = NULL;
    ls_ckpt *ckpt = NULL;
    ls_needs needs;
    ls_counters c;
    ls_ruler ruler = {EPOCH, 24};
    ls_lr_schedule schedule = {.base = 0.01, .peak = 0.01};
    ls_update update;
    ls_batch b;
    json_t *state;
    char path[256];
    bool done;
    double lr;
    ls_err err = {0};

    snprintf(path, sizeof path, "%s/%s/checkpoints/step-00000001", folder, name);
    REQUIRE_OK(ls_experiment_load(&x, "mnist", settings, (int)(sizeof settings / sizeof settings[0]), &err),
               &err);
    update = ls_update_of(x.cfg, 1);
    options = ls_update_options(&update, x.cfg);
    options.threads = 1;
    REQUIRE_OK(ls_session_open(&s, x.trial, x.cfg, &options, &err), &err);
    REQUIRE_OK(ls_needs_find(&needs, x.trial, x.cfg, &err), &err);
    REQUIRE_OK(ls_train_data(&x, &needs, LS_SPLIT_TRAIN, &data, &err), &err);
    ls_needs_release(&needs);
    REQUIRE_OK(ls_ckpt_open(&ckpt, path, &err), &err);
    REQUIRE_OK(ls_ckpt_load_state(ckpt, s.state, &err), &err);
    REQUIRE_OK(ls_counters_load(&c, ls_ckpt_state(ckpt), &err), &err);
    REQUIRE_OK(ls_train_loader(&s, &update, data, c.position, false, &loader, &err), &err);
    REQUIRE_OK(ls_loader_next(loader, &b, &err), &err);
    ls_stepper stepper = {.session = &s,
                          .schedule = &schedule,
                          .data = data,
                          .seed = 1,
                          .update = update.samples,
                          .ruler = &ruler};
    REQUIRE_OK(ls_stepper_take(&stepper, &c, &b, &done, &lr, &err), &err);
    CHECK(!done && c.pending == 8);
    state = ls_counters_save(&c);
    json_object_del(state, "step_samples");
    json_object_del(state, "epoch_samples");
    json_object_del(state, "last_minutes");
    REQUIRE_OK(ls_ckpt_save_state(path, s.state, ls_ckpt_plan_hash(ckpt), state, &err), &err);
    json_decref(state);
    ls_ckpt_close(ckpt);
    ls_stepper_release(&stepper);
    ls_loader_destroy(loader);
    ls_dataset_close(data);
    ls_session_release(&s);
    ls_experiment_release(&x);
}

static void gradients_of_an_older_checkpoint_count_once(void)
{
    double whole[8], on[2][8];
    char hash[2][32];

    for (int ranks = 0; ranks <= 2; ranks++) {
        char name[32];
        ranks_job j = {.folder = folder,
                       .name = name,
                       .model = "mnist",
                       .ranks = 1,
                       .settings = {MICRO, ranks == 0 ? "train.steps=5" : "train.steps=1"}};
        snprintf(name, sizeof name, "pending-%d", ranks);
        train(&j);
        if (ranks > 0) {
            step_into_the_update(name);
            j.ranks = ranks;
            j.resume = true;
            j.settings[7] = "train.steps=5";
            train(&j);
        }
        CHECK_EQ_INT(ranks_losses(&j, ranks == 0 ? whole : on[ranks - 1], 8), 5);
        if (ranks < 2) ranks_hash(&j, hash[ranks]);
    }
    CHECK_EQ_STR(hash[1], hash[0]);
    for (int i = 0; i < 5; i++)
        if (!CHECK(fabs(on[1][i] - whole[i]) < 2e-5 * fabs(whole[i])))
            printf("  update %d: loss %g on two ranks, %g without an interruption\n", i + 1, on[1][i],
                   whole[i]);
}

/* `seeds`: four more of them, which take their time. */
int main(int argc, char **argv)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL || setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1;
    if (argc > 1 && strcmp(argv[1], "seeds") == 0) {
        first_seed = 2;
        last_seed = 5;
        CHECK_RUN(other_ranks);
    } else {
        CHECK_RUN(other_ranks);
        CHECK_RUN(other_batches_and_accumulation);
        CHECK_RUN(reproducible);
        CHECK_RUN(gradients_of_an_older_checkpoint_count_once);
    }
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
