/* test_layers.c: the table of layers: names, shapes, sums that agree with the plan, and folding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/flops.h"
#include "check.h"
#include "lockstep/trial.h"
#include "train/layers.h"

typedef struct model {
    ls_config *cfg;
    ls_device *dev;
    ls_state *state;
    ls_step *step;
    ls_plan *plan;
} model;

static model open_model(const ls_trial *trial, const char *setting)
{
    model m = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_config_create(&m.cfg, trial, &err), &err);
    if (setting != NULL) REQUIRE_OK(ls_config_set(m.cfg, setting, &err), &err);
    REQUIRE_OK(ls_config_set(m.cfg, "batch.per_rank=2", &err), &err);
    REQUIRE_OK(ls_trial_build(&m.step, trial, m.cfg, LS_TRAIN, &err), &err);
    REQUIRE_OK(ls_device_open(&m.dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&m.state, m.dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&m.plan, ls_step_graph_take(m.step), m.dev, m.state, &err), &err);
    return m;
}

static model open_named(const char *name, const char *setting)
{
    const ls_trial *trial;
    ls_err err = {0};

    REQUIRE_OK(ls_trial_find(&trial, name, &err), &err);
    return open_model(trial, setting);
}

static void close_model(model *m)
{
    ls_plan_destroy(m->plan);
    ls_state_destroy(m->state);
    ls_step_destroy(m->step);
    ls_device_close(m->dev);
    ls_config_destroy(m->cfg);
}

static const ls_layer *find(const ls_layers *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->rows[i].name, name) == 0) return &l->rows[i];
    return NULL;
}

/* The rows add up to the totals, and those are the plan's. */
static void check_sums(const ls_layers *l, const model *m)
{
    double forward = 0, step = 0;
    ls_document d;
    int64_t params = 0;
    ls_err err = {0};

    for (int i = 0; i < l->n; i++) {
        params += l->rows[i].params;
        forward += l->rows[i].forward;
        step += l->rows[i].step;
    }
    CHECK_EQ_INT(params, ls_step_count_params(m->step, "*"));
    CHECK_EQ_INT(l->params, params);
    CHECK_NEAR(forward, l->forward, 1e-9 * l->forward);
    CHECK_NEAR(step, l->step, 1e-9 * l->step);
    REQUIRE_OK(ls_document_make(&d, m->plan, &err), &err);
    CHECK_NEAR(l->step, ls_document_product_flops(&d) / 2, 1e-9 * l->step);
    ls_document_release(&d);
}

static void a_small_model(void)
{
    model m = open_named("mnist", NULL);
    ls_layers l;
    ls_text text = {0};
    const ls_layer *conv2;
    ls_err err = {0};

    REQUIRE_OK(ls_layers_of(&l, m.step, m.plan, LS_LAYER_ROWS, &err), &err);
    check_sums(&l, &m);
    CHECK_EQ_INT(l.n, 6);
    conv2 = find(&l, "conv2");
    REQUIRE(conv2 != NULL);
    CHECK_EQ_INT(conv2->params, 20 * 10 * 25 + 20);
    CHECK_EQ_INT(conv2->shape.rank, 4);
    CHECK_EQ_INT(conv2->shape.dim[3], 8);
    CHECK_NEAR(conv2->forward, 2.0 * 20 * 8 * 8 * 10 * 25, 1e-6);
    CHECK_NEAR(conv2->step, 3 * conv2->forward, 1e-6);
    CHECK_NEAR(find(&l, "conv1")->step, 2 * find(&l, "conv1")->forward, 1e-6); /* no gradient of the image */
    REQUIRE_OK(ls_layers_table(&l, &text, &err), &err);
    CHECK_CONTAINS(text.data, "conv2              20x8x8         5,020      640.00 k     1.92 M\n");
    ls_text_release(&text);
    ls_layers_release(&l);
    close_model(&m);
}

static void blocks_share_a_row(void)
{
    model m = open_named("resnet18-cifar", NULL);
    ls_layers l, all;
    const ls_layer *block;
    ls_err err = {0};

    REQUIRE_OK(ls_layers_of(&l, m.step, m.plan, LS_LAYER_ROWS, &err), &err);
    REQUIRE_OK(ls_layers_of(&all, m.step, m.plan, 0, &err), &err);
    check_sums(&l, &m);
    check_sums(&all, &m);
    CHECK_EQ_INT(l.n, 2 + 8 + 1);
    CHECK(all.n > 40);
    block = find(&l, "layer2.0");
    REQUIRE(block != NULL);
    CHECK_EQ_INT(block->n, 6);
    CHECK_EQ_INT(block->params, ls_step_count_params(m.step, "layer2.0.*"));
    CHECK_EQ_INT(block->shape.dim[1], 128);
    CHECK_EQ_INT(block->shape.dim[2], 4);
    CHECK(find(&all, "layer2.0.downsample.0") != NULL);
    CHECK(find(&all, "layer2.0") == NULL);
    ls_layers_release(&l);
    ls_layers_release(&all);
    close_model(&m);
}

static void every_model_fits_a_screen(void)
{
    static const char *const models[][2] = {{"vit-tiny", "model.depth=30"},
                                            {"cosmogan", "model.size=16"},
                                            {"wgan-gp", NULL},
                                            {"cyclegan", "model.size=32"},
                                            {"aae", "model.points=64"}};

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        model m = open_named(models[i][0], models[i][1]);
        ls_text text = {0};
        ls_layers l;
        ls_err err = {0};
        REQUIRE_OK(ls_layers_of(&l, m.step, m.plan, LS_LAYER_ROWS, &err), &err);
        if (!CHECK(l.n <= LS_LAYER_ROWS && l.n >= 3)) printf("  %s: %d rows\n", models[i][0], l.n);
        check_sums(&l, &m);
        REQUIRE_OK(ls_layers_table(&l, &text, &err), &err);
        for (char *line = strtok(text.data, "\n"); line != NULL; line = strtok(NULL, "\n"))
            if (!CHECK(strlen(line) <= 80)) printf("  too wide: %s\n", line);
        ls_text_release(&text);
        ls_layers_release(&l);
        close_model(&m);
    }
}

static void build_chain(ls_step *s, ls_config *cfg)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 4));

    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "fc%d", i);
        x = ls_relu(ls_linear(s, x, name, .out = 4));
    }
    ls_minimise(s, ls_reduce_mean(x, LS_ALL_AXES, false), "*", ls_config_optimiser(cfg));
}

/* Names that have nothing in common cannot be folded: the middle is. */
static void a_long_chain_is_cut(void)
{
    const ls_trial chain = {
        .name = "chain", .batch = 2, .optimiser = {.rule = LS_SGD, .lr = 0.1}, .build = build_chain};
    model m = open_model(&chain, NULL);
    ls_layers l;
    json_t *o;
    ls_err err = {0};

    REQUIRE_OK(ls_layers_of(&l, m.step, m.plan, 11, &err), &err);
    CHECK_EQ_INT(l.n, 11);
    check_sums(&l, &m);
    CHECK_EQ_STR(l.rows[4].name, "fc4");
    CHECK_EQ_STR(l.rows[5].name, "...");
    CHECK_EQ_INT(l.rows[5].n, 40);
    CHECK_EQ_INT(l.rows[5].params, 40 * 20);
    CHECK_EQ_STR(l.rows[10].name, "fc49");
    o = ls_layers_json(&l);
    CHECK_EQ_STR(json_string_value(json_object_get(o, "event")), "model");
    CHECK_EQ_INT(json_array_size(json_object_get(o, "layers")), 11);
    CHECK_EQ_INT(json_integer_value(json_object_get(o, "parameters")), 50 * 20);
    json_decref(o);
    ls_layers_release(&l);
    close_model(&m);
}

int main(void)
{
    CHECK_RUN(a_small_model);
    CHECK_RUN(blocks_share_a_row);
    CHECK_RUN(every_model_fits_a_screen);
    CHECK_RUN(a_long_chain_is_cut);
    return CHECK_DONE();
}
