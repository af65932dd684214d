/* chain_source.c: writes the kernel of a chain: its constants, its function, and around them the files in
 * source/. */
#include "backend/cuda/chain_source.h"

#include <string.h>

#include "backend/cuda/texts.h"

typedef struct function {
    const char *name;
    int operands, parameters;
} function;

static const function functions[LS_PW_N] = {
    [LS_PW_ADD] = {"add", 2, 0},
    [LS_PW_SUB] = {"sub", 2, 0},
    [LS_PW_MUL] = {"mul", 2, 0},
    [LS_PW_DIV] = {"div", 2, 0},
    [LS_PW_MAX] = {"max", 2, 0},
    [LS_PW_MIN] = {"min", 2, 0},
    [LS_PW_AFFINE] = {"affine", 1, 2},
    [LS_PW_RELU] = {"relu", 1, 0},
    [LS_PW_RELU_GRAD] = {"relu_grad", 2, 0},
    [LS_PW_LEAKY] = {"leaky", 1, 1},
    [LS_PW_LEAKY_GRAD] = {"leaky_grad", 2, 1},
    [LS_PW_GELU] = {"gelu", 1, 0},
    [LS_PW_GELU_GRAD] = {"gelu_grad", 2, 0},
    [LS_PW_TANH] = {"tanh", 1, 0},
    [LS_PW_TANH_GRAD] = {"tanh_grad", 2, 0},
    [LS_PW_SIGMOID] = {"sigmoid", 1, 0},
    [LS_PW_SIGMOID_GRAD] = {"sigmoid_grad", 2, 0},
    [LS_PW_EXP] = {"exp", 1, 0},
    [LS_PW_LOG] = {"log", 1, 0},
    [LS_PW_SQRT] = {"sqrt", 1, 0},
    [LS_PW_RSQRT] = {"rsqrt", 1, 0},
    [LS_PW_SQUARE] = {"square", 1, 0},
    [LS_PW_ABS] = {"abs", 1, 0},
    [LS_PW_SIGN] = {"sign", 1, 0},
    [LS_PW_SOFTPLUS] = {"softplus", 1, 0},
    [LS_PW_COPY] = {"copy", 1, 0},
};

/* Registers are x[i] for inputs and r<k> for the results of steps. */
static void add_register(ls_text *out, int n_in, int reg)
{
    if (reg < n_in)
        ls_text_add(out, "x[%d]", reg);
    else
        ls_text_add(out, "r%d", reg - n_in);
}

void lsi_cuda_chain_function(ls_text *out, const char *name, int n_in, const ls_pointwise_attr *c)
{
    ls_text_add(out, "static __device__ __forceinline__ float %s(const float *x)\n{\n", name);
    for (int i = 0; i < c->n_steps; i++) {
        const function *f = &functions[c->step[i].pw];
        ls_text_add(out, "    const float r%d = lsi_pw_%s(", i, f->name);
        add_register(out, n_in, c->step[i].a);
        if (f->operands == 2) {
            ls_text_add(out, ", ");
            add_register(out, n_in, c->step[i].b);
        }
        /* As bits: the very float, infinities and NaN among them. */
        for (int k = 0; k < f->parameters; k++) {
            const float p = (float)c->step[i].p[k];
            uint32_t bits;
            memcpy(&bits, &p, sizeof bits);
            ls_text_add(out, ", __uint_as_float(0x%08xu)", (unsigned)bits);
        }
        ls_text_add(out, ");\n");
    }
    ls_text_add(out, "    return r%d;\n}\n", c->n_steps - 1);
}

static const char *kind(const lsi_cuda_chain_args *a, int i)
{
    if (a->rank == 0) return a->one[i] ? "KIND_ONE" : "KIND_ALL";
    return a->stride[i][a->rank - 1] == 0 ? "KIND_REPEATED" : "KIND_ALONG";
}

void lsi_cuda_chain_source(ls_text *out, const lsi_cuda_chain_args *a)
{
    ls_text_add(out, "#define ELEMENT %s\n", a->dtype == LS_F32 ? "float" : "unsigned short");
    if (a->dtype == LS_BF16) ls_text_add(out, "#define BFLOAT16\n");
    if (a->dtype == LS_F16) ls_text_add(out, "#define FLOAT16\n");
    ls_text_add(out, "#define WIDTH %d\n#define INPUTS %d\n#define RANK %d\n", a->vector, a->n_in, a->rank);
    ls_text_add(out, "#define KIND(i) (");
    for (int i = 0; i < a->n_in - 1; i++) ls_text_add(out, "(i) == %d ? %s : ", i, kind(a, i));
    ls_text_add(out, "%s)\n", kind(a, a->n_in - 1));
    ls_text_add(out, "%s%s", lsi_cuda_text_wait, lsi_cuda_text_functions);
    lsi_cuda_chain_function(out, "value", a->n_in, &a->chain);
    ls_text_add(out, "%s", lsi_cuda_text_chain);
}
