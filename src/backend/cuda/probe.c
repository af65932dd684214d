/* probe.c: see probe.h. */
#include "backend/cuda/probe.h"

#include <math.h>

#include "base/log.h"

enum { SAMPLES = 512 };

int lsi_cuda_conv_result(const lsi_cuda_conv *c)
{
    return c->pass == LSI_CUDA_CONV_Y ? 2 : c->pass == LSI_CUDA_CONV_DX ? 0 : 1;
}

/* Products are exact, so what may differ is what sums of fp32 round away, in whatever order or by Winograd's
 * transforms, and the rounding of the result. */
static double allowed(ls_dtype t, const lsi_cuda_probed *p)
{
    const double of_sum = t == LS_F32 ? 0x1p-20 : t == LS_F16 ? 0x1p-10 : 0x1p-7;

    return 2e-5 * p->magnitude + of_sum * fabs(p->sum) + 1e-6;
}

lsi_cuda_verdict lsi_cuda_probe_conv(const lsi_cuda_device *d, const lsi_cuda_conv *c, void *const *operand,
                                     const char *problem, int way)
{
    lsi_cuda_probe_args a = {
        .conv = *c, .x = operand[0], .w = operand[1], .y = operand[2], .samples = SAMPLES};
    lsi_cuda_probed at[SAMPLES];
    void *out = NULL;
    int code = d->api->alloc(&out, sizeof at), wrong = 0, first = 0;

    a.bias = operand[3];
    a.out = out;
    if (code == 0) code = d->api->launch.probe(d->now, &a);
    if (code == 0) code = d->api->copy(at, out, sizeof at, d->now);
    if (code == 0) code = d->api->stream_sync(d->now);
    d->api->free(out);
    if (code != 0) return code == LSI_CUDA_NO_MEMORY ? LSI_CUDA_UNKNOWN : LSI_CUDA_WRONG;
    for (int i = SAMPLES - 1; i >= 0; i--)
        if (!(fabs(at[i].found - at[i].sum) <= allowed(c->dtype, &at[i]))) {
            wrong++;
            first = i;
        }
    if (wrong > 0)
        ls_log(LS_LOG_INFO,
               "cuda: way %d of cuDNN for %s is wrong and not taken: %d of %d sums, such as %g for %g", way,
               problem, wrong, (int)SAMPLES, at[first].found, at[first].sum);
    return wrong == 0 ? LSI_CUDA_RIGHT : LSI_CUDA_WRONG;
}
