/* test_optim_values.c: three updates of each optimiser, on every backend and type of weights, against the
 * formulas written out again here, one parameter at a time and in double; and short cases worked out by hand,
 * which check those formulas in turn. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"
#include "op_plan.h"
#include "ops/ops.h"

#define MAX_PARAMS 4
#define MAX_COUNT  6
#define N_STEPS    3

/* -- a group in a plan ------------------------------------------------------------------------------------
 */

typedef struct group {
    op_plan p;
    const ls_op *op;
    ls_optim_attr a;
    int n_states;
    ls_shape shape[MAX_PARAMS];
    ls_dtype dtype;
} group;

static ls_value named(group *g, const char *kind, int i, bool variable, ls_dtype t)
{
    char name[32];

    snprintf(name, sizeof name, "%s%d", kind, i);
    if (!variable) return ls_graph_input(g->p.g, name, t, g->shape[i]);
    return ls_graph_var(g->p.g, name, LS_VAR_PARAM, t, g->shape[i], (ls_init){LS_INIT_CONST, 0});
}

/* Adds the inputs in the order the ops want them; returns their number. */
static int add_inputs(group *g, ls_value *in)
{
    ls_dtype wide = g->dtype == LS_F64 ? LS_F64 : LS_F32;
    int n = 0;

    in[n++] = ls_graph_input(g->p.g, "lr", wide, LS_SHAPE_SCALAR);
    in[n++] = ls_graph_input(g->p.g, "scale", wide, LS_SHAPE(1));
    in[n++] = ls_graph_var(g->p.g, "t", LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    for (int i = 0; i < g->a.n; i++) in[n++] = named(g, "w", i, true, g->dtype);
    for (int i = 0; i < g->a.n; i++) in[n++] = named(g, "g", i, false, g->dtype);
    for (int i = 0; i < g->a.n && g->n_states > 0; i++) in[n++] = named(g, "s", i, true, wide);
    for (int i = 0; i < g->a.n && g->n_states > 1; i++) in[n++] = named(g, "u", i, true, wide);
    return n;
}

static void group_open(group *g, const char *device)
{
    ls_value in[3 + 4 * MAX_PARAMS], out;
    int n_in;

    g->n_states = ls_optim_states(g->op, &g->a);
    op_plan_begin(&g->p);
    n_in = add_inputs(g, in);
    out = ls_graph_add(g->p.g, g->op, n_in, in, &g->a);
    for (int k = 0; ls_value_ok(out) && k < 1 + (1 + g->n_states) * g->a.n; k++) {
        ls_value old = in[g->op->alias(n_in, &g->a, k)];
        ls_graph_advance(g->p.g, ls_graph_value(g->p.g, old.id)->var, ls_graph_out(out, k));
    }
    op_plan_compile(&g->p, device);
    init_state(g->p.state, 1);
}

static const ls_tensor *tensor(const group *g, const char *kind, int i)
{
    char name[32];

    snprintf(name, sizeof name, "%s%d", kind, i);
    return op_plan_find(&g->p, name);
}

/* -- the formulas again
 * -------------------------------------------------------------------------------------- */

typedef struct param {
    int n, rank;
    double w[MAX_COUNT], s[MAX_COUNT], u[MAX_COUNT];
} param;

typedef void (*rule)(const ls_optim_attr *a, param *p, const double *g, double lr, int t);

static double norm(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static void rule_sgd(const ls_optim_attr *a, param *p, const double *g, double lr, int t)
{
    (void)t;
    for (int i = 0; i < p->n; i++) {
        double d = g[i] + a->weight_decay * p->w[i];
        p->s[i] = a->momentum * p->s[i] + d;
        if (a->nesterov)
            p->w[i] -= lr * (d + a->momentum * p->s[i]);
        else
            p->w[i] -= lr * p->s[i];
    }
}

static void rule_adam(const ls_optim_attr *a, param *p, const double *g, double lr, int t)
{
    double c1 = 1, c2 = 1;

    for (int i = 0; i < t; i++) {
        c1 *= a->beta1;
        c2 *= a->beta2;
    }
    for (int i = 0; i < p->n; i++) {
        double d = a->form == LS_ADAM_W ? g[i] : g[i] + a->weight_decay * p->w[i];
        double old = p->w[i];
        p->s[i] += (1 - a->beta1) * (d - p->s[i]);
        p->u[i] += (1 - a->beta2) * (d * d - p->u[i]);
        if (a->form == LS_ADAM_TF)
            p->w[i] -= lr * sqrt(1 - c2) / (1 - c1) * p->s[i] / (sqrt(p->u[i]) + a->eps);
        else
            p->w[i] -= lr * (p->s[i] / (1 - c1)) / (sqrt(p->u[i] / (1 - c2)) + a->eps);
        if (a->form == LS_ADAM_W) p->w[i] -= lr * a->weight_decay * old;
    }
}

static void rule_rmsprop(const ls_optim_attr *a, param *p, const double *g, double lr, int t)
{
    (void)t;
    for (int i = 0; i < p->n; i++) {
        double d = g[i] + a->weight_decay * p->w[i];
        p->s[i] += (1 - a->alpha) * (d * d - p->s[i]);
        p->u[i] = a->momentum * p->u[i] + d / (sqrt(p->s[i]) + a->eps);
        p->w[i] -= lr * p->u[i];
    }
}

static void rule_lars(const ls_optim_attr *a, param *p, const double *g, double lr, int t)
{
    double wn = norm(p->w, p->n), gn = norm(g, p->n), ratio = 1, decay = 0;

    (void)t;
    if (p->rank >= 2) {
        decay = a->weight_decay;
        if (wn > 0 && gn > 0) ratio = a->trust * wn / (gn + decay * wn);
    }
    for (int i = 0; i < p->n; i++) {
        p->s[i] = a->momentum * p->s[i] + ratio * (g[i] + decay * p->w[i]);
        p->w[i] -= lr * p->s[i];
    }
}

static void rule_lamb(const ls_optim_attr *a, param *p, const double *g, double lr, int t)
{
    double d[MAX_COUNT], wn = norm(p->w, p->n), dn;

    for (int i = 0; i < p->n; i++) {
        p->s[i] += (1 - a->beta1) * (g[i] - p->s[i]);
        p->u[i] += (1 - a->beta2) * (g[i] * g[i] - p->u[i]);
        d[i] = p->s[i] / (1 - pow(a->beta1, t)) / (sqrt(p->u[i] / (1 - pow(a->beta2, t))) + a->eps);
        d[i] += a->weight_decay * p->w[i];
    }
    dn = norm(d, p->n);
    for (int i = 0; i < p->n; i++) p->w[i] -= lr * (wn > 0 && dn > 0 ? wn / dn : 1) * d[i];
}

/* -- trajectories
 * --------------------------------------------------------------------------------------------- */

typedef struct setting {
    const char *name;
    const ls_op *op;
    ls_optim_attr a;
    rule rule;
} setting;

static const setting settings[] = {
    {"sgd", &ls_op_sgd, {.weight_decay = 0.01}, rule_sgd},
    {"sgd momentum", &ls_op_sgd, {.momentum = 0.9, .weight_decay = 0.01}, rule_sgd},
    {"sgd nesterov", &ls_op_sgd, {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, rule_sgd},
    {"adam torch", &ls_op_adam, {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3, .weight_decay = 0.01}, rule_adam},
    {"adam tf", &ls_op_adam, {.beta1 = 0.5, .beta2 = 0.999, .eps = 1e-3, .form = LS_ADAM_TF}, rule_adam},
    {"adamw",
     &ls_op_adam,
     {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1, .form = LS_ADAM_W},
     rule_adam},
    {"rmsprop", &ls_op_rmsprop, {.alpha = 0.99, .eps = 1e-3, .weight_decay = 0.01}, rule_rmsprop},
    {"rmsprop momentum", &ls_op_rmsprop, {.alpha = 0.9, .eps = 1e-3, .momentum = 0.8}, rule_rmsprop},
    {"lars", &ls_op_lars, {.momentum = 0.9, .weight_decay = 0.01, .trust = 0.02}, rule_lars},
    {"lamb", &ls_op_lamb, {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01}, rule_lamb},
};

/* A matrix, a bias, a matrix that starts at zero, and one whose gradient is zero: the norms that lars and
 * lamb divide by.  All numbers are exact in bf16. */
static const int64_t dims[MAX_PARAMS][2] = {{2, 3}, {3, 0}, {2, 2}, {1, 2}};
static const double start[MAX_PARAMS][MAX_COUNT] = {
    {0.5, -1.25, 2, 0.125, -0.75, 1}, {1, -2, 0.5}, {0}, {3, -0.5}};
static const double gradient[N_STEPS][MAX_PARAMS][MAX_COUNT] = {
    {{0.25, 0.5, -1, 2, -0.125, 0.75}, {1, 0.5, -0.25}, {1, -1, 0.5, 2}, {0}},
    {{-0.5, 0.25, 1.5, 1, 0.5, -0.75}, {-1, 0.25, 0.5}, {0.5, 0.25, -1, 1}, {0}},
    {{1, 1, -0.25, 0.5, 0.25, 0.125}, {0.5, -0.5, 1}, {-2, 1, 0.25, 0.5}, {0}}};
static const double lrs[N_STEPS] = {0.125, 0.0625, 0.25};
static const double scales[N_STEPS] = {1, 1024, 8};

static void open_group(group *g, const setting *s, ls_dtype dtype, const char *device, param *model)
{
    *g = (group){.op = s->op, .a = s->a, .dtype = dtype};
    g->a.n = MAX_PARAMS;
    for (int i = 0; i < MAX_PARAMS; i++) {
        g->shape[i] = ls_shape_make(dims[i][1] > 0 ? 2 : 1, dims[i]);
        model[i] = (param){.n = (int)ls_shape_count(g->shape[i]), .rank = g->shape[i].rank};
        memcpy(model[i].w, start[i], sizeof start[i]);
    }
    group_open(g, device);
    for (int i = 0; i < MAX_PARAMS; i++) op_set(tensor(g, "w", i), start[i], model[i].n);
}

/* Weights that are stored in bf16 are rounded after every update; after that the model follows the stored
 * ones, so that one rounding either way does not grow. */
static void compare(const group *g, param *model, const setting *s, double tol)
{
    double tol_w = g->dtype == LS_BF16 ? 1.0 / 256 : tol;

    for (int i = 0; i < MAX_PARAMS; i++)
        for (int j = 0; j < model[i].n; j++) {
            param *m = &model[i];
            double w = tensor_get(tensor(g, "w", i), j);
            bool ok = CHECK_NEAR(w, m->w[j], tol_w * (1 + fabs(m->w[j])));
            m->w[j] = g->dtype == LS_BF16 ? w : m->w[j];
            if (g->n_states > 0) ok = CHECK_NEAR(tensor_get(tensor(g, "s", i), j), m->s[j], tol) && ok;
            if (g->n_states > 1) ok = CHECK_NEAR(tensor_get(tensor(g, "u", i), j), m->u[j], tol) && ok;
            if (!ok) fprintf(stderr, "  in %s, %s, parameter %d\n", s->name, ls_dtype_name(g->dtype), i);
        }
}

/* A loss scale of 0: whatever the gradients are, nothing changes, and the next update is as if this one had
 * not been. */
static void leave_out(group *g, const param *model, int updates)
{
    tensor_put(op_plan_find(&g->p, "scale"), 0, 0);
    for (int i = 0; i < MAX_PARAMS; i++)
        for (int j = 0; j < model[i].n; j++)
            tensor_put(tensor(g, "g", i), j, j % 3 == 0 ? NAN : j % 3 == 1 ? INFINITY : 1);
    run_plan(g->p.plan);
    CHECK_NEAR(tensor_get(op_plan_find(&g->p, "t"), 0), updates, 0);
}

static void follow(const setting *s, ls_dtype dtype, const char *device)
{
    group g;
    param model[MAX_PARAMS];
    double tol = dtype == LS_F64 ? 1e-13 : 2e-6;

    open_group(&g, s, dtype, device, model);
    for (int step = 0; step < N_STEPS; step++) {
        tensor_put(op_plan_find(&g.p, "lr"), 0, lrs[step]);
        tensor_put(op_plan_find(&g.p, "scale"), 0, scales[step]);
        for (int i = 0; i < MAX_PARAMS; i++) {
            for (int j = 0; j < model[i].n; j++)
                tensor_put(tensor(&g, "g", i), j, gradient[step][i][j] * scales[step]);
            s->rule(&g.a, &model[i], gradient[step][i], lrs[step], step + 1);
        }
        run_plan(g.p.plan);
        CHECK_NEAR(tensor_get(op_plan_find(&g.p, "t"), 0), step + 1, 0);
        compare(&g, model, s, tol);
        leave_out(&g, model, step + 1);
        compare(&g, model, s, tol);
    }
    op_plan_end(&g.p);
}

static void trajectories(void)
{
    for (size_t k = 0; k < sizeof settings / sizeof settings[0]; k++) {
        follow(&settings[k], LS_F64, "ref");
        for (int i = 0; ls_backends[i] != NULL; i++) {
            if (!device_is_tested(ls_backends[i])) continue;
            follow(&settings[k], LS_F32, ls_backends[i]->name);
            follow(&settings[k], LS_BF16, ls_backends[i]->name);
        }
    }
}

/* -- by hand
 * -------------------------------------------------------------------------------------------------- */

/* Three updates of the weights (w[0], w[1]), a matrix (1, 2), with a constant gradient; `want` holds w[0],
 * w[1] after each. */
static void by_hand(const ls_op *op, ls_optim_attr a, double lr, const double *w, const double *grad,
                    const double *want)
{
    group g = {.op = op, .a = a, .dtype = LS_F64};

    g.a.n = 1;
    g.shape[0] = LS_SHAPE(1, 2);
    group_open(&g, "ref");
    tensor_put(op_plan_find(&g.p, "lr"), 0, lr);
    tensor_put(op_plan_find(&g.p, "scale"), 0, 1);
    op_set(tensor(&g, "w", 0), w, 2);
    op_set(tensor(&g, "g", 0), grad, 2);
    for (int step = 0; step < N_STEPS; step++) {
        run_plan(g.p.plan);
        for (int j = 0; j < 2; j++)
            if (!CHECK_NEAR(tensor_get(tensor(&g, "w", 0), j), want[2 * step + j], 1e-12))
                fprintf(stderr, "  in %s by hand, update %d, element %d\n", op->name, step + 1, j);
    }
    op_plan_end(&g.p);
}

#define PAIRS(...) ((const double[]){__VA_ARGS__})

static void sgd_by_hand(void)
{
    by_hand(&ls_op_sgd, (ls_optim_attr){0}, 0.1, PAIRS(1, 0), PAIRS(0.5, -1),
            PAIRS(0.95, 0.1, 0.9, 0.2, 0.85, 0.3));
    /* g = 0.5: v = 0.5, 0.95, 1.355 */
    by_hand(&ls_op_sgd, (ls_optim_attr){.momentum = 0.9}, 0.1, PAIRS(1, 1), PAIRS(0.5, 0),
            PAIRS(0.95, 1, 0.855, 1, 0.7195, 1));
    /* d = g + 0.9 v = 0.95, 1.355, 1.7195 */
    by_hand(&ls_op_sgd, (ls_optim_attr){.momentum = 0.9, .nesterov = true}, 0.1, PAIRS(1, 1), PAIRS(0.5, 0),
            PAIRS(0.905, 1, 0.7695, 1, 0.59755, 1));
    /* without gradient, decay alone: w *= 1 - 0.1 * 0.5 */
    by_hand(&ls_op_sgd, (ls_optim_attr){.weight_decay = 0.5}, 0.1, PAIRS(1, 2), PAIRS(0, 0),
            PAIRS(0.95, 1.9, 0.9025, 1.805, 0.857375, 1.71475));
}

static void adam_by_hand(void)
{
    /* A constant gradient has corrected moments g and g^2: every step is lr * g / (|g| + eps). */
    by_hand(&ls_op_adam, (ls_optim_attr){.beta1 = 0.9, .beta2 = 0.999, .eps = 1}, 0.3, PAIRS(1, 1),
            PAIRS(0.5, -2), PAIRS(0.9, 1.2, 0.8, 1.4, 0.7, 1.6));
    /* TensorFlow's eps stands beside the uncorrected root: b1 = 0, b2 = 0.75, g = 1 gives
     * v = 1/4, 7/16, 37/64 and steps of lr * sqrt(v) / (sqrt(v) + 1). */
    by_hand(&ls_op_adam, (ls_optim_attr){.beta2 = 0.75, .eps = 1, .form = LS_ADAM_TF}, 0.3, PAIRS(0, 0),
            PAIRS(1, 0),
            PAIRS(-0.1, 0, -0.1 - 0.3 * (sqrt(7) / 4) / (sqrt(7) / 4 + 1), 0,
                  -0.1 - 0.3 * (sqrt(7) / 4) / (sqrt(7) / 4 + 1) - 0.3 * (sqrt(37) / 8) / (sqrt(37) / 8 + 1),
                  0));
    /* Decoupled decay acts where the gradient is zero: w *= 1 - 0.1 * 0.5. */
    by_hand(&ls_op_adam,
            (ls_optim_attr){.beta1 = 0.9, .beta2 = 0.999, .eps = 1, .weight_decay = 0.5, .form = LS_ADAM_W},
            0.1, PAIRS(1, 2), PAIRS(0, 0), PAIRS(0.95, 1.9, 0.9025, 1.805, 0.857375, 1.71475));
}

static void rmsprop_by_hand(void)
{
    /* alpha = 0.75, g = 2: mean squares 1, 7/4, 37/16 */
    by_hand(&ls_op_rmsprop, (ls_optim_attr){.alpha = 0.75, .eps = 1}, 0.5, PAIRS(1, 1), PAIRS(2, 0),
            PAIRS(0.5, 1, 0.5 - 1 / (sqrt(7) / 2 + 1), 1,
                  0.5 - 1 / (sqrt(7) / 2 + 1) - 1 / (sqrt(37) / 4 + 1), 1));
    /* alpha = 0, so that every direction is g / (|g| + eps) = 0.5, and the momentum sums it: 0.5, 0.75, 0.875
     */
    by_hand(&ls_op_rmsprop, (ls_optim_attr){.eps = 1, .momentum = 0.5}, 1, PAIRS(0, 0), PAIRS(1, -1),
            PAIRS(-0.5, 0.5, -1.25, 1.25, -2.125, 2.125));
}

static void layerwise_by_hand(void)
{
    /* |w| = 5, |g| = 10: the ratio is 0.1 * 5 / 10; then 4 instead of 5. */
    by_hand(&ls_op_lars, (ls_optim_attr){.trust = 0.1}, 2, PAIRS(5, 0), PAIRS(10, 0),
            PAIRS(4, 0, 3.2, 0, 2.56, 0));
    /* decay in numerator and denominator: ratio 0.3 * 5 / (10 + 1 * 5) = 0.1, direction 10 + 5 */
    by_hand(&ls_op_lars, (ls_optim_attr){.trust = 0.3, .weight_decay = 1}, 1, PAIRS(5, 0), PAIRS(10, 0),
            PAIRS(3.5, 0, 2.45, 0, 1.715, 0));
    /* lamb with constant gradient and eps 0 goes along the signs: u = (1, -1), steps of lr * |w| / sqrt(2).
     */
    by_hand(&ls_op_lamb, (ls_optim_attr){.beta1 = 0.9, .beta2 = 0.99}, 0.1, PAIRS(3, -3), PAIRS(2, -7),
            PAIRS(2.7, -2.7, 2.43, -2.43, 2.187, -2.187));
    /* |w| = 0: the ratio is 1 */
    by_hand(&ls_op_lamb, (ls_optim_attr){.beta1 = 0.9, .beta2 = 0.99}, 0.1, PAIRS(0, 0), PAIRS(2, -7),
            PAIRS(-0.1, 0.1, -0.11, 0.11, -0.121, 0.121));
}

/* -- refusals
 * --------------------------------------------------------------------------------------------------- */

/* Builds a group of two parameters with one thing wrong and checks that the message names it. */
static void check_refused(ls_optim_attr a, int drop_inputs, int spoil, const char *part)
{
    group g = {.op = &ls_op_sgd, .a = a, .dtype = LS_F32};
    ls_value in[3 + 4 * MAX_PARAMS];
    ls_err err = {0};
    int n_in;

    g.a.n = 2;
    g.shape[0] = LS_SHAPE(4, 3);
    g.shape[1] = LS_SHAPE(3);
    g.n_states = ls_optim_states(g.op, &g.a);
    op_plan_begin(&g.p);
    n_in = add_inputs(&g, in);
    if (spoil >= 0) in[spoil] = ls_graph_input(g.p.g, "wrong", LS_F32, LS_SHAPE(7, 1));
    ls_graph_add(g.p.g, g.op, n_in - drop_inputs, in, &g.a);
    CHECK_STATUS(ls_graph_status(g.p.g, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, part);
    op_plan_end(&g.p);
}

static void inconsistent_groups_are_refused(void)
{
    ls_optim_attr momentum = {.momentum = 0.9};

    check_refused(momentum, 1, -1, "need 9 inputs");
    check_refused(momentum, 0, 0, "learning rate must be a scalar of type f32");
    check_refused(momentum, 0, 1, "loss scale must be a scalar of type f32");
    check_refused(momentum, 0, 2, "count of updates must be i32 (1)");
    check_refused(momentum, 0, 5,
                  "parameter 0: its gradient must be f32 (4, 3) like the weight, but is f32 (7, 1)");
    check_refused(momentum, 0, 8,
                  "parameter 1: its state 0 must be f32 (3,) like the weight, but is f32 (7, 1)");
    check_refused((ls_optim_attr){.nesterov = true}, 0, -1, "nesterov needs sgd with momentum");
    check_refused((ls_optim_attr){.momentum = -0.5}, 0, -1, "must not be negative");
    check_refused((ls_optim_attr){.beta1 = 1}, 0, -1, "in [0, 1)");
}

int main(void)
{
    CHECK_RUN(trajectories);
    CHECK_RUN(sgd_by_hand);
    CHECK_RUN(adam_by_hand);
    CHECK_RUN(rmsprop_by_hand);
    CHECK_RUN(layerwise_by_hand);
    CHECK_RUN(inconsistent_groups_are_refused);
    return CHECK_DONE();
}
