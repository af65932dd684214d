/* region_source.c: writes the first kernel of a region: a call of source/region*.cuh for every member, and
 * barriers where memory that one has written is read by another, or used again. */
#include "backend/cuda/region.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/chain_source.h"
#include "backend/cuda/texts.h"

enum { MAX_TOUCHED = 512 };

typedef struct range {
    int from, to;
    bool written;
} range;

typedef struct writer {
    ls_text *out;
    const lsi_region *r;
    range touched[MAX_TOUCHED]; /* of the sample's memory, since the last barrier */
    int n_touched;
    range next[64]; /* what the call that is being written touches */
    int n_next;
} writer;

/* -- barriers ---------------------------------------------------------------------------------------------
 */

static void touch(writer *w, int from, int size, bool written)
{
    LS_BUG_IF(w->n_next == (int)(sizeof w->next / sizeof w->next[0]));
    w->next[w->n_next++] = (range){from, from + size, written};
}

static void touch_value(writer *w, int32_t id, bool written)
{
    const lsi_region_value *v = lsi_region_value_of(w->r, id);
    const lsi_region_place *p = v->place >= 0 ? &w->r->place[v->place] : NULL;

    if (p != NULL) touch(w, p->at, p->bytes ? (p->c * p->h * p->w + 3) / 4 : p->c * p->plane, written);
}

static bool must_wait(const writer *w)
{
    for (int i = 0; i < w->n_next; i++)
        for (int k = 0; k < w->n_touched; k++) {
            const range *a = &w->next[i], *b = &w->touched[k];
            if ((a->written || b->written) && a->from < b->to && b->from < a->to) return true;
        }
    return w->n_touched + w->n_next > MAX_TOUCHED;
}

static void barrier(writer *w)
{
    ls_text_add(w->out, "        barrier();\n");
    w->n_touched = 0;
}

/* Before a call is written: what it touches has been told. */
static void begin(writer *w)
{
    if (must_wait(w)) barrier(w);
    memcpy(&w->touched[w->n_touched], w->next, sizeof w->next[0] * (size_t)w->n_next);
    w->n_touched += w->n_next;
    w->n_next = 0;
    ls_text_add(w->out, "        ");
}

/* -- names ------------------------------------------------------------------------------------------------
 */

static int place_of(const writer *w, int32_t id)
{
    return lsi_region_value_of(w->r, id)->place;
}

/* Where a value lies in global memory. */
static void add_pointer(writer *w, int32_t id, const char *type)
{
    const lsi_region_value *v = lsi_region_value_of(w->r, id);

    ls_text_add(w->out, "(const %s *)p.at[%d]", type, v->input);
}

static void add_weights(writer *w, int32_t id)
{
    const lsi_region_weights *kept = lsi_region_weights_of(w->r, id);

    if (kept != NULL)
        ls_text_add(w->out, "all + %d", kept->at);
    else
        add_pointer(w, id, "float");
}

/* The very float, as bits. */
static void add_float(writer *w, double x)
{
    const float f = (float)x;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    ls_text_add(w->out, "__uint_as_float(0x%08xu)", (unsigned)bits);
}

/* What sum number n begins with, and what becomes of sum x: bias and activation. */
static void add_act(writer *w, const ls_node *n, ls_act act, double slope)
{
    if (n->n_in > 2) {
        ls_text_add(w->out, "[&](int n) { return (");
        add_weights(w, n->in[2]);
        ls_text_add(w->out, ")[n]; }, ");
    } else {
        ls_text_add(w->out, "[](int) { return 0.0f; }, ");
    }
    ls_text_add(w->out, "[](float x) { return ");
    if (act == LS_ACT_NONE) ls_text_add(w->out, "x");
    if (act == LS_ACT_RELU) ls_text_add(w->out, "lsi_pw_relu(x)");
    if (act == LS_ACT_TANH) ls_text_add(w->out, "lsi_pw_tanh(x)");
    if (act == LS_ACT_LEAKY) {
        ls_text_add(w->out, "lsi_pw_leaky(x, ");
        add_float(w, slope);
        ls_text_add(w->out, ")");
    }
    ls_text_add(w->out, "; }");
}

static void add_taps(writer *w, const ls_node *n)
{
    const ls_conv_attr *a = n->attr;
    const ls_shape k = w->r->g->values[n->op == &ls_op_conv2d_dw ? n->out[0] : n->in[1]]->shape;

    ls_text_add(w->out, "taps<%d, %d, %d, %d, %d, %d, %d, %d>", (int)k.dim[2], (int)k.dim[3], a->stride[0],
                a->stride[1], a->dilation[0], a->dilation[1], a->pad[0], a->pad[1]);
}

static void add_windows(writer *w, const ls_pool_attr *a)
{
    ls_text_add(w->out, "taps<%d, %d, %d, %d, 1, 1, %d, %d>", a->kernel[0], a->kernel[1], a->stride[0],
                a->stride[1], a->pad[0], a->pad[1]);
}

/* -- before the samples -----------------------------------------------------------------------------------
 */

static void add_places(writer *w)
{
    for (int i = 0; i < w->r->n_places; i++) {
        const lsi_region_place *p = &w->r->place[i];
        ls_text_add(w->out, "typedef map<%d, %d, %d, %d, %d, %d, %d, %d> p%d;\n",
                    p->at + p->top * p->row + p->left, p->c, p->h, p->w, p->plane, p->row, p->top, p->left,
                    i);
    }
}

static void add_functions(writer *w)
{
    for (int i = 0; i < w->r->n; i++) {
        const ls_node *n = w->r->member[i];
        ls_pointwise_attr chain = {.n_steps = 1};
        char name[32];
        snprintf(name, sizeof name, "value%d", i);
        if (n->op == &ls_op_pointwise) {
            lsi_cuda_chain_function(w->out, name, n->n_in, n->attr);
        } else if (n->op->pw != LS_PW_NONE) {
            const ls_pw_attr *p = n->op->attr_size > 0 ? n->attr : NULL;
            chain.step[0].pw = n->op->pw;
            chain.step[0].b = n->n_in > 1 ? 1 : 0;
            for (int k = 0; k < 2; k++) chain.step[0].p[k] = p != NULL ? p->p[k] : 0;
            lsi_cuda_chain_function(w->out, name, n->n_in, &chain);
        }
    }
}

static void add_table(writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const lsi_region_weights *kept = n->op == &ls_op_conv2d_dw ? NULL : lsi_region_weights_of(w->r, n->in[1]);

    ls_text_add(w->out, "            ");
    if (n->op == &ls_op_conv2d)
        ls_text_add(w->out, "conv_table<p%d, ", place_of(w, n->in[0]));
    else if (n->op == &ls_op_conv2d_dx)
        ls_text_add(w->out, "conv_dx_table<p%d, p%d, ", place_of(w, n->out[0]), place_of(w, n->in[0]));
    else
        ls_text_add(w->out, "conv_dw_table<p%d, p%d, ", place_of(w, n->in[0]), place_of(w, n->in[1]));
    add_taps(w, n);
    if (kept != NULL) ls_text_add(w->out, ", %d", kept->pitch);
    ls_text_add(w->out, ">((unsigned *)all + %d);\n", w->r->table[i]);
}

/* What member i adds up over samples. */
static void add_sums(writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const bool images = n->n_in > 0 && w->r->g->values[n->in[0]]->shape.rank == 4;

    if (n->op == &ls_op_conv2d_dw) {
        ls_text_add(w->out, "    conv_dw<p%d, p%d, ", place_of(w, n->in[0]), place_of(w, n->in[1]));
        add_taps(w, n);
        ls_text_add(w->out, ", %d, %d> sum%d;\n", w->r->split[i], w->r->down[i], i);
    }
    if (n->op == &ls_op_reduce_sum || n->op == &ls_op_bias_act_grad)
        ls_text_add(w->out, "    %s_sum<p%d> sum%d;\n", images ? "channel" : "vector", place_of(w, n->in[0]),
                    i);
    if (n->op == &ls_op_cross_entropy || n->op == &ls_op_accuracy)
        ls_text_add(w->out, "    float sum%d = 0.0f;\n", i);
}

/* The member before which a copy of weights must have arrived: products with a vector after convolutions can
 * wait for theirs.  0: none can. */
static int first_late(const lsi_region *r)
{
    for (int i = 1; i < r->n; i++)
        if (r->member[i]->op == &ls_op_matmul && !lsi_region_is_outer(r->member[i])) return i;
    return 0;
}

static bool is_late(const lsi_region *r, int32_t id)
{
    const int late = first_late(r);

    for (int i = 0; i < late; i++)
        for (int k = 0; k < r->member[i]->n_in; k++)
            if (r->member[i]->in[k] == id) return false;
    return late > 0;
}

static void add_weights_copied(writer *w, bool late)
{
    for (int i = 0; i < w->r->n_weights; i++) {
        const lsi_region_weights *k = &w->r->weights[i];
        if (is_late(w->r, k->id) != late) continue;
        ls_text_add(w->out, "            stage<%d, %d, %d>(all + %d, ", k->rows, k->width, k->pitch, k->at);
        add_pointer(w, k->id, "float");
        ls_text_add(w->out, ");\n");
    }
    ls_text_add(w->out, "            bundle();\n");
}

/* What is there for all samples comes with the first. */
static void add_common(writer *w)
{
    const lsi_region *r = w->r;
    int rows, columns, length;

    ls_text_add(w->out, "        if (n == first) {\n");
    add_weights_copied(w, false);
    add_weights_copied(w, true);
    for (int i = 0; i < r->n; i++)
        if (lsi_region_product(r->g, r->member[i], &rows, &columns, &length)) add_table(w, i);
    ls_text_add(w->out, "        }\n");
}

static void add_beginning(writer *w)
{
    const lsi_region *r = w->r;

    ls_text_add(w->out,
                "extern \"C\" __global__ void __launch_bounds__(THREADS, %d) region(const __grid_constant__ "
                "pointers p)\n{\n"
                "    lsi_wait();\n"
                "    extern __shared__ float4 memory[];\n"
                "    float *all = (float *)memory, *s = all + %d;\n"
                "    const int first = (int)blockIdx.x;\n",
                r->blocks, r->common);
    for (int i = 0; i < r->n; i++) add_sums(w, i);
    ls_text_add(w->out, "    for (int n = first; n < p.samples; n += p.blocks) {\n");
}

static void add_zeros(writer *w, int place)
{
    const lsi_region_place *p = &w->r->place[place];

    if (p->top + p->left + p->bottom + p->right > 0)
        ls_text_add(w->out, "        surround<p%d>(s);\n", place);
}

/* A sample's inputs and draws. */
static void add_loads(writer *w)
{
    const lsi_region *r = w->r;

    for (int i = 0; i < r->n_values; i++) {
        const lsi_region_value *v = &r->value[i];
        if (v->place < 0 || v->input < 0) continue;
        touch_value(w, v->id, true);
        begin(w);
        ls_text_add(w->out, "fetch%s<p%d>(s, ", r->place[v->place].bytes ? "_bytes" : "", v->place);
        add_pointer(w, v->id, r->place[v->place].bytes ? "unsigned char" : "float");
        ls_text_add(w->out, " + (size_t)n * p%d::COUNT);\n", v->place);
        add_zeros(w, v->place);
    }
    add_common(w);
    for (int i = 0; i < r->n_masks; i++) {
        const lsi_region_mask *m = &r->mask[i];
        touch(w, m->at, m->draws, true);
        begin(w);
        ls_text_add(w->out, "draw<%d>(s + %d, ", m->draws, m->at);
        add_pointer(w, m->key, "int");
        /* u < p for u = k * 2^-24 is k < p * 2^24 in real numbers */
        ls_text_add(w->out, ", %uu, %uu, ", (unsigned)m->attr.stream, (unsigned)ceil(m->attr.p * 0x1p24));
        add_float(w, 1 / (1 - m->attr.p));
        ls_text_add(w->out, ", n);\n");
    }
    ls_text_add(w->out, "        if (n == first)\n            arrived_but_one();\n        else\n"
                        "            arrived();\n");
    barrier(w);
}

/* -- members ----------------------------------------------------------------------------------------------
 */

static void add_conv(writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_conv_attr *a = n->attr;
    const bool dx = n->op == &ls_op_conv2d_dx;

    if (w->r->split[i] > 1) touch(w, w->r->room, 1, true);
    begin(w);
    ls_text_add(w->out, "conv%s<p%d, p%d, ", dx ? "_dx" : "", place_of(w, dx ? n->out[0] : n->in[0]),
                place_of(w, dx ? n->in[0] : n->out[0]));
    add_taps(w, n);
    ls_text_add(w->out, ", %d, %d, %d>(s, (const unsigned *)all + %d, ",
                lsi_region_weights_of(w->r, n->in[1])->pitch, w->r->split[i], w->r->down[i], w->r->table[i]);
    add_weights(w, n->in[1]);
    ls_text_add(w->out, ", s + %d, ", w->r->room);
    add_act(w, n, a->act, a->slope);
    ls_text_add(w->out, ");\n");
}

static void add_matmul(writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_matmul_attr *a = n->attr;
    const ls_shape b = w->r->g->values[n->in[1]]->shape;

    if (!a->trans_b) touch(w, w->r->room, 1, true);
    begin(w);
    ls_text_add(w->out, "%s_times<p%d, p%d, %d>(s, ", a->trans_b ? "rows" : "columns", place_of(w, n->in[0]),
                place_of(w, n->out[0]), (int)b.dim[1]);
    add_weights(w, n->in[1]);
    ls_text_add(w->out, ", ");
    if (!a->trans_b) ls_text_add(w->out, "s + %d, ", w->r->room);
    add_act(w, n, a->act, a->slope);
    ls_text_add(w->out, ");\n");
}

static void add_pool(writer *w, const ls_node *n)
{
    const ls_pool_attr *a = n->attr;
    const bool most = n->op == &ls_op_maxpool2d || n->op == &ls_op_maxpool2d_grad;
    const bool grad = n->op == &ls_op_maxpool2d_grad || n->op == &ls_op_avgpool2d_grad;

    begin(w);
    ls_text_add(w->out, "%spool%s<p%d, p%d, ", most ? "max" : "avg", grad ? "_grad" : "",
                place_of(w, grad ? n->out[0] : n->in[0]), place_of(w, grad ? n->in[0] : n->out[0]));
    if (n->op == &ls_op_maxpool2d) ls_text_add(w->out, "p%d, ", place_of(w, n->out[1]));
    if (n->op == &ls_op_maxpool2d_grad)
        ls_text_add(w->out, "p%d, p%d, ", place_of(w, n->in[1]), place_of(w, n->in[n->n_in > 2 ? 2 : 0]));
    add_windows(w, a);
    ls_text_add(w->out, ", %s>(s);\n", (most ? a->relu : a->count_pad) ? "true" : "false");
}

static void add_dropout(writer *w, const ls_node *n)
{
    const lsi_region_mask *m = lsi_region_mask_of(w->r, n);
    const lsi_region_place *x = &w->r->place[place_of(w, n->in[0])];

    touch(w, m->at, m->draws, false);
    begin(w);
    ls_text_add(w->out, "dropout<p%d, p%d, %d>(s, s + %d);\n", place_of(w, n->in[0]), place_of(w, n->out[0]),
                x->c * x->h * x->w / m->draws, m->at);
}

static void add_label(writer *w, int32_t id)
{
    ls_text_add(w->out, "(");
    add_pointer(w, id, "int");
    ls_text_add(w->out, ")[n]");
}

static void add_score(writer *w, int i)
{
    const ls_node *n = w->r->member[i];

    begin(w);
    if (n->op == &ls_op_cross_entropy_grad) {
        ls_text_add(w->out, "cross_entropy_grad<p%d, p%d>(s, ", place_of(w, n->in[1]),
                    place_of(w, n->out[0]));
        add_label(w, n->in[2]);
        ls_text_add(w->out, ", *");
        add_pointer(w, n->in[0], "float");
        ls_text_add(w->out, " / (float)p.samples);\n");
        return;
    }
    if (n->op == &ls_op_accuracy)
        ls_text_add(w->out, "accuracy<p%d, 1>(s, ", place_of(w, n->in[0]));
    else
        ls_text_add(w->out, "cross_entropy<p%d, p%d, 0>(s, ", place_of(w, n->in[0]), place_of(w, n->out[1]));
    add_label(w, n->in[1]);
    ls_text_add(w->out, ", &sum%d);\n", i);
}

/* The element that a sum adds: of images pixel r of channel c, else element i. */
static void add_element(writer *w, const ls_node *n, int32_t id)
{
    const bool images = w->r->g->values[n->in[0]]->shape.rank == 4;

    ls_text_add(w->out, images ? "s[p%d::of(c, r)]" : "s[p%d::at(i)]", place_of(w, id));
}

static void add_plain_sum(writer *w, int i)
{
    const ls_node *n = w->r->member[i];

    begin(w);
    ls_text_add(w->out, "sum%d.add([&](%s) { return ", i,
                w->r->g->values[n->in[0]]->shape.rank == 4 ? "int c, int r" : "int i");
    add_element(w, n, n->in[0]);
    ls_text_add(w->out, "; });\n");
}

static void add_bias_act_grad(writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_bias_act_attr *a = n->attr;

    begin(w);
    ls_text_add(w->out, "sum%d.add([&](%s) { return ", i,
                w->r->g->values[n->in[0]]->shape.rank == 4 ? "int c, int r" : "int i");
    add_element(w, n, n->out[0]);
    ls_text_add(w->out, " = ");
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
        add_float(w, a->slope);
    }
    ls_text_add(w->out, "%s; });\n", a->act != LS_ACT_NONE ? ")" : "");
}

/* A loop over the result's elements. */
static void add_elements(writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const int y = place_of(w, n->out[0]);

    begin(w);
    ls_text_add(w->out, "for (int i = ME; i < p%d::COUNT; i += THREADS) ", y);
    if (n->op == &ls_op_bias) {
        const ls_shape s = w->r->g->values[n->in[0]]->shape;
        ls_text_add(w->out, "s[p%d::at(i)] = s[p%d::at(i)] + (", y, place_of(w, n->in[0]));
        add_weights(w, n->in[1]);
        ls_text_add(w->out, ")[i / %d];\n", (int)(ls_shape_count(s) / s.dim[0] / s.dim[1]));
        return;
    }
    ls_text_add(w->out, "{ const float x[] = {");
    for (int k = 0; k < n->n_in; k++) {
        const int x = place_of(w, n->in[k]);
        const bool single =
            !ls_shape_equal(w->r->g->values[n->in[k]]->shape, w->r->g->values[n->out[0]]->shape);
        if (k > 0) ls_text_add(w->out, ", ");
        if (single) {
            ls_text_add(w->out, "*");
            add_pointer(w, n->in[k], "float");
        } else {
            ls_text_add(w->out, "s[p%d::at(i)]", x);
        }
    }
    ls_text_add(w->out, "}; s[p%d::at(i)] = value%d(x); }\n", y, i);
}

static void add_member(writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const ls_op *op = n->op;

    if ((op->flags & LS_OP_VIEW) || lsi_region_is_outer(n)) return;
    if (lsi_region_value_of(w->r, n->out[0])->kind == LS_REGION_SUM && op->pw != LS_PW_NONE) return;
    for (int k = 0; k < n->n_in; k++) touch_value(w, n->in[k], false);
    for (int k = 0; k < n->n_out; k++) touch_value(w, n->out[k], true);
    if (op == &ls_op_conv2d || op == &ls_op_conv2d_dx) {
        add_conv(w, i);
    } else if (op == &ls_op_conv2d_dw) {
        begin(w);
        ls_text_add(w->out, "sum%d.add(s, (const unsigned *)all + %d);\n", i, w->r->table[i]);
    } else if (op == &ls_op_matmul) {
        add_matmul(w, i);
    } else if (op == &ls_op_maxpool2d || op == &ls_op_avgpool2d || op == &ls_op_maxpool2d_grad ||
               op == &ls_op_avgpool2d_grad) {
        add_pool(w, n);
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

/* Zeros around what the member has made, and copies of it for others. */
static void add_given(writer *w, int i)
{
    const ls_node *n = w->r->member[i];

    for (int k = 0; k < n->n_out; k++) {
        const lsi_region_value *v = lsi_region_value_of(w->r, n->out[k]);
        const lsi_region_place *p = v->place >= 0 ? &w->r->place[v->place] : NULL;
        if (p == NULL) continue;
        if (!(n->op->flags & LS_OP_VIEW)) add_zeros(w, v->place);
        if (v->output >= 0) {
            touch_value(w, v->id, false);
            begin(w);
            ls_text_add(w->out, "give%s<p%d>(s, (%s *)p.at[%d] + (size_t)n * p%d::COUNT);\n",
                        p->bytes ? "_bytes" : "", v->place, p->bytes ? "unsigned char" : "float",
                        w->r->n_in + v->output, v->place);
        }
        if (v->spill >= 0) {
            touch_value(w, v->id, false);
            begin(w);
            ls_text_add(w->out, "give<p%d>(s, p.spills + (size_t)p.samples * %d + (size_t)n * p%d::COUNT);\n",
                        v->place, v->spill, v->place);
        }
    }
}

/* -- behind the samples -----------------------------------------------------------------------------------
 */

static void add_parts(writer *w, int i)
{
    const ls_node *n = w->r->member[i];

    for (int k = 0; k < n->n_out; k++) {
        const lsi_region_value *v = lsi_region_value_of(w->r, n->out[k]);
        if (v->kind != LS_REGION_SUM || v->sum < 0) continue;
        if (n->op == &ls_op_conv2d_dw)
            ls_text_add(w->out, "    sum%d.leave(s + %d, part + %d);\n", i, w->r->room, v->sum);
        else if (n->op == &ls_op_cross_entropy || n->op == &ls_op_accuracy)
            ls_text_add(w->out, "    leave_number<%d>(sum%d, part + %d);\n", n->op == &ls_op_accuracy, i,
                        v->sum);
        else
            ls_text_add(w->out, "    sum%d.leave(part + %d);\n", i, v->sum);
    }
}

int lsi_region_source(ls_text *out, const lsi_region *r)
{
    writer w = {.out = out, .r = r};
    const int late = first_late(r);

    ls_text_add(out, "#define THREADS %d\n#define ROUNDED %d\n", r->threads, r->machine.rounded ? 1 : 0);
    ls_text_add(out, "%s%s%s%s", lsi_cuda_text_wait, lsi_cuda_text_functions, lsi_cuda_text_region,
                lsi_cuda_text_region_nodes);
    ls_text_add(
        out,
        "struct pointers {\n    void *at[%d];\n    float *parts, *spills;\n    int samples, blocks;\n};\n",
        LSI_REGION_POINTERS);
    add_places(&w);
    add_functions(&w);
    add_beginning(&w);
    add_loads(&w);
    for (int i = 0; i < r->n; i++) {
        if (late > 0 && i == late) {
            ls_text_add(out, "        if (n == first) arrived();\n");
            barrier(&w);
        }
        add_member(&w, i);
        add_given(&w, i);
    }
    barrier(&w);
    ls_text_add(out, "    }\n");
    if (r->sums > 0) ls_text_add(out, "    float *part = p.parts + (size_t)first * %d;\n", r->sums);
    for (int i = 0; i < r->n; i++) add_parts(&w, i);
    ls_text_add(out, "}\n");
    return lsi_region_finish_source(out, r);
}
