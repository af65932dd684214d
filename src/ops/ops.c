/* ops.c: the table of all ops and the activation helpers that several of them share. */
#include "ops/ops.h"

const ls_op *const *ls_ops_all(int *n)
{
#define LS_OP_ENTRY(name) &ls_op_##name,
    static const ls_op *const table[] = {LS_OPS(LS_OP_ENTRY)};
#undef LS_OP_ENTRY

    *n = (int)(sizeof table / sizeof table[0]);
    return table;
}

const char *ls_act_name(ls_act a)
{
    static const char *const names[] = {"none", "relu", "leaky", "tanh", "gelu"};

    return (unsigned)a < sizeof names / sizeof names[0] ? names[a] : "?";
}

/* Activations are ops too: their formulas stand in the files of those ops and nowhere else. */
static const ls_op *act_op(ls_act a)
{
    static const ls_op *const ops[] = {&ls_op_copy, &ls_op_relu, &ls_op_leaky_relu, &ls_op_tanh, &ls_op_gelu};

    LS_BUG_IF((unsigned)a >= sizeof ops / sizeof ops[0]);
    return ops[a];
}

double ls_act_eval(ls_act a, double slope, double x)
{
    return act_op(a)->pw_eval(x, 0, (const double[2]){slope, 0});
}

double ls_act_grad_from_y(ls_act a, double slope, double y, double dy)
{
    const double p[2] = {slope, 0};

    switch (a) {
    case LS_ACT_NONE: return dy;
    case LS_ACT_RELU: return ls_op_relu_grad.pw_eval(dy, y, p);
    case LS_ACT_LEAKY: return ls_op_leaky_relu_grad.pw_eval(dy, y, p);
    case LS_ACT_TANH: return ls_op_tanh_grad.pw_eval(dy, y, p);
    case LS_ACT_GELU: break; /* not a function of y */
    }
    LS_BUG_IF(true);
}
