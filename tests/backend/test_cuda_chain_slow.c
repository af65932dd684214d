/* test_cuda_chain_slow.c: the sources that are generated for chains of element-wise functions: each compiles,
 * for every type, width and way of reading inputs, where NVRTC is there (which needs no GPU), and says what
 * it should. */
#include <math.h>
#include <string.h>

#include "backend/cuda/chain_source.h"
#include "check.h"
#include "nvrtc.h"

/* Every function in chains of at most LS_PW_MAX_STEPS, each step reading what the last one made. */
static lsi_cuda_chain_args all_functions(int from)
{
    lsi_cuda_chain_args a = {.n_in = 2, .dtype = LS_F32, .vector = 4};

    for (int pw = from; pw < LS_PW_N && a.chain.n_steps < LS_PW_MAX_STEPS; pw++) {
        const int k = a.chain.n_steps++;
        a.chain.step[k].pw = (ls_pw)pw;
        a.chain.step[k].a = k == 0 ? 0 : a.n_in + k - 1;
        a.chain.step[k].b = 1;
        a.chain.step[k].p[0] = 0.1;
        a.chain.step[k].p[1] = -3;
    }
    return a;
}

static bool compiles; /* NVRTC is there */

static void check_source(const lsi_cuda_chain_args *a)
{
    ls_text t = {0};

    lsi_cuda_chain_source(&t, a);
    REQUIRE(!t.failed);
    CHECK(strstr(t.data, "lsi_pw_(null)") == NULL);
    if (compiles) nvrtc_check(t.data);
    ls_text_release(&t);
}

static void functions(void)
{
    for (int from = LS_PW_NONE + 1; from < LS_PW_N; from += LS_PW_MAX_STEPS) {
        lsi_cuda_chain_args a = all_functions(from);
        check_source(&a);
        for (int k = 0; k < a.chain.n_steps; k++) { /* numbers that have no decimal form */
            a.chain.step[k].p[0] = INFINITY;
            a.chain.step[k].p[1] = NAN;
        }
        check_source(&a);
    }
}

static void types_and_ways_of_reading(void)
{
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};

    for (int i = 0; i < 3; i++)
        for (int way = 0; way < 4; way++) {
            lsi_cuda_chain_args a = {.n_in = 2, .dtype = types[i], .chain = {.n_steps = 1}};
            a.chain.step[0].pw = LS_PW_SUB;
            a.chain.step[0].b = 1;
            a.vector = way == 3 ? 1 : types[i] == LS_F32 ? 4 : 8;
            a.one[1] = way == 1;
            a.rank = way >= 2 ? 3 : 0;
            for (int d = 0; d < a.rank; d++) a.stride[0][d] = 1;
            check_source(&a);
        }
}

/* Sizes are not part of it, what it computes is. */
static void sizes_share_a_source(void)
{
    lsi_cuda_chain_args a = all_functions(LS_PW_ADD), b = a;
    ls_text x = {0}, y = {0}, z = {0};

    b.count = 12345;
    b.dim[0] = 77;
    lsi_cuda_chain_source(&x, &a);
    lsi_cuda_chain_source(&y, &b);
    CHECK(strcmp(x.data, y.data) == 0);
    b.chain.step[6].p[0] = 0.2;
    lsi_cuda_chain_source(&z, &b);
    CHECK(strcmp(x.data, z.data) != 0);
    ls_text_release(&x);
    ls_text_release(&y);
    ls_text_release(&z);
}

int main(void)
{
    compiles = nvrtc_find();
    if (!compiles) printf("NVRTC was not found: the sources are written, but not compiled\n");
    CHECK_RUN(functions);
    CHECK_RUN(types_and_ways_of_reading);
    CHECK_RUN(sizes_share_a_source);
    return CHECK_DONE();
}
