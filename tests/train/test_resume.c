/* test_resume.c: a run that was interrupted ends with the same bits as one that was not, at every one of 20
 * steps; and a restore that loses anything does not.
 *
 * Dropout, momentum, a warm-up, a schedule, a shuffled set and a short last batch are all in play. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/buffer.h"
#include "check.h"
#include "ckpt/ckpt.h"
#include "train/train.h"

enum { STEPS = 24 };

static char folder[] = "/tmp/lockstep-resume-XXXXXX";

/* Trains to `steps` steps in the run `name`; returns the hash of the weights and how many steps it counts. */
static int train(const char *name, bool resume, int steps, char hash[32])
{
    char run[256], n_steps[64];
    const char *settings[] = {"data.kind=synthetic",
                              "data.train_range=0:150",
                              "data.test_range=150:190",
                              "batch.per_rank=16",
                              "optimizer.momentum=0.9",
                              "lr.scale=linear",
                              "lr.reference_batch=8",
                              "lr.warmup=7st",
                              "lr.schedule=step",
                              "lr.step_every=15st",
                              "train.checkpoint_every=5st",
                              "train.validate_every=9st",
                              "data.workers=1",
                              n_steps};
    ls_train_options o = {.threads = 1, .resume = resume, .quiet = true};
    ls_experiment x = {0};
    json_t *summary = NULL;
    bool stopped;
    int counted;
    ls_err err = {0};

    snprintf(run, sizeof run, "%s/%s", folder, name);
    snprintf(n_steps, sizeof n_steps, "train.steps=%d", steps);
    REQUIRE_OK(ls_experiment_load(&x, "mnist", settings, (int)(sizeof settings / sizeof settings[0]), &err),
               &err);
    REQUIRE_OK(resume ? ls_run_open(&o.run, run, 0, &err) : ls_run_create(&o.run, name, run, &err), &err);
    REQUIRE_OK(ls_train(&x, &o, &summary, &stopped, &err), &err);
    ls_run_close(o.run);
    snprintf(hash, 32, "%s", json_string_value(json_object_get(summary, "weights_xxh3")));
    counted = (int)json_integer_value(json_object_get(summary, "steps"));
    json_decref(summary);
    ls_experiment_release(&x);
    return counted;
}

static char whole[32];

static void every_step_can_be_the_last_before_a_pause(void)
{
    CHECK_EQ_INT(train("whole", false, STEPS, whole), STEPS);
    for (int k = 1; k <= 20; k += check_is_slow_build() ? 4 : 1) {
        char name[32], hash[32];
        snprintf(name, sizeof name, "pause-%d", k);
        CHECK_EQ_INT(train(name, false, k, hash), k);
        CHECK(strcmp(hash, whole) != 0);
        CHECK_EQ_INT(train(name, true, STEPS, hash), STEPS);
        if (!CHECK(strcmp(hash, whole) == 0)) printf("  paused after step %d: %s, not %s\n", k, hash, whole);
    }
}

/* Changes the last checkpoint of a run at step 10 and writes it anew, with hashes that fit. */
static void tamper(const char *name, void (*change)(json_t *state, ls_tensor *t))
{
    char path[256];
    ls_ckpt *c = NULL;
    ls_tensor tensors[64];
    ls_buffer memory[64];
    void *bytes[64];
    const ls_tensor *list[64];
    json_t *state;
    int n;
    ls_err err = {0};

    snprintf(path, sizeof path, "%s/%s/checkpoints/step-00000010", folder, name);
    REQUIRE_OK(ls_ckpt_open(&c, path, &err), &err);
    n = ls_ckpt_count(c);
    state = json_deep_copy(ls_ckpt_state(c));
    for (int i = 0; i < n; i++) {
        ls_ckpt_tensor t = ls_ckpt_at(c, i);
        bytes[i] = malloc(t.bytes);
        REQUIRE_OK(ls_ckpt_read(c, t.name, t.dtype, t.shape, bytes[i], &err), &err);
        memory[i] = ls_buffer_of_host(bytes[i], t.bytes);
        tensors[i] = (ls_tensor){t.name, t.dtype, t.shape, t.bytes, &memory[i], 0};
        change(state, &tensors[i]);
        list[i] = &tensors[i];
    }
    change(state, NULL);
    REQUIRE_OK(ls_ckpt_save(path, list, n, ls_ckpt_plan_hash(c), state, &err), &err);
    for (int i = 0; i < n; i++) free(bytes[i]);
    json_decref(state);
    ls_ckpt_close(c);
}

static void nothing(json_t *state, ls_tensor *t)
{
    (void)state;
    (void)t;
}

static void add_to(json_t *state, const char *key, int by)
{
    json_object_set_new(state, key, json_integer(json_integer_value(json_object_get(state, key)) + by));
}

/* The counter that dropout is keyed by, and the learning rate with it. */
static void next_random_numbers(json_t *state, ls_tensor *t)
{
    if (t == NULL) add_to(state, "step", 1);
}

static void next_sample(json_t *state, ls_tensor *t)
{
    if (t == NULL) add_to(state, "position", 1);
}

static void no_momentum(json_t *state, ls_tensor *t)
{
    ls_err err = {0};

    (void)state;
    if (t != NULL && strcmp(t->name, "fc1.weight.sgd.momentum") == 0)
        REQUIRE_OK(ls_tensor_zero(t, &err), &err);
}

static void a_broken_restore_is_noticed(void)
{
    static const struct {
        const char *name;
        void (*change)(json_t *, ls_tensor *);
        bool equal;
    } cases[] = {{"untouched", nothing, true},
                 {"rng", next_random_numbers, false},
                 {"position", next_sample, false},
                 {"momentum", no_momentum, false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char hash[32];
        (void)train(cases[i].name, false, 10, hash);
        tamper(cases[i].name, cases[i].change);
        (void)train(cases[i].name, true, STEPS, hash);
        if (!CHECK((strcmp(hash, whole) == 0) == cases[i].equal))
            printf("  %s: %s, the whole run %s\n", cases[i].name, hash, whole);
    }
}

int main(void)
{
    char command[128];
    int rc;

    /* Bits are compared: no run may choose other kernels than the one before, and timing chooses anew. */
    if (mkdtemp(folder) == NULL || setenv("LOCKSTEP_TUNE", "off", 1) != 0) return 1;
    CHECK_RUN(every_step_can_be_the_last_before_a_pause);
    CHECK_RUN(a_broken_restore_is_noticed);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
