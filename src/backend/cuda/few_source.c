/* few_source.c: writes the kernel of a convolution with few channels: its numbers, and behind them the files
 * in source/. */
#include <string.h>

#include "backend/cuda/few_tiles.h"
#include "backend/cuda/texts.h"

static void add_number(ls_text *out, const char *name, int64_t value)
{
    ls_text_add(out, "constexpr int %s = %lld;\n", name, (long long)value);
}

static void add_type(ls_text *out, const lsi_few_problem *f)
{
    ls_text_add(out, "#define ELEMENT %s\n#define EXACT %d\n",
                f->dtype == LS_F32 ? "float" : "unsigned short", f->exact);
    if (f->dtype == LS_BF16) ls_text_add(out, "#define BFLOAT16\n");
    if (f->dtype == LS_F16) ls_text_add(out, "#define FLOAT16\n");
}

static void add_geometry(ls_text *out, const lsi_cuda_few *p)
{
    add_number(out, "H", p->h);
    add_number(out, "W", p->w);
    add_number(out, "F", p->f);
    add_number(out, "MH", p->mh);
    add_number(out, "MW", p->mw);
    add_number(out, "M", p->m);
    add_number(out, "KH", p->kh);
    add_number(out, "KW", p->kw);
    add_number(out, "STRIDE", p->stride);
    add_number(out, "TOP", p->top);
    add_number(out, "LEFT", p->left);
    ls_text_add(
        out,
        "#define WEIGHT(m, f, ky, kx) (%lld + (m) * (%lld) + (f) * (%lld) + (ky) * (%lld) + (kx) * (%lld))\n",
        (long long)p->w_first, (long long)p->w_m, (long long)p->w_f, (long long)p->w_ky, (long long)p->w_kx);
}

static void add_activation(ls_text *out, const lsi_few_problem *f)
{
    uint32_t slope;

    memcpy(&slope, &f->slope, sizeof slope);
    ls_text_add(out, "constexpr bool BIASED = %s;\n", f->biased ? "true" : "false");
    ls_text_add(out, "static __device__ __forceinline__ float activate(float x)\n{\n    return ");
    switch (f->act) {
    case LS_ACT_RELU: ls_text_add(out, "lsi_pw_relu(x)"); break;
    case LS_ACT_LEAKY: ls_text_add(out, "lsi_pw_leaky(x, __uint_as_float(0x%08xu))", (unsigned)slope); break;
    case LS_ACT_TANH: ls_text_add(out, "lsi_pw_tanh(x)"); break;
    case LS_ACT_GELU: ls_text_add(out, "lsi_pw_gelu(x)"); break;
    default: ls_text_add(out, "x");
    }
    ls_text_add(out, ";\n}\n");
}

static void add_tile(ls_text *out, const lsi_few_tile *t, size_t shared)
{
    const struct {
        const char *name;
        int value;
    } all[] = {{"WARPS", t->warps}, {"BLOCKS", t->blocks}, {"ROWS", t->rows},      {"STAGES", t->stages},
               {"STRIP", t->strip}, {"BAND", t->band},     {"SEGMENT", t->segment}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].value > 0) add_number(out, all[i].name, all[i].value);
    add_number(out, "SHARED", (int64_t)shared);
}

void lsi_few_source(ls_text *out, const lsi_few_problem *f, const lsi_few_tile *t)
{
    add_type(out, f);
    add_geometry(out, &f->p);
    add_tile(out, t, lsi_few_shared(f, t));
    ls_text_add(out, "%s%s", lsi_cuda_text_wait, lsi_cuda_text_functions);
    add_activation(out, f);
    ls_text_add(out, "%s", lsi_cuda_text_few);
    switch (f->pass) {
    case LSI_FEW_TO_MANY: ls_text_add(out, "%s", lsi_cuda_text_few_to_many); break;
    case LSI_FEW_FROM_MANY:
        add_number(out, "TILES", t->tiles);
        ls_text_add(out, "%s", lsi_cuda_text_few_from_many);
        break;
    case LSI_FEW_WEIGHTS:
        add_number(out, "COLUMNS", t->columns);
        ls_text_add(out, "%s", lsi_cuda_text_few_weights);
        break;
    }
}
