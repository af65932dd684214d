/* test_trainings.c: measured trainings: reading their CSV, and what may be said of a batch. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "predict/trainings.h"

#define HEADER "series,ranks,seed,batch,steps,end,epoch_1,best,final\n"

/* 60,000 samples: epochs of 118, 59, 30, 15 and 8 updates. */
static const char study[] = HEADER "a,8,1,512,1180,completed,0.9,0.99,0.98\n"
                                   "a,16,1,1024,590,completed,0.9,0.98,0.98\n"
                                   "a,64,1,4096,150,completed,0.5,0.985,0.98\n"
                                   "a,64,2,4096,300,completed,0.5,0.98,0.97\n"
                                   "a,64,3,4096,150,completed,0.985,0.99,0.98\n"
                                   "a,128,1,8192,80,completed,0.1,0.98,0.9\n"
                                   "a,128,2,8192,80,completed,0.1,0.97,0.97\n"
                                   "b,8,1,512,7,diverged,0.1,0.1,0\n";

static ls_trainings read_all(double target, int64_t samples, const char *series)
{
    ls_trainings t = {.target = target, .samples = samples};
    ls_err err = {0};

    REQUIRE_OK(ls_trainings_csv(&t, study, strlen(study), "study.csv", series, &err), &err);
    ls_trainings_name(&t, "study.csv");
    return t;
}

static void rows_of_a_series_are_read(void)
{
    ls_trainings t = read_all(0.98, 60000, "a");

    CHECK_EQ_INT(t.n, 7);
    CHECK(t.of[0].reached && t.of[0].at_most);
    CHECK_EQ_INT(t.of[0].steps, 1180);
    CHECK_EQ_INT(t.of[4].steps, 15); /* the first epoch reached it */
    CHECK(!t.of[4].at_most);
    CHECK(!t.of[6].reached);
    ls_trainings_release(&t);
    t = read_all(0.98, 0, "b");
    CHECK_EQ_INT(t.n, 1);
    CHECK(!t.of[0].reached);
    ls_trainings_release(&t);
}

static void measured_batches_are_answered(void)
{
    ls_trainings t = read_all(0.98, 60000, "a");
    ls_reached r;

    ls_trainings_ask(&t, 4096, &r);
    CHECK_EQ_INT(r.how, LS_REACH_MEASURED);
    CHECK_NEAR(r.steps.lo, 15, 0);
    CHECK_NEAR(r.steps.mid, 150, 0);
    CHECK_NEAR(r.steps.hi, 300, 0);
    CHECK(r.at_most);
    CHECK_EQ_INT(r.seeds, 3);
    ls_trainings_ask(&t, 8192, &r);
    CHECK_EQ_INT(r.how, LS_REACH_UNKNOWN);
    CHECK_EQ_STR(r.why, "batch 8,192: reached by 1 of 2 seeds in study.csv");
    CHECK_EQ_INT(ls_trainings_limit(&t), 4096);
    CHECK_EQ_INT(ls_trainings_next(&t, 4096), 8192);
    CHECK_EQ_INT(ls_trainings_next(&t, 8192), 0);
    ls_trainings_release(&t);
}

/* Half-way in the logarithms between 1024 and 4096: 590 and 150 updates, so sqrt(590 x 150). */
static void between_two_that_reached_it(void)
{
    ls_trainings t = read_all(0.98, 60000, "a");
    ls_reached r;

    ls_trainings_ask(&t, 2048, &r);
    CHECK_EQ_INT(r.how, LS_REACH_INTERPOLATED);
    CHECK_NEAR(r.steps.mid, 297.489496, 1e-5);
    CHECK_NEAR(r.steps.lo, 94.0744386, 1e-5); /* sqrt(590 x 15) */
    CHECK_EQ_INT(r.below, 1024);
    CHECK_EQ_INT(r.above, 4096);
    ls_trainings_release(&t);
}

static void nothing_is_said_beyond(void)
{
    ls_trainings t = read_all(0.98, 60000, "a");
    ls_reached r;

    ls_trainings_ask(&t, 16384, &r);
    CHECK_EQ_INT(r.how, LS_REACH_UNKNOWN);
    CHECK_CONTAINS(r.why, "of its neighbours in study.csv batch 8,192: reached by 1 of 2 seeds");
    ls_trainings_ask(&t, 6000, &r);
    CHECK_CONTAINS(r.why, "batch 6,000: not measured, and of its neighbours in study.csv batch 8,192");
    ls_trainings_ask(&t, 64, &r);
    CHECK_EQ_STR(r.why, "batch 64: smaller than any in study.csv; the smallest is 512");
    ls_trainings_release(&t);
    t = read_all(0.97, 60000, "a");
    ls_trainings_ask(&t, 16384, &r);
    CHECK_EQ_STR(r.why, "batch 16,384: larger than any in study.csv; the largest is 8,192");
    CHECK_EQ_INT(ls_trainings_limit(&t), 8192);
    ls_trainings_release(&t);
    t = read_all(0.999, 60000, "a");
    CHECK_EQ_INT(ls_trainings_limit(&t), 0);
    ls_trainings_ask(&t, 512, &r);
    CHECK_EQ_STR(r.why, "batch 512: reached by 0 of 1 seed in study.csv");
    ls_trainings_release(&t);
}

/* A seed counts once, and only if all of its trainings reached it. */
static void seeds_count_once(void)
{
    ls_trainings t = {.target = 0.9};
    const ls_training good = {.batch = 64, .seed = 1, .reached = true, .steps = 10};
    ls_training bad = good;
    ls_seeds s;

    REQUIRE_OK(ls_trainings_add(&t, &good, NULL), NULL);
    REQUIRE_OK(ls_trainings_add(&t, &good, NULL), NULL);
    s = ls_trainings_seeds(&t, 64);
    CHECK(s.all == 1 && s.reached == 1);
    bad.reached = false;
    REQUIRE_OK(ls_trainings_add(&t, &bad, NULL), NULL);
    s = ls_trainings_seeds(&t, 64);
    CHECK(s.all == 1 && s.reached == 0);
    ls_trainings_release(&t);
}

static const struct {
    const char *text, *says;
} refusals[] = {
    {"", "the file is empty"},
    {"\r\n\n", "the file is empty"},
    {HEADER, "only the header"},
    {"series,ranks,seed,batch,steps,end,epoch_1,best\n", "column \"final\" is missing"},
    {"series,ranks,seed,batch,steps,end,epoch_1,best,last\n", "column \"last\" is not known"},
    {"series,ranks,seed,batch,steps,end,best,best,final\n", "column \"best\" occurs twice"},
    {HEADER "a,8,1,512,1180,completed,0.9,0.99\n", "f.csv:2: 8 cells"},
    {HEADER "a,8,1,512,1180,completed,0.9,0.99,0.9,1\n", "f.csv:2: 10 cells"},
    {HEADER "a,8,1,512,1180,completed,nan,0.99,0.9\n", "epoch_1: \"nan\": expected an accuracy"},
    {HEADER "a,8,1,512,1180,completed,0.9,inf,0.9\n", "best: \"inf\""},
    {HEADER "a,8,1,512,1180,completed,0.9,99,0.9\n", "best: \"99\": expected an accuracy from 0 to 1"},
    {HEADER "a,8,1,512,1180,completed,0.9,-0.1,0.9\n", "best: \"-0.1\""},
    {HEADER "a,8,1,512,1180,completed,0.9,0.8,0.7\n", "best: \"0.8\": expected at least"},
    {HEADER "a,8,1,512,0,completed,0.9,0.99,0.9\n", "steps: \"0\": expected a whole number"},
    {HEADER "a,8,1,512,1.5,completed,0.9,0.99,0.9\n", "steps: \"1.5\""},
    {HEADER "a,8,1,5x,1180,completed,0.9,0.99,0.9\n", "batch: \"5x\""},
    {HEADER "a,8,1,513,1180,completed,0.9,0.99,0.9\n", "batch: \"513\": expected the samples of all ranks"},
    {HEADER "a,8,99999999999999999999,512,1180,completed,0.9,0.99,0.9\n", "seed: "},
    {HEADER "a,8,1,512,1180,paused,0.9,0.99,0.9\n", "end: \"paused\": expected completed or diverged"},
    {HEADER ",8,1,512,1180,completed,0.9,0.99,0.9\n", "series: \"\""},
    {HEADER "a,8,1,512,1180,completed,0.9,0.99,0.9\na,8,1,512,590,completed,0.9,0.99,0.9\n",
     "f.csv:3: series a, 8 ranks, seed 1 are in line 2 already"},
    {HEADER "a,8,1,512,1180,completed,0.9,0.99,0.9\nb,8,1,512,1180,completed,0.9,0.99,0.9\n",
     "2 series (a, b), which were trained in different ways; choose one: --study f.csv:a"},
    {HEADER "a,8,1,512,1181,completed,0.9,0.99,0.9\n", "not whole epochs of 60000 samples"},
};

static void what_makes_no_sense_is_refused(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        ls_trainings t = {.target = 0.98, .samples = 60000};
        ls_err err = {0};
        CHECK_STATUS(ls_trainings_csv(&t, refusals[i].text, strlen(refusals[i].text), "f.csv", "", &err),
                     LS_INVALID, &err);
        CHECK_CONTAINS(err.text, refusals[i].says);
        CHECK_CONTAINS(err.text, "f.csv");
        CHECK_EQ_INT(t.n, 0);
        ls_trainings_release(&t);
    }
}

static void series_and_files_are_found(void)
{
    ls_trainings t = {.target = 0.98};
    char folder[256], path[300], word[320];
    ls_err err = {0};
    FILE *f;

    CHECK_STATUS(ls_trainings_csv(&t, study, strlen(study), "f.csv", "c", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "there is no series \"c\"; there are a, b");
    CHECK_STATUS(ls_trainings_csv(&t, "a\0b", 3, "f.csv", "", &(ls_err){0}), LS_INVALID, NULL);
    check_new_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/s.csv", folder);
    f = fopen(path, "w");
    REQUIRE(f != NULL);
    fputs(study, f);
    fclose(f);
    snprintf(word, sizeof word, "%s:a", path);
    err = (ls_err){0};
    REQUIRE_OK(ls_trainings_open(&t, word, &err), &err);
    CHECK_EQ_INT(t.n, 7);
    CHECK_EQ_STR(t.from, word);
    CHECK_STATUS(ls_trainings_open(&t, "nothing.csv:a", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "--study nothing.csv");
    ls_trainings_release(&t);
}

/* As many as there may be, of one batch and seeds of their own, one of which failed: asked as often as a
 * table has rows. */
static void many_trainings_take_no_time(void)
{
    ls_trainings t = {.target = 0.98};
    ls_err err = {0};
    ls_reached r;

    for (int i = 0; i < LS_TRAININGS_MAX; i++) {
        const ls_training one = {
            .batch = 512, .seed = i * 7919 % LS_TRAININGS_MAX, .reached = i != 100, .steps = 10};
        REQUIRE_OK(ls_trainings_add(&t, &one, &err), &err);
    }
    for (int i = 0; i < 1000; i++) CHECK_EQ_INT(ls_trainings_limit(&t), 0);
    CHECK_EQ_INT(ls_trainings_seeds(&t, 512).all, LS_TRAININGS_MAX);
    CHECK_EQ_INT(ls_trainings_seeds(&t, 512).reached, LS_TRAININGS_MAX - 1);
    for (int i = 0; i < 1000; i++) ls_trainings_ask(&t, 512, &r);
    CHECK_EQ_INT(r.how, LS_REACH_UNKNOWN);
    /* A seed that failed once has failed, wherever that stands. */
    t.of[100].reached = true;
    t.of[7].seed = t.of[8].seed;
    t.of[8].reached = false;
    CHECK_EQ_INT(ls_trainings_seeds(&t, 512).all, LS_TRAININGS_MAX - 1);
    CHECK_EQ_INT(ls_trainings_seeds(&t, 512).reached, LS_TRAININGS_MAX - 2);
    t.of[8].reached = true;
    CHECK_EQ_INT(ls_trainings_limit(&t), 512);
    ls_trainings_release(&t);
}

int main(void)
{
    CHECK_RUN(rows_of_a_series_are_read);
    CHECK_RUN(measured_batches_are_answered);
    CHECK_RUN(between_two_that_reached_it);
    CHECK_RUN(nothing_is_said_beyond);
    CHECK_RUN(seeds_count_once);
    CHECK_RUN(what_makes_no_sense_is_refused);
    CHECK_RUN(series_and_files_are_found);
    CHECK_RUN(many_trainings_take_no_time);
    return CHECK_DONE();
}
