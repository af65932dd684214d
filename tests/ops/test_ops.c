/* test_ops.c: every op by its case list: gradients against finite differences, backends against the
 * reference.
 *
 * usage: test_ops [LIST [CASE|PART/PARTS]]   runs everything, one list, one case of it, or every PARTS-th;
 * with $LS_TEST_DEVICE on one device, and without finite differences where it is not the reference, whose
 * gradients they are of. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "check.h"
#include "op_plan.h"
#include "op_test_internal.h"
#include "passes/autodiff.h"

static int n_failures, n_cases, n_grad_checks, n_compared;
static const char *list_name, *case_name;
static bool exercised[256];
static bool differences; /* gradient rules are checked */

static void fail(const char *fmt, ...) LS_PRINTF(1, 2);
static void fail(const char *fmt, ...)
{
    va_list ap;

    n_failures++;
    printf("FAILED %s / %s: ", list_name, case_name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* -- building and running one variant of a case
 * ------------------------------------------------------------------ */

/* What is evaluated: the outputs; also the gradients of loss = sum of weight * output; also the gradients of
 * loss2, a weighted sum of those gradients; or one of the two losses and nothing else, which is all that
 * differences are made of. */
typedef enum depth { OUTPUTS, LOSS, GRADIENTS, LOSS2, TWICE } depth;

/* Fixed pseudo-random weights that turn tensors into one number; plain arithmetic so that every dtype sees
 * the same. */
static double weight_of(int tensor, int64_t i)
{
    return (double)((i * 7 + tensor * 13) % 11 - 5) / 4.0 + 0.125;
}

static ls_value weights_input(op_test *t, const char *name, ls_value like)
{
    return ls_graph_input(t->g, name, ls_value_dtype(like), ls_value_shape(like));
}

/* sum over tensors of <weights, v>; weights are inputs "w<level>_<k>". */
static ls_value weighted_sum(op_test *t, int level, int n, const ls_value *v)
{
    ls_value sum = {t->g, -1};

    for (int k = 0; k < n; k++) {
        char name[32];
        ls_value term;
        if (!ls_value_ok(v[k])) continue;
        snprintf(name, sizeof name, "w%d_%d", level, k);
        term = ls_reduce_sum(ls_mul(v[k], weights_input(t, name, v[k])), LS_ALL_AXES, false);
        if (ls_value_dtype(term) != LS_F64 && ls_value_dtype(term) != LS_F32) term = ls_cast(term, LS_F32);
        sum = ls_value_ok(sum) ? ls_add(sum, term) : term;
    }
    return sum;
}

static int differentiable(op_test *t, ls_value *wrt, int *source)
{
    int n = 0;

    for (int i = 0; i < t->n_in; i++)
        if (t->in[i].differentiated) {
            wrt[n] = t->in[i].v;
            source[n++] = i;
        }
    return n;
}

static void add_loss(op_test *t, depth d)
{
    ls_value outs[OP_MAX_TENSORS] = {0}, wrt[OP_MAX_TENSORS], grads[OP_MAX_TENSORS], grads2[OP_MAX_TENSORS];
    int source[OP_MAX_TENSORS], n = differentiable(t, wrt, source);
    char name[32];
    ls_value loss;

    for (int k = 0; k < t->n_out; k++) outs[k] = t->out[k].in_loss ? t->out[k].v : (ls_value){t->g, -1};
    loss = weighted_sum(t, 1, t->n_out, outs);
    if (!ls_value_ok(loss)) return;
    if (d != LOSS2) ls_graph_fetch(loss, "loss");
    if (d == LOSS) return;
    ls_autodiff(loss, (ls_value){t->g, -1}, n, wrt, grads);
    for (int i = 0; i < n && d != LOSS2; i++) {
        snprintf(name, sizeof name, "g1_%d", source[i]);
        /* a gradient that is an input itself (add: dx = dy) needs a node of its own to be fetched under this
         * name */
        if (ls_value_ok(grads[i])) ls_graph_fetch(ls_copy(grads[i]), name);
    }
    if (d < LOSS2) return;
    loss = weighted_sum(t, 2, n, grads);
    if (!ls_value_ok(loss)) return;
    ls_graph_fetch(loss, "loss2");
    if (d == LOSS2) return;
    ls_autodiff(loss, (ls_value){t->g, -1}, n, wrt, grads2);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "g2_%d", source[i]);
        if (ls_value_ok(grads2[i])) ls_graph_fetch(ls_copy(grads2[i]), name);
    }
}

typedef struct variant {
    ls_plan *plan;
    ls_state *state;
    ls_device *dev;
} variant;

static void variant_close(variant *v)
{
    ls_plan_destroy(v->plan);
    ls_state_destroy(v->state);
    ls_device_close(v->dev);
    *v = (variant){0};
}

static void note_ops(const ls_graph *g)
{
    int n;
    const ls_op *const *all = ls_ops_all(&n);

    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < n; k++)
            if (all[k] == g->nodes[i]->op) exercised[k] = true;
}

static bool variant_open(variant *v, op_test *t, const op_case *c, const char *device, ls_dtype dtype,
                         depth d)
{
    ls_err err = {0};
    char name[32];

    *v = (variant){0};
    t->dtype = dtype;
    t->n_in = t->n_out = 0;
    t->length = 1;
    if (ls_graph_create(&t->g, &err) != LS_OK) abort();
    c->build(t, c->p);
    if (d > OUTPUTS) add_loss(t, d);
    for (int k = 0; k < t->n_out && d != LOSS && d != LOSS2; k++) {
        snprintf(name, sizeof name, "out%d", k);
        ls_graph_fetch(t->out[k].v, name);
    }
    note_ops(t->g);
    if (ls_graph_status(t->g, &err) != LS_OK || ls_device_open(&v->dev, device, 2, &err) != LS_OK ||
        ls_state_create(&v->state, v->dev, &err) != LS_OK) {
        fail("%s %s: %s", device, ls_dtype_name(dtype), err.text);
        ls_graph_destroy(t->g);
        variant_close(v);
        return false;
    }
    if (ls_plan_compile_take(&v->plan, t->g, v->dev, v->state, &err) != LS_OK) {
        fail("%s %s: %s", device, ls_dtype_name(dtype), err.text);
        variant_close(v);
        return false;
    }
    return true;
}

/* Writes all inputs; element `bump` of source `which` is moved by `step` (finite differences). */
static void fill_inputs(variant *v, const op_test *t, int which, int64_t bump, double step)
{
    for (int i = 0; i < t->n_in; i++) {
        const op_source *s = &t->in[i];
        const double kept = i == which ? s->values[bump] : 0;
        bool in_state = s->kind == OP_SOURCE_STATE || s->kind == OP_SOURCE_COUNTER;
        const ls_tensor *x = in_state ? ls_state_find(v->state, s->name) : ls_plan_input(v->plan, s->name);
        if (x == NULL) continue;
        if (i == which) s->values[bump] += step;
        tensor_put_all(x, s->values);
        if (i == which) s->values[bump] = kept;
    }
    for (int i = 0; i < ls_plan_input_count(v->plan); i++) {
        const ls_tensor *w = ls_plan_input_at(v->plan, i);
        double *weights;
        int level, k;
        if (sscanf(w->name, "w%d_%d", &level, &k) != 2) continue;
        weights = calloc((size_t)ls_shape_count(w->shape) + 1, sizeof *weights);
        if (weights == NULL) abort();
        for (int64_t j = 0; j < ls_shape_count(w->shape); j++) weights[j] = weight_of(k, j);
        tensor_put_all(w, weights);
        free(weights);
    }
}

static double fetch_scalar(const variant *v, const char *name)
{
    return tensor_get(ls_plan_fetch(v->plan, name), 0);
}

/* -- 1. gradients against finite differences
 * ------------------------------------------------------------------------ */

/* Derivative of fetch `loss` with respect to one element by central differences, Richardson-extrapolated. */
static double numeric(variant *v, const op_test *t, const char *loss, int source, int64_t i, double h)
{
    double d[2];

    for (int k = 0; k < 2; k++) {
        double step = k ? h / 2 : h, up, down;
        fill_inputs(v, t, source, i, step);
        run_plan(v->plan);
        up = fetch_scalar(v, loss);
        fill_inputs(v, t, source, i, -step);
        run_plan(v->plan);
        down = fetch_scalar(v, loss);
        d[k] = (up - down) / (2 * step);
    }
    return (4 * d[1] - d[0]) / 3;
}

/* Gradients are those of plan `v`; `of` computes the loss alone, four times an element. */
static void check_level(variant *v, variant *of, op_test *t, const char *loss, const char *prefix)
{
    for (int i = 0; i < t->n_in; i++) {
        char name[32];
        const ls_tensor *g;
        int64_t stride;
        double *grad;
        if (!t->in[i].differentiated || t->in[i].count == 0) continue;
        snprintf(name, sizeof name, "%s_%d", prefix, i);
        g = ls_plan_fetch(v->plan, name);
        grad = calloc((size_t)t->in[i].count, sizeof *grad);
        if (grad == NULL) abort();
        fill_inputs(v, t, -1, 0, 0);
        run_plan(v->plan);
        for (int64_t j = 0; g != NULL && j < t->in[i].count; j++) grad[j] = tensor_get(g, j);
        /* Up to seven elements per input, spread over the tensor; a sanitizer needs only one. */
        stride = t->in[i].count / (check_is_slow_build() ? 1 : 7) + 1;
        for (int64_t j = 0; j < t->in[i].count; j += stride) {
            double want = numeric(of, t, loss, i, j, 1e-3), tol = 1e-6 * (1 + fabs(want));
            n_grad_checks++;
            if (!(fabs(want - grad[j]) <= tol))
                fail("d%s/d%s[%lld]: gradient rule %.12g, finite differences %.12g", loss, t->in[i].name,
                     (long long)j, grad[j], want);
        }
        free(grad);
    }
}

static void check_gradients(op_test *t, const op_case *c)
{
    variant v, of;
    depth d = c->flags & OP_TWICE ? TWICE : GRADIENTS;

    if (!differences || c->flags & OP_NO_GRAD) return;
    if (!variant_open(&v, t, c, "ref", LS_F64, d)) return;
    if (ls_plan_fetch(v.plan, "loss") == NULL)
        fail("no differentiable output; mark the case OP_NO_GRAD if that is intended");
    else if (variant_open(&of, t, c, "ref", LS_F64, LOSS)) {
        check_level(&v, &of, t, "loss", "g1");
        variant_close(&of);
    }
    if (d == TWICE && ls_plan_fetch(v.plan, "loss2") != NULL &&
        variant_open(&of, t, c, "ref", LS_F64, LOSS2)) {
        check_level(&v, &of, t, "loss2", "g2");
        variant_close(&of);
    }
    variant_close(&v);
}

/* -- 2. backends against the reference
 * ---------------------------------------------------------------------------------- */

static void collect(const variant *v, op_result *r)
{
    *r = (op_result){0};
    for (int i = 0; i < ls_plan_fetch_count(v->plan); i++) {
        const ls_tensor *t = ls_plan_fetch_at(v->plan, i);
        int64_t n = ls_shape_count(t->shape);
        double *d = calloc((size_t)n + 1, sizeof *d);
        if (d == NULL) abort();
        tensor_get_all(t, d);
        snprintf(r->name[r->n], sizeof r->name[0], "%s", t->name);
        r->count[r->n] = n;
        r->d[r->n++] = d;
    }
}

/* The result called `name`, or -1: the order of results is the plan's affair. */
static int find_result(const op_result *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->name[i], name) == 0) return i;
    return -1;
}

static void release(op_result *r)
{
    for (int i = 0; i < r->n; i++) free(r->d[i]);
    *r = (op_result){0};
}

/* False, and said, when the device cannot. */
static bool runs(variant *v, const char *device)
{
    ls_err err = {0};

    if (ls_plan_run(v->plan, &err) == LS_OK) return true;
    fail("%s: %s", device, err.text);
    return false;
}

/* Two runs from the same inputs must give the same bits; the second result stays in `r`.  False when it
 * does not run. */
static bool run_twice(variant *v, const op_test *t, const char *device, op_result *r)
{
    op_result first = {0};
    bool done;

    *r = (op_result){0};
    fill_inputs(v, t, -1, 0, 0);
    done = runs(v, device);
    if (done) collect(v, &first);
    fill_inputs(v, t, -1, 0, 0);
    done = done && runs(v, device);
    if (done) collect(v, r);
    for (int i = 0; i < r->n; i++)
        if (memcmp(first.d[i], r->d[i], sizeof(double) * (size_t)r->count[i]) != 0)
            fail("%s: %s differs between two runs on the same inputs", device, r->name[i]);
    release(&first);
    return done;
}

/* Rounding errors of a sum of n terms grow like sqrt(n) for terms of mixed sign; gradients pass through two
 * such sums. The constant covers the few roundings around the sum and Winograd's larger constants. */
static double tolerance(ls_dtype t, int64_t length, double largest)
{
    double eps = t == LS_BF16 ? 1.0 / 256 : t == LS_F16 ? 1.0 / 2048 : 1.2e-7;

    return eps * (4 + 3 * sqrt((double)length)) * (largest + 1e-3);
}

static void compare(const op_result *want, const op_result *got, const char *device, ls_dtype dtype,
                    int64_t length)
{
    for (int i = 0; i < want->n; i++) {
        double largest = 0, worst = 0, tol;
        int64_t at = -1;
        int k = find_result(got, want->name[i]);
        if (k < 0 || got->count[k] != want->count[i]) {
            fail("%s: result %s is missing or has another size", device, want->name[i]);
            continue;
        }
        if (strcmp(want->name[i], "loss") == 0) continue; /* it cancels; its terms are compared as outputs */
        for (int64_t j = 0; j < want->count[i]; j++)
            if (isfinite(want->d[i][j]) && fabs(want->d[i][j]) > largest) largest = fabs(want->d[i][j]);
        tol = tolerance(dtype, length, largest);
        for (int64_t j = 0; j < want->count[i]; j++) {
            double e = fabs(want->d[i][j] - got->d[k][j]);
            if (isnan(want->d[i][j]) && isnan(got->d[k][j])) continue;
            if (!(e <= worst)) {
                worst = e;
                at = j;
            }
        }
        n_compared++;
        if (!(worst <= tol))
            fail("%s %s: %s[%lld] is %.9g, reference %.9g (difference %.3g, allowed %.3g)", device,
                 ls_dtype_name(dtype), want->name[i], (long long)at, got->d[k][at], want->d[i][at], worst,
                 tol);
    }
}

static void check_backend(op_test *t, const op_case *c, const char *device, ls_dtype dtype,
                          const op_result *want)
{
    variant v;
    op_result got;

    if (!variant_open(&v, t, c, device, dtype, c->flags & OP_NO_GRAD ? OUTPUTS : GRADIENTS)) return;
    if (want->n != ls_plan_fetch_count(v.plan))
        fail("%s: %d results, reference has %d", device, ls_plan_fetch_count(v.plan), want->n);
    else {
        if (run_twice(&v, t, device, &got)) compare(want, &got, device, dtype, t->length);
        release(&got);
    }
    variant_close(&v);
}

static void check_backends(op_test *t, const op_case *c)
{
    variant v;
    op_result want;

    if (!variant_open(&v, t, c, "ref", LS_F64, c->flags & OP_NO_GRAD ? OUTPUTS : GRADIENTS)) return;
    fill_inputs(&v, t, -1, 0, 0);
    run_plan(v.plan);
    collect(&v, &want);
    variant_close(&v);
    for (int i = 0; ls_backends[i] != NULL; i++) {
        if (!device_is_tested(ls_backends[i])) continue;
        check_backend(t, c, ls_backends[i]->name, LS_F32, &want);
        if (c->flags & OP_BF16) check_backend(t, c, ls_backends[i]->name, LS_BF16, &want);
        if (c->flags & OP_BF16) check_backend(t, c, ls_backends[i]->name, LS_F16, &want);
    }
    release(&want);
}

/* -- driver
 * ----------------------------------------------------------------------------------------------------------------
 */

static void run_case(const op_case *c, uint64_t seed)
{
    static op_test t;

    t = (op_test){.seed = seed};
    n_cases++;
    check_gradients(&t, c);
    check_backends(&t, c);
    for (int i = 0; i < t.n_known; i++) free(t.in[i].values);
}

/* Whether case number i of a list is asked for by `word`: its name, or PART/PARTS, which takes every so many
 * cases, so that a list can be done by several processes. */
static bool is_asked(const char *word, int i)
{
    int part, parts;
    char more;

    if (sscanf(word, "%d/%d%c", &part, &parts, &more) == 2 && part >= 1 && part <= parts)
        return i % parts == part - 1;
    return strcmp(word, case_name) == 0;
}

int main(int argc, char **argv)
{
#define OP_LIST_ENTRY(name) &op_cases_##name,
    static const op_case_list *const lists[] = {OP_LISTS(OP_LIST_ENTRY)};
#undef OP_LIST_ENTRY
    int n_ops, n_exercised = 0;
    const ls_op *const *ops = ls_ops_all(&n_ops);
    const char *device = getenv("LS_TEST_DEVICE");

    differences = device == NULL || strcmp(device, "ref") == 0;
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        list_name = lists[l]->name;
        if (argc > 1 && strcmp(argv[1], list_name) != 0) continue;
        for (int i = 0; i < lists[l]->n; i++) {
            case_name = lists[l]->cases[i].name;
            if (argc > 2 && !is_asked(argv[2], i)) continue;
            run_case(&lists[l]->cases[i], 1000 * (l + 1) + (uint64_t)i);
        }
    }
    if (n_cases == 0) {
        fprintf(stderr, "test_ops: there is no list or case of that name\n");
        return 2;
    }
    for (int i = 0; i < n_ops; i++) {
        n_exercised += exercised[i];
        if (!exercised[i] && argc == 1 && differences) { /* some are in gradients of gradients alone */
            list_name = "coverage";
            case_name = ops[i]->name;
            fail("no case exercises this op");
        }
    }
    printf(
        "test_ops: %d ops of %d, %d cases, %d gradients against finite differences, %d tensors against the "
        "reference, %d failures\n",
        n_exercised, n_ops, n_cases, n_grad_checks, n_compared, n_failures);
    return n_failures > 0 ? 1 : 0;
}
