/* flops.c: the arithmetic by which models are compared. */
#include "bench/flops.h"

#include <string.h>

double ls_product_flops(const char *op, double flops)
{
    static const char *const counted[] = {"matmul",           "conv2d",    "conv2d_dx", "conv2d_dw",
                                          "conv2d_dw_pooled", "attention", "chamfer",   NULL};

    /* It computes the scores a second time: one product of its five is repeated work. */
    if (strcmp(op, "attention_grad") == 0) return flops * 0.8;
    for (int i = 0; counted[i] != NULL; i++)
        if (strcmp(op, counted[i]) == 0) return flops;
    return 0;
}

double ls_plan_product_flops(const ls_plan *p)
{
    double sum = 0;

    for (int i = 0; i < ls_plan_node_count(p); i++) {
        ls_plan_node n = ls_plan_node_at(p, i);
        sum += ls_product_flops(n.op, n.flops);
    }
    return sum;
}
