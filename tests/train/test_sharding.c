/* test_sharding.c: ranks that keep pieces of a model train as ranks that have all of it: the same weights to
 * the bit in the reproducible mode for every strategy and number of ranks, and to rounding in the default
 * mode; checkpoints fit all of them; and what cannot be combined is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks_test.h"

static char folder[] = "/tmp/lockstep-sharding-XXXXXX";

/* Odd batches, a last one that some ranks have no samples of, validations between, dropout. */
#define COMMON                                                                                               \
    "data.kind=synthetic", "data.train_range=0:75", "data.test_range=75:92", "batch.global=24",              \
        "optimizer.momentum=0.9", "train.validate_every=4st", "train.best_metric=val/loss",                  \
        "train.best_mode=min", "parallel.bucket_mb=0.02"

typedef struct outcome {
    char hash[32];
    double loss;
} outcome;

typedef struct way {
    const char *model, *strategy;
    int ranks, steps;
    bool resume;
    const char *extra[4];
} way;

static outcome train(const char *name, const way *w)
{
    char steps[32], strategy[64];
    ranks_job j = {.folder = folder,
                   .name = name,
                   .model = w->model,
                   .ranks = w->ranks,
                   .resume = w->resume,
                   .settings = {COMMON, steps, strategy, w->extra[0], w->extra[1], w->extra[2], w->extra[3]}};
    int codes[RANKS_MAX];
    outcome o = {"none", 0};
    json_t *summary;
    const char *hash;

    snprintf(steps, sizeof steps, "train.steps=%d", w->steps);
    snprintf(strategy, sizeof strategy, "parallel.strategy=%s", w->strategy);
    ranks_run(&j, codes);
    for (int r = 0; r < w->ranks; r++) CHECK_EQ_INT(codes[r], 0);
    summary = ranks_summary(&j);
    hash = json_string_value(json_object_get(summary, "weights_xxh3"));
    if (hash != NULL) snprintf(o.hash, sizeof o.hash, "%s", hash);
    o.loss = json_real_value(
        json_object_get(json_object_get(json_object_get(summary, "metrics"), "test"), "loss"));
    json_decref(summary);
    return o;
}

static void check_equal(const char *name, outcome a, outcome want)
{
    if (!CHECK(strcmp(a.hash, want.hash) == 0 && a.loss == want.loss))
        printf("  %s: weights %s, loss %.9g; not %s, %.9g\n", name, a.hash, a.loss, want.hash, want.loss);
}

/* `narrow`: as far as 16 bits can tell, since a rank that has all weights may read them before they are
 * rounded. */
static void check_about(const char *name, outcome a, outcome want, bool narrow)
{
    if (!CHECK(fabs(a.loss - want.loss) <= (narrow ? 3e-3 : 1e-4) * fabs(want.loss)) ||
        !CHECK(strcmp(a.hash, "none") != 0))
        printf("  %s: loss %.9g, not %.9g; weights %s\n", name, a.loss, want.loss, a.hash);
}

static void check_close(const char *name, outcome a, outcome want)
{
    check_about(name, a, want, false);
}

static const char *const strategies[] = {"ddp", "zero1", "fsdp", "hybrid"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

/* -- the reproducible mode ----------------------------------------------------------------------------------
 */

/* On two ranks, or, as the quick test has those, on three and more, whose pieces are not all of a size. */
static int fewest(int most)
{
    return most > 2 ? 3 : 2;
}

static void same_bits(const char *model, int steps, int most, const char *a, const char *b)
{
    const way one = {model, "ddp", 1, steps, false, {"reproducible=true", a, b}};
    char name[64];

    snprintf(name, sizeof name, "same-%s-one-%s", model, a != NULL ? a : "");
    const outcome want = train(name, &one);
    for (int s = 1; s < STRATEGIES; s++)
        for (int ranks = fewest(most); ranks <= most; ranks++) {
            way w = one;
            w.strategy = strategies[s];
            w.ranks = ranks;
            snprintf(name, sizeof name, "same-%s-%s-%d-%s", model, w.strategy, ranks, a != NULL ? a : "");
            check_equal(name, train(name, &w), want);
        }
}

static void reproducible_bits_are_the_same(void)
{
    same_bits("mnist", 8, 4, NULL, NULL);
}

static void and_with_clipping(void)
{
    same_bits("mnist", 5, 3, "parallel.clip_norm=0.05", NULL);
}

static void and_in_stages(void)
{
    same_bits("aae", 3, 2, "model.points=32", "train.best_metric=val/loss_rec");
}

static void two_ranks_agree(void)
{
    same_bits("mnist", 3, 2, "parallel.clip_norm=0.05", NULL);
}

/* -- the default mode ---------------------------------------------------------------------------------------
 */

static void all_alike(const char *model, int steps, int most, const char *a, const char *b, const char *c)
{
    char name[64];

    for (int ranks = fewest(most); ranks <= most; ranks++) {
        way w = {model, "ddp", ranks, steps, false, {a, b, c}};
        snprintf(name, sizeof name, "alike-%s-%d-%s", model, ranks, a != NULL ? a : "");
        const outcome want = train(name, &w);
        for (int s = 1; s < STRATEGIES; s++) {
            w.strategy = strategies[s];
            snprintf(name, sizeof name, "alike-%s-%s-%d-%s", model, w.strategy, ranks, a != NULL ? a : "");
            check_about(name, train(name, &w), want, a != NULL && strncmp(a, "precision=", 10) == 0);
        }
    }
}

static void losses_are_those_of_ddp(void)
{
    all_alike("mnist", 8, 4, "optimizer.name=adam", "optimizer.lr=0.001", NULL);
}

static void and_accumulated(void)
{
    all_alike("mnist", 5, 3, "parallel.accumulate=3", "parallel.clip_norm=0.05", NULL);
}

static void and_clipped(void)
{
    all_alike("mnist", 5, 3, "parallel.clip_norm=0.05", NULL, NULL);
}

/* Norms of parameters that are in pieces are the true ones. */
static void norms_are_of_whole_parameters(void)
{
    all_alike("mnist", 5, 3, "optimizer.name=lars", "optimizer.weight_decay=0.01", "optimizer.lr=0.5");
    all_alike("mnist", 5, 4, "optimizer.name=lamb", "optimizer.weight_decay=0.01", "optimizer.lr=0.01");
    all_alike("mnist", 5, 3, "parallel.clip_norm=0.06", "parallel.accumulate=3", "optimizer.name=lamb");
    same_bits("mnist", 3, 3, "optimizer.name=lamb", "parallel.clip_norm=0.05");
    same_bits("mnist", 3, 3, "optimizer.name=lars", NULL);
}

/* Weights that are gathered in 16 bits are those that a rank with all of them would have cast. */
static void sixteen_bits_are_gathered(void)
{
    all_alike("mnist", 5, 3, "precision=bf16", NULL, NULL);
    all_alike("vit-tiny", 3, 3, "precision=fp16", "fp16.initial_scale=1024", NULL);
    same_bits("mnist", 3, 3, "precision=bf16", NULL);
}

/* A rank that has no samples of a batch still has pieces of the weights that the others gather. */
static void a_rank_without_samples_takes_part(void)
{
    way w = {"mnist", "ddp", 2,
             4,       false, {"data.train_range=0:17", "batch.global=16", "parallel.accumulate=2"}};
    const outcome want = train("none-ddp", &w);

    w.strategy = "fsdp";
    check_close("none-fsdp", train("none-fsdp", &w), want);
    w.extra[3] = "precision=bf16";
    w.strategy = "ddp";
    const outcome narrow = train("none-ddp-bf16", &w);
    w.strategy = "fsdp";
    check_about("none-fsdp-bf16", train("none-fsdp-bf16", &w), narrow, true);
}

/* ... and what it computes in their place moves no running statistics: the test, which reads them, finds
 * those of ddp.  Weights hardly move. */
static void and_leaves_statistics_alone(void)
{
    way w = {"resnet18-cifar",
             "ddp",
             3,
             2,
             false,
             {"data.train_range=0:19", "batch.global=12", "parallel.accumulate=2", "optimizer.lr=1e-9"}};
    const outcome want = train("statistics-ddp", &w);

    w.strategy = "fsdp";
    check_close("statistics-fsdp", train("statistics-fsdp", &w), want);
}

/* Weights that are freed after the forward pass, and those that are kept. */
static void and_gathered_once(void)
{
    way w = {"vit-tiny", "fsdp", 2, 3, false, {"parallel.reshard=never"}};
    const outcome never = train("never", &w);

    w.extra[0] = "parallel.reshard=always";
    check_equal("always", train("always", &w), never);
    w.extra[0] = "parallel.prefetch=3";
    check_equal("prefetch", train("prefetch", &w), never);
}

static void groups_are_part_of_a_machine(void)
{
    way w = {"mnist", "ddp", 4, 5, false, {NULL}};
    const outcome want = train("groups-ddp", &w);

    w.strategy = "hybrid";
    w.extra[0] = "parallel.shard_group=2";
    w.extra[1] = "parallel.verify_every=1st"; /* both groups have the same bits all the time */
    check_close("groups of 2", train("groups-2", &w), want);
}

/* -- checkpoints --------------------------------------------------------------------------------------------
 */

static void any_strategy_goes_on(void)
{
    way w = {"mnist", "ddp", 1,
             12,      false, {"reproducible=true", "optimizer.name=adam", "optimizer.lr=0.001"}};
    const outcome want = train("whole", &w);
    static const struct {
        const char *strategy;
        int ranks, steps;
    } legs[] = {{"fsdp", 4, 3}, {"ddp", 1, 5}, {"zero1", 2, 8}, {"fsdp", 3, 12}};
    outcome last = {0};

    for (size_t i = 0; i < sizeof legs / sizeof legs[0]; i++) {
        w.strategy = legs[i].strategy;
        w.ranks = legs[i].ranks;
        w.steps = legs[i].steps;
        w.resume = i > 0;
        last = train("legs", &w);
    }
    check_equal("fsdp on 4, ddp on 1, zero1 on 2, fsdp on 3", last, want);
}

/* In the default mode weights themselves are in pieces. */
static void pieces_go_on(void)
{
    way w = {"mnist", "fsdp", 3, 10, false, {"optimizer.name=adam", "optimizer.lr=0.001"}};
    const outcome want = train("pieces-whole", &w);

    w.steps = 4;
    train("pieces", &w);
    w.resume = true;
    w.steps = 10;
    check_equal("fsdp on 3, resumed", train("pieces", &w), want);
}

/* -- refusals -----------------------------------------------------------------------------------------------
 */

static void refuses(const char *name, const char *a, const char *b)
{
    ranks_job j = {.folder = folder,
                   .name = name,
                   .model = "mnist",
                   .ranks = 2,
                   .settings = {COMMON, "train.steps=1", a, b}};
    int codes[RANKS_MAX];

    ranks_run(&j, codes);
    for (int r = 0; r < 2; r++) CHECK(codes[r] != 0);
}

static void what_cannot_be_combined_is_refused(void)
{
    refuses("group", "parallel.strategy=fsdp", "parallel.shard_group=2");
    refuses("odd-group", "parallel.strategy=hybrid", "parallel.shard_group=3");
    refuses("share", "parallel.strategy=zero1", "parallel.share=always");
    refuses("prefetch", "parallel.strategy=fsdp", "parallel.prefetch=many");
}

/* `all`: every strategy on more ranks, in more ways. */
int main(int argc, char **argv)
{
    const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    if (all) {
        CHECK_RUN(reproducible_bits_are_the_same);
        CHECK_RUN(and_with_clipping);
        CHECK_RUN(and_in_stages);
        CHECK_RUN(losses_are_those_of_ddp);
        CHECK_RUN(and_accumulated);
        CHECK_RUN(and_clipped);
        CHECK_RUN(norms_are_of_whole_parameters);
        CHECK_RUN(sixteen_bits_are_gathered);
        CHECK_RUN(groups_are_part_of_a_machine);
        CHECK_RUN(any_strategy_goes_on);
        CHECK_RUN(pieces_go_on);
    } else {
        CHECK_RUN(two_ranks_agree);
        CHECK_RUN(a_rank_without_samples_takes_part);
        CHECK_RUN(and_leaves_statistics_alone);
        CHECK_RUN(what_cannot_be_combined_is_refused);
    }
    CHECK_RUN(and_gathered_once);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
