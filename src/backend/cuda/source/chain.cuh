/* chain.cuh: a chain of element-wise functions as a kernel, behind what chain_source.c writes for it:
 *   ELEMENT     the type's bits, BFLOAT16 or FLOAT16 where it is one of these
 *   WIDTH       elements of one access
 *   INPUTS, RANK (of the grid, 0: none)
 *   KIND(i)     how input i is read
 *   value(x)    the chain
 * One pass over memory: every thread has one access of 16 bytes per input under way, which at full occupancy
 * are enough to keep the memory busy. */

#define KIND_ALL      0 /* the result's elements */
#define KIND_ONE      1 /* a single element */
#define KIND_ALONG    2 /* of the grid: neighbours are neighbours */
#define KIND_REPEATED 3 /* of the grid: the same along the last dimension */

struct arguments {
    const void *in[8];
    void *out;
    unsigned count;
    unsigned dim[6], stride[8][6];
};

struct __align__(WIDTH * sizeof(ELEMENT)) vector
{
    ELEMENT e[WIDTH];
};

static __device__ __forceinline__ float get(ELEMENT x)
{
#if defined(BFLOAT16)
    return __uint_as_float((unsigned)x << 16);
#elif defined(FLOAT16)
    float f;

    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
    return f;
#else
    return x;
#endif
}

static __device__ __forceinline__ ELEMENT put(float f)
{
#if defined(BFLOAT16)
    unsigned short x;

    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(x) : "f"(f));
    return x;
#elif defined(FLOAT16)
    unsigned short x;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x) : "f"(f));
    return x;
#else
    return f;
#endif
}

/* Where input i is read for element `at` of the result. */
static __device__ __forceinline__ unsigned place(const arguments &a, int i, unsigned at)
{
    unsigned sum = 0;

    if (KIND(i) == KIND_ALL) return at;
    if (KIND(i) == KIND_ONE) return 0;
#pragma unroll
    for (int d = RANK - 1; d >= 0; d--) {
        const unsigned rest = d > 0 ? at / a.dim[d] : 0;
        sum += (at - rest * a.dim[d]) * a.stride[i][d];
        at = rest;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) chain(const __grid_constant__ arguments a)
{
    lsi_wait();
    const unsigned step = gridDim.x * 256 * WIDTH;

    for (unsigned at = (blockIdx.x * 256 + threadIdx.x) * WIDTH; at < a.count; at += step) {
        float x[INPUTS][WIDTH];
        vector y;
        const int n = a.count - at < WIDTH ? (int)(a.count - at) : WIDTH; /* less only at the very end */
#pragma unroll
        for (int i = 0; i < INPUTS; i++) {
            const ELEMENT *in = (const ELEMENT *)a.in[i] + place(a, i, at);
            if (KIND(i) == KIND_ONE || KIND(i) == KIND_REPEATED) {
                const float one = get(*in);
#pragma unroll
                for (int k = 0; k < WIDTH; k++) x[i][k] = one;
            } else if (n == WIDTH) {
                const vector v = *(const vector *)in;
#pragma unroll
                for (int k = 0; k < WIDTH; k++) x[i][k] = get(v.e[k]);
            } else {
#pragma unroll
                for (int k = 0; k < WIDTH; k++) x[i][k] = k < n ? get(in[k]) : 0.0f;
            }
        }
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            float one[INPUTS];
#pragma unroll
            for (int i = 0; i < INPUTS; i++) one[i] = x[i][k];
            y.e[k] = put(value(one));
        }
        if (n == WIDTH) {
            *(vector *)((ELEMENT *)a.out + at) = y;
        } else {
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
                if (k < n) ((ELEMENT *)a.out)[at + k] = y.e[k];
        }
    }
}
