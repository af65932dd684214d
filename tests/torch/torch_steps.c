/* torch_steps.c: runs some steps of a model and writes everything another implementation needs to repeat
 * them.
 *
 * usage: torch_steps MODEL DEVICE STEPS FOLDER [key=value ...]
 * FOLDER/index.json lists tensors (name, dtype, shape, offset) of FOLDER/data.bin:
 *   init/NAME      every variable before the first step
 *   STEP/in/NAME   inputs of step STEP;  STEP/draw/NAME random draws;  STEP/out/NAME  metrics after it
 *   final/NAME     every variable after the last step
 * What a replay pool draws is the slot of each sample, or -1.
 * A dropout's draw is what it multiplies by: 0 or 1 / (1 - p). */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/compile.h"
#include "graph/graph.h"
#include "lockstep/trial.h"
#include "ops/ops.h"
#include "train/session.h"

typedef struct dump {
    FILE *bytes;
    json_t *index;
    size_t offset;
} dump;

LS_NORETURN static void die(const ls_err *err)
{
    fprintf(stderr, "torch_steps: %s\n", err->text);
    exit(1);
}

static ls_status write_chunk(void *file, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    (void)offset;
    return fwrite(chunk, 1, bytes, file) == bytes ? LS_OK
                                                  : ls_fail(err, LS_IO, "data.bin: %s", strerror(errno));
}

static void write_tensor(dump *d, const char *group, const char *name, const ls_tensor *t)
{
    json_t *shape = json_array();
    char full[256];
    ls_err err = {0};

    snprintf(full, sizeof full, "%s/%s", group, name);
    for (int i = 0; i < t->shape.rank; i++) json_array_append_new(shape, json_integer(t->shape.dim[i]));
    json_object_set_new(d->index, full,
                        json_pack("{s:s, s:o, s:I}", "dtype", ls_dtype_name(t->dtype), "shape", shape,
                                  "offset", (json_int_t)d->offset));
    if (ls_tensor_visit(t, write_chunk, d->bytes, &err) != LS_OK) die(&err);
    d->offset += t->bytes;
}

static void write_state(dump *d, const char *group, const ls_state *s)
{
    for (int i = 0; i < ls_state_count(s); i++)
        write_tensor(d, group, ls_state_at(s, i)->name, ls_state_at(s, i));
}

/* What a dropout makes of ones: the same draws, since they are a function of stream, step and sample. */
static ls_value mask_of(ls_graph *g, const ls_node *n)
{
    ls_value ones = ls_fill(g, *ls_node_in_shape(g, n, 0), LS_F32, 1.0);

    return ls_graph_add(g, &ls_op_dropout, 2, (ls_value[]){ones, {g, n->in[1]}}, n->attr);
}

/* Random draws become fetched values. */
static void prepare_random(ls_graph *g)
{
    for (int32_t i = 0, n_nodes = g->n_nodes; i < n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        const bool drop = n->op == &ls_op_dropout && !n->backward, replay = n->op == &ls_op_replay;
        if (drop || replay || n->op == &ls_op_random_normal || n->op == &ls_op_random_uniform) {
            const char *dot = strrchr(n->scope, '.');
            char name[128];
            snprintf(name, sizeof name, "draw:%s", dot != NULL ? dot + 1 : n->scope);
            ls_graph_fetch(drop ? mask_of(g, n) : (ls_value){g, n->out[replay ? 1 : 0]}, name);
        }
    }
}

static void write_step(dump *d, const ls_plan *p, int step)
{
    char group[64];

    snprintf(group, sizeof group, "%d/in", step);
    for (int i = 0; i < ls_plan_input_count(p); i++)
        write_tensor(d, group, ls_plan_input_at(p, i)->name, ls_plan_input_at(p, i));
    for (int i = 0; i < ls_plan_fetch_count(p); i++) {
        const ls_tensor *t = ls_plan_fetch_at(p, i);
        bool draw = strncmp(t->name, "draw:", 5) == 0;
        snprintf(group, sizeof group, "%d/%s", step, draw ? "draw" : "out");
        write_tensor(d, group, draw ? t->name + 5 : t->name, t);
    }
}

static void open_dump(dump *d, const char *folder)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/data.bin", folder);
    *d = (dump){fopen(path, "wb"), json_object(), 0};
    if (d->bytes == NULL) {
        perror(path);
        exit(1);
    }
}

static void close_dump(dump *d, const char *folder)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/index.json", folder);
    if (fclose(d->bytes) != 0 || json_dump_file(d->index, path, JSON_INDENT(1)) != 0) {
        perror(path);
        exit(1);
    }
    json_decref(d->index);
}

/* The settings of a run, beside those of the model, that change a step's numbers.  With fp16 losses are
 * multiplied by 1024, so that small gradients do not vanish. */
static const ls_setting run_settings[] = {
    ls_choice_setting("precision", "fp32 tf32 bf16 fp16", "of arithmetic"),
    {"parallel.clip_norm", LS_SETTING_REAL, 0, 0, 1e30, NULL, "largest norm of the gradients; 0: any", NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    ls_err err = {0};
    const ls_trial *trial;
    ls_strategy how = {0};
    ls_config *cfg;
    ls_step *s;
    ls_device *dev;
    ls_state *state;
    ls_plan *plan;
    ls_graph *g;
    dump d;
    int steps;

    if (argc < 5) {
        fprintf(stderr, "usage: torch_steps MODEL DEVICE STEPS FOLDER [key=value ...]\n");
        return 2;
    }
    steps = atoi(argv[3]);
    if (ls_trial_find(&trial, argv[1], &err) != LS_OK ||
        ls_config_create_with(&cfg, trial, run_settings, &err) != LS_OK)
        die(&err);
    for (int i = 5; i < argc; i++)
        if (ls_config_set(cfg, argv[i], &err) != LS_OK) die(&err);
    how.clip_norm = ls_config_real(cfg, "parallel.clip_norm");
    if (ls_trial_build(&s, trial, cfg, LS_TRAIN, &err) != LS_OK) die(&err);
    g = ls_step_graph_take(s);
    prepare_random(g);
    if (ls_device_open(&dev, argv[2], 0, &err) != LS_OK || ls_state_create(&state, dev, &err) != LS_OK)
        die(&err);
    how.compute = ls_session_compute(cfg);
    if (how.compute == LS_F16) how.loss_scale = 1024;
    dev->tf32 = ls_session_rounds(cfg);
    if (ls_plan_compile_as(&plan, g, &how, dev, state, &err) != LS_OK) die(&err);
    if (ls_state_init(state, (uint64_t)ls_config_int(cfg, "seed"), &err) != LS_OK) die(&err);
    ls_step_write_defaults(s, plan);
    open_dump(&d, argv[4]);
    write_state(&d, "init", state);
    for (int i = 0; i < steps; i++) {
        ls_step_write_synthetic(s, plan, (uint64_t)i + 100);
        ls_step_write_rng(plan, 1, (uint32_t)i, 0);
        if (ls_plan_run(plan, &err) != LS_OK) die(&err);
        write_step(&d, plan, i);
    }
    write_state(&d, "final", state);
    close_dump(&d, argv[4]);
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(dev);
    ls_step_destroy(s);
    ls_config_destroy(cfg);
    return 0;
}
