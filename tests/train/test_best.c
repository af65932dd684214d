/* test_best.c: which way a metric is better, and metrics that are not there. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "config/experiment.h"
#include "train/best.h"

static void direction_follows_the_name(void)
{
    static const char *const larger[] = {"acc",      "accuracy", "acc_b",    "top5", "val_acc",
                                         "mean.acc", "AUC",      "f1_macro", "iou",  "class/recall"};
    static const char *const smaller[] = {
        "loss", "loss_rec", "pixel_distance",   "error",  "top1_error", "acc_loss", "rmse", "perplexity",
        "x",    "",         "spectra_distance", "stopped"};

    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++)
        if (!CHECK(ls_best_is_larger(larger[i]))) printf("  %s\n", larger[i]);
    for (size_t i = 0; i < sizeof smaller / sizeof smaller[0]; i++)
        if (!CHECK(!ls_best_is_larger(smaller[i]))) printf("  %s\n", smaller[i]);
}

/* Opens with two settings; *b is valid for the direction alone. */
static ls_status open_with(const char *model, const char *one, const char *two, ls_best *b, ls_err *err)
{
    const char *settings[] = {one, two};
    ls_experiment x = {0};
    ls_status st;

    REQUIRE_OK(ls_experiment_load(&x, model, settings, 2, err), err);
    st = ls_best_open(b, x.trial, x.cfg, err);
    ls_experiment_release(&x);
    return st;
}

static void a_mode_that_is_set_wins(void)
{
    static const struct {
        const char *metric, *mode;
        bool larger;
    } cases[] = {{"train.best_metric=val/acc", "train.best_mode=auto", true},
                 {"train.best_metric=val/loss", "train.best_mode=auto", false},
                 {"train.best_metric=loss", "train.best_mode=auto", false},
                 {"train.best_metric=val/loss", "train.best_mode=max", true},
                 {"train.best_metric=val/acc", "train.best_mode=min", false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_err err = {0};
        ls_best b;
        REQUIRE_OK(open_with("mnist", cases[i].metric, cases[i].mode, &b, &err), &err);
        CHECK(b.larger == cases[i].larger);
        CHECK(ls_best_better(&b, 2, 1) == cases[i].larger);
        CHECK(ls_best_better(&b, 1, 2) == !cases[i].larger);
        CHECK(!ls_best_better(&b, 1, 1));
    }
}

static void unknown_metrics_are_refused(void)
{
    static const struct {
        const char *model, *one, *two, *says;
    } cases[] = {{"mnist", "train.best_metric=val/nosuch", "seed=1", "has val/loss, val/acc"},
                 {"mnist", "train.best_metric=train/loss", "seed=1", "has val/loss, val/acc"},
                 {"aae", "train.early_stop=2", "seed=1", "by which goes train.early_stop"},
                 {"aae", "lr.schedule=plateau", "seed=1", "by which goes lr.schedule=plateau"},
                 {"cosmogan", "train.best_metric=val/distance", "seed=1", "val/pixel_distance"},
                 {"mnist", "train.early_stop=2", "train.validate_every=none", "train.early_stop goes by val"},
                 {"mnist", "lr.schedule=plateau", "train.validate_every=none", "lr.schedule=plateau goes"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_err err = {0};
        ls_best b;
        CHECK_EQ_INT(open_with(cases[i].model, cases[i].one, cases[i].two, &b, &err), LS_INVALID);
        if (!CHECK(strstr(err.text, cases[i].says) != NULL)) printf("  %s\n", err.text);
    }
}

/* The default need not be there where nothing goes by it; metrics of distributions count, too. */
static void what_is_fine(void)
{
    ls_err err = {0};
    ls_best b;

    CHECK_OK(open_with("aae", "seed=1", "seed=1", &b, &err), &err);
    CHECK_OK(open_with("cosmogan", "train.best_metric=val/pixel_distance", "train.early_stop=3", &b, &err),
             &err);
    CHECK(!b.larger);
}

int main(void)
{
    CHECK_RUN(direction_follows_the_name);
    CHECK_RUN(a_mode_that_is_set_wins);
    CHECK_RUN(unknown_metrics_are_refused);
    CHECK_RUN(what_is_fine);
    return CHECK_DONE();
}
