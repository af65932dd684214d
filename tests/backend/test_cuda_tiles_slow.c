/* test_cuda_tiles_slow.c: kernels for convolutions with few channels: every division of a problem fits on a
 * processor, and its source compiles where NVRTC is there (which needs no GPU). */
#include "backend/cuda/few_tiles.h"
#include "check.h"
#include "nvrtc.h"

/* One with as much shared memory as any, and one with the least of all that have compute capability 9.0 or
 * more. */
static const lsi_few_machine large = {132, 227 * 1024}, small = {70, 99 * 1024};

static bool compiles; /* NVRTC is there */

static void check_tile(const lsi_few_problem *f, const lsi_few_tile *t, const lsi_few_machine *m)
{
    const lsi_cuda_start s = lsi_few_start(f, t, m->processors);
    ls_text source = {0};

    CHECK(s.blocks[0] > 0 && s.blocks[1] > 0 && s.threads > 0 && s.threads <= 1024);
    CHECK(s.shared > 0 && s.shared <= m->shared && (size_t)t->blocks * (s.shared + 1024) <= m->shared + 1024);
    CHECK((lsi_few_scratch(f, t) > 0) == (f->pass == LSI_FEW_WEIGHTS));
    CHECK((lsi_few_sums(f, t) > 0) == (f->pass == LSI_FEW_WEIGHTS));
    lsi_few_source(&source, f, t);
    REQUIRE(!source.failed);
    if (compiles) nvrtc_check(source.data);
    ls_text_release(&source);
}

/* All passes in one type; each has a kernel. */
static void check_problem(lsi_cuda_few p, ls_dtype dtype, bool exact)
{
    for (int pass = LSI_FEW_TO_MANY; pass <= LSI_FEW_WEIGHTS; pass++) {
        const lsi_few_problem f = {.p = p,
                                   .pass = (lsi_few_pass)pass,
                                   .dtype = dtype,
                                   .exact = exact,
                                   .biased = pass == LSI_FEW_TO_MANY,
                                   .act = LS_ACT_LEAKY,
                                   .slope = 0.2f};
        lsi_few_tile tiles[LSI_FEW_TILES];
        int n = lsi_few_tiles(&f, &large, tiles);
        CHECK(n > 0 || (exact && pass == LSI_FEW_WEIGHTS));
        for (int i = 0; i < n; i++) check_tile(&f, &tiles[i], &large);
        n = lsi_few_tiles(&f, &small, tiles);
        for (int i = 0; i < n; i++) check_tile(&f, &tiles[i], &small);
    }
}

static void images_of_odd_sizes(void)
{
    check_problem(lsi_few_square(2, 13, 17, 3, 64, 3, 1, 1), LS_BF16, false);
    check_problem(lsi_few_square(3, 9, 11, 1, 128, 4, 2, 1), LS_F32, false);
    check_problem(lsi_few_square(1, 20, 33, 2, 64, 5, 1, 2), LS_F16, false);
}

static void published_networks(void)
{
    check_problem(lsi_few_square(64, 256, 256, 1, 64, 5, 2, 2), LS_F32, false);
    check_problem(lsi_few_square(16, 262, 262, 3, 64, 7, 1, 0), LS_BF16, false);
    check_problem(lsi_few_square(16, 262, 262, 3, 64, 7, 1, 0), LS_F32, true);
}

/* What these kernels are not for is refused, not made wrong. */
static void other_problems(void)
{
    lsi_few_problem f = {
        .p = lsi_few_square(2, 64, 64, 1, 64, 5, 3, 2), .pass = LSI_FEW_FROM_MANY, .dtype = LS_F32};
    lsi_few_tile tiles[LSI_FEW_TILES];

    CHECK(lsi_few_tiles(&f, &large, tiles) == 0); /* a stride of 3 */
    f.p = lsi_few_square(1, 40, 9000, 4, 64, 3, 1, 1);
    f.pass = LSI_FEW_TO_MANY; /* rows that do not fit into shared memory */
    CHECK(lsi_few_tiles(&f, &large, tiles) == 0);
}

int main(void)
{
    compiles = nvrtc_find();
    if (!compiles) printf("NVRTC was not found: the sources are written, but not compiled\n");
    CHECK_RUN(images_of_odd_sizes);
    CHECK_RUN(published_networks);
    CHECK_RUN(other_problems);
    return CHECK_DONE();
}
