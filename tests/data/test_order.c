/* The order of samples: a permutation for every n, well mixed, another one in every epoch and for every seed.
 */
#include <stdlib.h>

#include "check.h"
#include "data/order.h"

static bool is_permutation(uint64_t seed, uint64_t epoch, int64_t n)
{
    unsigned char *seen = calloc((size_t)n, 1);
    bool good = seen != NULL;

    for (int64_t i = 0; good && i < n; i++) {
        int64_t at = ls_order_at(seed, epoch, n, i);
        good = at >= 0 && at < n && !seen[at];
        if (good) seen[at] = 1;
    }
    free(seen);
    return good;
}

static void permutation(void)
{
    const int64_t sizes[] = {1,  2,  3,  4,   5,   7,    8,    9,     13,    16,
                             17, 31, 64, 127, 128, 1000, 4099, 60000, 65536, 65537};

    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        for (uint64_t epoch = 0; epoch < (check_is_slow_build() ? 1 : 4); epoch++)
            CHECK(is_permutation(42 + epoch, epoch, sizes[k]));
    }
    CHECK(is_permutation(UINT64_MAX, UINT64_MAX, 1009));
}

static void large(void)
{
    int64_t n = INT64_C(1) << 62;

    for (int64_t i = 0; i < 100; i++) {
        int64_t at = ls_order_at(1, 2, n, n - 1 - i);
        if (!CHECK(at >= 0 && at < n)) break;
    }
}

/* Over many epochs every sample must come to every position equally often. */
static void uniform(void)
{
    const int64_t sizes[] = {2, 3, 5, 8, 13};

    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        int64_t n = sizes[k], epochs = 4000;
        double chi = 0, expected = (double)epochs / (double)n;
        double counts[13][13] = {{0}};
        for (int64_t e = 0; e < epochs; e++)
            for (int64_t i = 0; i < n; i++) counts[i][ls_order_at(7, (uint64_t)e, n, i)]++;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                chi += (counts[i][j] - expected) * (counts[i][j] - expected) / expected;
        /* About (n-1)^2 degrees of freedom: 5 standard deviations above the mean. */
        double dof = (double)((n - 1) * (n - 1));
        CHECK_NEAR(chi, 0, dof + 5 * 1.42 * __builtin_sqrt(dof) + 6);
    }
}

/* Neighbours must be torn apart, and orders must not resemble the stored one or each other. */
static void mixed(void)
{
    enum { N = 60000 };
    double sum = 0;
    int fixed = 0, same_epoch = 0, same_seed = 0, neighbours = 0;
    int64_t before = -2;

    for (int64_t i = 0; i < N; i++) {
        int64_t at = ls_order_at(3, 0, N, i);
        fixed += at == i;
        same_epoch += at == ls_order_at(3, 1, N, i);
        same_seed += at == ls_order_at(4, 0, N, i);
        neighbours += at == before + 1;
        before = at;
        sum += ((double)i / N - 0.5) * ((double)at / N - 0.5);
    }
    /* Each count is Poisson distributed with mean 1, the correlation normal with deviation 1 / sqrt(N). */
    CHECK_NEAR(fixed, 1, 9);
    CHECK_NEAR(same_epoch, 1, 9);
    CHECK_NEAR(same_seed, 1, 9);
    CHECK_NEAR(neighbours, 1, 9);
    CHECK_NEAR(12 * sum / N, 0, 5 / __builtin_sqrt(N));
}

/* The first of the shuffled samples must be spread over the set: the classes of a sorted set are all met. */
static void spread(void)
{
    int tenth[10] = {0};

    for (int64_t i = 0; i < 1000; i++) tenth[ls_order_at(11, 5, 60000, i) / 6000]++;
    for (int k = 0; k < 10; k++) CHECK_NEAR(tenth[k], 100, 5 * 9.5);
}

int main(void)
{
    CHECK_RUN(permutation);
    CHECK_RUN(large);
    CHECK_RUN(uniform);
    CHECK_RUN(mixed);
    CHECK_RUN(spread);
    return CHECK_DONE();
}
