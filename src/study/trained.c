/* trained.c: from the folder of a study that trains to what each training reached, and when. */
#include "study/trained.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runs/settings.h"
#include "study/study_internal.h"
#include "train/history.h"

/* Where a point trained: of several tries the last. */
static ls_status find_run(const ls_study *s, int count, int repeat, char path[LS_STUDY_PATH_MAX], ls_err *err)
{
    char name[64], file[96], next[LS_STUDY_PATH_MAX];
    ls_status st = LS_OK;

    lsi_point_name(s, count, repeat, name);
    snprintf(file, sizeof file, "runs/%s", name);
    LS_TRY(lsi_study_join(path, s->dir, file, err));
    for (int k = 2;; k++) {
        snprintf(file, sizeof file, "runs/%s-try-%d", name, k);
        LS_TRY(lsi_study_join(next, s->dir, file, err));
        if (access(next, F_OK) != 0) break;
        memcpy(path, next, sizeof next);
    }
out:
    return st;
}

static int64_t setting(const ls_run_settings *s, const char *key, int64_t missing)
{
    const char *value = ls_run_setting_value(s, key, 0);

    return value != NULL ? strtoll(value, NULL, 10) : missing;
}

/* What the run itself was told. */
static ls_status read_settings(ls_training *one, const char *run, int ranks, ls_err *err)
{
    ls_run_settings s = {0};
    int64_t global;
    ls_status st = LS_OK;

    LS_TRY(ls_run_settings_read(&s, run, err));
    global = setting(&s, "batch.global", 0);
    one->batch = global > 0
                     ? global
                     : setting(&s, "batch.per_rank", 0) * setting(&s, "parallel.accumulate", 1) * ranks;
    one->seed = setting(&s, "seed", -1);
    if (one->batch < 1 || one->seed < 0)
        LS_TRY(ls_fail(err, LS_DATA, "%s/config.yaml: batch.per_rank or seed is missing", run));
out:
    ls_run_settings_release(&s);
    return st;
}

/* Epochs of other data have other lengths. */
static ls_status check_epoch(const ls_trainings *t, const ls_training *one, const char *run, double per_epoch,
                             ls_err *err)
{
    const double expected = ceil((double)t->samples / (double)one->batch);

    if (t->samples < 1 || !(per_epoch > 0) || fabs(per_epoch - expected) < 0.51) return LS_OK;
    return ls_fail(
        err, LS_INVALID,
        "%s: its epochs have %.4g updates of %lld samples, and those of %lld samples have %.0f; is the "
        "study of other data?  --samples N says how many those of the experiment are",
        run, per_epoch, (long long)one->batch, (long long)t->samples, expected);
}

/* The validations of the run, whose accuracy is called `name`. */
static ls_status read_curve(ls_training *one, const ls_trainings *t, const char *run, const char *name,
                            ls_err *err)
{
    const double target = t->target;
    ls_past_run past = {0};
    char curve[96];
    const ls_curve *c;
    double per_epoch;
    ls_status st = LS_OK;

    LS_TRY(ls_past_run_open(&past, run, err));
    snprintf(curve, sizeof curve, "val/%s_epoch", name);
    c = ls_history_curve(&past.history, curve);
    per_epoch = ls_past_run_number(&past, NULL, "steps") / ls_past_run_number(&past, NULL, "epochs");
    LS_TRY(check_epoch(t, one, run, per_epoch, err));
    for (int64_t i = 0; c != NULL && i < c->n; i++) {
        if (!(c->value[i] >= 0 && c->value[i] <= 1)) continue;
        one->best = fmax(one->best, c->value[i]);
        if (!(c->value[i] >= target) || (one->reached && !one->at_most) || !(per_epoch > 0)) continue;
        one->reached = true;
        one->at_most = false;
        one->steps = (int64_t)ceil(c->epoch[i] * per_epoch - 1e-6);
    }
out:
    ls_past_run_release(&past);
    return st;
}

/* Its test is made after the last update. */
static ls_status add_training(ls_trainings *t, const ls_study *s, int count, int repeat,
                              const ls_study_point *p, ls_err *err)
{
    ls_training one = {
        .best = p->score, .reached = p->score >= t->target, .steps = p->steps, .at_most = true};
    char run[LS_STUDY_PATH_MAX];
    ls_status st = LS_OK;

    LS_TRY(find_run(s, count, repeat, run, err));
    if (access(run, F_OK) != 0)
        LS_TRY(ls_fail(err, LS_INVALID,
                       "%s is not there, which says the batch and the seed; leave the study out, or measure "
                       "it again",
                       run));
    LS_TRY(read_settings(&one, run, p->ranks, err));
    LS_TRY(read_curve(&one, t, run, p->score_name, err));
    if (one.steps < 1) one.steps = 1;
    LS_TRY(ls_trainings_add(t, &one, err));
out:
    return st;
}

static ls_status check_kind(const ls_study *s, const char *folder, const char *name, ls_err *err)
{
    if (!s->train)
        return ls_fail(err, LS_INVALID,
                       "--study %s: its points are benchmarks; accuracies are measured by "
                       "`lockstep scale ... --train`",
                       folder);
    if (strcmp(s->name, name) == 0) return LS_OK;
    return ls_fail(err, LS_INVALID, "--study %s: a study of %s, and this is a question about %s", folder,
                   s->name, name);
}

/* "studies/mnist-weak-trained (optimizer.lr=0.1)": other settings reach other accuracies. */
static void add_name(ls_trainings *t, const ls_study *s, const char *folder)
{
    char name[256];

    ls_text_fit(name, sizeof name, "%s", folder);
    for (int i = 0; i < s->n_settings; i++) {
        const size_t at = strlen(name);
        ls_text_fit(name + at, sizeof name - at, "%s%s%s", i == 0 ? " (" : " ", s->settings[i],
                    i == s->n_settings - 1 ? ")" : "");
    }
    ls_trainings_name(t, name);
}

ls_status ls_study_trained(ls_trainings *t, const char *folder, const char *name, ls_err *err)
{
    ls_study s = {0};
    ls_study_points p = {0};
    const int before = t->n;
    ls_status st = LS_OK;

    LS_TRY(ls_study_load(&s, folder, err));
    LS_TRY(check_kind(&s, folder, name, err));
    LS_TRY(ls_study_points_load(&p, &s, err));
    for (int i = 0; i < s.n_counts * s.repeats; i++) {
        const ls_study_point *of = &p.of[i];
        if (!p.there[i] || strncmp(of->score_name, "acc", 3) != 0 || !(of->score >= 0 && of->score <= 1))
            continue;
        LS_TRY(add_training(t, &s, s.counts[i / s.repeats], i % s.repeats + 1, of, err));
    }
    if (t->n == before)
        LS_TRY(ls_fail(err, LS_INVALID, "--study %s: there is no complete training with an accuracy in it",
                       folder));
    add_name(t, &s, folder);
out:
    ls_study_points_release(&p);
    ls_study_release(&s);
    return st;
}
