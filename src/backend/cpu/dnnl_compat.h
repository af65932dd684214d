/* dnnl_compat.h: the few oneDNN calls that differ between versions 2 and 3, under one name each.
 *
 * Version 2 describes an operation first and makes the primitive descriptor from it, and its memory
 * descriptors are plain structs; version 3 has one call per primitive and opaque handles that must be
 * destroyed.  Code that uses these wrappers never reads a descriptor's fields.  Everything not wrapped here
 * is the same in both. */
#ifndef LS_BACKEND_CPU_DNNL_COMPAT_H
#define LS_BACKEND_CPU_DNNL_COMPAT_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t lsi_dnnl_md;           /* an owned descriptor */
typedef const_dnnl_memory_desc_t lsi_dnnl_md_ref; /* how calls take one */
#define LSI_DNNL_REF(md)                               (md)
#define LSI_DNNL_HAS_WINO                              0 /* gone from the x64 code of version 3.2; earlier ones are not worth a case */
#define lsi_dnnl_append_eltwise(ops, alg, alpha, beta) dnnl_post_ops_append_eltwise(ops, alg, alpha, beta)
#else
typedef dnnl_memory_desc_t lsi_dnnl_md;
typedef const dnnl_memory_desc_t *lsi_dnnl_md_ref;
#define LSI_DNNL_REF(md)  (&(md))
#define LSI_DNNL_HAS_WINO 1
#define lsi_dnnl_append_eltwise(ops, alg, alpha, beta)                                                       \
    dnnl_post_ops_append_eltwise(ops, 1.0f, alg, alpha, beta)
#endif

/* A descriptor of fp32 elements; what was made must be given to lsi_dnnl_md_release. */
static inline dnnl_status_t lsi_dnnl_md_make(lsi_dnnl_md *md, int n_dims, const dnnl_dims_t dims,
                                             dnnl_format_tag_t tag)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_tag(md, n_dims, dims, dnnl_f32, tag);
#else
    return dnnl_memory_desc_init_by_tag(md, n_dims, dims, dnnl_f32, tag);
#endif
}

static inline void lsi_dnnl_md_release(lsi_dnnl_md *md)
{
#if DNNL_VERSION_MAJOR >= 3
    if (*md) dnnl_memory_desc_destroy(*md);
    *md = NULL;
#else
    (void)md;
#endif
}

typedef enum lsi_dnnl_kind {
    LSI_DNNL_CONV_FWD,
    LSI_DNNL_CONV_DX,
    LSI_DNNL_CONV_DW,
    LSI_DNNL_DECONV_FWD
} lsi_dnnl_kind;

/* What a convolution is made of; `src` and `dst` are the forward pass's (or its gradients'), `bias` may be
 * NULL. */
typedef struct lsi_dnnl_conv {
    lsi_dnnl_kind kind;
    dnnl_alg_kind_t alg;
    lsi_dnnl_md_ref src, weights, bias, dst;
    dnnl_dims_t strides, dilates, padding_l, padding_r; /* dilates: 0 is none */
} lsi_dnnl_conv;

static inline dnnl_status_t lsi_dnnl_conv_pd(dnnl_primitive_desc_t *pd, const lsi_dnnl_conv *c,
                                             dnnl_engine_t engine, const_dnnl_primitive_attr_t attr)
{
    const dnnl_prop_kind_t prop = dnnl_forward_training;
#if DNNL_VERSION_MAJOR >= 3
    switch (c->kind) {
    case LSI_DNNL_CONV_FWD:
        return dnnl_convolution_forward_primitive_desc_create(pd, engine, prop, c->alg, c->src, c->weights,
                                                              c->bias, c->dst, c->strides, c->dilates,
                                                              c->padding_l, c->padding_r, attr);
    case LSI_DNNL_DECONV_FWD:
        return dnnl_deconvolution_forward_primitive_desc_create(pd, engine, prop, c->alg, c->src, c->weights,
                                                                c->bias, c->dst, c->strides, c->dilates,
                                                                c->padding_l, c->padding_r, attr);
    case LSI_DNNL_CONV_DX:
        return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, c->alg, c->src, c->weights,
                                                                    c->dst, c->strides, c->dilates,
                                                                    c->padding_l, c->padding_r, NULL, attr);
    case LSI_DNNL_CONV_DW:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            pd, engine, c->alg, c->src, c->weights, NULL, c->dst, c->strides, c->dilates, c->padding_l,
            c->padding_r, NULL, attr);
    }
    return dnnl_invalid_arguments;
#else
    dnnl_convolution_desc_t desc; /* deconvolution's is the same type */
    dnnl_status_t st = dnnl_invalid_arguments;

    switch (c->kind) {
    case LSI_DNNL_CONV_FWD:
        st = dnnl_dilated_convolution_forward_desc_init(&desc, prop, c->alg, c->src, c->weights, c->bias,
                                                        c->dst, c->strides, c->dilates, c->padding_l,
                                                        c->padding_r);
        break;
    case LSI_DNNL_DECONV_FWD:
        st = dnnl_dilated_deconvolution_forward_desc_init(&desc, prop, c->alg, c->src, c->weights, c->bias,
                                                          c->dst, c->strides, c->dilates, c->padding_l,
                                                          c->padding_r);
        break;
    case LSI_DNNL_CONV_DX:
        st = dnnl_dilated_convolution_backward_data_desc_init(
            &desc, c->alg, c->src, c->weights, c->dst, c->strides, c->dilates, c->padding_l, c->padding_r);
        break;
    case LSI_DNNL_CONV_DW:
        st = dnnl_dilated_convolution_backward_weights_desc_init(&desc, c->alg, c->src, c->weights, NULL,
                                                                 c->dst, c->strides, c->dilates, c->padding_l,
                                                                 c->padding_r);
        break;
    }
    return st == dnnl_success ? dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL) : st;
#endif
}

#endif
