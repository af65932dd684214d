/* region_finish.cuh: the second kernel of a region: what its blocks have left becomes sums, in the order of
 * their numbers.  It takes a few microseconds, of which most are waiting for memory: so a thread has few
 * terms, and asks for all of them at once.  Before this file stands FINISH, the threads of a block. */

#ifndef LSI_SHARED
#define LSI_SHARED __shared__
#endif

/* A variable's element, what its optimiser keeps of it, and two of the optimiser's numbers. */
struct before {
    float w, a, b, lr, scale;
};

INLINE before no_update()
{
    return before{0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
}

INLINE before read_before(const float *w, const float *a, const float *b, const float *lr, const float *scale)
{
    return before{*w, a != nullptr ? *a : 0.0f, b != nullptr ? *b : 0.0f, *lr, *scale};
}

/* What comes of it by gradient g.  Of loss scale 0 is a step that is left out. */
template <int RULE>
INLINE void update(const lsi_update_numbers &k, before x, float g, float *w, float *a, float *b)
{
    if (k.loss_scale != 0.0f) x.w = lsi_update<RULE>(k, x.w, g, x.a, x.b, 1.0f);
    *w = x.w;
    if (a != nullptr) *a = x.a;
    if (b != nullptr) *b = x.b;
}

/* Of a block's warps: what each has added up.  The kernel has one for all sums that its blocks may make. */
typedef float finish_room[FINISH / 32][32];

/* Sums first to first + 31 of `count`, one a lane, of n terms: each warp adds those of its number and every
 * FINISH / 32 further.  add(sum, k, e) is the sum with term k; before(e) is there when put(e, sum, that) is
 * called: it comes from memory beside the terms. */
template <class A, class B, class F>
INLINE void add_terms(finish_room &room, int n, int count, int first, A add, B before_of, F put)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, e = first + lane;
    before old = no_update();
    float sum = 0.0f;

    if (e < count) {
        if (warp == 0) old = before_of(e);
#pragma unroll 8
        for (int k = warp; k < n; k += FINISH / 32) sum = add(sum, k, e);
    }
    room[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || e >= count) return;
    sum = 0.0f;
#pragma unroll
    for (int k = 0; k < FINISH / 32; k++) sum += room[k][lane];
    put(e, sum, old);
}

/* Of what blocks have left. */
template <class B, class F>
INLINE void add_parts(finish_room &room, const float *parts, int blocks, int count, int first, B before_of,
                      F put)
{
    add_terms(
        room, blocks, count, first,
        [&](float sum, int k, int e) { return sum + parts[(size_t)k * count + e]; }, before_of, put);
}

/* Of the J x I sums over samples of a[j] * b[i]. */
template <int J, int I, class B, class F>
INLINE void outer_sums(finish_room &room, const float *a, const float *b, int samples, int first,
                       B before_of, F put)
{
    add_terms(
        room, samples, J * I, first,
        [&](float sum, int n, int e) { return fmaf(a[n * J + e / I], b[n * I + e % I], sum); }, before_of,
        put);
}
