/* test_stages.c: a model that trains in stages (the AAE: its critic first, then encoder and generator against
 * the new critic) is trained alike whatever an update is cut into: batches of several ranks, batches that are
 * added up, shards.  In the reproducible mode and after a pause the bits are the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks_test.h"

enum { STEPS = 5, FEW = 2 }; /* cases of the quick test */

static char folder[] = "/tmp/lockstep-stages-XXXXXX", experiment[64];
static bool all; /* or the first few cases */

/* 40 clouds by 18: the last update of an epoch has 4, fewer than some have ranks. */
static const char text[] = "name: stages\n"
                           "model: {trial: aae, points: 32, lambda_rec: 0.01, sum_over: 18}\n"
                           "data: {kind: synthetic, train_range: \"0:40\", test_range: \"40:45\"}\n"
                           "batch: {global: 18}\n"
                           "optimizer: {name: sgd, lr: 0.01, momentum: 0.9}\n"
                           "train: {steps: 5, report_every: 1st, validate_every: none}\n";

static ranks_job job(const char *name, int ranks, int threads, const char *first, const char *second)
{
    return (ranks_job){.folder = folder,
                       .name = name,
                       .model = experiment,
                       .ranks = ranks,
                       .threads = threads,
                       .settings = {first, first != NULL ? second : NULL}};
}

static void run(const ranks_job *j)
{
    int codes[RANKS_MAX];

    ranks_run(j, codes);
    for (int r = 0; r < j->ranks; r++) CHECK_EQ_INT(codes[r], 0);
}

/* The largest relative difference of both losses in all steps. */
static double difference(const ranks_job *a, const ranks_job *b)
{
    static const char *const losses[] = {"train/loss_d_step", "train/loss_eg_step"};
    double most = 0;

    for (int i = 0; i < 2; i++) {
        double x[STEPS], y[STEPS];
        CHECK_EQ_INT(ranks_metric(a, losses[i], x, STEPS), STEPS);
        CHECK_EQ_INT(ranks_metric(b, losses[i], y, STEPS), STEPS);
        for (int k = 0; k < STEPS; k++) {
            const double d = fabs(x[k] - y[k]) / fabs(x[k]);
            if (!(d <= most)) most = d;
        }
    }
    return most;
}

static void updates_of_several_batches_are_those_of_one(void)
{
    static const struct {
        int ranks;
        const char *settings[2];
    } cases[] = {{3, {"parallel.accumulate=2", NULL}},
                 {1, {"parallel.accumulate=3", NULL}},
                 {8, {"parallel.accumulate=2", NULL}},
                 {2, {"parallel.accumulate=3", "parallel.bucket_mb=0.05"}},
                 {2, {"reproducible=true", NULL}}};
    const ranks_job whole = job("whole", 1, 1, NULL, NULL);

    run(&whole);
    for (size_t i = 0; i < (all ? sizeof cases / sizeof cases[0] : 1); i++) {
        char name[32];
        const ranks_job j = job(name, cases[i].ranks, 1, cases[i].settings[0], cases[i].settings[1]);
        double d;
        snprintf(name, sizeof name, "cut-%zu", i);
        run(&j);
        d = difference(&whole, &j);
        if (!CHECK(d < 1e-4))
            printf("  %d ranks, %s: losses differ by %g\n", j.ranks, cases[i].settings[0], d);
    }
}

static void same_bits_on_any_ranks_and_threads(void)
{
    static const struct {
        int ranks, threads;
    } cases[] = {{1, 1}, {2, 2}, {3, 1}, {4, 1}, {8, 1}, {1, 3}};
    char first[32] = "", hash[32];

    for (size_t i = 0; i < (all ? sizeof cases / sizeof cases[0] : FEW); i++) {
        char name[32];
        const ranks_job j = job(name, cases[i].ranks, cases[i].threads, "reproducible=true", NULL);
        snprintf(name, sizeof name, "bits-%zu", i);
        run(&j);
        ranks_hash(&j, hash);
        if (i == 0) snprintf(first, sizeof first, "%s", hash);
        if (!CHECK(strcmp(hash, first) == 0))
            printf("  %d ranks of %d threads: %s, not %s\n", j.ranks, j.threads, hash, first);
    }
}

/* Runs to `steps` in two parts, the second on other ranks; the hash is that of a run without a pause. */
static void check_resumed(const char *name, const char *mode, const char *pause, int ranks, int ranks_then)
{
    char whole_name[32], whole_hash[32], hash[32];
    const ranks_job whole = job(whole_name, ranks_then, 1, mode, NULL);
    ranks_job j = job(name, ranks, 1, mode, pause);

    snprintf(whole_name, sizeof whole_name, "%s-whole", name);
    run(&whole);
    ranks_hash(&whole, whole_hash);
    run(&j);
    ranks_hash(&j, hash);
    CHECK(strcmp(hash, whole_hash) != 0);
    j.ranks = ranks_then;
    j.resume = true;
    j.settings[1] = NULL;
    run(&j);
    ranks_hash(&j, hash);
    if (!CHECK(strcmp(hash, whole_hash) == 0)) printf("  %s: %s, not %s\n", name, hash, whole_hash);
}

/* 24 samples lie within the second update of 18: the pause waits for its end. */
static void a_pause_changes_nothing(void)
{
    check_resumed("paused-batches", "parallel.accumulate=3", "train.pause_after=24sa", 1, 1);
    if (!all) return;
    check_resumed("paused-shards", "reproducible=true", "train.pause_after=24sa", 4, 3);
    check_resumed("paused-ranks", "parallel.accumulate=2", "train.pause_after=24sa", 2, 2);
}

int main(int argc, char **argv)
{
    char command[128];
    FILE *f;
    int rc;

    all = argc > 1 && strcmp(argv[1], "all") == 0;
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(experiment, sizeof experiment, "%s/stages.yaml", folder);
    f = fopen(experiment, "w");
    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0) return 1;
    CHECK_RUN(updates_of_several_batches_are_those_of_one);
    CHECK_RUN(same_bits_on_any_ranks_and_threads);
    CHECK_RUN(a_pause_changes_nothing);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
