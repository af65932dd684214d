/* region_members.c: writes the call of each member of a region in its first kernel. */
#include "backend/cuda/region_writer.h"

/* Draws of a dropout are read. */
static void touch_draws(lsi_region_writer *w, const ls_node *dropout)
{
    const lsi_region_mask *m = dropout != NULL ? lsi_region_mask_of(w->r, dropout) : NULL;

    if (m != NULL) lsi_touch(w, m->at, m->draws, false);
}

static int elements_a_draw(const lsi_region_writer *w, const ls_node *dropout)
{
    const lsi_region_place *x = &w->r->place[lsi_place_of(w, dropout->in[0])];

    return x->c * x->h * x->w / lsi_region_mask_of(w->r, dropout)->draws;
}

/* What becomes of x, element i of member number `member`. */
static void add_becomes(lsi_region_writer *w, int member, ls_act act, double slope)
{
    const ls_node *dropout = w->r->dropout[member];

    ls_text_add(w->out, "[&](float x, int i) { return %s", dropout != NULL ? "drop(" : "");
    if (act == LS_ACT_NONE) ls_text_add(w->out, "x");
    if (act == LS_ACT_RELU) ls_text_add(w->out, "lsi_pw_relu(x)");
    if (act == LS_ACT_TANH) ls_text_add(w->out, "lsi_pw_tanh(x)");
    if (act == LS_ACT_LEAKY) {
        ls_text_add(w->out, "lsi_pw_leaky(x, ");
        lsi_add_float(w, slope);
        ls_text_add(w->out, ")");
    }
    if (dropout != NULL)
        ls_text_add(w->out, ", (s + %d)[i / %d])", lsi_region_mask_of(w->r, dropout)->at,
                    elements_a_draw(w, dropout));
    ls_text_add(w->out, "; }");
}

/* What sum number n begins with, and what becomes of sum x: bias, activation, dropout. */
static void add_act(lsi_region_writer *w, int member, ls_act act, double slope)
{
    const ls_node *n = w->r->member[member];

    if (n->n_in > 2) {
        ls_text_add(w->out, "[&](int n) { return (");
        lsi_add_weights(w, n->in[2]);
        ls_text_add(w->out, ")[n]; }, ");
    } else {
        ls_text_add(w->out, "[](int) { return 0.0f; }, ");
    }
    add_becomes(w, member, act, slope);
}

static void add_windows(lsi_region_writer *w, const ls_pool_attr *a)
{
    ls_text_add(w->out, "taps<%d, %d, %d, %d, 1, 1, %d, %d>", a->kernel[0], a->kernel[1], a->stride[0],
                a->stride[1], a->pad[0], a->pad[1]);
}

static void add_conv(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_conv_attr *a = n->attr;
    const bool dx = n->op == &ls_op_conv2d_dx;
    const lsi_region_weights *kept = lsi_region_weights_of(w->r, n->in[1]);

    if (w->r->product[i].split > 1) lsi_touch(w, w->r->room, 1, true);
    touch_draws(w, w->r->dropout[i]);
    lsi_add_call(w);
    ls_text_add(w->out, "conv%s<p%d, p%d, ", dx ? "_dx" : "", lsi_place_of(w, dx ? n->out[0] : n->in[0]),
                lsi_place_of(w, dx ? n->in[0] : n->out[0]));
    lsi_add_taps(w, n);
    ls_text_add(w->out, ", %d, %s, ", kept->pitch, w->r->product[i].by_channels ? "true" : "false");
    lsi_add_cut(w, i);
    ls_text_add(w->out, ", %s>(s, ", kept->rounded ? "true" : "false");
    lsi_add_weights(w, n->in[1]);
    ls_text_add(w->out, ", s + %d, ", w->r->room);
    add_act(w, i, a->act, a->slope);
    ls_text_add(w->out, ");\n");
}

static void add_matmul(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_matmul_attr *a = n->attr;
    const ls_shape b = w->r->g->values[n->in[1]]->shape;

    if (!a->trans_b) lsi_touch(w, w->r->room, 1, true);
    touch_draws(w, w->r->dropout[i]);
    lsi_add_call(w);
    ls_text_add(w->out, "%s_times<p%d, p%d, %d>(s, ", a->trans_b ? "rows" : "columns",
                lsi_place_of(w, n->in[0]), lsi_place_of(w, n->out[0]), (int)b.dim[1]);
    lsi_add_weights(w, n->in[1]);
    ls_text_add(w->out, ", ");
    if (!a->trans_b) ls_text_add(w->out, "s + %d, ", w->r->room);
    add_act(w, i, a->act, a->slope);
    ls_text_add(w->out, ");\n");
}

static void add_pool(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_pool_attr *a = n->attr;
    const bool most = n->op == &ls_op_maxpool2d || n->op == &ls_op_maxpool2d_grad;
    const bool grad = n->op == &ls_op_maxpool2d_grad || n->op == &ls_op_avgpool2d_grad;

    touch_draws(w, w->r->dropout[i]);
    lsi_add_call(w);
    ls_text_add(w->out, "%spool%s<p%d, p%d, ", most ? "max" : "avg", grad ? "_grad" : "",
                lsi_place_of(w, grad ? n->out[0] : n->in[0]), lsi_place_of(w, grad ? n->in[0] : n->out[0]));
    if (n->op == &ls_op_maxpool2d) ls_text_add(w->out, "p%d, ", lsi_place_of(w, n->out[1]));
    if (n->op == &ls_op_maxpool2d_grad)
        ls_text_add(w->out, "p%d, p%d, ", lsi_place_of(w, n->in[1]),
                    lsi_place_of(w, n->in[n->n_in > 2 ? 2 : 0]));
    add_windows(w, a);
    ls_text_add(w->out, ", %s>(s", (most ? a->relu : a->count_pad) ? "true" : "false");
    if (n->op == &ls_op_maxpool2d_grad) {
        ls_text_add(w->out, ", ");
        add_becomes(w, i, LS_ACT_NONE, 0);
    }
    ls_text_add(w->out, ");\n");
}

static void add_dropout(lsi_region_writer *w, const ls_node *n)
{
    touch_draws(w, n);
    lsi_add_call(w);
    ls_text_add(w->out, "dropout<p%d, p%d, %d>(s, s + %d);\n", lsi_place_of(w, n->in[0]),
                lsi_place_of(w, n->out[0]), elements_a_draw(w, n), lsi_region_mask_of(w->r, n)->at);
}

static void add_score(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];

    lsi_add_call(w);
    if (n->op == &ls_op_cross_entropy_grad) {
        ls_text_add(w->out, "cross_entropy_grad<p%d, p%d>(s, ", lsi_place_of(w, n->in[1]),
                    lsi_place_of(w, n->out[0]));
        lsi_add_label(w, n->in[2]);
        ls_text_add(w->out, ", ");
        lsi_add_single(w, n->in[0]);
        ls_text_add(w->out, " / (float)p.samples);\n");
        return;
    }
    if (n->op == &ls_op_accuracy)
        ls_text_add(w->out, "accuracy<p%d, 1>(s, ", lsi_place_of(w, n->in[0]));
    else
        ls_text_add(w->out, "cross_entropy<p%d, p%d, 0>(s, ", lsi_place_of(w, n->in[0]),
                    lsi_place_of(w, n->out[1]));
    lsi_add_label(w, n->in[1]);
    ls_text_add(w->out, ", &sum%d);\n", i);
}

/* The element that a sum adds: of images pixel r of channel c, else element i. */
static void add_element(lsi_region_writer *w, const ls_node *n, int32_t id)
{
    const bool images = w->r->g->values[n->in[0]]->shape.rank == 4;

    ls_text_add(w->out, images ? "s[p%d::of(c, r)]" : "s[p%d::at(i)]", lsi_place_of(w, id));
}

static void add_plain_sum(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];

    lsi_add_call(w);
    ls_text_add(w->out, "sum%d.add([&](%s) { return ", i,
                w->r->g->values[n->in[0]]->shape.rank == 4 ? "int c, int r" : "int i");
    add_element(w, n, n->in[0]);
    ls_text_add(w->out, "; });\n");
}

static void add_bias_act_grad(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_bias_act_attr *a = n->attr;
    const bool images = w->r->g->values[n->in[0]]->shape.rank == 4;

    lsi_add_call(w);
    ls_text_add(w->out, "sum%d.add([&](%s) { return p%d::kept(", i, images ? "int c, int r" : "int i",
                lsi_place_of(w, n->out[0]));
    if (a->act == LS_ACT_RELU) ls_text_add(w->out, "lsi_pw_relu_grad(");
    if (a->act == LS_ACT_TANH) ls_text_add(w->out, "lsi_pw_tanh_grad(");
    if (a->act == LS_ACT_LEAKY) ls_text_add(w->out, "lsi_pw_leaky_grad(");
    add_element(w, n, n->in[0]);
    if (a->act != LS_ACT_NONE) {
        ls_text_add(w->out, ", ");
        add_element(w, n, n->in[1]);
    }
    if (a->act == LS_ACT_LEAKY) {
        ls_text_add(w->out, ", ");
        lsi_add_float(w, a->slope);
    }
    ls_text_add(w->out, "%s); }, [&](%s, float x) { ", a->act != LS_ACT_NONE ? ")" : "",
                images ? "int c, int r" : "int i");
    add_element(w, n, n->out[0]);
    ls_text_add(w->out, " = x; });\n");
}

/* Element i of every operand. */
static void add_operands(lsi_region_writer *w, const ls_node *n)
{
    for (int k = 0; k < n->n_in; k++) {
        const bool single =
            !ls_shape_equal(w->r->g->values[n->in[k]]->shape, w->r->g->values[n->out[0]]->shape);
        if (k > 0) ls_text_add(w->out, ", ");
        if (single)
            lsi_add_single(w, n->in[k]);
        else
            ls_text_add(w->out, "s[p%d::at(i)]", lsi_place_of(w, n->in[k]));
    }
}

/* A loop over the result's elements. */
static void add_elements(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const int y = lsi_place_of(w, n->out[0]);

    lsi_add_call(w);
    ls_text_add(w->out, "each<p%d::COUNT>([&](int i) { ", y);
    if (n->op == &ls_op_bias) {
        const ls_shape s = w->r->g->values[n->in[0]]->shape;
        ls_text_add(w->out, "return s[p%d::at(i)] + (", lsi_place_of(w, n->in[0]));
        lsi_add_weights(w, n->in[1]);
        ls_text_add(w->out, ")[i / %d]", (int)(ls_shape_count(s) / s.dim[0] / s.dim[1]));
    } else {
        ls_text_add(w->out, "const float x[] = {");
        add_operands(w, n);
        ls_text_add(w->out, "}; return value%d(x)", i);
    }
    ls_text_add(w->out, "; }, [&](int i, float x) { s[p%d::at(i)] = p%d::kept(x); });\n", y, y);
}

/* Whether thread ME of the member's function reads elements ME, ME + THREADS, and so on, and no others: who
 * has made these in the same way need not be waited for. */
static bool by_elements(const lsi_region *r, const ls_node *n)
{
    const ls_op *op = n->op;

    if (op == &ls_op_reduce_sum || op == &ls_op_bias_act_grad) return r->g->values[n->in[0]]->shape.rank != 4;
    return op == &ls_op_dropout || op == &ls_op_cross_entropy_grad || op == &ls_op_bias ||
           op == &ls_op_pointwise || op->pw != LS_PW_NONE;
}

/* Windows side by side that cover all: as maxpool_grad has it. */
static bool covers(const lsi_region *r, const ls_node *n)
{
    const ls_pool_attr *a = n->attr;
    const ls_shape dy = r->g->values[n->in[0]]->shape, dx = r->g->values[n->out[0]]->shape;

    return a->stride[0] == a->kernel[0] && a->stride[1] == a->kernel[1] &&
           dx.dim[2] == dy.dim[2] * a->kernel[0] && dx.dim[3] == dy.dim[3] * a->kernel[1];
}

static bool owns_input(const lsi_region *r, const ls_node *n)
{
    return by_elements(r, n) || (n->op == &ls_op_maxpool2d_grad && covers(r, n));
}

static bool owns_output(const lsi_region *r, const ls_node *n)
{
    const ls_op *op = n->op;

    if (op == &ls_op_matmul) return !((const ls_matmul_attr *)n->attr)->trans_b;
    if (op == &ls_op_maxpool2d_grad) return !covers(r, n);
    if (op == &ls_op_cross_entropy) /* of a warp: its first, and no more elements than lanes */
        return r->g->values[n->in[0]]->shape.dim[1] <= 32;
    return by_elements(r, n) || op == &ls_op_maxpool2d || op == &ls_op_avgpool2d ||
           op == &ls_op_avgpool2d_grad;
}

void lsi_add_member(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_op *op = n->op;

    if ((op->flags & LS_OP_VIEW) || lsi_region_is_outer(n) || lsi_region_is_joined(w->r, n) ||
        ls_optim_is(op))
        return;
    if (lsi_region_value_of(w->r, n->out[0])->kind == LS_REGION_SUM && op->pw != LS_PW_NONE) return;
    for (int k = 0; k < n->n_in; k++) lsi_touch_value(w, n->in[k], false, owns_input(w->r, n));
    for (int k = 0; k < n->n_out; k++) lsi_touch_value(w, n->out[k], true, owns_output(w->r, n));
    if (op == &ls_op_conv2d || op == &ls_op_conv2d_dx) {
        add_conv(w, i);
    } else if (op == &ls_op_conv2d_dw) {
        lsi_add_call(w);
        ls_text_add(w->out, "sum%d.add(s);\n", i);
    } else if (op == &ls_op_matmul) {
        add_matmul(w, i);
    } else if (op == &ls_op_maxpool2d || op == &ls_op_avgpool2d || op == &ls_op_maxpool2d_grad ||
               op == &ls_op_avgpool2d_grad) {
        add_pool(w, i);
    } else if (op == &ls_op_dropout) {
        add_dropout(w, n);
    } else if (op == &ls_op_cross_entropy || op == &ls_op_cross_entropy_grad || op == &ls_op_accuracy) {
        add_score(w, i);
    } else if (op == &ls_op_reduce_sum) {
        add_plain_sum(w, i);
    } else if (op == &ls_op_bias_act_grad) {
        add_bias_act_grad(w, i);
    } else {
        add_elements(w, i);
    }
}
