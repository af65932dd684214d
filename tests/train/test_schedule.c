/* test_schedule.c: learning rates against values worked out by hand. */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "train/schedule.h"

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
    const ls_schedule s = {.base = 0.01, .peak = 0.08, .warmup_steps = 3 * 118, .rule = LS_LR_CONSTANT};
    const ls_plateau p = {0};

    for (int64_t step = 0; step < 3 * 118; step++) {
        double t = (double)(step / 118) + (double)(step % 118 + 1) / 118;
        near(ls_schedule_lr(&s, &p, step), 0.01 * (1 + t * 7 / 3));
    }
    near(ls_schedule_lr(&s, &p, 3 * 118 - 1), 0.08);
    near(ls_schedule_lr(&s, &p, 100000), 0.08);
}

static void constant_warmup_jumps(void)
{
    const ls_schedule s = {.base = 0.01, .peak = 1.28, .warmup_steps = 8, .warmup = LS_LR_WARMUP_CONSTANT};
    const ls_plateau p = {0};

    near(ls_schedule_lr(&s, &p, 7), 0.01);
    near(ls_schedule_lr(&s, &p, 8), 1.28);
}

static void schedules_end_where_they_should(void)
{
    ls_schedule s = {.base = 1, .peak = 1, .total_steps = 100, .final = 0.1};
    const ls_plateau p = {0};

    s.rule = LS_LR_COSINE;
    near(ls_schedule_lr(&s, &p, 0), 1);
    near(ls_schedule_lr(&s, &p, 50), 0.55);
    near(ls_schedule_lr(&s, &p, 100), 0.1);
    s.rule = LS_LR_LINEAR;
    near(ls_schedule_lr(&s, &p, 25), 0.775);
    near(ls_schedule_lr(&s, &p, 1000), 0.1);
    s.rule = LS_LR_STEP;
    s.every = 30;
    s.factor = 0.1;
    near(ls_schedule_lr(&s, &p, 29), 1);
    near(ls_schedule_lr(&s, &p, 30), 0.1);
    near(ls_schedule_lr(&s, &p, 60), 0.01);
    s.warmup_steps = 20;
    s.rule = LS_LR_COSINE;
    near(ls_schedule_lr(&s, &p, 60), 0.55); /* the cosine begins where the warm-up ends */
}

/* CycleGAN as published: factor 1 - max(0, e - 100) / (2000 - 100) in epoch e of 99 steps. */
static void linear_after_a_hold_in_stairs(void)
{
    const ls_schedule s = {.base = 2e-4,
                           .peak = 2e-4,
                           .rule = LS_LR_LINEAR,
                           .total_steps = 2000 * 99,
                           .hold_steps = 100 * 99,
                           .stair_steps = 99};
    const ls_plateau p = {0};

    for (int e = 0; e < 2000; e += 7)
        for (int i = 0; i < 99; i += 49)
            near(ls_schedule_lr(&s, &p, e * 99 + i), 2e-4 * (1 - fmax(0, e - 100) / 1900.0));
    near(ls_schedule_lr(&(ls_schedule){.peak = 1, .rule = LS_LR_LINEAR, .total_steps = 5, .hold_steps = 9},
                        &p, 6),
         1); /* training ends before the rate falls */
}

static void plateau_cuts_after_patience(void)
{
    const ls_schedule s = {.base = 1, .peak = 1, .rule = LS_LR_PLATEAU, .factor = 0.5, .patience = 2};
    const double values[] = {0.5, 0.6, 0.6, 0.59, 0.6, 0.7, 0.7, NAN, 0.7, 0.7};
    const int64_t cuts[] = {0, 0, 0, 0, 1, 1, 1, 1, 1, 2};
    ls_plateau p = {0};

    for (int i = 0; i < 10; i++) {
        ls_plateau_note(&s, &p, values[i], true);
        CHECK_EQ_INT(p.cuts, cuts[i]);
    }
    near(ls_schedule_lr(&s, &p, 5), 0.25);
    near(ls_schedule_lr(&(ls_schedule){.peak = 1, .rule = LS_LR_PLATEAU, .factor = 0.5, .final = 0.3}, &p, 5),
         0.3);
}

int main(void)
{
    CHECK_RUN(scaling_rules);
    CHECK_RUN(linear_warmup_is_that_of_the_published_runs);
    CHECK_RUN(constant_warmup_jumps);
    CHECK_RUN(schedules_end_where_they_should);
    CHECK_RUN(linear_after_a_hold_in_stairs);
    CHECK_RUN(plateau_cuts_after_patience);
    return CHECK_DONE();
}
