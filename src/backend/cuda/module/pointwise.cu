/* pointwise.cu: chains of element-wise functions.
 *
 * A chain normally runs as a kernel that was generated for it (chain_source.c).  The interpreter here takes
 * its place where the run-time compiler is missing: it keeps the chain's registers in shared memory, since
 * an array that is indexed by data would lie in local memory, and is bound by instructions rather than bytes.
 */
#include "backend/cuda/launch/pointwise.h"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 128, EACH = 4, REGISTERS = LS_PW_MAX_INPUTS + LS_PW_MAX_STEPS };

static __device__ float apply(int pw, float a, float b, float p, float q)
{
    switch (pw) {
    case LS_PW_ADD: return lsi_pw_add(a, b);
    case LS_PW_SUB: return lsi_pw_sub(a, b);
    case LS_PW_MUL: return lsi_pw_mul(a, b);
    case LS_PW_DIV: return lsi_pw_div(a, b);
    case LS_PW_MAX: return lsi_pw_max(a, b);
    case LS_PW_MIN: return lsi_pw_min(a, b);
    case LS_PW_AFFINE: return lsi_pw_affine(a, p, q);
    case LS_PW_RELU: return lsi_pw_relu(a);
    case LS_PW_RELU_GRAD: return lsi_pw_relu_grad(a, b);
    case LS_PW_LEAKY: return lsi_pw_leaky(a, p);
    case LS_PW_LEAKY_GRAD: return lsi_pw_leaky_grad(a, b, p);
    case LS_PW_GELU: return lsi_pw_gelu(a);
    case LS_PW_GELU_GRAD: return lsi_pw_gelu_grad(a, b);
    case LS_PW_TANH: return lsi_pw_tanh(a);
    case LS_PW_TANH_GRAD: return lsi_pw_tanh_grad(a, b);
    case LS_PW_SIGMOID: return lsi_pw_sigmoid(a);
    case LS_PW_SIGMOID_GRAD: return lsi_pw_sigmoid_grad(a, b);
    case LS_PW_EXP: return lsi_pw_exp(a);
    case LS_PW_LOG: return lsi_pw_log(a);
    case LS_PW_SQRT: return lsi_pw_sqrt(a);
    case LS_PW_RSQRT: return lsi_pw_rsqrt(a);
    case LS_PW_SQUARE: return lsi_pw_square(a);
    case LS_PW_ABS: return lsi_pw_abs(a);
    case LS_PW_SIGN: return lsi_pw_sign(a);
    case LS_PW_SOFTPLUS: return lsi_pw_softplus(a);
    default: return lsi_pw_copy(a);
    }
}

/* Where input i has the value for element `at` of the result. */
static __device__ int64_t offset(const lsi_cuda_chain_args &a, int i, int64_t at)
{
    int64_t sum = 0;

    if (a.rank == 0) return a.one[i] ? 0 : at;
    for (int d = a.rank - 1; d >= 0; d--) {
        sum += at % a.dim[d] * a.stride[i][d];
        at /= a.dim[d];
    }
    return sum;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) chain_kernel(const __grid_constant__ lsi_cuda_chain_args a)
{
    lsi_wait();
    __shared__ float reg[REGISTERS][EACH][THREADS];
    const int t = threadIdx.x;

    for (int64_t base = (int64_t)blockIdx.x * THREADS * EACH; base < a.count;
         base += (int64_t)gridDim.x * THREADS * EACH) {
        for (int i = 0; i < a.n_in; i++)
            for (int k = 0; k < EACH; k++) {
                const int64_t at = base + k * THREADS + t;
                reg[i][k][t] = at < a.count ? lsi_get(((const T *)a.in[i])[offset(a, i, at)]) : 0.0f;
            }
        for (int s = 0; s < a.chain.n_steps; s++) {
            const float p = (float)a.chain.step[s].p[0], q = (float)a.chain.step[s].p[1];
            const int x = a.chain.step[s].a, y = a.chain.step[s].b;
            for (int k = 0; k < EACH; k++)
                reg[a.n_in + s][k][t] = apply(a.chain.step[s].pw, reg[x][k][t], reg[y][k][t], p, q);
        }
        for (int k = 0; k < EACH; k++) {
            const int64_t at = base + k * THREADS + t;
            if (at < a.count) ((T *)a.out)[at] = lsi_put<T>(reg[a.n_in + a.chain.n_steps - 1][k][t]);
        }
    }
}

int lsi_cuda_chain(lsi_cuda_stream s, const lsi_cuda_chain_args *a)
{
    if (a->count == 0) return 0;
    if (a->compiled != NULL) return lsi_cuda_launch_chain(s, a);
    LSI_FLOAT_TYPES(a->dtype,
                    LSI_LAUNCH(s, lsi_blocks(a->count, THREADS * EACH), THREADS, 0, chain_kernel<T>, *a));
    return 0;
}
