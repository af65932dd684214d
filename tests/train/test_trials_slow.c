/* test_trials_slow.c: every built-in trial trains on ranks: on 4 in the reproducible mode to the bits of one
 * rank, and on 2 otherwise with the losses of one rank, where batch norms (which see a rank's own samples) do
 * not make it another model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks_test.h"
#include "small_trials.h"

enum { STEPS = 2 };

static char folder[] = "/tmp/lockstep-trials-XXXXXX";

static int steps_of(const small_trial *l)
{
    return l->large ? 1 : STEPS;
}

/* An experiment in a file of its own: that of the same name may be another. */
static void write_experiment(const small_trial *l, char path[256])
{
    FILE *f;

    snprintf(path, 256, "%s/%s.yaml", folder, l->trial);
    f = fopen(path, "w");
    REQUIRE(f != NULL);
    fprintf(f,
            "name: %s\nmodel: {trial: %s}\n"
            "data: {kind: synthetic, train_range: \"0:20\", test_range: \"20:22\"}\n"
            "batch: {global: %d}\nparallel: {shards: %d}\n"
            "train: {steps: %d, report_every: 1st, validate_every: none}\n",
            l->trial, l->trial, l->large ? 4 : 8, l->large ? 4 : 8, steps_of(l));
    REQUIRE(fclose(f) == 0);
}

static ranks_job train(const small_trial *l, const char *name, const char *experiment, int ranks,
                       const char *mode)
{
    const ranks_job j = {.folder = folder,
                         .name = name,
                         .model = experiment,
                         .ranks = ranks,
                         .settings = {mode, l->settings[0], l->settings[1], l->settings[2]}};
    int codes[RANKS_MAX];

    ranks_run(&j, codes);
    for (int r = 0; r < ranks; r++)
        if (!CHECK(codes[r] == 0)) printf("  %s: rank %d of %d: code %d\n", name, r, ranks, codes[r]);
    return j;
}

static void same_bits(const small_trial *l, const char *experiment)
{
    char first[32] = "", hash[32], name[64];

    for (int ranks = 1; ranks <= 4; ranks += 3) {
        ranks_job j;
        snprintf(name, sizeof name, "%s-bits-%d", l->trial, ranks);
        j = train(l, name, experiment, ranks, "reproducible=true");
        ranks_hash(&j, hash);
        if (ranks == 1) snprintf(first, sizeof first, "%s", hash);
        if (!CHECK(strcmp(hash, first) == 0))
            printf("  %s on %d ranks: %s, on one %s\n", l->trial, ranks, hash, first);
    }
}

static void same_losses(const small_trial *l, const char *experiment)
{
    char name[64], metric[64];
    double first[STEPS], now[STEPS];

    snprintf(metric, sizeof metric, "train/%s_step", l->metric != NULL ? l->metric : "");
    for (int ranks = l->metric != NULL ? 1 : 2; ranks <= 2; ranks++) {
        ranks_job j;
        snprintf(name, sizeof name, "%s-losses-%d", l->trial, ranks);
        j = train(l, name, experiment, ranks, "reproducible=false");
        if (l->metric == NULL) continue;
        CHECK_EQ_INT(ranks_metric(&j, metric, ranks == 1 ? first : now, STEPS), steps_of(l));
        for (int i = 0; ranks > 1 && i < steps_of(l); i++)
            if (!CHECK(fabs(now[i] - first[i]) <= 1e-3 * fabs(first[i])))
                printf("  %s on %d ranks, step %d: %g, on one %g\n", l->trial, ranks, i, now[i], first[i]);
    }
}

static void every_trial_on_ranks(void)
{
    for (const small_trial *l = small_trials; l->trial != NULL; l++) {
        char experiment[256];
        if (l->like != NULL) continue;
        write_experiment(l, experiment);
        same_bits(l, experiment);
        same_losses(l, experiment);
    }
}

int main(void)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL || setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1; /* speed is not tested */
    CHECK_RUN(small_trials_check);
    CHECK_RUN(every_trial_on_ranks);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
