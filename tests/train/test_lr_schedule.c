/* test_lr_schedule.c: learning rates against values worked out by hand. */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "train/lr_schedule.h"

static void near(double a, double b)
{
    if (!CHECK(fabs(a - b) <= 1e-12 * (fabs(b) + 1))) printf("  %.17g instead of %.17g\n", a, b);
}

static void scaling_rules(void)
{
    near(ls_lr_peak(LS_LR_SCALE_NONE, 0.01, 512, 64), 0.01);
    near(ls_lr_peak(LS_LR_SCALE_LINEAR, 0.01, 512, 64), 0.08);
    near(ls_lr_peak(LS_LR_SCALE_SQRT, 0.01, 256, 64), 0.02);
}

/* Horovod's callback: base * (1 + t * (N - 1) / W), t = epoch + (step + 1) / S. */
static void linear_warmup_is_that_of_the_published_runs(void)
{
    const ls_lr_schedule s = {.base = 0.01, .peak = 0.08, .warmup_steps = 3 * 118, .rule = LS_LR_CONSTANT};
    const ls_plateau p = {0};

    for (int step = 0; step < 3 * 118; step++) {
        double t = (double)(step / 118) + (double)(step % 118 + 1) / 118;
        near(ls_lr_schedule_at(&s, &p, step, 1), 0.01 * (1 + t * 7 / 3));
    }
    near(ls_lr_schedule_at(&s, &p, 3 * 118 - 1, 1), 0.08);
    near(ls_lr_schedule_at(&s, &p, 100000, 1), 0.08);
}

static void constant_warmup_jumps(void)
{
    const ls_lr_schedule s = {.base = 0.01, .peak = 1.28, .warmup_steps = 8, .warmup = LS_LR_WARMUP_CONSTANT};
    const ls_plateau p = {0};

    near(ls_lr_schedule_at(&s, &p, 7, 1), 0.01);
    near(ls_lr_schedule_at(&s, &p, 8, 1), 1.28);
}

static void schedules_end_where_they_should(void)
{
    ls_lr_schedule s = {.base = 1, .peak = 1, .total_steps = 100, .final = 0.1};
    const ls_plateau p = {0};

    s.rule = LS_LR_COSINE;
    near(ls_lr_schedule_at(&s, &p, 0, 1), 1);
    near(ls_lr_schedule_at(&s, &p, 50, 1), 0.55);
    near(ls_lr_schedule_at(&s, &p, 100, 1), 0.1);
    s.rule = LS_LR_LINEAR;
    near(ls_lr_schedule_at(&s, &p, 25, 1), 0.775);
    near(ls_lr_schedule_at(&s, &p, 1000, 1), 0.1);
    s.rule = LS_LR_STEP;
    s.every = 30;
    s.factor = 0.1;
    near(ls_lr_schedule_at(&s, &p, 29, 1), 1);
    near(ls_lr_schedule_at(&s, &p, 30, 1), 0.1);
    near(ls_lr_schedule_at(&s, &p, 60, 1), 0.01);
    s.warmup_steps = 20;
    s.rule = LS_LR_COSINE;
    near(ls_lr_schedule_at(&s, &p, 60, 1), 0.55); /* the cosine begins where the warm-up ends */
}

/* CycleGAN as published: factor 1 - max(0, e - 100) / (2000 - 100) in epoch e of 99 steps. */
static void linear_after_a_hold_in_stairs(void)
{
    const ls_lr_schedule s = {.base = 2e-4,
                              .peak = 2e-4,
                              .rule = LS_LR_LINEAR,
                              .total_steps = 2000 * 99,
                              .hold_steps = 100 * 99,
                              .stair_steps = 99};
    const ls_plateau p = {0};

    for (int e = 0; e < 2000; e += 7)
        for (int i = 0; i < 99; i += 49)
            near(ls_lr_schedule_at(&s, &p, e * 99 + i, 1), 2e-4 * (1 - fmax(0, e - 100) / 1900.0));
    near(ls_lr_schedule_at(
             &(ls_lr_schedule){.peak = 1, .rule = LS_LR_LINEAR, .total_steps = 5, .hold_steps = 9}, &p, 6, 1),
         1); /* training ends before the rate falls */
}

/* Half the batch or twice, from any step on: after the same samples the same rate, as far as the schedule
 * goes by time; the warm-up ends with the peak. */
static void another_batch_finds_its_place(void)
{
    static const ls_lr_rule rules[] = {LS_LR_CONSTANT, LS_LR_STEP, LS_LR_COSINE, LS_LR_LINEAR};
    const ls_plateau p = {0};

    for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
        const ls_lr_schedule s = {.base = 0.1,
                                  .peak = 0.8,
                                  .rule = rules[k],
                                  .warmup_steps = 6,
                                  .total_steps = 40,
                                  .every = 7,
                                  .factor = 0.5};
        for (int step = 6; step < 40; step += 2) {
            const double one = ls_lr_schedule_at(&s, &p, step, 1);
            near(ls_lr_schedule_at(&s, &p, step, 2), one);
            near(ls_lr_schedule_at(&s, &p, step, 0.5), one);
        }
        for (int step = 0; step < 6; step += 2) /* the end of the update counts */
            near(ls_lr_schedule_at(&s, &p, step, 2), ls_lr_schedule_at(&s, &p, step + 1, 1));
        near(ls_lr_schedule_at(&s, &p, 5.5, 0.5), 0.8);
        near(ls_lr_schedule_at(&s, &p, 5, 2), 0.8);
    }
}

static void plateau_cuts_after_patience(void)
{
    const ls_lr_schedule s = {.base = 1, .peak = 1, .rule = LS_LR_PLATEAU, .factor = 0.5, .patience = 2};
    const double values[] = {0.5, 0.6, 0.6, 0.59, 0.6, 0.7, 0.7, NAN, 0.7, 0.7};
    const int64_t cuts[] = {0, 0, 0, 0, 1, 1, 1, 1, 1, 2};
    ls_plateau p = {0};

    for (int i = 0; i < 10; i++) {
        ls_plateau_note(&s, &p, values[i], true);
        CHECK_EQ_INT(p.cuts, cuts[i]);
    }
    near(ls_lr_schedule_at(&s, &p, 5, 1), 0.25);
    near(ls_lr_schedule_at(&(ls_lr_schedule){.peak = 1, .rule = LS_LR_PLATEAU, .factor = 0.5, .final = 0.3},
                           &p, 5, 1),
         0.3);
}

int main(void)
{
    CHECK_RUN(scaling_rules);
    CHECK_RUN(linear_warmup_is_that_of_the_published_runs);
    CHECK_RUN(constant_warmup_jumps);
    CHECK_RUN(schedules_end_where_they_should);
    CHECK_RUN(linear_after_a_hold_in_stairs);
    CHECK_RUN(another_batch_finds_its_place);
    CHECK_RUN(plateau_cuts_after_patience);
    return CHECK_DONE();
}
