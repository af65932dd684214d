/* test_replay.c: CycleGAN with its replay pools on several ranks: the same bits in the reproducible mode for
 * any number of ranks and across a resume, and nearly the same numbers in the fast modes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "ranks_test.h"

/* Sanitizers make every step ten to fifty times slower. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define WHOLE "train.steps=4"
#else
#define WHOLE "train.steps=10"
#endif

static bool rest; /* the cases that the quick test leaves out */

static char folder[] = "/tmp/lockstep-replay-XXXXXX";

typedef struct outcome {
    char hash[32];
    double loss_d; /* of the test set */
} outcome;

/* Updates of four samples; each pool of six is full after two, and an epoch ends with a short update. */
static outcome train(const char *name, int ranks, const char *steps, bool resume, const char *mode,
                     const char *extra)
{
    ranks_job j = {.folder = folder,
                   .name = name,
                   .model = "cyclegan",
                   .ranks = ranks,
                   .resume = resume,
                   .settings = {"model.size=32", "model.blocks=0", "model.width=4", "model.replay=6",
                                "data.kind=synthetic", "data.train_range=0:22", "data.test_range=22:26",
                                "batch.global=4", "parallel.shards=4", "train.validate_every=none",
                                "train.checkpoint_every=none", "train.sample_every=none",
                                "optimizer.eps=0.001", steps, mode, extra}};
    int codes[RANKS_MAX];
    outcome o = {"none", NAN};
    json_t *summary;
    const char *hash;

    ranks_run(&j, codes);
    for (int r = 0; r < ranks; r++) CHECK_EQ_INT(codes[r], 0);
    summary = ranks_summary(&j);
    hash = json_string_value(json_object_get(summary, "weights_xxh3"));
    if (hash != NULL) snprintf(o.hash, sizeof o.hash, "%s", hash);
    o.loss_d = json_real_value(
        json_object_get(json_object_get(json_object_get(summary, "metrics"), "test"), "loss_d"));
    json_decref(summary);
    return o;
}

#define SAME "reproducible=true"
#define FAST "reproducible=false"

static void check_same(const char *name, outcome a, outcome want)
{
    if (!CHECK(strcmp(a.hash, want.hash) == 0 && a.loss_d == want.loss_d))
        printf("  %s: weights %s, loss %.17g; not %s, %.17g\n", name, a.hash, a.loss_d, want.hash,
               want.loss_d);
}

static void reproducible_on_any_ranks(void)
{
    const outcome one = train("same-1", 1, WHOLE, false, SAME, NULL);

    if (!rest) {
        check_same("3 ranks", train("same-3", 3, WHOLE, false, SAME, NULL), one);
        return;
    }
    check_same("2 ranks", train("same-2", 2, WHOLE, false, SAME, NULL), one);
    check_same("4 ranks", train("same-4", 4, WHOLE, false, SAME, NULL), one);
    /* The pools matter, and with them the draws: */
    CHECK(strcmp(train("none", 1, WHOLE, false, SAME, "model.replay=0").hash, one.hash) != 0);
    train("parts", 4, "train.steps=5", false, SAME, NULL);
    check_same("4 ranks, then 2", train("parts", 2, WHOLE, true, SAME, NULL), one);
}

/* Six updates, of which the last is short: rounding has not grown yet (it does, twentyfold with every further
 * update), and without the pools the loss would be another in the fourth digit. */
static void fast_modes_do_the_same(void)
{
    static const char six[] = "train.steps=6";
    const outcome one = train("fast-1", 1, six, false, FAST, NULL);
    char picture[128];

    if (!rest) {
        CHECK_NEAR(train("fast-4", 4, six, false, FAST, "train.sample_every=4st").loss_d, one.loss_d, 2e-6);
        snprintf(picture, sizeof picture, "%s/fast-4/samples/translated-00000004.png", folder);
        CHECK(access(picture, R_OK) == 0); /* rank 0 makes pictures between steps */
        return;
    }
    CHECK(fabs(train("fast-0", 1, six, false, FAST, "model.replay=0").loss_d - one.loss_d) > 1e-4);
    CHECK_NEAR(train("added", 2, six, false, FAST, "parallel.accumulate=2").loss_d, one.loss_d, 2e-6);
    train("stopped", 1, "train.steps=4", false, FAST, NULL);
    check_same("resumed", train("stopped", 1, six, true, FAST, NULL), one);
}

int main(int argc, char **argv)
{
    char command[128];
    int rc;

    rest = argc > 1 && strcmp(argv[1], "rest") == 0;
    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(reproducible_on_any_ranks);
    CHECK_RUN(fast_modes_do_the_same);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
