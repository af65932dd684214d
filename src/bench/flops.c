/* flops.c: the arithmetic by which models are compared. */
#include "bench/flops.h"

#include <string.h>

double ls_product_flops(const char *op, double flops)
{
    static const char *const counted[] = {"matmul",           "conv2d",    "conv2d_dx", "conv2d_dw",
                                          "conv2d_dw_pooled", "attention", "chamfer",   NULL};

    /* Products are all of it but for a few parts in a thousand. */
    if (strcmp(op, "region") == 0) return flops;
    /* It computes the scores a second time: one product of its five is repeated work. */
    if (strcmp(op, "attention_grad") == 0) return flops * 0.8;
    for (int i = 0; counted[i] != NULL; i++)
        if (strcmp(op, counted[i]) == 0) return flops;
    return 0;
}

double ls_document_product_flops(const ls_document *d)
{
    double sum = 0;

    for (int32_t i = 0; i < d->n_nodes; i++) sum += ls_product_flops(d->nodes[i].op, d->nodes[i].flops);
    return sum;
}
