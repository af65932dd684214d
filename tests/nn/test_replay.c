/* test_replay.c: the pool of earlier samples: alone it is the published buffer, and however an update is cut
 * it shows and keeps the same. */
#include <math.h>
#include <string.h>

#include "exec/compile.h"
#include "nn_test.h"

enum { WIDTH = 3, MAX_BATCH = 8 };

static int64_t capacity;

static void pooled(ls_step *s)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 1, WIDTH));

    ls_metric(s, "shown", ls_replay(s, x, "pool", capacity));
}

/* A plan for a part of an update of `update` samples, over r's variables. */
typedef struct part {
    ls_step *step;
    ls_plan *plan;
} part;

static part open_part(const nn_run *r, ls_part which, int64_t batch, int64_t update)
{
    const ls_strategy how = {.part = which, .update = update};
    part p = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_step_create(&p.step, batch, LS_TRAIN, &err), &err);
    pooled(p.step);
    REQUIRE_OK(ls_step_status(p.step, &err), &err);
    REQUIRE_OK(ls_plan_compile_as(&p.plan, ls_step_graph_take(p.step), &how, r->dev, r->state, &err), &err);
    return p;
}

static void close_part(part *p)
{
    ls_plan_destroy(p->plan);
    ls_step_destroy(p->step);
}

/* Sample i of an update is made of its number, never 0. */
static void feed(ls_plan *p, int64_t batch, int update, int64_t first)
{
    for (int64_t i = 0; i < batch * WIDTH; i++)
        tensor_put(ls_plan_input(p, "x"), i,
                   update * 100 + (int)(first + i / WIDTH) * 10 + 1 + (int)(i % WIDTH));
    ls_step_write_rng(p, 7, (uint32_t)update, (uint32_t)first);
}

/* Element i of what is shown. */
static float shown_by(const ls_plan *p, int64_t i)
{
    return (float)tensor_get(ls_plan_fetch(p, "shown"), i);
}

static void put(const ls_plan *p, const char *name, float value)
{
    tensor_put(ls_plan_input(p, name), 0, (double)value);
}

static void one_at_a_time_is_the_published_buffer(void)
{
    enum { SLOTS = 5, STEPS = 4000 };
    float pool[SLOTS] = {0};
    int swaps = 0, by_slot[SLOTS] = {0};
    nn_run r;

    capacity = SLOTS;
    r = nn_compile(pooled, 1, LS_TRAIN);
    for (int step = 0; step < STEPS; step++) {
        int slot = 0;
        float x, y;
        feed(r.plan, 1, step, 0);
        x = (float)tensor_get(nn_input(&r, "x"), 0);
        run_plan(r.plan);
        y = shown_by(r.plan, 0);
        if (step < SLOTS) {
            CHECK_EQ_INT(y, x);
            pool[step] = x;
        } else if (y != x) {
            while (slot < SLOTS && pool[slot] != y) slot++;
            REQUIRE(slot < SLOTS); /* what is shown is x or an image of the pool, which x replaces */
            pool[slot] = x;
            by_slot[slot]++;
            swaps++;
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        CHECK_EQ_INT(tensor_get(nn_var(&r, "pool.images"), i * WIDTH), pool[i]);
        /* Five standard deviations; the draws are fixed. */
        CHECK(fabs(by_slot[i] - swaps / 5.0) < 5 * sqrt(swaps * 0.2 * 0.8));
    }
    CHECK(fabs(swaps - (STEPS - SLOTS) / 2.0) < 5 * sqrt(STEPS * 0.25));
    nn_release(&r);
}

/* An update of `update` samples as one batch, and as batches of 1, 2, 3, ... */
static void cut(int64_t slots, int64_t update)
{
    nn_run whole, cut = {0};
    part gradients[MAX_BATCH + 1] = {0}, last;
    ls_err err = {0};

    capacity = slots;
    whole = nn_compile(pooled, update, LS_TRAIN);
    REQUIRE_OK(ls_device_open(&cut.dev, "cpu", 2, &err), &err);
    REQUIRE_OK(ls_state_create(&cut.state, cut.dev, &err), &err);
    for (int64_t n = 1; n <= MAX_BATCH; n++) gradients[n] = open_part(&cut, LS_PART_GRADIENTS, n, update);
    last = open_part(&cut, LS_PART_UPDATE, 1, update);
    init_state(cut.state, 1);
    for (int u = 0; u < 40; u++) {
        feed(whole.plan, update, u, 0);
        run_plan(whole.plan);
        for (int64_t at = 0, n = 1; at < update; at += n, n = n < MAX_BATCH ? n + 1 : 1) {
            if (n > update - at) n = update - at;
            feed(gradients[n].plan, n, u, at);
            put(gradients[n].plan, "gradient.weight", (float)n / (float)update);
            put(gradients[n].plan, "gradient.keep", at > 0);
            run_plan(gradients[n].plan);
            for (int64_t i = 0; i < n * WIDTH; i++)
                CHECK(shown_by(gradients[n].plan, i) == shown_by(whole.plan, at * WIDTH + i));
        }
        run_plan(last.plan);
        CHECK(tensor_equal(nn_var(&cut, "pool.images"), nn_var(&whole, "pool.images")));
        CHECK(tensor_equal(nn_var(&cut, "pool.filled"), nn_var(&whole, "pool.filled")));
    }
    for (int64_t n = 1; n <= MAX_BATCH; n++) close_part(&gradients[n]);
    close_part(&last);
    nn_release(&cut);
    nn_release(&whole);
}

static void however_an_update_is_cut(void)
{
    cut(20, 7);  /* fills in the third update */
    cut(5, 16);  /* more samples than slots */
    cut(50, 16); /* a row for every place of the update, not for every slot */
    cut(1, 2);
}

/* A batch that does not count, and a sample that never came: their slots stay empty for later ones. */
static void what_does_not_count_is_not_kept(void)
{
    nn_run r = {0};
    part one, last;
    const ls_tensor *images, *filled;
    ls_err err = {0};

    capacity = 4;
    REQUIRE_OK(ls_device_open(&r.dev, "cpu", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&r.state, r.dev, &err), &err);
    one = open_part(&r, LS_PART_GRADIENTS, 1, 3);
    last = open_part(&r, LS_PART_UPDATE, 1, 3);
    init_state(r.state, 1);
    images = nn_var(&r, "pool.images");
    filled = nn_var(&r, "pool.filled");
    for (int u = 0; u < 2; u++) {
        for (int place = 0; place < 3; place++) {
            feed(one.plan, 1, u, place);
            put(one.plan, "gradient.weight", u == 0 && place == 1 ? 0 : 1);
            put(one.plan, "gradient.keep", place > 0);
            run_plan(one.plan);
        }
        run_plan(last.plan);
        if (u == 0) {
            CHECK_EQ_INT(tensor_get(filled, 0), 1);
            CHECK_EQ_INT(tensor_get(filled, 1), 0);
            CHECK_EQ_INT(tensor_get(filled, 2), 1);
        }
    }
    CHECK_EQ_INT(tensor_get(images, 0), 1);
    CHECK_EQ_INT(tensor_get(images, WIDTH), 101);
    CHECK_EQ_INT(tensor_get(images, 2 * WIDTH), 21);
    CHECK_EQ_INT(tensor_get(images, 3 * WIDTH), 111);
    for (int i = 0; i < 4; i++) CHECK_EQ_INT(tensor_get(filled, i), 1);
    close_part(&one);
    close_part(&last);
    nn_release(&r);
}

static void evaluation_has_no_pool(void)
{
    nn_run r;

    capacity = 3;
    r = nn_compile(pooled, 2, LS_EVAL);
    CHECK(ls_state_find(r.state, "pool.images") == NULL);
    feed(r.plan, 2, 5, 0);
    run_plan(r.plan);
    CHECK(tensor_equal(nn_fetched(&r, "shown"), nn_input(&r, "x")));
    nn_release(&r);
}

static void same_pool_twice(ls_step *s)
{
    pooled(s);
    ls_replay(s, ls_constant(s, LS_SHAPE(-1, WIDTH), 1), "pool", capacity);
}

static void other_rows(ls_step *s)
{
    ls_replay(s, ls_constant(s, LS_SHAPE(5), 1), "pool", capacity);
}

static void refusals(void)
{
    ls_err err;

    capacity = 257;
    err = nn_error(pooled);
    CHECK_CONTAINS(err.text, "room for 1 to 256, got 257");
    capacity = 2;
    err = nn_error(same_pool_twice);
    CHECK_CONTAINS(err.text, "\"pool\" is used already");
    err = nn_error(other_rows);
    CHECK_CONTAINS(err.text, "a sample in each row");
}

int main(void)
{
    CHECK_RUN(one_at_a_time_is_the_published_buffer);
    CHECK_RUN(however_an_update_is_cut);
    CHECK_RUN(what_does_not_count_is_not_kept);
    CHECK_RUN(evaluation_has_no_pool);
    CHECK_RUN(refusals);
    return CHECK_DONE();
}
