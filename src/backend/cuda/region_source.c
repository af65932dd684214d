/* region_source.c: writes the first kernel of a region: a call of source/region*.cuh for every member, with
 * what comes before, between and behind them. */
#include <math.h>
#include <stdio.h>

#include "backend/cuda/chain_source.h"
#include "backend/cuda/region_writer.h"
#include "backend/cuda/texts.h"

/* -- before the samples -----------------------------------------------------------------------------------
 */

static void add_places(lsi_region_writer *w)
{
    for (int i = 0; i < w->r->n_places; i++) {
        const lsi_region_place *p = &w->r->place[i];
        ls_text_add(w->out, "typedef map<%d, %d, %d, %d, %d, %d, %d, %d, %d> p%d;\n",
                    p->at + p->top * p->row + p->left, p->c, p->h, p->w, p->plane, p->row, p->top, p->left,
                    (int)p->kept, i);
    }
}

static void add_functions(lsi_region_writer *w)
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

/* What member i adds up over samples. */
static void add_sums(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];
    const bool images = n->n_in > 0 && w->r->g->values[n->in[0]]->shape.rank == 4;

    if (n->op == &ls_op_conv2d_dw) {
        ls_text_add(w->out, "    conv_dw<p%d, p%d, ", lsi_place_of(w, n->in[0]), lsi_place_of(w, n->in[1]));
        lsi_add_taps(w, n);
        ls_text_add(w->out, ", ");
        lsi_add_cut(w, i);
        ls_text_add(w->out, "> sum%d;\n", i);
    }
    if (n->op == &ls_op_reduce_sum || n->op == &ls_op_bias_act_grad)
        ls_text_add(w->out, "    %s_sum<p%d> sum%d;\n", images ? "channel" : "vector",
                    lsi_place_of(w, n->in[0]), i);
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

static void add_weights_copied(lsi_region_writer *w, bool late)
{
    for (int i = 0; i < w->r->n_weights; i++) {
        const lsi_region_weights *k = &w->r->weights[i];
        if (is_late(w->r, k->id) != late) continue;
        ls_text_add(w->out, "            stage<%d, %d, %d>(all + %d, ", k->rows, k->width, k->pitch, k->at);
        lsi_add_pointer(w, k->id, "float");
        ls_text_add(w->out, ");\n");
    }
    ls_text_add(w->out, "            bundle();\n");
}

/* What is there for all samples comes with the first. */
static void add_common(lsi_region_writer *w)
{
    ls_text_add(w->out, "        if (n == first) {\n");
    add_weights_copied(w, false);
    add_weights_copied(w, true);
    ls_text_add(w->out, "        }\n");
}

/* When copies have arrived, and before others may look. */
static void add_weights_rounded(lsi_region_writer *w, bool late)
{
    for (int i = 0; i < w->r->n_weights; i++) {
        const lsi_region_weights *k = &w->r->weights[i];
        if (is_late(w->r, k->id) != late || !k->rounded) continue;
        ls_text_add(w->out, "        if (n == first) round_staged<%d, %d, %d>(all + %d);\n", k->rows,
                    k->width, k->pitch, k->at);
    }
}

/* Whether input k of the member is a label, or a number that all elements share. */
static bool is_label(const ls_node *n, int k)
{
    return ((n->op == &ls_op_cross_entropy || n->op == &ls_op_accuracy) && k == 1) ||
           (n->op == &ls_op_cross_entropy_grad && k == 2);
}

static bool is_single(const lsi_region_writer *w, const ls_node *n, int k)
{
    const lsi_region_value *v = lsi_region_value_of(w->r, n->in[k]);
    const bool elements = n->op == &ls_op_pointwise || n->op->pw != LS_PW_NONE;

    if (n->op == &ls_op_cross_entropy_grad) return k == 0;
    return elements && v->input >= 0 &&
           !ls_shape_equal(w->r->g->values[n->in[k]]->shape, w->r->g->values[n->out[0]]->shape);
}

/* They come from memory before anybody waits for them. */
static void add_numbers(lsi_region_writer *w, bool labels)
{
    uint8_t told[LSI_REGION_POINTERS] = {0};

    for (int i = 0; i < w->r->n; i++)
        for (int k = 0; k < w->r->member[i]->n_in; k++) {
            const ls_node *n = w->r->member[i];
            const int input = lsi_region_value_of(w->r, n->in[k])->input;
            if (!(labels ? is_label(n, k) : is_single(w, n, k)) || told[input]) continue;
            told[input] = 1;
            ls_text_add(w->out, labels ? "        const int label%d = (" : "    const float single%d = *",
                        input);
            lsi_add_pointer(w, n->in[k], labels ? "int" : "float");
            ls_text_add(w->out, labels ? ")[n];\n" : ";\n");
        }
}

static void add_beginning(lsi_region_writer *w)
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
    add_numbers(w, false);
    lsi_region_add_counts(w->out, r);
    if (lsi_region_grid(r) == r->samples) /* every block has one sample */
        ls_text_add(w->out, "    {\n        const int n = first;\n");
    else
        ls_text_add(w->out, "    for (int n = first; n < p.samples; n += p.blocks) {\n");
    add_numbers(w, true);
}

/* Behind member i: zeros in places that one of the next makes, as soon as nobody has to wait for it. */
static void add_zeros(lsi_region_writer *w, int i)
{
    for (int k = 0; k < w->r->n_places; k++) {
        const lsi_region_place *p = &w->r->place[k];
        if (!lsi_region_cleared(p) || w->cleared[k] || i < p->first - LSI_REGION_EARLY || i >= p->first)
            continue;
        lsi_touch_place(w, k, true, false);
        if (i < p->first - 1 && lsi_must_wait(w)) {
            w->n_next = 0;
            continue;
        }
        lsi_add_call(w);
        ls_text_add(w->out, "clear<p%d>(s);\n", k);
        w->cleared[k] = true;
    }
}

/* A sample's inputs and draws. */
static void add_loads(lsi_region_writer *w)
{
    const lsi_region *r = w->r;

    for (int i = 0; i < r->n_values; i++) {
        const lsi_region_value *v = &r->value[i];
        if (v->place < 0 || v->input < 0) continue;
        lsi_touch_value(w, v->id, true, false);
        lsi_add_call(w);
        ls_text_add(w->out, "fetch%s<p%d>(s, ", r->place[v->place].bytes ? "_bytes" : "", v->place);
        lsi_add_pointer(w, v->id, r->place[v->place].bytes ? "unsigned char" : "float");
        ls_text_add(w->out, " + (size_t)n * p%d::COUNT);\n", v->place);
        if (r->place[v->place].top + r->place[v->place].left + r->place[v->place].bottom +
                r->place[v->place].right >
            0)
            ls_text_add(w->out, "        surround<p%d>(s);\n", v->place);
    }
    add_common(w);
    for (int i = 0; i < r->n_masks; i++) {
        const lsi_region_mask *m = &r->mask[i];
        lsi_touch(w, m->at, m->draws, true);
        lsi_add_call(w);
        ls_text_add(w->out, "draw<%d>(s + %d, ", m->draws, m->at);
        lsi_add_pointer(w, m->key, "int");
        /* u < p for u = k * 2^-24 is k < p * 2^24 in real numbers */
        ls_text_add(w->out, ", %uu, %uu, ", (unsigned)m->attr.stream, (unsigned)ceil(m->attr.p * 0x1p24));
        lsi_add_float(w, 1 / (1 - m->attr.p));
        ls_text_add(w->out, ", n);\n");
    }
    add_zeros(w, -1);
    ls_text_add(w->out, "        if (n == first)\n            arrived_but_one();\n        else\n"
                        "            arrived();\n");
    for (int i = 0; i < r->n_values; i++) {
        const lsi_region_value *v = &r->value[i];
        if (v->place >= 0 && v->input >= 0 && r->place[v->place].kept != LSI_REGION_AS_IT_IS)
            ls_text_add(w->out, "        round_fetched<p%d>(s);\n", v->place);
    }
    add_weights_rounded(w, false);
    lsi_add_barrier(w);
    lsi_region_add_counted(w->out, r);
}

/* -- between members --------------------------------------------------------------------------------------
 */

/* Copies of what the member has made, for others. */
static void add_given(lsi_region_writer *w, int i)
{
    const ls_node *n = w->r->member[i];

    for (int k = 0; k < n->n_out; k++) {
        const lsi_region_value *v = lsi_region_value_of(w->r, n->out[k]);
        const lsi_region_place *p = v->place >= 0 ? &w->r->place[v->place] : NULL;
        if (p == NULL) continue;
        if (v->output >= 0) {
            lsi_touch_value(w, v->id, false, !p->bytes);
            lsi_add_call(w);
            ls_text_add(w->out, "give%s<p%d>(s, (%s *)p.at[%d] + (size_t)n * p%d::COUNT);\n",
                        p->bytes ? "_bytes" : "", v->place, p->bytes ? "unsigned char" : "float",
                        w->r->n_in + v->output, v->place);
        }
        if (v->spill >= 0) {
            lsi_touch_value(w, v->id, false, true);
            lsi_add_call(w);
            ls_text_add(w->out, "give<p%d>(s, p.spills + (size_t)p.samples * %d + (size_t)n * p%d::COUNT);\n",
                        v->place, v->spill, v->place);
        }
        if (p->kept == LSI_REGION_AFTERWARDS && p->first == i) {
            lsi_touch_value(w, v->id, true, true);
            lsi_add_call(w);
            ls_text_add(w->out, "round_all<p%d>(s);\n", v->place);
        }
    }
}

/* -- behind the samples -----------------------------------------------------------------------------------
 */

static void add_parts(lsi_region_writer *w, int i)
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
    lsi_region_writer w = {.out = out, .r = r};
    const int late = first_late(r);

    ls_text_add(out, "#define THREADS %d\n#define ROUNDED %d\n", r->threads, r->machine.rounded ? 1 : 0);
    ls_text_add(out, "%s%s%s%s%s", lsi_cuda_text_wait, lsi_cuda_text_functions, lsi_cuda_text_region,
                lsi_cuda_text_region_products, lsi_cuda_text_region_nodes);
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
            add_weights_rounded(&w, true);
            lsi_add_barrier(&w);
        }
        lsi_add_member(&w, i);
        add_given(&w, i);
        add_zeros(&w, i);
    }
    lsi_add_barrier(&w);
    ls_text_add(out, "    }\n");
    if (r->sums > 0) ls_text_add(out, "    float *part = p.parts + (size_t)first * %d;\n", r->sums);
    for (int i = 0; i < r->n; i++) add_parts(&w, i);
    ls_text_add(out, "}\n");
    return lsi_region_finish_source(out, r);
}
