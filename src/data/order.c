/* order.c: a Feistel network with cycle walking.
 *
 * The network permutes the numbers of as few bits as hold n - 1; a result of n or more is put in again until
 * one below n comes out.  As less than half of all numbers of that many bits lie beyond n, that takes fewer
 * than two rounds through the network on average. */
#include "data/order.h"

#include "base/rng.h"
#include "lockstep/status.h"

/* Four rounds make a network indistinguishable from chance when its halves are wide; narrow ones (a handful
 * of samples) need more.  Even, so that halves of different widths end where they began. */
enum { ROUNDS = 8 };

static uint64_t low_bits(uint64_t x, int bits)
{
    return x & (((uint64_t)1 << bits) - 1);
}

static uint64_t permute(uint64_t x, int bits, const uint32_t key[2], uint64_t epoch)
{
    int right_bits = bits / 2, left_bits = bits - right_bits;
    uint64_t left = x >> right_bits, right = low_bits(x, right_bits);

    for (uint32_t round = 0; round < ROUNDS; round++) {
        /* The last word of a counter is the stream elsewhere; this one belongs to no name. */
        const uint32_t counter[4] = {(uint32_t)right, (uint32_t)epoch, (uint32_t)(epoch >> 32), round};
        uint32_t mixed[4];
        ls_philox(counter, key, mixed);
        uint64_t turned = left ^ low_bits(mixed[0], left_bits);
        int turned_bits = left_bits;
        left = right;
        left_bits = right_bits;
        right = turned;
        right_bits = turned_bits;
    }
    return left << right_bits | right;
}

int64_t ls_order_at(uint64_t seed, uint64_t epoch, int64_t n, int64_t position)
{
    LS_BUG_IF(n < 1 || n > (int64_t)1 << 62 || position < 0 || position >= n);
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint64_t x = (uint64_t)position;
    int bits = 2;

    if (n == 1) return 0;
    while ((uint64_t)n > (uint64_t)1 << bits) bits++;
    do {
        x = permute(x, bits, key, epoch);
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}
