/* rescale: what becomes of the loss scale after a step, by whether all gradients of it were finite.
 *
 * If not, the scale is halved and good steps count from 0 again; after `growth` good ones in a row it is
 * doubled: the rule of PyTorch's GradScaler, within bounds.  Without `dynamic` the scale stays; without
 * `counts` no variable changes.  In: scale, skipped (if it counts), good (if dynamic), then one number of
 * all_finite for every update of the step.  Out: the next versions of scale (if dynamic), skipped and good,
 * and for the host the first of those numbers that is not 0, and the scale that the step had. */
#include <math.h>
#include <stdio.h>

#include "ops/ops.h"
#include "ops/type_rules.h"

enum { SCALE, SKIPPED, GOOD };

/* Inputs before the numbers of all_finite. */
static int n_head(const ls_rescale_attr *a)
{
    return a->dynamic ? 3 : a->counts ? 2 : 1;
}

/* Variables that change, which are the first outputs. */
static int n_moved(const ls_rescale_attr *a)
{
    return a->dynamic ? 3 : a->counts ? 1 : 0;
}

static int count_out(int n_in, const void *attr)
{
    (void)n_in;
    return n_moved(attr) + 1;
}

static int alias(int n_in, const void *attr, int k)
{
    const ls_rescale_attr *a = attr;

    (void)n_in;
    if (k >= n_moved(a)) return -1;
    return a->dynamic ? k : SKIPPED;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_rescale_attr *a = c->attr;
    const int moved = n_moved(a);

    if (c->n_in <= n_head(a))
        return ls_fail(err, LS_INVALID, "%d inputs have no number of all_finite among them", c->n_in);
    for (int i = 0; i < c->n_in; i++)
        if (ls_shape_count(c->in[i]) != 1) return ls_fail(err, LS_INVALID, "input %d must be one number", i);
    if (a->dynamic && (!a->counts || a->growth < 1 || !(a->least > 0) || !(a->most >= a->least)))
        return ls_fail(err, LS_INVALID,
                       "a scale that changes needs a count, an interval of at least 1, and bounds");
    for (int k = 0; k < moved; k++) {
        c->out[k] = c->in[alias(c->n_in, a, k)];
        c->out_dtype[k] = c->in_dtype[alias(c->n_in, a, k)];
    }
    c->out[moved] = LS_SHAPE(LS_RESCALE_REPORT);
    c->out_dtype[moved] = lsi_wide_dtype(c->in_dtype[SCALE]);
    return LS_OK;
}

static double first_found(const ls_ref_call *c, int from)
{
    for (int i = from; i < c->n_in; i++)
        if (c->in[i].d[0] != 0) return c->in[i].d[0];
    return 0;
}

static void ref(const ls_ref_call *c)
{
    const ls_rescale_attr *a = c->attr;
    const double found = first_found(c, n_head(a)), scale = c->in[SCALE].d[0];
    double *report = c->out[n_moved(a)].d;

    if (a->counts) c->out[a->dynamic ? SKIPPED : 0].d[0] = c->in[SKIPPED].d[0] + (found != 0);
    if (a->dynamic) {
        const double good = found != 0 ? 0 : c->in[GOOD].d[0] + 1;
        const bool grows = good >= (double)a->growth;
        c->out[SCALE].d[0] = found != 0 ? fmax(scale * 0.5, a->least)
                             : grows    ? fmin(scale * 2, a->most)
                                        : scale;
        c->out[GOOD].d[0] = grows ? 0 : good;
    }
    report[LS_REPORT_FOUND] = found;
    report[LS_REPORT_SCALE] = scale;
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_rescale_attr *a = attr;

    snprintf(buf, n, "%s growth=%d bounds=%.9g,%.9g",
             a->dynamic && a->counts ? "dynamic"
             : a->dynamic            ? "dynamic uncounted"
             : a->counts             ? "counts"
                                     : "reports",
             a->growth, a->least, a->most);
}

const ls_op ls_op_rescale = {
    .name = "rescale",
    .min_in = 2,
    .max_in = -1,
    .attr_size = sizeof(ls_rescale_attr),
    .flags = LS_OP_UPDATE | LS_OP_NO_GRAD,
    .count_out = count_out,
    .infer = infer,
    .alias = alias,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_rescale(int n_in, const ls_value *in, const ls_rescale_attr *a)
{
    return ls_graph_add(in[0].g, &ls_op_rescale, n_in, in, a);
}
