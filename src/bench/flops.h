/* flops.h: the arithmetic by which models are compared.
 *
 * Published FLOP counts take matrix products and convolutions (a multiply-add is two), forward and backward,
 * and nothing else; ls_plan_flops counts every op. */
#ifndef LS_BENCH_FLOPS_H
#define LS_BENCH_FLOPS_H

#include "exec/document.h"

/* What `flops` operations of one node of kind `op` count under that method. */
double ls_product_flops(const char *op, double flops);
/* The sum over a plan: per step. */
double ls_document_product_flops(const ls_document *d);

#endif
