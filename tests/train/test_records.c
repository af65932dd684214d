/* test_records.c: a trial is built once per shape, however many plans are made of it. */
#include <stdio.h>

#include "check.h"
#include "config/experiment.h"
#include "train/session.h"
#include "train/shards.h"

static const ls_trial *counted;
static int builds;

static void count_build(ls_step *s, ls_config *cfg)
{
    builds++;
    counted->build(s, cfg);
}

typedef struct way {
    const char *model, *settings[4];
    int stages, builds; /* of training plans */
} way;

static const way ways[] = {
    {"mnist", {"batch.per_rank=4", "reproducible=false"}, 1, 1},
    {"mnist", {"batch.per_rank=4", "reproducible=false", "parallel.accumulate=2"}, 1, 1},
    {"aae", {"batch.per_rank=2", "reproducible=false", "parallel.accumulate=2", "model.points=24"}, 2, 1},
    /* Shards of 3 and of 2 samples, on two threads. */
    {"aae", {"batch.global=10", "reproducible=true", "parallel.shards=4", "model.points=24"}, 2, 2},
};

static void open_and_count(const way *w)
{
    ls_experiment x = {0};
    ls_session s = {0};
    ls_session_options options;
    ls_update update;
    ls_batch_plan *p;
    ls_trial trial;
    ls_err err = {0};

    REQUIRE_OK(
        ls_experiment_load(&x, w->model, w->settings, w->settings[2] == NULL ? 2 : 4 - !w->settings[3], &err),
        &err);
    counted = x.trial;
    trial = *x.trial;
    trial.build = count_build;
    update = ls_update_of(x.cfg, 1);
    options = ls_update_options(&update, x.cfg);
    options.threads = options.shards > 0 ? 2 : 1;
    builds = 0;
    REQUIRE_OK(ls_session_open(&s, &trial, x.cfg, &options, &err), &err);
    if (s.shards != NULL) REQUIRE_OK(ls_shards_prepare(s.shards, &err), &err);
    CHECK_EQ_INT(s.n_stages, w->stages);
    CHECK_EQ_INT(s.n_plans, s.shards != NULL ? 0 : w->stages); /* lanes compile what they run */
    for (int i = 0; i < s.n_stages; i++) {
        CHECK_EQ_INT(ls_session_usual(&s, i)->stage, i);
        CHECK_EQ_INT(ls_session_usual(&s, i)->batch, s.batch);
    }
    CHECK_EQ_INT(builds, w->builds);
    REQUIRE_OK(ls_session_plan(&s, LS_TRAIN, 0, 1, &p, &err), &err); /* an odd batch is another shape */
    CHECK_EQ_INT(builds, w->builds + 1);
    REQUIRE_OK(ls_session_plan(&s, LS_EVAL, 0, 1, &p, &err), &err);
    CHECK_EQ_INT(builds, w->builds + 2);
    ls_session_release(&s);
    ls_experiment_release(&x);
}

static void once_per_shape(void)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) open_and_count(&ways[i]);
}

/* More shapes than are kept: what a plan was made of stays as long as the plan. */
static void records_outlive_their_places(void)
{
    ls_experiment x = {0};
    ls_records kept = {0};
    ls_record *first, *again, *other;
    const char *const settings[] = {"batch.per_rank=4"};
    ls_err err = {0};

    REQUIRE_OK(ls_experiment_load(&x, "linear", settings, 1, &err), &err);
    for (int64_t n = 1; n < LS_RECORDS; n++) {
        REQUIRE_OK(ls_records_find(&kept, x.trial, x.cfg, &(ls_build){0}, n, &other, &err), &err);
        ls_record_release(other);
    }
    REQUIRE_OK(ls_records_find(&kept, x.trial, x.cfg, &(ls_build){0}, 100, &first, &err), &err);
    REQUIRE_OK(ls_records_find(&kept, x.trial, x.cfg, &(ls_build){0}, 100, &again, &err), &err);
    CHECK(first == again);
    ls_record_release(again);
    REQUIRE_OK(ls_records_find(&kept, x.trial, x.cfg, &(ls_build){0}, 101, &other, &err), &err);
    CHECK_EQ_INT(kept.n, LS_RECORDS);
    CHECK_EQ_INT(ls_step_batch(first->step), 100);
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 4);
    ls_record_release(other);
    ls_records_release(&kept);
    CHECK_EQ_INT(ls_step_batch(first->step), 100);
    ls_record_release(first);
    ls_experiment_release(&x);
}

/* A kernel larger than what it is laid on. */
static void build_nothing(ls_step *s, ls_config *cfg)
{
    (void)cfg;
    ls_conv(s, ls_input(s, "image", LS_F32, LS_SHAPE(-1, 3, 8, 8)), "conv1", .out = 4, .kernel = 11);
}

/* The settings are the run's: who goes on after a batch that could not be built reads them again. */
static void settings_stay_after_a_failure(void)
{
    const char *const settings[] = {"batch.per_rank=4"};
    ls_experiment x = {0};
    ls_records kept = {0};
    ls_record *none;
    ls_trial trial;
    ls_err err = {0}, wrong = {0};

    REQUIRE_OK(ls_experiment_load(&x, "linear", settings, 1, &err), &err);
    trial = *x.trial;
    trial.build = build_nothing;
    CHECK_STATUS(ls_records_find(&kept, &trial, x.cfg, &(ls_build){0}, 7, &none, &wrong), LS_INVALID, &wrong);
    CHECK(none == NULL && kept.n == 0);
    CHECK_CONTAINS(wrong.text, "conv1");
    CHECK_EQ_INT(ls_config_int(x.cfg, "batch.per_rank"), 4);
    ls_records_release(&kept);
    ls_experiment_release(&x);
}

int main(void)
{
    CHECK_RUN(once_per_shape);
    CHECK_RUN(records_outlive_their_places);
    CHECK_RUN(settings_stay_after_a_failure);
    return CHECK_DONE();
}
