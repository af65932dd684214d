/* test_layout_slow.c: of the memory that a step's values share little is lost to gaps, for every trial under
 * every strategy, in training and evaluation; and a model that is a little larger takes a little more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "config/experiment.h"
#include "exec/memory.h"
#include "small_trials.h"
#include "train/outline.h"

enum { OWN = 4 };

#define MOST_LOST 1.03

static const char *const strategies[] = {"ddp", "zero1", "fsdp", "hybrid"};

static ls_plan_memory look(const char *trial, const char *const *settings, int n, const char *what)
{
    ls_experiment x = {0};
    ls_outline o = {0};
    ls_plan_memory m;
    ls_err err = {0};

    REQUIRE_OK(ls_experiment_load(&x, trial, settings, n, &err), &err);
    const ls_outline_options how = {
        .ranks = (int)ls_config_int(x.cfg, "ranks"), .threads = 1, .untimed = true, .evaluates = true};
    REQUIRE_OK(ls_outline_open(&o, x.trial, x.cfg, &how, &err), &err);
    for (int i = 0; i < o.n_plans; i++) {
        const ls_plan_layout l = ls_memory_layout(o.plans[i].plan);
        const double lost = (double)l.bytes / (double)l.live;
        if (!CHECK(l.live > 0 && l.bytes >= l.live && lost < MOST_LOST))
            printf("  %s, %s, %s: %zu bytes for %zu, %.4f times\n", trial, what, o.plans[i].part, l.bytes,
                   l.live, lost);
    }
    m = ls_outline_memory(&o);
    ls_outline_release(&o);
    ls_experiment_release(&x);
    return m;
}

static void little_is_lost_to_gaps(void)
{
    for (const small_trial *t = small_trials; t->trial != NULL; t++)
        for (size_t k = 0; k < sizeof strategies / sizeof strategies[0]; k++) {
            char strategy[64];
            const char *settings[OWN + SMALL_SETTINGS] = {"ranks=4", strategy, "batch.per_rank=6",
                                                          k % 2 == 0 ? "train.recompute=none"
                                                                     : "train.recompute=unit"};
            int n = OWN;
            snprintf(strategy, sizeof strategy, "parallel.strategy=%s", strategies[k]);
            for (int i = 0; i < SMALL_SETTINGS && t->settings[i] != NULL; i++) settings[n++] = t->settings[i];
            look(t->trial, settings, n, strategies[k]);
        }
}

/* Pieces of odd sizes, buckets that are cut otherwise: nothing of that may make a jump. */
static void memory_grows_with_the_model(void)
{
    static const char *const widths[] = {"model.width=1190", "model.width=1192", "model.width=1194",
                                         "model.width=1196", "model.width=1200", "model.width=1216",
                                         "model.width=1250"};

    for (size_t k = 0; k < sizeof strategies / sizeof strategies[0]; k++) {
        char strategy[64];
        double before = 0;
        snprintf(strategy, sizeof strategy, "parallel.strategy=%s", strategies[k]);
        for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
            const char *settings[] = {"ranks=32", strategy, "parallel.bucket_mb=0.5", widths[i]};
            const double now = (double)look("vit-tiny", settings, 4, strategies[k]).total;
            if (i > 0 && !CHECK(now < 1.12 * before && now > 0.97 * before))
                printf("  %s, %s: %.0f bytes, and %.0f with %s\n", strategies[k], widths[i], now, before,
                       widths[i - 1]);
            before = now;
        }
    }
}

int main(void)
{
    REQUIRE(setenv("LOCKSTEP_TUNE", "off", 1) == 0);
    CHECK_RUN(small_trials_check);
    CHECK_RUN(little_is_lost_to_gaps);
    CHECK_RUN(memory_grows_with_the_model);
    return CHECK_DONE();
}
