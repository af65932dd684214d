/* Arenas: objects do not overlap, are zeroed and aligned, and all memory comes back. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"

#define N 3000

static void objects_are_apart(void)
{
    size_t live = ls_mem_stats_now().live_bytes[LS_MEM_TEST];
    ls_arena *arena;
    REQUIRE_OK(ls_arena_create(&arena, LS_MEM_TEST, NULL), NULL);
    static unsigned char *object[N];
    static size_t size[N];
    for (int i = 0; i < N; i++) {
        /* Mostly small ones, an empty one now and then, and one larger than any block. */
        size[i] = i == 1234 ? 300000 : (size_t)(i * 7 % 61);
        object[i] = ls_arena_alloc(arena, size[i]);
        REQUIRE(object[i] != NULL);
        CHECK_EQ_INT((uintptr_t)object[i] % 16, 0);
        size_t zeros = 0;
        while (zeros < size[i] && object[i][zeros] == 0) zeros++;
        CHECK_EQ_INT(zeros, size[i]);
        memset(object[i], i & 0xff, size[i]);
    }
    /* If any two overlapped, the later fill would have changed the earlier object. */
    for (int i = 0; i < N; i++) {
        size_t same = 0;
        while (same < size[i] && object[i][same] == (i & 0xff)) same++;
        if (!CHECK_EQ_INT(same, size[i])) break;
    }
    ls_arena_destroy(arena);
    ls_arena_destroy(NULL);
    CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_TEST], live);
}

static void few_allocations(void)
{
    ls_arena *arena;
    REQUIRE_OK(ls_arena_create(&arena, LS_MEM_TEST, NULL), NULL);
    uint64_t before = ls_mem_stats_now().n_allocs;
    for (int i = 0; i < 10000; i++) REQUIRE(ls_arena_alloc(arena, 48) != NULL);
    /* 480 kB in blocks of up to 64 KiB. */
    uint64_t made = ls_mem_stats_now().n_allocs - before;
    CHECK(made <= 15);
    ls_arena_destroy(arena);
}

static void text(void)
{
    ls_arena *arena;
    REQUIRE_OK(ls_arena_create(&arena, LS_MEM_TEST, NULL), NULL);
    CHECK_EQ_STR(ls_arena_strdup(arena, ""), "");
    CHECK_EQ_STR(ls_arena_strdup(arena, "conv1.weight"), "conv1.weight");
    CHECK_EQ_STR(ls_arena_printf(arena, "%s.%d", "block", 12), "block.12");
    char *wide = ls_arena_printf(arena, "%*d", 100000, 7);
    REQUIRE(wide != NULL);
    CHECK_EQ_INT(strlen(wide), 100000);
    ls_arena_destroy(arena);
}

static void impossible_size_fails(void)
{
    ls_arena *arena;
    REQUIRE_OK(ls_arena_create(&arena, LS_MEM_TEST, NULL), NULL);
    volatile size_t most = SIZE_MAX;
    CHECK(ls_arena_alloc(arena, most) == NULL);
    CHECK(ls_arena_alloc(arena, most - 15) == NULL);
    CHECK(ls_arena_alloc(arena, 1) != NULL);
    ls_arena_destroy(arena);
}

int main(void)
{
    CHECK_RUN(objects_are_apart);
    CHECK_RUN(few_allocations);
    CHECK_RUN(text);
    CHECK_RUN(impossible_size_fails);
    return CHECK_DONE();
}
