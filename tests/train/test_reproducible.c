/* test_reproducible.c: in the reproducible mode the weights are the same to the bit for any number of ranks
 * and threads, and for a run that is resumed on another number of ranks; in the default mode they need not
 * be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks_test.h"

/* Sanitizers make every step ten to fifty times slower and need only a few. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FEW_STEPS = 12, LONG = 16 };
#else
enum { FEW_STEPS = 22, LONG = 26 };
#endif

static char folder[] = "/tmp/lockstep-same-XXXXXX";

/* Dropout, momentum, a warm-up, short last batches and a validation that decides about the rate. */
#define COMMON                                                                                               \
    "data.kind=synthetic", "data.train_range=0:150", "data.test_range=150:191", "batch.global=48",           \
        "optimizer.momentum=0.9", "lr.scale=linear", "lr.warmup=7st", "lr.schedule=plateau",                 \
        "lr.patience=0", "train.validate_every=10st", "train.best_metric=val/loss", "train.best_mode=min"

typedef struct outcome {
    char hash[32], loss[64];
} outcome;

/* Trains to `steps` and notes weights and test loss. */
static outcome train(const char *model, const char *name, int ranks, int threads, int steps, bool resume,
                     const char *mode, const char *extra)
{
    char n_steps[32];
    ranks_job j = {.folder = folder,
                   .name = name,
                   .model = model,
                   .ranks = ranks,
                   .threads = threads,
                   .resume = resume,
                   .settings = {COMMON, mode, n_steps, extra}};
    int codes[RANKS_MAX];
    outcome o = {"none", "none"};
    json_t *summary;
    const char *hash;

    snprintf(n_steps, sizeof n_steps, "train.steps=%d", steps);
    ranks_run(&j, codes);
    for (int r = 0; r < ranks; r++) CHECK_EQ_INT(codes[r], 0);
    summary = ranks_summary(&j);
    hash = json_string_value(json_object_get(summary, "weights_xxh3"));
    if (hash != NULL) snprintf(o.hash, sizeof o.hash, "%s", hash);
    snprintf(o.loss, sizeof o.loss, "%.17g",
             json_real_value(
                 json_object_get(json_object_get(json_object_get(summary, "metrics"), "test"), "loss")));
    json_decref(summary);
    return o;
}

static void check_same(const char *name, outcome a, outcome want)
{
    if (!CHECK(strcmp(a.hash, want.hash) == 0 && strcmp(a.loss, want.loss) == 0))
        printf("  %s: weights %s, loss %s; not %s, %s\n", name, a.hash, a.loss, want.hash, want.loss);
}

/* The first case, and those from `from` to `end`. */
static void any_ranks_and_threads(const char *model, int steps, int from, int end, const char *extra)
{
    static const struct {
        int ranks, threads;
    } cases[] = {{1, 1}, {2, 2}, {3, 1}, {1, 2}, {1, 3}, {2, 1}, {3, 2}, {4, 1}, {8, 1}};
    outcome first = {0};

    for (int i = 0; i < end; i = i == 0 ? from : i + 1) {
        char name[64];
        outcome o;
        snprintf(name, sizeof name, "%s-%d-%d", model, cases[i].ranks, cases[i].threads);
        o = train(model, name, cases[i].ranks, cases[i].threads, steps, false, "reproducible=true", extra);
        if (i == 0) first = o;
        check_same(name, o, first);
    }
}

static void net_p_with_dropout(void)
{
    any_ranks_and_threads("mnist", FEW_STEPS, 1, 5, NULL);
}

static void net_p_on_more(void)
{
    any_ranks_and_threads("mnist", FEW_STEPS, 5, 9, NULL);
}

/* Batch norm: statistics by shard. */
static void resnet_with_batch_norm(void)
{
    any_ranks_and_threads("resnet18-cifar", 2, 1, 3, "batch.global=16");
}

static void resumed_on_other_ranks(void)
{
    const outcome whole = train("mnist", "whole", 1, 1, LONG, false, "reproducible=true", NULL);

    train("mnist", "parts", 4, 1, LONG / 2 - 3, false, "reproducible=true", NULL);
    train("mnist", "parts", 3, 1, LONG - 5, true, "reproducible=true", NULL);
    check_same("4, then 3, then 1 rank", train("mnist", "parts", 1, 2, LONG, true, "reproducible=true", NULL),
               whole);
}

/* Otherwise the tests above would prove nothing. */
static void the_default_mode_rounds_differently(void)
{
    const outcome one = train("mnist", "one", 1, 1, LONG, false, "reproducible=false", NULL);
    const outcome three = train("mnist", "three", 3, 1, LONG, false, "reproducible=false", NULL);

    CHECK(strcmp(one.hash, three.hash) != 0);
}

/* More shards, another order of additions. */
static void the_number_of_shards_counts(void)
{
    const outcome a = train("mnist", "eight", 2, 1, 10, false, "reproducible=true", "parallel.shards=8");
    const outcome b = train("mnist", "six", 2, 1, 10, false, "reproducible=true", "parallel.shards=6");
    const outcome c = train("mnist", "six3", 3, 2, 10, false, "reproducible=true", "parallel.shards=6");

    CHECK(strcmp(a.hash, b.hash) != 0);
    check_same("six shards", c, b);
}

/* `norm`: the case that takes a ResNet and its time; `more`: more ranks and threads. */
int main(int argc, char **argv)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    if (argc > 1 && strcmp(argv[1], "norm") == 0) {
        CHECK_RUN(resnet_with_batch_norm);
    } else if (argc > 1 && strcmp(argv[1], "more") == 0) {
        CHECK_RUN(net_p_on_more);
    } else {
        CHECK_RUN(net_p_with_dropout);
        CHECK_RUN(resumed_on_other_ranks);
        if (!check_is_slow_build()) CHECK_RUN(the_default_mode_rounds_differently);
        CHECK_RUN(the_number_of_shards_counts);
    }
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
