/* test_share.c: flows share links max-min fairly: by hand, and against the same said slowly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "check.h"
#include "predict/collective.h"

#define LINKS "\"inside\":{\"latency_s\":1e-6,\"bytes_s\":5e9},\"node\":{\"latency_s\":1e-5,\"bytes_s\":1e9}"
#define TOPOLOGY(text)                                                                                       \
    "{\"format\":\"lockstep-network\",\"version\":1,\"name\":\"x\"," LINKS ",\"topology\":{" text "}}"
#define FAT                                                                                                  \
    TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":4,\"taper\":2},{\"children\":3,\"taper\":2},"  \
             "{\"children\":2,\"latency_s\":3e-4}]")
#define FLY                                                                                                  \
    TOPOLOGY("\"kind\":\"dragonfly\",\"nodes_per_router\":2,\"routers_per_group\":3,\"groups\":4,"           \
             "\"local_bytes_s\":8e8,\"global_bytes_s\":1.4e9,\"global_links\":2,\"router_s\":1e-4")
#define CHAIN                                                                                                \
    TOPOLOGY(                                                                                                \
        "\"kind\":\"tree\",\"switches\":[{\"name\":\"r\"},"                                                  \
        "{\"name\":\"a\",\"parent\":\"r\",\"up_bytes_s\":6e8},"                                              \
        "{\"name\":\"b\",\"parent\":\"a\",\"up_bytes_s\":4e8}],\"machines\":["                               \
        "{\"switch\":\"r\",\"count\":9},{\"switch\":\"a\",\"count\":7},{\"switch\":\"b\",\"count\":8}]")
#define FLAT TOPOLOGY("\"kind\":\"flat\"")

static ls_network read_text(const char *text)
{
    ls_network n;
    ls_err err = {0};

    REQUIRE_OK(ls_network_parse(&n, text, strlen(text), "a.json", &err), &err);
    return n;
}

static double time_of(const ls_network *n, const ls_flow *flows, int64_t n_flows, ls_flow_work *work)
{
    double seconds;
    ls_err err = {0};

    REQUIRE_OK(ls_flows_time(n, 24, flows, n_flows, &seconds, work, &err), &err);
    return seconds;
}

/* -- by hand ----------------------------------------------------------------------------------------------
 */

static void one_sender(void)
{
    ls_network n = read_text(FLAT);
    const ls_flow flows[] = {{0, 1, 0, 1e6}, {0, 2, 0, 2e6}, {0, 3, 0, 3e6}};

    /* A third each until the first has ended (3 ms), a half until the second has (5 ms). */
    CHECK_NEAR(time_of(&n, flows, 3, NULL), 1e-5 + 6e-3, 1e-6);
    CHECK_NEAR(time_of(&n, flows, 1, NULL), 1e-5 + 1e-3, 1e-9);
    CHECK_NEAR(time_of(&n, NULL, 0, NULL), 0, 0);
    CHECK_NEAR(time_of(&n, &(ls_flow){4, 4, 1, 1e9}, 1, NULL), 0, 0); /* to itself */
    CHECK_NEAR(time_of(&n, &(ls_flow){4, 5, 3, 1e6}, 1, NULL), 1e-5 + 3e-3, 1e-9);
    CHECK_NEAR(time_of(&n, &(ls_flow){4, 5, 1, 0}, 1, NULL), 1e-5, 1e-12);
    ls_network_release(&n);
}

static void tapered(void)
{
    ls_network n = read_text(FAT);
    ls_flow flows[12];
    ls_flow_work work = {0};

    for (int i = 0; i < 4; i++) flows[i] = (ls_flow){i, 4 + i, 1, 1e6}; /* 2e9 for four */
    CHECK_NEAR(time_of(&n, flows, 4, &work), 1e-5 + 2e-3, 1e-9);
    CHECK_EQ_INT(work.classes, 1);
    CHECK_NEAR(time_of(&n, flows, 2, NULL), 1e-5 + 1e-3, 1e-9);
    /* Twelve of one half to the other: 3 x 2e9 / 2 = 3e9. */
    for (int i = 0; i < 12; i++) flows[i] = (ls_flow){i, 12 + i, 1, 1e6};
    CHECK_NEAR(time_of(&n, flows, 12, NULL), 1e-5 + 3e-4 + 4e-3, 1e-9);
    ls_network_release(&n);
}

/* One flow over both links, one over each: the slower one gives half to the long flow, the faster the rest.
 */
static void parking_lot(void)
{
    ls_network n = read_text(CHAIN);
    const ls_flow flows[] = {{16, 0, 1, 2e6}, {17, 9, 1, 2e6}, {10, 1, 1, 4e6}};

    /* 2e8, 2e8, 4e8: all end after 10 ms. */
    CHECK_NEAR(time_of(&n, flows, 3, NULL), 1e-5 + 1e-2, 1e-6);
    ls_network_release(&n);
}

static void later_ones(void)
{
    ls_network n = read_text(FAT);
    /* The second has another 0.3 ms of latency: the first has sent 3e5 when it begins. */
    const ls_flow flows[] = {{0, 1, 1, 1e6}, {0, 12, 1, 1e6}};

    CHECK_NEAR(time_of(&n, flows, 2, NULL), 1e-5 + 2e-3, 1e-6);
    ls_network_release(&n);
}

/* -- said slowly ------------------------------------------------------------------------------------------
 */

enum { MOST_FLOWS = 40, MOST_LINKS = 2000 };

typedef struct slow_flow {
    int64_t links[LS_ROUTE_MAX];
    int n_links;
    double begins, left, rate;
    bool ended, has_rate;
} slow_flow;

static bool is_active(const slow_flow *f, double now)
{
    return !f->ended && f->begins <= now;
}

/* Gives each flow on the link that is worst off its share, until all have one. */
static void slow_rates(const ls_network *n, slow_flow *f, int count, double now)
{
    static double left[MOST_LINKS];
    const int64_t n_links = ls_network_links(n, 24);

    REQUIRE(n_links <= MOST_LINKS);
    for (int64_t l = 0; l < n_links; l++) left[l] = ls_network_link_rate(n, 24, l);
    for (int i = 0; i < count; i++) f[i].has_rate = false;
    for (;;) {
        static int users[MOST_LINKS];
        int64_t worst = -1;
        memset(users, 0, sizeof users);
        for (int i = 0; i < count; i++)
            for (int k = 0; is_active(&f[i], now) && !f[i].has_rate && k < f[i].n_links; k++)
                users[f[i].links[k]]++;
        for (int64_t l = 0; l < n_links; l++)
            if (users[l] > 0 && (worst < 0 || left[l] / users[l] < left[worst] / users[worst])) worst = l;
        if (worst < 0) return;
        const double share = left[worst] / users[worst];
        for (int i = 0; i < count; i++) {
            bool on_it = false;
            for (int k = 0; k < f[i].n_links; k++) on_it = on_it || f[i].links[k] == worst;
            if (!on_it || f[i].has_rate || !is_active(&f[i], now)) continue;
            f[i].has_rate = true;
            f[i].rate = share;
            for (int k = 0; k < f[i].n_links; k++) left[f[i].links[k]] -= share;
        }
    }
}

static double slow_time(const ls_network *n, const ls_flow *flows, int count)
{
    static slow_flow f[MOST_FLOWS];
    double now = 0;

    for (int i = 0; i < count; i++) {
        f[i] = (slow_flow){.left = flows[i].bytes};
        f[i].n_links = ls_network_route(n, 24, flows[i].from, flows[i].to, f[i].links, &f[i].begins);
        f[i].ended = f[i].n_links == 0;
    }
    for (;;) {
        double next = INFINITY;
        slow_rates(n, f, count, now);
        for (int i = 0; i < count; i++) {
            if (f[i].ended) continue;
            next = fmin(next, is_active(&f[i], now) ? now + f[i].left / f[i].rate : f[i].begins);
        }
        if (isinf(next)) return now;
        for (int i = 0; i < count; i++) {
            if (!is_active(&f[i], now)) continue;
            f[i].left -= (next - now) * f[i].rate;
            f[i].ended = f[i].left <= 1e-6;
        }
        now = next;
    }
}

static void random_cases(void)
{
    static const char *const texts[] = {FAT, FLY, CHAIN, FLAT};
    const ls_rng_key key = {.seed_lo = 11};
    const int cases = check_is_slow_build() ? 20 : 200;
    int shared = 0;

    for (int t = 0; t < 4; t++) {
        ls_network n = read_text(texts[t]);
        for (int c = 0; c < cases; c++) {
            ls_flow flows[MOST_FLOWS];
            ls_flow_work work = {0};
            const int count = 1 + (int)(ls_rng_word(&key, (uint32_t)t, (uint32_t)c, 0) % MOST_FLOWS);
            for (int i = 0; i < count; i++) {
                const uint64_t at = 1 + 3 * (uint64_t)i;
                flows[i] = (ls_flow){(int32_t)(ls_rng_word(&key, (uint32_t)t, (uint32_t)c, at) % 24),
                                     (int32_t)(ls_rng_word(&key, (uint32_t)t, (uint32_t)c, at + 1) % 24), 1,
                                     1e5 * (1 + ls_rng_word(&key, (uint32_t)t, (uint32_t)c, at + 2) % 7)};
            }
            const double fast = time_of(&n, flows, count, &work), slow = slow_time(&n, flows, count);
            if (!CHECK_NEAR(fast, slow, 5e-4 * slow)) printf("topology %d, case %d\n", t, c);
            shared += work.solves > 2;
        }
        ls_network_release(&n);
    }
    CHECK(shared > cases); /* the cases are not trivial */
}

int main(void)
{
    CHECK_RUN(one_sender);
    CHECK_RUN(tapered);
    CHECK_RUN(parking_lot);
    CHECK_RUN(later_ones);
    CHECK_RUN(random_cases);
    return CHECK_DONE();
}
