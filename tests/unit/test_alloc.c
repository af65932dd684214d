/* The allocator: zeroed, aligned, counted by tag, made to fail at the n-th call. */
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "check.h"

static bool all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i]) return false;
    }
    return true;
}

static void zeroed_and_aligned(void)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100000, (2u << 20) - 64, 2u << 20, 5000001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        /* Twice, dirtied in between: recycled memory must be zeroed too. */
        for (int round = 0; round < 2; round++) {
            unsigned char *p = ls_alloc(LS_MEM_TEST, sizes[i]);
            REQUIRE(p != NULL);
            CHECK_EQ_INT((uintptr_t)p % 64, 0);
            CHECK(all_zero(p, sizes[i]));
            memset(p, 0xa5, sizes[i]);
            ls_free(p);
        }
    }
    ls_free(NULL);
}

static void counters_follow(void)
{
    ls_mem_stats before = ls_mem_stats_now();
    void *a = ls_alloc(LS_MEM_TEST, 1000);
    void *b = ls_alloc(LS_MEM_GRAPH, 24);
    ls_mem_stats during = ls_mem_stats_now();
    CHECK_EQ_INT(during.n_allocs - before.n_allocs, 2);
    CHECK_EQ_INT(during.live_bytes[LS_MEM_TEST] - before.live_bytes[LS_MEM_TEST], 1000);
    CHECK_EQ_INT(during.live_bytes[LS_MEM_GRAPH] - before.live_bytes[LS_MEM_GRAPH], 24);
    ls_free(a);
    ls_free(b);
    ls_mem_stats after = ls_mem_stats_now();
    CHECK_EQ_MEM(after.live_bytes, before.live_bytes, sizeof after.live_bytes);
    CHECK_EQ_INT(after.n_allocs - before.n_allocs, 2);

    size_t big = after.peak_bytes + 4096;
    void *c = ls_alloc(LS_MEM_TEST, big);
    ls_free(c);
    CHECK(ls_mem_stats_now().peak_bytes >= big);
}

static void realloc_keeps_and_zeroes(void)
{
    char *p = ls_realloc(LS_MEM_TEST, NULL, 10);
    REQUIRE(p != NULL);
    memcpy(p, "123456789", 10);
    p = ls_realloc(LS_MEM_TEST, p, 1000);
    REQUIRE(p != NULL);
    CHECK_EQ_STR(p, "123456789");
    CHECK(all_zero((unsigned char *)p + 10, 990));
    p = ls_realloc(LS_MEM_TEST, p, 4);
    REQUIRE(p != NULL);
    CHECK_EQ_MEM(p, "1234", 4);

    ls_mem_fail_at(1);
    char *q = ls_realloc(LS_MEM_TEST, p, 5000);
    ls_mem_fail_at(0);
    CHECK(q == NULL);
    CHECK_EQ_MEM(p, "1234", 4);
    ls_free(p);
}

static void impossible_sizes_fail(void)
{
    /* volatile: gcc would otherwise warn that no such object can exist, which is the point. */
    volatile size_t most = SIZE_MAX;
    CHECK(ls_alloc(LS_MEM_TEST, most) == NULL);
    CHECK(ls_alloc(LS_MEM_TEST, most - 63) == NULL);
    CHECK(ls_alloc(LS_MEM_TEST, most / 2 + 1) == NULL);
}

static void fails_from_the_nth_on(void)
{
    ls_mem_stats before = ls_mem_stats_now();
    ls_mem_fail_at(3);
    void *p[5];
    for (int i = 0; i < 5; i++) p[i] = ls_alloc(LS_MEM_TEST, 8);
    ls_mem_fail_at(0);
    for (int i = 0; i < 5; i++) CHECK_EQ_INT(p[i] != NULL, i < 2);
    CHECK_EQ_INT(ls_mem_stats_now().n_allocs - before.n_allocs, 2);
    char *text = ls_strdup(LS_MEM_TEST, "works again");
    CHECK_EQ_STR(text, "works again");
    ls_free(text);
    for (int i = 0; i < 5; i++) ls_free(p[i]);
    CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_TEST], before.live_bytes[LS_MEM_TEST]);
}

static void churn(int thread, int n_threads, void *arg)
{
    (void)n_threads;
    (void)arg;
    for (size_t i = 0; i < 2000; i++) ls_free(ls_alloc(LS_MEM_TEST, i % 97 + (size_t)thread));
}

static void counters_are_exact_across_threads(void)
{
    ls_mem_stats before = ls_mem_stats_now();
    ls_parallel_run(4, churn, NULL);
    ls_mem_stats after = ls_mem_stats_now();
    CHECK_EQ_INT(after.n_allocs - before.n_allocs, 4 * 2000);
    CHECK_EQ_INT(after.live_bytes[LS_MEM_TEST], before.live_bytes[LS_MEM_TEST]);
}

static void tags_have_names(void)
{
    for (int t = 0; t < LS_MEM_N; t++) CHECK(strcmp(ls_mem_tag_name((ls_mem_tag)t), "unknown") != 0);
    CHECK_EQ_STR(ls_mem_tag_name(LS_MEM_TENSOR), "tensor");
}

int main(void)
{
    CHECK_RUN(zeroed_and_aligned);
    CHECK_RUN(counters_follow);
    CHECK_RUN(realloc_keeps_and_zeroes);
    CHECK_RUN(impossible_sizes_fail);
    CHECK_RUN(fails_from_the_nth_on);
    CHECK_RUN(counters_are_exact_across_threads);
    CHECK_RUN(tags_have_names);
    return CHECK_DONE();
}
