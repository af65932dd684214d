/* matmul.c: products of matrices: f32, bf16, f16, plain layout. */
#include <stdio.h>

#include "backend/cuda/library.h"
#include "backend/cuda/planners.h"

/* A product of (..., M, K) with one (K, N) for all is a single product of (... * M, K) when A is not
 * transposed. */
bool lsi_cuda_product_of(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, lsi_cuda_product *p)
{
    const ls_matmul_attr *a = n->attr;
    const ls_vinfo *va = lsi_cuda_in(g, n, 0), *vc = lsi_cuda_out(g, n, 0);
    const ls_shape A = va->shape, B = lsi_cuda_in(g, n, 1)->shape, C = vc->shape;

    *p = (lsi_cuda_product){.dtype = va->dtype, .out = vc->dtype, .batch = 1};
    if (!lsi_cuda_computes(va->dtype) || !lsi_cuda_plain(g, n)) return false;
    p->m = C.dim[C.rank - 2], p->n = C.dim[C.rank - 1];
    p->k = A.dim[A.rank - (a->trans_a ? 2 : 1)];
    p->lda = A.dim[A.rank - 1], p->ldb = B.dim[B.rank - 1], p->ldc = p->n;
    p->trans_a = a->trans_a, p->trans_b = a->trans_b;
    for (int i = 0; i < A.rank - 2; i++) p->batch *= A.dim[i];
    p->stride_a = p->m * p->k;
    p->stride_b = B.rank > 2 ? p->k * p->n : 0;
    p->stride_c = p->m * p->n;
    if (B.rank == 2 && !a->trans_a) {
        p->m *= p->batch;
        p->batch = 1;
    }
    p->math = d->base.tf32 ? LSI_CUDA_TF32 : LSI_CUDA_EXACT;
    return p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0;
}

static lsi_cuda_after after_of(ls_act act, bool biased)
{
    if (act == LS_ACT_RELU) return biased ? LSI_CUDA_BIAS_RELU : LSI_CUDA_RELU;
    return biased ? LSI_CUDA_BIAS : LSI_CUDA_NOTHING;
}

static void name_problem(char *text, size_t size, const lsi_cuda_product *p)
{
    snprintf(text, size, "product %s m%lld n%lld k%lld %c%c batch%lld after%d math%d%s%s",
             ls_dtype_name(p->dtype), (long long)p->m, (long long)p->n, (long long)p->k,
             p->trans_a ? 't' : 'n', p->trans_b ? 't' : 'n', (long long)p->batch, (int)p->epilogue,
             (int)p->math, p->adds ? " adds" : "", p->out != p->dtype ? " wide" : "");
}

static void size_operands(lsi_cuda_library_node *node, const lsi_cuda_product *p)
{
    const size_t each = ls_dtype_size(p->dtype);

    node->bytes[0] = (size_t)(p->m * p->k * p->batch) * each;
    node->bytes[1] = (size_t)(p->k * p->n * (p->stride_b > 0 ? p->batch : 1)) * each;
    node->bytes[2] = (size_t)(p->m * p->n * p->batch) * ls_dtype_size(p->out);
    node->bytes[3] = (size_t)p->n * each;
    node->bytes[4] = node->bytes[2];
}

ls_status lsi_cuda_plan_matmul(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                               ls_err *err)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    const ls_matmul_attr *attr = n->attr;
    const bool biased = n->n_in > 2;
    lsi_cuda_library_node node = {.impl = "cublaslt", .from = {0, 1, -1, 2, 3}, .bias = -1};
    lsi_cuda_product p;
    char text[200];

    if (!lsi_cuda_product_of(d, g, n, &p)) return LS_UNSUPPORTED;
    p.epilogue = after_of(attr->act, biased);
    p.adds = n->n_in > 3;
    if (d->api->product(&node.library, &p) != 0) { /* some sizes come without what follows */
        p.epilogue = LSI_CUDA_NOTHING;
        if (d->api->product(&node.library, &p) != 0) return LS_UNSUPPORTED;
    }
    node.n = p.epilogue == LSI_CUDA_BIAS || p.epilogue == LSI_CUDA_BIAS_RELU ? 4 : 3;
    if (p.adds) node.n = 5;
    node.after = p.epilogue != after_of(attr->act, biased) || attr->act > LS_ACT_RELU;
    if (node.after) {
        node.bias = biased && p.epilogue == LSI_CUDA_NOTHING ? 2 : -1;
        node.epilogue = (lsi_cuda_epilogue_args){.dtype = p.out,
                                                 .bias_dtype = p.dtype,
                                                 .outer = p.m * p.batch,
                                                 .channels = p.n,
                                                 .inner = 1,
                                                 .act = (int)attr->act,
                                                 .slope = (float)attr->slope};
    }
    if (node.after && p.m * p.n * p.batch >= (int64_t)1 << 31) { /* counted with 32 bits */
        d->api->drop(node.library);
        return LS_UNSUPPORTED;
    }
    size_operands(&node, &p);
    name_problem(text, sizeof text, &p);
    node.problem = text;
    return lsi_cuda_library_plan(dev, &node, out, err);
}
