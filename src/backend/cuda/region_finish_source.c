/* region_finish_source.c: writes the second kernel of a region, which makes sums of what blocks have left and
 * products over samples of what they have spilled, and what follows from these element by element: also the
 * next versions of variables. */
#include "backend/cuda/region.h"

#include <stdio.h>

#include "backend/cuda/texts.h"

enum { LANES = 32 }; /* sums of a block: as source/region_finish.cuh has it */

/* The value x, element e of sum v, goes where it is wanted; the same for all that follows from it. */
static void add_put(ls_text *out, const lsi_region *r, int32_t id, const char *e, const char *x, int depth)
{
    const lsi_region_value *v = lsi_region_value_of(r, id);

    if (v->output >= 0)
        ls_text_add(out, "        ((float *)p.at[%d])[%s] = %s;\n", r->n_in + v->output, e, x);
    if (lsi_region_is_gradient(r, id)) lsi_region_add_update(out, r, id, e, x);
    for (int i = 0; i < r->n && depth < 8; i++) {
        char next[32];
        if (r->member[i]->op->pw == LS_PW_NONE || r->member[i]->in[0] != id) continue;
        snprintf(next, sizeof next, "x%d", i);
        ls_text_add(out, "        const float %s = value%d(&%s);\n", next, i, x);
        add_put(out, r, r->member[i]->out[0], e, next, depth + 1);
    }
}

/* The gradient that the value is, or that follows from it; -1: none. */
static int32_t gradient_of(const lsi_region *r, int32_t id, int depth)
{
    if (lsi_region_is_gradient(r, id)) return id;
    for (int i = 0; i < r->n && depth < 8; i++) {
        int32_t found = -1;
        if (r->member[i]->op->pw != LS_PW_NONE && r->member[i]->in[0] == id)
            found = gradient_of(r, r->member[i]->out[0], depth + 1);
        if (found >= 0) return found;
    }
    return -1;
}

/* What a variable was before it is updated by element e of the value. */
static void add_before(ls_text *out, const lsi_region *r, int32_t id, const char *e)
{
    const int32_t gradient = gradient_of(r, id, 0);

    ls_text_add(out, "return ");
    if (gradient >= 0)
        lsi_region_add_before(out, r, gradient, e);
    else
        ls_text_add(out, "no_update()");
    ls_text_add(out, ";");
}

/* Whether the sum of values is a mean. */
static bool is_mean(const ls_node *n, int k)
{
    return n->op == &ls_op_cross_entropy && k == 0;
}

/* For the elements of every sum that blocks leave parts of: what was before, or what becomes of it. */
static void add_ranges(ls_text *out, const lsi_region *r, bool before)
{
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->member[i]->n_out; k++) {
            const lsi_region_value *v = lsi_region_value_of(r, r->member[i]->out[k]);
            const int count = (int)ls_shape_count(r->g->values[v->id]->shape);
            char e[48];
            if (v->kind != LS_REGION_SUM || v->sum < 0) continue;
            if (before && gradient_of(r, v->id, 0) < 0) continue;
            snprintf(e, sizeof e, "e - %d", v->sum);
            ls_text_add(out, "    if (e >= %d && e < %d) {\n        ", v->sum, v->sum + count);
            if (before) {
                add_before(out, r, v->id, e);
            } else {
                if (is_mean(r->member[i], k)) ls_text_add(out, "x = x / (float)p.samples;");
                ls_text_add(out, "\n");
                add_put(out, r, v->id, e, "x", 0);
            }
            ls_text_add(out, "\n    }\n");
        }
}

static void add_sums(ls_text *out, const lsi_region *r)
{
    ls_text_add(out, "INLINE before before_sum(const pointers &p, int e)\n{\n");
    add_ranges(out, r, true);
    ls_text_add(out, "    return no_update();\n}\n"
                     "INLINE void put_sum(const pointers &p, int e, float x, const before &old, const float "
                     "(*powers)[2])\n{\n");
    add_ranges(out, r, false);
    ls_text_add(out, "}\n");
}

/* Where all samples of the value lie. */
static void add_samples(ls_text *out, const lsi_region *r, int32_t id)
{
    const lsi_region_value *v = lsi_region_value_of(r, id);

    if (v->spill >= 0)
        ls_text_add(out, "p.spills + (size_t)p.samples * %d", v->spill);
    else
        ls_text_add(out, "(const float *)p.at[%d]",
                    v->kind == LS_REGION_SAMPLE ? r->n_in + v->output : v->input);
}

static int add_outer(ls_text *out, const lsi_region *r, const ls_node *n, int first)
{
    const ls_shape y = r->g->values[n->out[0]]->shape;
    const int blocks = (int)((ls_shape_count(y) + LANES - 1) / LANES);

    ls_text_add(out, "    if (block < %d) {\n    outer_sums<%d, %d>(room, ", first + blocks, (int)y.dim[0],
                (int)y.dim[1]);
    add_samples(out, r, n->in[0]);
    ls_text_add(out, ", ");
    add_samples(out, r, n->in[1]);
    ls_text_add(out, ", p.samples, (block - %d) * 32, [&](int e) { ", first);
    add_before(out, r, n->out[0], "e");
    ls_text_add(out, " }, [&](int e, float x, const before &old) {\n");
    add_put(out, r, n->out[0], "e", "x", 0);
    ls_text_add(out, "    });\n    return;\n    }\n");
    return blocks;
}

int lsi_region_finish_threads(const lsi_region *r)
{
    return lsi_region_grid(r) > 128 ? 1024 : 256;
}

int lsi_region_finish_source(ls_text *out, const lsi_region *r)
{
    int blocks = (r->sums + LANES - 1) / LANES;

    ls_text_add(out, "#define FINISH %d\n%s%s", lsi_region_finish_threads(r), lsi_cuda_text_update,
                lsi_cuda_text_region_finish);
    lsi_region_add_numbers(out, r);
    add_sums(out, r);
    ls_text_add(out, "extern \"C\" __global__ void __launch_bounds__(FINISH) finish(const __grid_constant__ "
                     "pointers p)\n{\n    lsi_wait();\n    LSI_SHARED finish_room room;\n"
                     "    const int block = (int)blockIdx.x;\n");
    lsi_region_add_powers(out, r);
    if (r->sums > 0)
        ls_text_add(
            out,
            "    if (block < %d) {\n        add_parts(room, p.parts, p.blocks, %d, block * 32, [&](int e) { "
            "return before_sum(p, e); },\n            [&](int e, float x, const before &old) { "
            "put_sum(p, e, x, old, powers); });\n        return;\n    }\n",
            blocks, r->sums);
    for (int i = 0; i < r->n; i++)
        if (lsi_region_is_outer(r->member[i])) blocks += add_outer(out, r, r->member[i], blocks);
    ls_text_add(out, "}\n");
    return blocks;
}
