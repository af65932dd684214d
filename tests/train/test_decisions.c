/* test_decisions.c: several ranks agree on what comes after an update, whatever their clocks say: everything
 * that can be asked for in minutes, with accumulation and in the reproducible mode, too, and also when some
 * ranks, or rank 0, had no samples in the step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks_test.h"

static char folder[] = "/tmp/lockstep-decisions-XXXXXX";

#define COMMON                                                                                               \
    "data.kind=synthetic", "data.train_range=0:150", "data.test_range=150:166", "batch.global=24",           \
        "parallel.bucket_mb=0.02"
enum { MOST = 256 };

static void train(const ranks_job *j)
{
    int codes[RANKS_MAX];

    ranks_run(j, codes);
    for (int r = 0; r < j->ranks; r++) CHECK_EQ_INT(codes[r], 0);
}

static int count(const ranks_job *j, const char *metric)
{
    double values[MOST];

    return ranks_metric(j, metric, values, MOST);
}

static int checkpoints(const ranks_job *j)
{
    char command[256];
    int n = 0;
    FILE *f;

    snprintf(command, sizeof command, "ls -d %s/%s/checkpoints/step-* | wc -l", j->folder, j->name);
    f = popen(command, "r");
    if (f != NULL && fscanf(f, "%d", &n) != 1) n = -1;
    if (f != NULL) pclose(f);
    return n;
}

/* Trains as run NAME-K; its loss was validated and told that many times. */
static ranks_job train_and_count(ranks_job j, const char *name, int k, const char *loss, int times)
{
    static char full[32];
    char metric[64];

    snprintf(full, sizeof full, "%s-%d", name, k);
    j.folder = folder;
    j.name = full;
    train(&j);
    snprintf(metric, sizeof metric, "val/%s_epoch", loss);
    CHECK_EQ_INT(count(&j, metric), times);
    snprintf(metric, sizeof metric, "train/%s_step", loss);
    CHECK_EQ_INT(count(&j, metric), times);
    return j;
}

/* A period shorter than any step: all of it is due after every update, by whatever clock. */
static void everything_in_minutes(void)
{
    static const char *const modes[][2] = {{"parallel.accumulate=1", "reproducible=false"},
                                           {"parallel.accumulate=3", "reproducible=false"},
                                           {"parallel.accumulate=1", "reproducible=true"}};

    for (int ranks = 1; ranks <= 3; ranks++)
        for (int mode = 0; mode < (ranks > 1 ? 3 : 1); mode++) {
            ranks_job j = {.model = "mnist",
                           .ranks = ranks,
                           .settings = {COMMON, "train.steps=3", "train.validate_every=1e-9min",
                                        "train.checkpoint_every=1e-9min", "train.report_every=1e-9min",
                                        "train.sample_every=1e-9min", "train.output_every=1e-9min",
                                        "parallel.verify_every=1e-9min", "train.keep=9", modes[mode][0],
                                        modes[mode][1]}};
            j = train_and_count(j, "minutes", ranks * 10 + mode, "loss", 3);
            CHECK_EQ_INT(checkpoints(&j), 3);
        }
}

/* A model that trains in stages, each with its own update. */
static void with_stages(void)
{
    static const char *const modes[] = {"reproducible=false", "parallel.accumulate=2", "reproducible=true"};

    for (int mode = 0; mode < 3; mode++) {
        ranks_job j = {.model = "aae",
                       .ranks = 2,
                       .settings = {"data.kind=synthetic", "data.train_range=0:40", "data.test_range=40:48",
                                    "model.points=64", "batch.global=16", "train.steps=4",
                                    "train.validate_every=1e-9min", "train.report_every=1e-9min",
                                    "train.checkpoint_every=1e-9min", "parallel.verify_every=1e-9min",
                                    "train.keep=9", modes[mode]}};
        j = train_and_count(j, "stages", mode, "loss_rec", 4);
        CHECK_EQ_INT(checkpoints(&j), 4);
    }
}

/* Sanitizers make a step longer than these periods, so that all is due after every one. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define OFTEN "train.steps=40"
#else
#define OFTEN "train.steps=80"
#endif

/* A few steps long: ranks that each asked their own clock would soon wait for one another in vain. */
static void periods_of_a_few_steps(void)
{
    const ranks_job j = {.folder = folder,
                         .name = "few",
                         .model = "mnist",
                         .ranks = 2,
                         .settings = {COMMON, OFTEN, "train.validate_every=0.0003min",
                                      "train.checkpoint_every=0.0005min", "train.report_every=0.0002min",
                                      "train.sample_every=0.0003min", "train.output_every=0.0004min",
                                      "parallel.verify_every=0.0002min", "lr.schedule=plateau",
                                      "train.best_metric=val/loss", "lr.patience=1"}};

    train(&j);
    CHECK(count(&j, "val/loss_epoch") > 0);
}

/* 50 samples in batches of 16 on four ranks: an epoch ends with two samples, and ranks 2 and 3 have none. */
static void ranks_without_samples_obey(void)
{
    static const char *const modes[] = {"parallel.accumulate=1", "parallel.accumulate=2",
                                        "reproducible=true"};

    for (int mode = 0; mode < 3; mode++) {
        ranks_job j = {.model = "mnist",
                       .ranks = 4,
                       .settings = {"data.kind=synthetic", "data.train_range=0:50", "data.test_range=150:166",
                                    "batch.global=16", "train.epochs=3", "train.validate_every=1ep",
                                    "train.report_every=4st", "train.checkpoint_every=none", modes[mode]}};
        json_t *summary;

        j = train_and_count(j, "empty", mode, "loss", 3);
        summary = ranks_summary(&j);
        CHECK_EQ_INT(json_integer_value(json_object_get(summary, "steps")), 12);
        CHECK_EQ_INT(json_integer_value(json_object_get(summary, "epochs")), 3);
        json_decref(summary);
    }
}

/* Batches of two, one sample for each rank: rank 0 has nothing in the steps where its own is damaged and left
 * out, and what it decides must not be weighted by that. */
static void rank_0_without_samples_decides(void)
{
    static const char *const modes[] = {"parallel.accumulate=1", "parallel.accumulate=2"};
    const char *program = getenv("LOCKSTEP");
    char command[512], path[128];

    if (program == NULL) return; /* to make the images with */
    snprintf(path, sizeof path, "data.path=%s/images", folder);
    snprintf(command, sizeof command,
             "cd %s && '%s' data make kind=images path=images shape=1x28x28 classes=1 train=10 test=4 "
             ">/dev/null && "
             "printf 'no image' >\"$(find images/train -type f | sort | head -1)\"",
             folder, program);
    REQUIRE(system(command) == 0);
    for (int mode = 0; mode < 2; mode++) {
        const ranks_job j = {.model = "mnist",
                             .ranks = 2,
                             .settings = {"data.kind=images", path, "data.channels=1", "data.on_error=skip",
                                          mode == 0 ? "batch.global=2" : "batch.global=4", "train.epochs=6",
                                          "train.validate_every=1st", "train.report_every=1st",
                                          "train.checkpoint_every=none", modes[mode]}};
        (void)train_and_count(j, "damaged", mode, "loss", mode == 0 ? 30 : 18);
    }
}

int main(void)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(everything_in_minutes);
    CHECK_RUN(with_stages);
    CHECK_RUN(periods_of_a_few_steps);
    CHECK_RUN(ranks_without_samples_obey);
    CHECK_RUN(rank_0_without_samples_decides);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
