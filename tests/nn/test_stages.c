/* test_stages.c: a step that trains in stages, cut in parts, does what the whole step does; what cannot be
 * cut is refused by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exec/compile.h"
#include "nn_test.h"

enum { STAGES = 3, MANY = 64 };

/* -- running a step in parts ------------------------------------------------------------------------------
 */

typedef struct parts {
    ls_device *dev;
    ls_state *state;
    int n_stages;
    ls_step *steps[2 * STAGES];
    ls_plan *plans[2 * STAGES]; /* gradients and update of each stage */
} parts;

static void compile_part(parts *p, void (*build)(ls_step *s), int64_t batch, int i)
{
    const ls_strategy how = {.part = i % 2 == 0 ? LS_PART_GRADIENTS : LS_PART_UPDATE, .stage = i / 2};
    ls_err err = {0};

    REQUIRE_OK(ls_step_create(&p->steps[i], batch, LS_TRAIN, &err), &err);
    build(p->steps[i]);
    REQUIRE_OK(
        ls_plan_compile_as(&p->plans[i], ls_step_graph_take(p->steps[i]), &how, p->dev, p->state, &err),
        &err);
    ls_step_write_defaults(p->steps[i], p->plans[i]);
    p->n_stages = ls_plan_stages(p->plans[i]);
    REQUIRE(p->n_stages <= STAGES);
}

static parts compile_parts(void (*build)(ls_step *s), int64_t batch)
{
    parts p = {.n_stages = 1};
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&p.dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&p.state, p.dev, &err), &err);
    for (int i = 0; i < 2 * p.n_stages; i++) compile_part(&p, build, batch, i);
    init_state(p.state, 1);
    return p;
}

static void release_parts(parts *p)
{
    for (int i = 0; i < 2 * p->n_stages; i++) {
        ls_plan_destroy(p->plans[i]);
        ls_step_destroy(p->steps[i]);
    }
    ls_state_destroy(p->state);
    ls_device_close(p->dev);
}

static void write(const ls_plan *p, const char *name, const float *from, int n)
{
    const ls_tensor *t = ls_plan_input(p, name);

    if (t != NULL) tensor_write(t, from, (size_t)n * sizeof *from);
}

/* One update by `n_batches` batches, each of `batch` values of input x: all through one stage, then all
 * through the next. */
static void run_parts(const parts *p, const float *x, int n_batches, int batch)
{
    for (int i = 0; i < 2 * p->n_stages; i++) {
        const float weight = 1.0f / (float)n_batches;
        for (int k = 0; k < (i % 2 == 0 ? n_batches : 1); k++) {
            const float keep = k > 0;
            write(p->plans[i], "x", x + k * batch, batch);
            write(p->plans[i], "gradient.weight", &weight, 1);
            write(p->plans[i], "gradient.keep", &keep, 1);
            ls_step_write_rng(p->plans[i], 7, 3, (uint32_t)(k * batch));
            run_plan(p->plans[i]);
        }
    }
}

/* The stage in which the host gets a metric; -1: in none or in several. */
static int stage_of(const parts *p, const char *metric)
{
    int found = -1, n = 0;

    for (int i = 0; i < 2 * p->n_stages; i++)
        if (ls_plan_fetch(p->plans[i], metric) != NULL) {
            found = i / 2;
            n++;
        }
    return n == 1 ? found : -1;
}

/* -- models ------------------------------------------------------------------------------------------------
 */

static ls_optimiser descent(void)
{
    return (ls_optimiser){.rule = LS_SGD, .lr = 0.1, .momentum = 0.5};
}

static ls_value mean(ls_value x)
{
    return ls_reduce_mean(x, LS_ALL_AXES, false);
}

/* One number for each of the samples x (N, 4), by a norm, and a draw. */
static ls_value net(ls_step *s, ls_value x, const char *name)
{
    ls_scope_push(s, "%s", name);
    x = ls_batchnorm(s, ls_linear(s, x, "a", .out = 3), "bn");
    x = ls_linear(s, ls_tanh(x), "b", .out = 4);
    x = ls_add(x, ls_draw_normal(s, "noise", LS_SHAPE(-1, 4), 0.1));
    ls_scope_pop(s);
    return x;
}

static ls_value data(ls_step *s)
{
    return ls_input(s, "x", LS_F32, LS_SHAPE(-1, 4));
}

/* As the AAE: the critic is trained on the encoder's code, then the encoder faces the new critic. */
static void build_critic(ls_step *s)
{
    ls_value x = data(s), code = net(s, x, "E"), loss_d, rec, loss_e;

    loss_d = ls_sub(mean(ls_square(net(s, code, "D"))), mean(net(s, x, "D")));
    ls_minimise(s, loss_d, "D.*", descent());
    rec = ls_mse_loss(net(s, code, "G"), x);
    loss_e = ls_sub(rec, mean(net(s, code, "D")));
    ls_minimise(s, loss_e, "E.* G.*", descent());
    ls_metric(s, "loss_d", loss_d);
    ls_metric(s, "loss_e", loss_e);
    ls_metric(s, "rec", ls_scale(rec, 2));
}

/* Two losses of the old weights, then one of the new, then the same parameters once more. */
static void build_three(ls_step *s)
{
    ls_value x = data(s), a = net(s, x, "A"), b = net(s, x, "B"), both;

    both = mean(ls_square(ls_sub(a, b)));
    ls_minimise(s, both, "A.*", descent());
    ls_minimise(s, both, "B.*", descent());
    ls_minimise(s, mean(ls_square(ls_sub(net(s, x, "A"), net(s, x, "C")))), "C.*", descent());
    ls_minimise(s, ls_mse_loss(net(s, net(s, x, "C"), "A"), x), "A.*", descent());
    ls_metric(s, "both", both);
}

static void build_at_once(ls_step *s)
{
    ls_value x = data(s), a = net(s, x, "A"), b = net(s, a, "B");

    ls_minimise(s, mean(ls_square(b)), "B.*", descent());
    ls_minimise(s, mean(ls_square(ls_sub(b, a))), "A.*", descent());
}

/* -- what is checked ---------------------------------------------------------------------------------------
 */

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = (float)sin(1.7 * i) + 0.3f * (float)(i % 5);
}

/* The largest difference of a variable between the whole step and its parts. */
static double compare(const nn_run *whole, const parts *p)
{
    double most = 0;

    for (int i = 0; i < ls_state_count(whole->state); i++) {
        const ls_tensor *a = ls_state_at(whole->state, i), *b = ls_state_find(p->state, a->name);
        REQUIRE(b != NULL);
        for (int64_t k = 0; a->dtype == LS_F32 && k < ls_shape_count(a->shape); k++) {
            const double d = fabs(tensor_get(a, k) - tensor_get(b, k));
            if (!(d <= most)) most = d;
        }
        if (a->dtype == LS_I32) CHECK_EQ_INT(tensor_get(b, 0), tensor_get(a, 0));
    }
    return most;
}

/* With one batch to an update the parts are the whole step, running statistics and momenta included. */
static void check_like_whole(void (*build)(ls_step *s), int n_stages)
{
    nn_run whole = nn_compile(build, 8, LS_TRAIN);
    parts p = compile_parts(build, 8);
    float x[MANY];
    double d;

    CHECK_EQ_INT(p.n_stages, n_stages);
    for (int step = 0; step < 3; step++) {
        fill(x, 32);
        x[step] += 1;
        write(whole.plan, "x", x, 32);
        ls_step_write_rng(whole.plan, 7, 3, 0);
        run_plan(whole.plan);
        run_parts(&p, x, 1, 32);
    }
    d = compare(&whole, &p);
    if (!CHECK(d < 1e-5)) printf("  %d stages: variables differ by %g\n", n_stages, d);
    nn_release(&whole);
    release_parts(&p);
}

static void two_stages_are_the_whole_step(void)
{
    check_like_whole(build_critic, 2);
}

static void three_stages_are_the_whole_step(void)
{
    check_like_whole(build_three, 3);
}

static void losses_of_old_weights_are_one_stage(void)
{
    check_like_whole(build_at_once, 1);
}

/* A metric comes with the stage that computes it anyway, wherever it was declared. */
static void metrics_have_their_stage(void)
{
    parts p = compile_parts(build_critic, 8);

    CHECK_EQ_INT(stage_of(&p, "loss_d"), 0);
    CHECK_EQ_INT(stage_of(&p, "loss_e"), 1);
    CHECK_EQ_INT(stage_of(&p, "rec"), 1);
    release_parts(&p);
}

/* Without norms, which see a batch at a time, four batches of two are one of eight. */
static void build_without_norm(ls_step *s)
{
    ls_value x = data(s), code = ls_tanh(ls_linear(s, x, "E", .out = 4)), loss;

    ls_minimise(s, mean(ls_square(ls_linear(s, code, "D", .out = 1))), "D.*", descent());
    loss = ls_sub(ls_mse_loss(code, x), mean(ls_linear(s, code, "D", .out = 1)));
    ls_minimise(s, loss, "E.*", descent());
}

static void several_batches_make_one_update(void)
{
    nn_run whole = nn_compile(build_without_norm, 8, LS_TRAIN);
    parts p = compile_parts(build_without_norm, 2);
    float x[MANY];
    double d;

    CHECK_EQ_INT(p.n_stages, 2);
    fill(x, 32);
    for (int step = 0; step < 3; step++) {
        write(whole.plan, "x", x, 32);
        run_plan(whole.plan);
        run_parts(&p, x, 4, 8);
    }
    d = compare(&whole, &p);
    if (!CHECK(d < 1e-5)) printf("  variables differ by %g\n", d);
    nn_release(&whole);
    release_parts(&p);
}

/* -- refusals ----------------------------------------------------------------------------------------------
 */

/* The code is that of the old encoder, but the critic that judges it was trained together with the new one.
 */
static void build_old_and_new(ls_step *s)
{
    ls_value x = data(s), code = ls_linear(s, x, "E", .out = 4);

    ls_minimise(s, mean(ls_square(ls_linear(s, code, "D", .out = 1))), "D.* E.*", descent());
    ls_minimise(s, mean(ls_mul(ls_linear(s, code, "D", .out = 1), ls_linear(s, code, "G", .out = 1))), "G.*",
                descent());
}

static void build_late_metric(ls_step *s)
{
    ls_value x = data(s);

    ls_minimise(s, mean(ls_square(ls_linear(s, x, "A", .out = 1))), "A.*", descent());
    ls_metric(s, "after", mean(ls_linear(s, x, "A", .out = 1)));
}

static void build_mixed_metric(ls_step *s)
{
    ls_value x = data(s), old = mean(ls_square(ls_linear(s, x, "A", .out = 1)));

    ls_minimise(s, old, "A.*", descent());
    ls_minimise(s, mean(ls_mul(ls_linear(s, x, "A", .out = 1), ls_linear(s, x, "B", .out = 1))), "B.*",
                descent());
    ls_metric(s, "change", ls_sub(mean(ls_square(ls_linear(s, x, "A", .out = 1))), old));
}

static void check_refused(void (*build)(ls_step *s), const char *const says[])
{
    for (int part = LS_PART_ALL; part <= LS_PART_GRADIENTS; part++) {
        ls_step *s = NULL;
        ls_graph *g;
        ls_err err = {0};
        REQUIRE_OK(ls_step_create(&s, 4, LS_TRAIN, &err), &err);
        build(s);
        g = ls_step_graph_take(s);
        ls_passes_lower(g, &(ls_strategy){.part = (ls_part)part});
        CHECK_EQ_INT(ls_graph_status(g, &err), part == LS_PART_ALL ? LS_OK : LS_INVALID);
        for (int i = 0; part != LS_PART_ALL && says[i] != NULL; i++) CHECK_CONTAINS(err.text, says[i]);
        ls_graph_destroy(g);
        ls_step_destroy(s);
    }
}

static void an_old_version_beside_a_new_one_is_refused(void)
{
    check_refused(build_old_and_new, (const char *const[]){"test_stages.c:", "the loss for \"G.*\"",
                                                           "\"E.bias\" as it was", "again after", NULL});
}

static void metrics_that_fit_no_stage_are_refused(void)
{
    check_refused(build_late_metric, (const char *const[]){"test_stages.c:", "metric \"after\"", "\"A.bias\"",
                                                           "after the last update", NULL});
    check_refused(build_mixed_metric,
                  (const char *const[]){"metric \"change\"", "\"A.bias\"", "make two of it", NULL});
}

int main(void)
{
    CHECK_RUN(two_stages_are_the_whole_step);
    CHECK_RUN(three_stages_are_the_whole_step);
    CHECK_RUN(losses_of_old_weights_are_one_stage);
    CHECK_RUN(metrics_have_their_stage);
    CHECK_RUN(several_batches_make_one_update);
    CHECK_RUN(an_old_version_beside_a_new_one_is_refused);
    CHECK_RUN(metrics_that_fit_no_stage_are_refused);
    return CHECK_DONE();
}
