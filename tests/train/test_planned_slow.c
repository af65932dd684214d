/* test_planned_slow.c: what a run's plans say they take is what it takes, for every built-in trial, however
 * its updates are made up: in one plan, from several batches, in the reproducible mode. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "check.h"
#include "small_trials.h"
#include "train/rehearsal.h"

enum { OWN = 3 }; /* settings of the test itself */

static const char *const modes[] = {"reproducible=false", "parallel.accumulate=2", "reproducible=true"};

static void compare(const ls_rehearsal *r, size_t before, const small_trial *t, const char *mode,
                    const char *when)
{
    const ls_plan_memory m = ls_session_memory(&r->session);
    const size_t used =
        ls_mem_stats_now().live_bytes[LS_MEM_TENSOR] - before + ls_session_comm_bytes(&r->session);

    if (!CHECK(m.total == used))
        printf("  %s, %s, %s: planned %zu, used %zu\n", t->trial, mode, when, m.total, used);
    CHECK(m.weights + m.gradients + m.optimizer + m.activations + m.scratch + m.comm == m.total);
}

static void planned_is_used(const small_trial *t, const char *mode)
{
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR];
    const char *settings[OWN + SMALL_SETTINGS] = {"batch.per_rank=5", "parallel.shards=3", mode};
    ls_experiment x = {0};
    ls_rehearsal r = {0};
    ls_err err = {0};
    bool last = true;
    int n = OWN;

    for (int i = 0; i < SMALL_SETTINGS && t->settings[i] != NULL; i++) settings[n++] = t->settings[i];
    REQUIRE_OK(ls_experiment_load(&x, t->trial, settings, n, &err), &err);
    REQUIRE_OK(ls_rehearsal_open(&r, &x, 2, false, NULL, &err), &err);
    compare(&r, before, t, mode, "before the first step");
    REQUIRE_OK(ls_rehearsal_step(&r, &last, &err), &err);
    compare(&r, before, t, mode, "after it");
    ls_rehearsal_release(&r);
    ls_experiment_release(&x);
}

static void every_trial_in_every_mode(void)
{
    for (const small_trial *t = small_trials; t->trial != NULL; t++)
        for (size_t k = 0; t->like == NULL && k < sizeof modes / sizeof modes[0]; k++)
            planned_is_used(t, modes[k]);
}

int main(void)
{
    if (setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1; /* speed is not tested */
    CHECK_RUN(small_trials_check);
    CHECK_RUN(every_trial_in_every_mode);
    return CHECK_DONE();
}
