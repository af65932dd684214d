/* test_shared_slow.c: whether the ranks of a machine keep their variables once or each its own makes no
 * difference to a single bit, for every built-in trial: what reads new weights waits until all ranks have
 * written them, what reads old ones is through before any rank writes.  Buckets of several sizes, each
 * several times: an order that is wrong shows by chance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks_test.h"
#include "small_trials.h"

enum { TIMES = 2 };

static char folder[] = "/tmp/lockstep-shared-XXXXXX";

static void train(const char *name, const small_trial *l, const char *const more[3], const char *share,
                  char hash[32])
{
    const ranks_job j = {.folder = folder,
                         .name = name,
                         .model = l->trial,
                         .ranks = 2,
                         .settings = {"data.kind=synthetic", "data.train_range=0:64", "data.test_range=64:66",
                                      "batch.per_rank=2", "train.validate_every=none", "reproducible=false",
                                      share, more[0], more[1], more[2], l->settings[0], l->settings[1]}};
    int codes[RANKS_MAX];

    ranks_run(&j, codes);
    for (int r = 0; r < j.ranks; r++)
        if (!CHECK(codes[r] == 0)) printf("  %s: rank %d: code %d\n", name, r, codes[r]);
    ranks_hash(&j, hash);
    CHECK(strlen(hash) == 16);
}

static void compare(const small_trial *l, const char *const more[3], int times)
{
    char own[32], shared[32], name[128];

    snprintf(name, sizeof name, "%s-%s-%s-own", l->trial, more[0], more[2]);
    train(name, l, more, "parallel.share=never", own);
    for (int i = 0; i < times; i++) {
        snprintf(name, sizeof name, "%s-%s-%s-shared-%d", l->trial, more[0], more[2], i);
        train(name, l, more, "parallel.share=always", shared);
        if (!CHECK(strcmp(own, shared) == 0))
            printf("  %s, %s, time %d: %s, each its own %s\n", l->trial, more[0], i, shared, own);
    }
}

static void every_trial(void)
{
    for (const small_trial *l = small_trials; l->trial != NULL; l++)
        if (l->like == NULL)
            compare(l,
                    (const char *const[]){"parallel.bucket_mb=0.05",
                                          l->large ? "train.steps=1" : "train.steps=8",
                                          "parallel.accumulate=1"},
                    l->large ? 1 : TIMES);
}

/* Its critic judges with the weights that it has just been given, in the same step. */
static void aae_with_buckets_of_several_sizes(void)
{
    static const char *const buckets[] = {"parallel.bucket_mb=0.02", "parallel.bucket_mb=0.3",
                                          "parallel.bucket_mb=8"};
    const small_trial aae = {.trial = "aae", .settings = {"model.points=64"}};

    for (size_t i = 0; i < sizeof buckets / sizeof buckets[0]; i++) {
        compare(&aae, (const char *const[]){buckets[i], "train.steps=12", "parallel.accumulate=1"}, TIMES);
        compare(&aae, (const char *const[]){buckets[i], "train.steps=6", "parallel.accumulate=2"}, 1);
    }
}

int main(void)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL || setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1; /* speed is not tested */
    CHECK_RUN(every_trial);
    CHECK_RUN(aae_with_buckets_of_several_sizes);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
