/* test_planned_slow.c: what a run's plans say they take is what it takes, for every built-in trial, however
 * its updates are made up (in one plan, from several batches, in the reproducible mode), in the host's memory
 * and in that of a device which has its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "check.h"
#include "small_trials.h"
#include "train/outline.h"
#include "train/rehearsal.h"

enum { OWN = 4 }; /* settings of the test itself */

static const char *const modes[] = {"reproducible=false", "parallel.accumulate=2", "reproducible=true"};
static const char *const devices[] = {"device=cpu", "device=far"};

typedef void what(const small_trial *t, const char *mode, const char *device);

static void compare(const ls_rehearsal *r, size_t before, const small_trial *t, const char *mode,
                    const char *when)
{
    const ls_plan_memory m = ls_session_memory(&r->session);
    const ls_device_memory device = ls_device_memory_of(r->session.dev);
    const size_t host = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR] - before;
    const size_t used = host + ls_session_comm_bytes(&r->session) + (device.own ? device.used : 0);

    if (!CHECK(m.total == used))
        printf("  %s, %s, %s: planned %zu, used %zu\n", t->trial, mode, when, m.total, used);
    CHECK(device.peak >= device.used && device.used > 0);
    if (device.own)
        CHECK_EQ_INT(host, 0);
    else
        CHECK_EQ_INT(device.used, host);
    CHECK(m.weights + m.gradients + m.optimizer + m.activations + m.scratch + m.comm == m.total);
}

static void planned_is_used(const small_trial *t, const char *mode, const char *device)
{
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR];
    const char *settings[OWN + SMALL_SETTINGS] = {"batch.per_rank=5", "parallel.shards=3", mode, device};
    ls_experiment x = {0};
    ls_rehearsal r = {0};
    ls_err err = {0};
    bool last = true;
    int n = OWN;

    for (int i = 0; i < SMALL_SETTINGS && t->settings[i] != NULL; i++) settings[n++] = t->settings[i];
    REQUIRE_OK(ls_experiment_load(&x, t->trial, settings, n, &err), &err);
    REQUIRE_OK(ls_rehearsal_open(&r, &x, 2, false, NULL, &err), &err);
    compare(&r, before, t, mode, "before the first step");
    if (strcmp(device, "device=cpu") == 0) { /* reference kernels are slow */
        REQUIRE_OK(ls_rehearsal_step(&r, &last, &err), &err);
        compare(&r, before, t, mode, "after it");
    }
    ls_rehearsal_release(&r);
    ls_experiment_release(&x);
}

/* A test pass has weights and running statistics, and what it computes in. */
static void a_test_takes_no_more(const small_trial *t, const char *mode, const char *device)
{
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_TENSOR];
    const char *settings[OWN + SMALL_SETTINGS] = {"batch.per_rank=5", "parallel.shards=3", mode, device};
    ls_experiment x = {0};
    ls_session s = {0};
    ls_outline o = {0};
    ls_err err = {0};
    int n = OWN;

    for (int i = 0; i < SMALL_SETTINGS && t->settings[i] != NULL; i++) settings[n++] = t->settings[i];
    REQUIRE_OK(ls_experiment_load(&x, t->trial, settings, n, &err), &err);
    const ls_update u = ls_update_of(x.cfg, 1);
    ls_session_options how = ls_update_options(&u, x.cfg);
    how.threads = 1;
    how.evaluates = how.tests_only = true;
    REQUIRE_OK(ls_session_open(&s, x.trial, x.cfg, &how, &err), &err);
    REQUIRE_OK(ls_outline_open(
                   &o, x.trial, x.cfg,
                   &(ls_outline_options){.ranks = 1, .threads = 1, .evaluates = true, .tests_only = true},
                   &err),
               &err);
    const ls_plan_memory m = ls_session_memory(&s), planned = ls_outline_memory(&o);
    const ls_device_memory own = ls_device_memory_of(s.dev);
    const size_t used = own.own ? own.used : ls_mem_stats_now().live_bytes[LS_MEM_TENSOR] - before;
    if (!CHECK(m.total == used && planned.total == used))
        printf("  %s, %s: planned %zu, %zu, used %zu\n", t->trial, mode, planned.total, m.total, used);
    CHECK(m.optimizer == 0 && m.gradients == 0 && m.weights > 0);
    CHECK(planned.optimizer == 0 && planned.weights == m.weights);
    ls_outline_release(&o);
    ls_session_release(&s);
    ls_experiment_release(&x);
}

/* In the host's memory in every mode; in a device's, which fills all of it with noise first and takes most of
 * the time, in one of them: all modes are met, by several trials each. */
static void for_every_trial(what *check)
{
    const int n_modes = (int)(sizeof modes / sizeof modes[0]);
    int at = 0;

    for (const small_trial *t = small_trials; t->trial != NULL; t++) {
        if (t->like != NULL) continue;
        for (int k = 0; k < n_modes; k++) check(t, modes[k], devices[0]);
        check(t, modes[at++ % n_modes], devices[1]);
    }
    CHECK(at >= 2 * n_modes);
}

static void every_trial_in_every_mode(void)
{
    for_every_trial(planned_is_used);
}

static void every_trial_in_a_test(void)
{
    for_every_trial(a_test_takes_no_more);
}

int main(void)
{
    if (setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1; /* speed is not tested */
    CHECK_RUN(small_trials_check);
    CHECK_RUN(every_trial_in_every_mode);
    CHECK_RUN(every_trial_in_a_test);
    return CHECK_DONE();
}
