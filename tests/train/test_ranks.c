/* test_ranks.c: training on several ranks (processes that share memory) is the same training as on one: the
 * losses agree to rounding, all ranks end with the same weights, uneven parts and short last batches
 * included, and an evaluation counts every sample once.  Ranks that were started differently do not begin. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lockstep/status.h"
#include "ranks_test.h"

enum { STEPS = 12 };

static char folder[] = "/tmp/lockstep-ranks-XXXXXX";

/* 150 samples in batches of 48: the last of an epoch has 6, fewer than eight ranks. */
#define COMMON                                                                                               \
    "data.kind=synthetic", "data.train_range=0:150", "data.test_range=150:191", "train.report_every=1st",    \
        "train.validate_every=none", "batch.global=48", "train.steps=12"

/* Losses on 1 and more ranks; returns the largest relative difference. */
static double difference(const char *what, const char *model, const char *const extra[], size_t n_counts,
                         int steps)
{
    static const int counts[] = {1, 3, 8, 2, 4};
    double first[STEPS], losses[STEPS], most = 0;

    for (size_t k = 0; k < n_counts; k++) {
        char name[64];
        ranks_job j = {
            .folder = folder, .name = name, .model = model, .ranks = counts[k], .settings = {COMMON}};
        int codes[RANKS_MAX], n = 0;
        json_t *summary;
        snprintf(name, sizeof name, "%s-%d", what, counts[k]);
        while (j.settings[n] != NULL) n++;
        for (int i = 0; extra[i] != NULL; i++) j.settings[n++] = extra[i];
        ranks_run(&j, codes);
        for (int r = 0; r < j.ranks; r++) CHECK_EQ_INT(codes[r], 0);
        CHECK_EQ_INT(ranks_losses(&j, k == 0 ? first : losses, STEPS), steps);
        summary = ranks_summary(&j);
        CHECK_EQ_INT(json_integer_value(json_object_get(summary, "ranks")), counts[k]);
        CHECK_EQ_INT(json_integer_value(json_object_get(json_object_get(summary, "metrics"), "test_samples")),
                     41);
        json_decref(summary);
        for (int i = 0; k > 0 && i < steps; i++) {
            const double d = fabs(losses[i] - first[i]) / fabs(first[i]);
            if (!(d <= most)) most = d;
        }
    }
    return most;
}

static void compare(const char *what, const char *const extra[], size_t n_counts, double tolerance)
{
    const double d = difference(what, "mnist", extra, check_is_slow_build() ? 2 : n_counts, STEPS);

    if (!CHECK(d <= tolerance)) printf("  %s: losses differ by %g\n", what, d);
}

static void net_p_on_1_2_3_4_8_ranks(void)
{
    compare("plain", (const char *const[]){NULL}, 5, 2e-5);
}

static void with_small_buckets_and_no_overlap(void)
{
    compare("buckets", (const char *const[]){"parallel.bucket_mb=0.02", "parallel.overlap=false", NULL}, 3,
            2e-5);
}

static void with_gradients_added_up(void)
{
    compare("accumulate", (const char *const[]){"parallel.accumulate=2", NULL}, 3, 2e-5);
}

static void with_clipped_gradients(void)
{
    const ranks_job with = {.folder = folder, .name = "clip-1"},
                    without = {.folder = folder, .name = "plain-1"};
    double clipped[STEPS], plain[STEPS];

    compare("clip", (const char *const[]){"parallel.clip_norm=0.3", NULL}, 3, 2e-5);
    CHECK_EQ_INT(ranks_losses(&with, clipped, STEPS), STEPS);
    CHECK_EQ_INT(ranks_losses(&without, plain, STEPS), STEPS);
    CHECK(clipped[0] == plain[0]); /* the first loss comes before the first update */
    CHECK(clipped[STEPS - 1] != plain[STEPS - 1]);
}

/* Whether ranks keep their variables once or each its own makes no difference to a single bit. */
static void shared_variables_are_the_same(void)
{
    static const char *const cases[][3] = {
        {"optimizer.momentum=0.9", "parallel.bucket_mb=0.02", "parallel.accumulate=1"},
        {"optimizer.name=adam", "parallel.accumulate=2", "parallel.overlap=false"},
        {"optimizer.name=rmsprop", "parallel.clip_norm=0.3", "train.checkpoint_every=5st"},
        {"optimizer.name=lars", "parallel.bucket_mb=0.02", "parallel.accumulate=1"},
    };

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char hash[2][32] = {"", ""};
        for (int share = 0; share < 2; share++) {
            char name[32];
            ranks_job j = {.folder = folder,
                           .name = name,
                           .model = "mnist",
                           .ranks = 3,
                           .settings = {COMMON, "parallel.verify_every=1st",
                                        share ? "parallel.share=always" : "parallel.share=never", cases[k][0],
                                        cases[k][1], cases[k][2]}};
            int codes[RANKS_MAX];
            json_t *summary;
            snprintf(name, sizeof name, "share-%zu-%d", k, share);
            ranks_run(&j, codes);
            for (int r = 0; r < j.ranks; r++) CHECK_EQ_INT(codes[r], 0);
            summary = ranks_summary(&j);
            snprintf(hash[share], sizeof hash[share], "%s",
                     json_string_value(json_object_get(summary, "weights_xxh3")));
            json_decref(summary);
        }
        CHECK(strlen(hash[0]) == 16);
        CHECK_EQ_STR(hash[1], hash[0]);
    }
}

/* Each rank's own statistics make another model; with those of all ranks it is the one of one rank. */
static void batch_norm_over_all_ranks(void)
{
    const char *const own[] = {"batch.global=12", "train.steps=3", NULL};
    const char *const all[] = {"batch.global=12", "train.steps=3", "parallel.sync_batchnorm=true", NULL};
    const double apart = difference("own", "resnet18-cifar", own, 2, 3);
    const double together = difference("all", "resnet18-cifar", all, 2, 3);

    if (!CHECK(together < 1e-2 && apart > 10 * together))
        printf("  losses differ by %g with common statistics, by %g without\n", together, apart);
}

/* All ranks are told that the last one was started with `odd`, where rank 0 has `value`. */
static void is_noticed(const char *name, const char *odd, const char *value)
{
    const ranks_job j = {
        .folder = folder, .name = name, .model = "mnist", .ranks = 3, .odd = odd, .settings = {COMMON}};
    char want[128];
    int codes[RANKS_MAX];

    snprintf(want, sizeof want, "%s (rank 0: %s)", odd, value);
    ranks_run(&j, codes);
    for (int r = 0; r < j.ranks; r++) {
        char path[512], text[1024] = "";
        FILE *f;
        CHECK_EQ_INT(codes[r], 10 - (int)LS_DISAGREE);
        snprintf(path, sizeof path, "%s/%s.%d", folder, name, r);
        f = fopen(path, "r");
        if (f != NULL && fgets(text, sizeof text, f) == NULL) text[0] = '\0';
        if (f != NULL) fclose(f);
        if (!CHECK(strstr(text, "rank 2") != NULL && strstr(text, want) != NULL))
            printf("  rank %d said: %s\n", r, text);
    }
}

static void another_setting_on_one_rank_is_noticed(void)
{
    is_noticed("odd", "optimizer.lr=0.5", "0.01");
}

/* It rounds differently: the replicas would part, a little with every step. */
static void another_device_on_one_rank_is_noticed(void)
{
    is_noticed("device", "device=ref", "cpu");
}

/* `norm`: the case that takes a ResNet and its time. */
int main(int argc, char **argv)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    if (argc > 1 && strcmp(argv[1], "norm") == 0) {
        CHECK_RUN(batch_norm_over_all_ranks);
    } else {
        CHECK_RUN(net_p_on_1_2_3_4_8_ranks);
        CHECK_RUN(with_small_buckets_and_no_overlap);
        CHECK_RUN(with_gradients_added_up);
        CHECK_RUN(with_clipped_gradients);
        CHECK_RUN(shared_variables_are_the_same);
        CHECK_RUN(another_setting_on_one_rank_is_noticed);
        CHECK_RUN(another_device_on_one_rank_is_noticed);
    }
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
