/* test_hidden.c: models on a device whose memory the host cannot see: what the layers above do with
 * variables, inputs and metrics never follows an address, and gives the bits of the reference device. */
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "ckpt/ckpt.h"
#include "ckpt/weights.h"
#include "exec/document.h"
#include "exec/state.h"
#include "exec/tensor.h"
#include "hidden.h"
#include "lockstep/trial.h"
#include "tensors.h"
#include "train/evaluate.h"
#include "train/finite.h"

enum { STEPS = 2 };

typedef struct model {
    ls_device *dev;
    ls_config *cfg;
    ls_step *step;
    ls_state *state;
    ls_plan *plan;
} model;

/* `device` NULL: the hidden one. */
static void open_model(model *m, const char *trial_name, const char *const *settings, const char *device)
{
    const ls_trial *trial;
    ls_err err = {0};

    *m = (model){0};
    if (device != NULL)
        REQUIRE_OK(ls_device_open(&m->dev, device, 1, &err), &err);
    else
        m->dev = hidden_open();
    REQUIRE_OK(ls_trial_find(&trial, trial_name, &err), &err);
    REQUIRE_OK(ls_config_create(&m->cfg, trial, &err), &err);
    for (int i = 0; settings[i] != NULL; i++) REQUIRE_OK(ls_config_set(m->cfg, settings[i], &err), &err);
    REQUIRE_OK(ls_trial_build(&m->step, trial, m->cfg, LS_TRAIN, &err), &err);
    REQUIRE_OK(ls_state_create(&m->state, m->dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&m->plan, ls_step_graph_take(m->step), m->dev, m->state, &err), &err);
}

static void close_model(model *m)
{
    ls_plan_destroy(m->plan);
    ls_state_destroy(m->state);
    ls_step_destroy(m->step);
    ls_config_destroy(m->cfg);
    ls_device_close(m->dev);
}

static ls_metric_sums train(model *m)
{
    ls_metric_sums sums = {0};
    ls_err err = {0};

    init_state(m->state, 5);
    ls_step_write_defaults(m->step, m->plan);
    ls_step_write_synthetic(m->step, m->plan, 5);
    for (uint32_t i = 0; i < STEPS; i++) {
        ls_step_write_rng(m->plan, 5, i, 0);
        run_plan(m->plan);
        REQUIRE_OK(ls_collect_metrics(m->plan, 1, &sums, &err), &err);
    }
    return sums;
}

static void check_equal(const ls_state *a, const ls_state *b)
{
    CHECK_EQ_INT(ls_state_count(a), ls_state_count(b));
    for (int i = 0; i < ls_state_count(a); i++) {
        const ls_tensor *x = ls_state_at(a, i), *y = ls_state_find(b, x->name);
        REQUIRE(y != NULL);
        if (!CHECK(tensor_equal(x, y))) printf("  %s\n", x->name);
    }
}

static uint64_t hash_of(const ls_state *s)
{
    uint64_t hash = 0;
    ls_err err = {0};

    REQUIRE_OK(ls_weights_xxh3(s, &hash, &err), &err);
    return hash;
}

/* -- training ---------------------------------------------------------------------------------------------
 */

static void check_trains_alike(const char *trial, const char *const *settings)
{
    model seen, hidden;
    ls_metric_sums a, b;

    open_model(&seen, trial, settings, "ref");
    open_model(&hidden, trial, settings, NULL);
    a = train(&seen);
    b = train(&hidden);
    check_equal(seen.state, hidden.state);
    CHECK(a.n > 0);
    CHECK_EQ_INT(a.n, b.n);
    for (int i = 0; i < a.n; i++) CHECK(isfinite(a.sum[i]) && a.sum[i] == b.sum[i]);
    CHECK(hash_of(seen.state) == hash_of(hidden.state));
    close_model(&seen);
    close_model(&hidden);
    CHECK_EQ_INT(hidden_live(), 0);
}

static const char *const small[] = {"batch.per_rank=1", NULL};

static void a_classifier(void)
{
    check_trains_alike("mnist", small);
}

/* Several networks and losses, buffers, draws. */
static void a_gan(void)
{
    check_trains_alike("dcgan-d",
                       (const char *const[]){"batch.per_rank=2", "model.size=16", "model.width=2", NULL});
}

/* -- what is done with variables --------------------------------------------------------------------------
 */

static char folder[] = "/tmp/lockstep-hidden-XXXXXX";

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *f)
{
    (void)s, (void)kind, (void)f;
    return remove(path);
}

static void checkpoints_come_and_go(void)
{
    model seen, hidden;
    char path[64];
    ls_ckpt *c = NULL;
    ls_ckpt_writer *w = NULL;
    ls_err err = {0};

    open_model(&seen, "mnist", small, "ref");
    open_model(&hidden, "mnist", small, NULL);
    (void)train(&hidden);
    init_state(seen.state, 1);
    REQUIRE_OK(ls_ckpt_writer_create(&w, folder,
                                     (ls_ckpt_keep){.last = 1, .best = 0, .larger_is_better = false},
                                     ls_ckpt_bytes(hidden.state), &err),
               &err);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 1, hidden.state, 0, NULL, NAN, &err), &err);
    REQUIRE_OK(ls_ckpt_writer_wait(w, &err), &err);
    ls_ckpt_writer_destroy(w);
    snprintf(path, sizeof path, "%s/last", folder);
    REQUIRE_OK(ls_ckpt_open(&c, path, &err), &err);
    CHECK_OK(ls_ckpt_load_state(c, seen.state, &err), &err);
    check_equal(seen.state, hidden.state);
    init_state(hidden.state, 2);
    CHECK(hash_of(seen.state) != hash_of(hidden.state));
    CHECK_OK(ls_ckpt_load_state(c, hidden.state, &err), &err);
    check_equal(seen.state, hidden.state);
    ls_ckpt_close(c);
    snprintf(path, sizeof path, "%s/direct", folder);
    REQUIRE_OK(ls_ckpt_save_state(path, hidden.state, 0, NULL, &err), &err);
    init_state(seen.state, 3);
    REQUIRE_OK(ls_ckpt_open(&c, path, &err), &err);
    CHECK_OK(ls_ckpt_load_model(c, seen.state, &err), &err);
    CHECK(hash_of(seen.state) == hash_of(hidden.state));
    ls_ckpt_close(c);
    close_model(&seen);
    close_model(&hidden);
}

static void what_is_not_finite_is_found(void)
{
    const ls_finite_place at = {7, 1, folder, false, false};
    model m;
    ls_err err = {0};

    open_model(&m, "mnist", small, NULL);
    init_state(m.state, 1);
    CHECK_OK(ls_finite_state(m.state, &at, &err), &err);
    tensor_put(ls_state_find(m.state, "fc1.weight"), 123, (double)INFINITY);
    CHECK_STATUS(ls_finite_state(m.state, &at, &err), LS_DIVERGED, &err);
    CHECK_CONTAINS(err.text, "fc1.weight is infinite");
    close_model(&m);
}

/* A view of a variable, and one of an input, are where those are; both can be read and looked at. */
static void views(void)
{
    const float x[4] = {1, 2, 3, 4};
    ls_device *hidden = hidden_open();
    ls_graph *g = NULL;
    ls_state *state = NULL;
    ls_plan *plan = NULL;
    ls_value w, in;
    uint64_t a = 0, b = 1;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_NORMAL, 1});
    in = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4));
    ls_graph_fetch(ls_reshape(w, LS_SHAPE(2, 2)), "of w");
    ls_graph_fetch(ls_reshape(in, LS_SHAPE(2, 2)), "of x");
    ls_graph_fetch(ls_add(w, in), "sum");
    REQUIRE_OK(ls_state_create(&state, hidden, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&plan, g, hidden, state, &err), &err);
    init_state(state, 1);
    ls_plan_write_input(plan, "x", 8, x + 2, 8); /* in two pieces */
    ls_plan_write_input(plan, "x", 0, x, 8);
    run_plan(plan);
    CHECK_OK(ls_tensor_hash(ls_plan_fetch(plan, "of w"), 0, &a, &err), &err);
    CHECK_OK(ls_tensor_hash(ls_state_find(state, "w"), 0, &b, &err), &err);
    CHECK(a == b);
    for (int i = 0; i < 4; i++) {
        CHECK_NEAR(tensor_get(ls_plan_fetch(plan, "of x"), i), x[i], 0);
        CHECK_NEAR(tensor_get(ls_plan_fetch(plan, "sum"), i),
                   (float)(tensor_get(ls_state_find(state, "w"), i) + (double)x[i]), 0);
    }
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(hidden);
}

/* -- failures ---------------------------------------------------------------------------------------------
 */

static void a_failed_write_fails_the_next_run(void)
{
    const float few[4] = {0};
    model m;
    ls_err err = {0};

    open_model(&m, "mnist", small, NULL);
    (void)train(&m);
    hidden_fail_at(1);
    ls_step_write_rng(m.plan, 5, 7, 0);
    hidden_fail_at(0);
    CHECK_STATUS(ls_plan_run(m.plan, &err), LS_DEVICE, &err);
    CHECK_CONTAINS(err.text, "the device is gone");
    err = (ls_err){0};
    CHECK_STATUS(ls_plan_run(m.plan, &err), LS_DEVICE,
                 &err); /* nor does a later one go on with half of its inputs */
    close_model(&m);
    open_model(&m, "mnist", small, "ref");
    (void)train(&m);
    err = (ls_err){0};
    ls_plan_write_input(m.plan, "no such input", 0, few, sizeof few);
    CHECK_OK(ls_plan_run(m.plan, &err), &err);
    ls_plan_write_input(m.plan, "rng", 8, few, sizeof few);
    CHECK_STATUS(ls_plan_run(m.plan, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "tensor \"rng\": writing 16 bytes from byte 8: it has 16");
    close_model(&m);
}

static void a_kernel_that_fails_fails_the_run(void)
{
    model m;
    ls_document d;
    char want[2048];
    ls_err err = {0};

    open_model(&m, "mnist", small, NULL);
    (void)train(&m);
    REQUIRE_OK(ls_document_make(&d, m.plan, &err), &err);
    hidden_fail_kernel_at(ls_plan_node_count(m.plan));
    CHECK_STATUS(ls_plan_run(m.plan, &err), LS_DEVICE, &err);
    /* The op, its place in the model and its sizes. */
    snprintf(want, sizeof want, "%s \"%s\" from (", d.nodes[d.n_nodes - 1].op, d.nodes[d.n_nodes - 1].layer);
    ls_document_release(&d);
    CHECK(strncmp(err.text, want, strlen(want)) == 0);
    CHECK_CONTAINS(err.text, ") to (");
    CHECK_CONTAINS(err.text, "): an illegal instruction");
    snprintf(want, sizeof want, "%s", err.text);
    err = (ls_err){0};
    CHECK_STATUS(ls_plan_run(m.plan, &err), LS_DEVICE, &err); /* its variables are worthless */
    CHECK_EQ_STR(err.text, want);
    close_model(&m);
    open_model(&m, "mnist", small, NULL);
    (void)train(&m); /* another plan does not suffer */
    close_model(&m);
    open_model(&m, "mnist", small, NULL);
    hidden_fail_kernel_at(3);
    err = (ls_err){0};
    CHECK_STATUS(ls_plan_profile(m.plan, 1, &err), LS_DEVICE, &err);
    close_model(&m);
}

static void initial_values_that_cannot_be_written(void)
{
    model m;
    ls_err err = {0};

    open_model(&m, "mnist", small, NULL);
    hidden_fail_at(3);
    CHECK_STATUS(ls_state_init(m.state, 1, &err), LS_DEVICE, &err);
    hidden_fail_at(0);
    close_model(&m);
}

int main(void)
{
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(a_classifier);
    CHECK_RUN(a_gan);
    CHECK_RUN(checkpoints_come_and_go);
    CHECK_RUN(what_is_not_finite_is_found);
    CHECK_RUN(views);
    CHECK_RUN(a_failed_write_fails_the_next_run);
    CHECK_RUN(a_kernel_that_fails_fails_the_run);
    CHECK_RUN(initial_values_that_cannot_be_written);
    rc = CHECK_DONE();
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return rc;
}
