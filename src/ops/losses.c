/* losses.c: losses that are short chains of other ops.  All are means over all elements; 16-bit inputs are
 * widened first, because a mean kept in 16 bits is no use as a loss.  Shapes must be equal: a target that
 * broadcasts against the prediction is nearly always a mistake. */
#include "ops/ops.h"
#include "ops/type_rules.h"

/* Also of what is wide: passes/precision.c sees here where a loss begins, and takes away what is no cast. */
static ls_value widen(ls_value x)
{
    return ls_graph_add(x.g, &ls_op_cast, 1, &x, &(ls_cast_attr){lsi_wide_dtype(ls_value_dtype(x))});
}

/* Widens both operands; false (with the error in the graph) when they do not belong together. */
static bool prepare(const char *name, ls_value *a, ls_value *b)
{
    ls_shape sa = ls_value_shape(*a), sb = ls_value_shape(*b);
    char ta[LS_SHAPE_TEXT], tb[LS_SHAPE_TEXT];

    if (!ls_value_ok(*a) || !ls_value_ok(*b)) return false;
    if (!ls_shape_equal(sa, sb)) {
        ls_graph_fail(a->g, LS_INVALID, "%s: prediction %s and target %s differ in shape", name,
                      ls_shape_text(sa, ta), ls_shape_text(sb, tb));
        return false;
    }
    *a = widen(*a);
    *b = widen(*b);
    return true;
}

/* The mean of no elements is 0 here, as in cross_entropy, so that a rank with an empty share adds nothing. */
static ls_value mean(ls_value x)
{
    int64_t n = ls_shape_count(ls_value_shape(x));

    return ls_scale(ls_reduce_sum(x, LS_ALL_AXES, false), 1.0 / (double)(n > 0 ? n : 1));
}

ls_value ls_bce_with_logits(ls_value logits, ls_value target)
{
    if (!prepare("bce_with_logits", &logits, &target)) return (ls_value){logits.g, -1};
    /* -t log s(x) - (1 - t) log(1 - s(x)) with s the logistic function, without ever forming s(x). */
    return mean(ls_sub(ls_softplus(logits), ls_mul(logits, target)));
}

ls_value ls_l1_loss(ls_value a, ls_value b)
{
    if (!prepare("l1_loss", &a, &b)) return (ls_value){a.g, -1};
    return mean(ls_abs(ls_sub(a, b)));
}

ls_value ls_mse_loss(ls_value a, ls_value b)
{
    if (!prepare("mse_loss", &a, &b)) return (ls_value){a.g, -1};
    return mean(ls_square(ls_sub(a, b)));
}
