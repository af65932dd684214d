/* test_counters.c: counters survive JSON exactly, damaged ones are named, and means count every sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "train/counters.h"

static ls_counters sample(void)
{
    ls_counters c = {.step = 781,
                     .epoch = 2,
                     .position = 4097,
                     .validations = 3,
                     .seconds = 0.1 + 0.2,
                     .plateau = {true, 0.7, 2, 1},
                     .has_best = true,
                     .best = 1.0 / 3,
                     .best_step = 500,
                     .since_best = 1,
                     .epoch_samples = 60000,
                     .step_samples = 96,
                     .owed = 1u << LS_DUE_VALIDATE | 1u << LS_DUE_SAMPLE,
                     .skipped = 7,
                     .skipped_samples = 7 * 48,
                     .last = {[LS_DUE_VALIDATE] = 0.1, [LS_DUE_PACE] = 1e-17}};

    ls_metric_add(&c.sums, "loss", 1e-300, 64);
    ls_metric_add(&c.sums, "acc", NAN, 64);
    c.sums.samples = 64;
    return c;
}

static void every_field_comes_back(void)
{
    const ls_counters a = sample();
    json_t *j = ls_counters_save(&a);
    char *text = json_dumps(j, 0);
    json_t *again = json_loads(text, 0, NULL);
    ls_counters b;
    ls_err err = {0};

    REQUIRE_OK(ls_counters_load(&b, again, &err), &err);
    CHECK_EQ_INT(b.step, a.step);
    CHECK_EQ_INT(b.position, a.position);
    CHECK(b.seconds == a.seconds && b.best == a.best && b.plateau.best == a.plateau.best);
    CHECK(b.sums.n == 2 && strcmp(b.sums.name[0], "loss") == 0 && b.sums.sum[0] == a.sums.sum[0]);
    CHECK(isnan(b.sums.sum[1]));
    CHECK_EQ_INT(b.sums.samples, 64);
    CHECK_EQ_INT(b.epoch_samples, 60000);
    CHECK_EQ_INT(b.step_samples, 96);
    CHECK_EQ_INT((int)b.owed, (int)a.owed);
    CHECK(b.skipped == a.skipped && b.skipped_samples == a.skipped_samples);
    CHECK(memcmp(b.last, a.last, sizeof a.last) == 0);
    json_decref(j);
    json_decref(again);
    free(text);
}

/* What older versions did not write is not known, which is no damage; nonsense in its place is. */
static void older_checkpoints_have_less(void)
{
    const ls_counters a = sample();
    json_t *j = ls_counters_save(&a);
    ls_counters b;
    ls_err err = {0};

    json_object_del(j, "epoch_samples");
    json_object_del(j, "step_samples");
    json_object_del(j, "last_minutes");
    REQUIRE_OK(ls_counters_load(&b, j, &err), &err);
    CHECK_EQ_INT(b.epoch_samples, 0);
    CHECK_EQ_INT(b.step_samples, 0);
    for (int i = 0; i < LS_DUE_PERIODS; i++) CHECK(b.last[i] == -1);
    json_object_set_new(j, "step_samples", json_integer(INT64_MAX));
    CHECK_EQ_INT(ls_counters_load(&b, j, &err), LS_DATA);
    json_decref(j);
}

static void what_is_missing_is_named(void)
{
    static const char *const keys[] = {"step", "epoch", "position", "pending", "seconds",
                                       "sums", "now",   "plateau",  "best"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const ls_counters a = sample();
        json_t *j = ls_counters_save(&a);
        ls_counters b;
        ls_err err = {0};
        json_object_del(j, keys[i]);
        CHECK_EQ_INT(ls_counters_load(&b, j, &err), LS_DATA);
        if (!CHECK(strstr(err.text, keys[i]) != NULL)) printf("  %s: %s\n", keys[i], err.text);
        json_decref(j);
    }
}

static void means_weigh_samples(void)
{
    ls_metric_sums m = {0};

    ls_metric_add(&m, "acc", 1.0, 64);
    ls_metric_add(&m, "loss", 2.0, 64);
    ls_metric_add(&m, "acc", 0.0, 32);
    ls_metric_add(&m, "loss", 5.0, 32);
    m.samples = 96;
    CHECK(fabs(ls_metric_mean(&m, "acc") - 64.0 / 96) < 1e-15);
    CHECK(fabs(ls_metric_mean(&m, "loss") - 3.0) < 1e-15);
    CHECK(isnan(ls_metric_mean(&m, "f1")));
}

int main(void)
{
    CHECK_RUN(every_field_comes_back);
    CHECK_RUN(older_checkpoints_have_less);
    CHECK_RUN(what_is_missing_is_named);
    CHECK_RUN(means_weigh_samples);
    return CHECK_DONE();
}
