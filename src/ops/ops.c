/* ops.c: the table of all ops and the activation helpers that several of them share. */
#include "ops/ops.h"

#include <math.h>

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

double ls_act_eval(ls_act a, double slope, double x)
{
    switch (a) {
    case LS_ACT_NONE: return x;
    case LS_ACT_RELU: return x > 0 ? x : 0;
    case LS_ACT_LEAKY: return x > 0 ? x : slope * x;
    case LS_ACT_TANH: return tanh(x);
    case LS_ACT_GELU: return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    }
    return x;
}

double ls_act_grad_from_y(ls_act a, double slope, double y, double dy)
{
    switch (a) {
    case LS_ACT_NONE: return dy;
    case LS_ACT_RELU: return y > 0 ? dy : 0;
    case LS_ACT_LEAKY: return y > 0 ? dy : slope * dy;
    case LS_ACT_TANH: return dy * (1 - y * y);
    case LS_ACT_GELU: break; /* not a function of y */
    }
    LS_BUG_IF(true);
}
