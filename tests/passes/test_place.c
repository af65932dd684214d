/* test_place.c: buffers that live at the same time share no byte, and little is lost between them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "check.h"
#include "passes/place.h"

enum { MOST = 400 };

static uint32_t draw(uint32_t seed, uint32_t *at, uint32_t limit)
{
    const ls_rng_key key = {seed, 0, 0, 0};

    return ls_rng_word(&key, 1, 0, (*at)++) % limit;
}

/* The slow, obvious way. */
static size_t most_at_a_time(const ls_memory_buffer *b, int n)
{
    size_t most = 0, kept = 0;

    for (int i = 0; i < n; i++) kept += b[i].kept ? b[i].bytes : 0;
    for (int32_t at = 0; at < 1000; at++) {
        size_t sum = kept;
        for (int i = 0; i < n; i++)
            if (!b[i].kept && b[i].first <= at && at <= b[i].last + b[i].rest) sum += b[i].bytes;
        if (sum > most) most = sum;
    }
    return most;
}

/* Returns how much larger the arena is than it must be. */
static double place(ls_memory_buffer *b, int n)
{
    size_t bytes = 0, live = 0, kept = 0;
    ls_err err = {0};

    REQUIRE_OK(lsi_place(b, n, &bytes, &live, &err), &err);
    CHECK_EQ_INT(live, most_at_a_time(b, n));
    CHECK(bytes >= live);
    for (int i = 0; i < n; i++) kept += b[i].kept ? b[i].bytes : 0;
    for (int i = 0; i < n; i++) {
        CHECK(b[i].offset + b[i].bytes <= (b[i].kept ? kept : bytes));
        CHECK(b[i].kept || b[i].offset >= kept);
        for (int k = 0; k < i; k++) {
            const bool apart = b[i].offset + b[i].bytes <= b[k].offset ||
                               b[k].offset + b[k].bytes <= b[i].offset || b[i].bytes == 0 || b[k].bytes == 0;
            const bool together =
                b[i].kept || b[k].kept ||
                (b[i].first <= b[k].last + b[k].rest && b[k].first <= b[i].last + b[i].rest);
            CHECK(apart || !together);
        }
    }
    return (double)bytes / (double)live;
}

/* As steps have them: most live briefly, some from the forward pass to the gradient. */
static int make(ls_memory_buffer *b, uint32_t seed)
{
    uint32_t at = 0;
    const int n = 20 + (int)draw(seed, &at, MOST - 20);
    const int32_t length = 300;

    for (int i = 0; i < n; i++) {
        const bool kept = draw(seed, &at, 40) == 0;
        const int32_t first = (int32_t)draw(seed, &at, (uint32_t)length);
        const int32_t last = draw(seed, &at, 3) > 0 ? first + (int32_t)draw(seed, &at, 5) : length - first;
        b[i] = (ls_memory_buffer){.bytes = 64 * (size_t)draw(seed, &at, 1u << draw(seed, &at, 12)),
                                  .first = first < last ? first : last,
                                  .last = first < last ? last : first,
                                  .kept = kept};
        if (kept) b[i].first = 0, b[i].last = length;
    }
    return n;
}

static void nothing_is_shared_that_lives(void)
{
    static ls_memory_buffer b[MOST];
    double sum = 0, worst = 0;
    const int turns = 150;

    for (int seed = 1; seed <= turns; seed++) {
        const int n = make(b, (uint32_t)seed);
        const double ratio = place(b, n);
        sum += ratio;
        worst = ratio > worst ? ratio : worst;
        if (seed % 5 != 0) continue;
        for (int i = 0; i < n; i++) b[i].rest = i % 8;
        place(b, n);
    }
    printf("  %.4f times what must be, at worst %.4f\n", sum / turns, worst);
    CHECK(sum / turns < 1.02 && worst < 1.10);
}

/* Largest first makes 24 lines of these, and 16 are enough. */
static void other_orders_are_tried(void)
{
    ls_memory_buffer b[] = {
        {.bytes = 64 * 7, .first = 3, .last = 4}, {.bytes = 64 * 7, .first = 1, .last = 1},
        {.bytes = 64 * 4, .first = 1, .last = 3}, {.bytes = 64 * 8, .first = 4, .last = 5},
        {.bytes = 64 * 5, .first = 0, .last = 3},
    };

    CHECK_NEAR(place(b, 5), 1, 1e-9);
}

static void nothing_takes_nothing(void)
{
    ls_memory_buffer b[] = {{.first = 0, .last = 3, .rest = 5}};
    size_t bytes = 1, live = 1;
    ls_err err = {0};

    REQUIRE_OK(lsi_place(b, 0, &bytes, &live, &err), &err);
    CHECK(bytes == 0 && live == 0);
    REQUIRE_OK(lsi_place(b, 1, &bytes, &live, &err), &err);
    CHECK(bytes == 0 && live == 0 && b[0].offset == 0);
}

int main(void)
{
    CHECK_RUN(nothing_is_shared_that_lives);
    CHECK_RUN(other_orders_are_tried);
    CHECK_RUN(nothing_takes_nothing);
    return CHECK_DONE();
}
