/* test_collective.c: collectives in closed form and with shared links, against figures worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "predict/collective.h"

#define TOPOLOGY(text)                                                                                       \
    "{\"format\":\"lockstep-network\",\"version\":1,\"name\":\"x\","                                         \
    "\"inside\":{\"latency_s\":1e-6,\"bytes_s\":4e9},\"node\":{\"latency_s\":1e-5,\"bytes_s\":1e9},"         \
    "\"topology\":{" text "}}"
#define FLAT TOPOLOGY("\"kind\":\"flat\"")
#define FAT                                                                                                  \
    TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":16,\"taper\":2,\"latency_s\":1e-6},"           \
             "{\"children\":512,\"latency_s\":1e-6}]")

#define L  1e-5 /* latency between machines */
#define I  1e-6 /* inside */
#define MB 1e6  /* 1 ms of a machine's link, 0.25 ms inside */

static ls_network read_text(const char *text)
{
    ls_network n;
    ls_err err = {0};

    REQUIRE_OK(ls_network_parse(&n, text, strlen(text), "a.json", &err), &err);
    return n;
}

static ls_transfer_cost closed(const ls_network *n, ls_algorithm a, ls_transfer_kind k, double bytes,
                               int32_t ranks, int32_t per_node)
{
    return ls_transfer_closed(n, &(ls_transfer){k, a, bytes, 1}, ranks, per_node);
}

static ls_transfer_cost shared(const ls_network *n, ls_algorithm a, ls_transfer_kind k, double bytes,
                               int32_t ranks, int32_t per_node)
{
    const ls_job_placement p = {
        .nodes = (ranks - 1) / per_node + 1, .ranks_per_node = per_node, .ranks = ranks};
    ls_transfer_cost c;
    ls_err err = {0};

    REQUIRE_OK(ls_transfer_shared(n, &(ls_transfer){k, a, bytes, 1}, &p, &c, &err), &err);
    return c;
}

/* -- one rank a machine -----------------------------------------------------------------------------------
 */

static void all_reduce_by_hand(void)
{
    ls_network n = read_text(FLAT);
    const ls_transfer_kind all = LS_TRANSFER_ALL_REDUCE;

    /* Six rounds of a quarter. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RING, all, MB, 4, 1).seconds, 6 * (L + 2.5e-4), 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RING, all, MB, 4, 1).wire_bytes, 1.5e6, 1e-6);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RING, all, MB, 4, 1).latency_s, 6 * L, 1e-15);
    /* Half, quarter, eighth; and back. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RABENSEIFNER, all, MB, 8, 1).seconds, 6 * L + 2 * 8.75e-4, 1e-12);
    /* Six are four and two that fold: the whole vector there and back. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RABENSEIFNER, all, MB, 6, 1).seconds, 6 * L + 2e-3 + 2 * 7.5e-4,
               1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_DOUBLING, all, MB, 8, 1).seconds, 3 * (L + 1e-3), 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_DOUBLING, all, MB, 5, 1).seconds, 4 * (L + 1e-3), 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_HIERARCHICAL, all, MB, 4, 1).seconds, 6 * (L + 2.5e-4), 1e-12);
    /* Two machines with half of the slices each: the other half goes there, the own sums come back. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, MB, 2, 1).seconds, 2 * L + 1e-3, 1e-12);
    /* Eight slices for four machines: 2 (H - 1) / H.  Nine of 128 KiB, the last shorter, are one too many. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, MB, 4, 1).wire_bytes, 1.5e6, 1e-6);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, 1.1e6, 4, 1).wire_bytes, 3 * 313568 + (1.1e6 - 313568),
               1e-6);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, 1e9, 4, 1).wire_bytes, 1.5e9, 1e6);
    /* 24 slices of 4 KiB, and the rest of one: their machines must hear from all 63 others and answer them.
     */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, 1e5, 64, 1).wire_bytes, 63 * 4096 + (1e5 - 4096), 1e-6);
    /* A slice for each machine, of whole cache lines. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, 64 * 6400, 64, 1).wire_bytes, 2 * 63 * 6400, 1e-6);
    for (int a = 0; a < LS_ALGORITHM_N; a++)
        CHECK_NEAR(closed(&n, (ls_algorithm)a, all, MB, 1, 1).seconds, 0, 0);
    ls_network_release(&n);
}

static void other_kinds_by_hand(void)
{
    ls_network n = read_text(FLAT);
    const ls_transfer_kind scatter = LS_TRANSFER_REDUCE_SCATTER, gather = LS_TRANSFER_ALL_GATHER,
                           cast = LS_TRANSFER_BROADCAST, barrier = LS_TRANSFER_BARRIER;

    for (int k = 0; k < 2; k++) {
        const ls_transfer_kind kind = k == 0 ? scatter : gather;
        CHECK_NEAR(closed(&n, LS_ALGORITHM_RING, kind, MB, 4, 1).seconds, 3 * (L + 2.5e-4), 1e-12);
        CHECK_NEAR(closed(&n, LS_ALGORITHM_RABENSEIFNER, kind, MB, 8, 1).seconds, 3 * L + 8.75e-4, 1e-12);
        CHECK_NEAR(closed(&n, LS_ALGORITHM_DOUBLING, kind, MB, 8, 1).seconds, 3 * L + 8.75e-4, 1e-12);
        CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, kind, MB, 4, 1).seconds, L + 7.5e-4, 1e-12);
    }
    /* Six members gather in three rounds of 1, 2 and 2 pieces. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RABENSEIFNER, gather, 6e6, 6, 1).seconds, 3 * L + 5e-3, 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RABENSEIFNER, scatter, 6e6, 6, 1).seconds,
               4 * L + 6e-3 + 4.5e-3 + 1e-3, 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_DOUBLING, cast, MB, 8, 1).seconds, 3 * (L + 1e-3), 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_DOUBLING, cast, MB, 5, 1).seconds, 3 * (L + 1e-3), 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RABENSEIFNER, cast, MB, 8, 1).seconds, 6 * L + 2 * 8.75e-4, 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RING, cast, MB, 8, 1).seconds, 10 * L + 2 * 8.75e-4, 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, cast, MB, 4, 1).seconds, L + 3e-3, 1e-12); /* to each of three */
    for (int a = 0; a < LS_ALGORITHM_N; a++) {
        CHECK_NEAR(closed(&n, (ls_algorithm)a, barrier, MB, 8, 1).seconds, 3 * L, 1e-12);
        CHECK_NEAR(closed(&n, (ls_algorithm)a, barrier, MB, 9, 1).seconds, 4 * L, 1e-12);
    }
    ls_network_release(&n);
}

/* -- several ranks a machine ------------------------------------------------------------------------------
 */

static void machines_share_their_link(void)
{
    ls_network n = read_text(FLAT);
    const ls_transfer_kind all = LS_TRANSFER_ALL_REDUCE;

    /* Two rounds inside, then all four of a machine send the whole vector over one link. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_DOUBLING, all, MB, 8, 4).seconds, 2 * (I + 2.5e-4) + L + 4e-3, 1e-12);
    /* Of three ranks a machine, two each fold, and neighbours may be elsewhere: two cross at most. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RING, all, MB, 8, 4).seconds, 14 * (L + 1.25e-4), 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_RING, all, MB, 8, 8).seconds, 14 * (I + 1.25e-4 / 4), 1e-12);
    /* Inside a ring of four there and back; between two machines half of the vector there and back. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_HIERARCHICAL, all, MB, 8, 4).seconds,
               6 * (I + 2.5e5 / 4e9) + 2 * (L + 5e-4), 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_HIERARCHICAL, all, MB, 8, 4).wire_bytes, MB, 1e-6);
    /* Ranks of a machine read three quarters of what the others have. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, MB, 4, 4).seconds, 2 * I + 7.5e5 / 4e9, 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, all, MB, 8, 4).seconds, 2 * I + 7.5e5 / 4e9 + 2 * L + 1e-3,
               1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_ALL_GATHER, MB, 4, 4).seconds, I + 2.5e5 / 4e9,
               1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_REDUCE_SCATTER, MB, 8, 4).seconds,
               I + 7.5e5 / 4e9 + L + 5e-4, 1e-12);
    /* Nine ranks, four each: the last machine has one, and sends what the others are to have. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_REDUCE_SCATTER, 9e6, 9, 4).wire_bytes, 8e6, 1e-6);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_BARRIER, 0, 8, 4).seconds, 2 * I + L, 1e-12);
    ls_network_release(&n);
}

static void processors_take_time(void)
{
    ls_network n = read_text(FLAT);
    ls_transfer_cost c;

    n.node.core_s_per_byte = 1e-9; /* as long as the wire, to send and to receive */
    c = closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_ALL_REDUCE, MB, 2, 1);
    CHECK_NEAR(c.core_s, 2e-3, 1e-12);
    CHECK_NEAR(c.seconds, 2 * L + 2e-3, 1e-12);
    /* Two ranks share the work. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_ALL_REDUCE, MB, 4, 2).core_s, 1e-3, 1e-12);
    c = closed(&n, LS_ALGORITHM_RING, LS_TRANSFER_ALL_REDUCE, MB, 4, 1);
    CHECK_NEAR(c.core_s, 6 * 5e-4, 1e-12);
    CHECK_NEAR(c.seconds, 6 * (L + 5e-4), 1e-12);
    n.node.core_s_per_byte = 0;
    n.node.message_s = 1e-6;
    /* Eight slices: four there, four back, sent and received. */
    CHECK_NEAR(closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_ALL_REDUCE, MB, 2, 1).core_s, 16e-6, 1e-12);
    CHECK_NEAR(closed(&n, LS_ALGORITHM_DOUBLING, LS_TRANSFER_BARRIER, 0, 8, 1).seconds, 3 * (L + 2e-6),
               1e-12);
    ls_network_release(&n);
}

/* 16 bits travel between machines, and fp32 within them; slices are cut by floats, whatever these travel as.
 */
static void the_wire_is_between_machines(void)
{
    static const ls_algorithm all[] = {LS_ALGORITHM_OURS, LS_ALGORITHM_RING, LS_ALGORITHM_RABENSEIFNER,
                                       LS_ALGORITHM_DOUBLING, LS_ALGORITHM_HIERARCHICAL};
    ls_network n = read_text(FLAT);
    ls_transfer t = {LS_TRANSFER_ALL_REDUCE, LS_ALGORITHM_OURS, MB, 0.5};

    CHECK_NEAR(ls_transfer_closed(&n, &t, 8, 4).seconds, 2 * I + 7.5e5 / 4e9 + 2 * L + 5e-4, 1e-12);
    CHECK_NEAR(ls_transfer_closed(&n, &t, 4, 4).seconds, 2 * I + 7.5e5 / 4e9, 1e-12);
    t.bytes = 1.1e6; /* nine slices, one of which is shorter */
    CHECK_NEAR(ls_transfer_closed(&n, &t, 4, 1).wire_bytes, (3 * 313568 + (1.1e6 - 313568)) / 2, 1e-6);
    t = (ls_transfer){LS_TRANSFER_ALL_REDUCE, LS_ALGORITHM_HIERARCHICAL, MB, 0.5};
    CHECK_NEAR(ls_transfer_closed(&n, &t, 8, 4).seconds, 6 * (I + 2.5e5 / 4e9) + 2 * (L + 2.5e-4), 1e-12);
    t.algorithm = LS_ALGORITHM_DOUBLING; /* two rounds inside, one between the machines */
    CHECK_NEAR(ls_transfer_closed(&n, &t, 8, 4).seconds, 2 * (I + 2.5e-4) + L + 2e-3, 1e-12);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const ls_job_placement p = {.nodes = 2, .ranks_per_node = 4, .ranks = 8};
        ls_transfer_cost c;
        ls_err err = {0};
        t.algorithm = all[i];
        REQUIRE_OK(ls_transfer_shared(&n, &t, &p, &c, &err), &err);
        CHECK_NEAR(c.seconds, ls_transfer_closed(&n, &t, 8, 4).seconds, 1e-6 * c.seconds);
    }
    n.node.message_s = 1e-6; /* as many messages as of floats */
    t = (ls_transfer){LS_TRANSFER_ALL_REDUCE, LS_ALGORITHM_OURS, MB, 0.5};
    CHECK_NEAR(ls_transfer_closed(&n, &t, 2, 1).core_s, 16e-6, 1e-12);
    ls_network_release(&n);
}

/* -- both ways --------------------------------------------------------------------------------------------
 */

/* Where no link is shared both are the same. */
static void agree_without_contention(void)
{
    ls_network n = read_text(FLAT);
    static const int32_t counts[][2] = {{2, 1}, {3, 1}, {8, 1}, {12, 1}, {16, 4}, {24, 3}, {13, 1}, {64, 8}};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int a = 0; a < LS_ALGORITHM_N; a++)
            for (int k = 0; k < LS_TRANSFER_N; k++) {
                const ls_transfer_cost x =
                    closed(&n, (ls_algorithm)a, (ls_transfer_kind)k, 3e6, counts[i][0], counts[i][1]);
                const ls_transfer_cost y =
                    shared(&n, (ls_algorithm)a, (ls_transfer_kind)k, 3e6, counts[i][0], counts[i][1]);
                const bool even =
                    (counts[i][1] & (counts[i][1] - 1)) == 0; /* else ranks go on at times of their own */
                const bool same = even ? CHECK_NEAR(x.seconds, y.seconds, 1e-6 * x.seconds)
                                       : CHECK(y.seconds < x.seconds * 1.0001 && y.seconds > x.seconds * 0.9);
                if (!same || !CHECK_NEAR(x.core_s, y.core_s, 1e-12) ||
                    !CHECK_NEAR(x.latency_s, y.latency_s, 1e-12))
                    printf("%s, %s, %d ranks, %d a machine\n", ls_algorithm_name((ls_algorithm)a),
                           ls_transfer_name((ls_transfer_kind)k), (int)counts[i][0], (int)counts[i][1]);
            }
    ls_network_release(&n);
}

static void tapered_trees_are_slower(void)
{
    ls_network n = read_text(FAT);
    ls_transfer_cost x, y;

    /* 64 machines at four switches.  Up to distance 8 inside switches; 16 and 32 cross at half the rate. */
    x = closed(&n, LS_ALGORITHM_DOUBLING, LS_TRANSFER_ALL_REDUCE, MB, 64, 1);
    y = shared(&n, LS_ALGORITHM_DOUBLING, LS_TRANSFER_ALL_REDUCE, MB, 64, 1);
    CHECK_NEAR(x.seconds, 4 * (L + 1e-6 + 1e-3) + 2 * (L + 3e-6 + 1e-3), 1e-9);
    CHECK_NEAR(y.seconds, x.seconds + 2 * 1e-3, 1e-9);
    /* A ring crosses each switch once. */
    CHECK_NEAR(shared(&n, LS_ALGORITHM_RING, LS_TRANSFER_ALL_REDUCE, MB, 64, 1).seconds,
               closed(&n, LS_ALGORITHM_RING, LS_TRANSFER_ALL_REDUCE, MB, 64, 1).seconds, 1e-9);
    /* Ours, 64 MiB in 128 KiB: 16 machines exchange 2 / 64 of the vector with each of 48 over 8e9 upwards. */
    y = shared(&n, LS_ALGORITHM_OURS, LS_TRANSFER_ALL_REDUCE, 67108864, 64, 1);
    CHECK_NEAR(y.seconds, 2 * (L + 3e-6) + 16 * 48 * (67108864 / 32.0) / 8e9, 1e-9);
    x = closed(&n, LS_ALGORITHM_OURS, LS_TRANSFER_ALL_REDUCE, 67108864, 64, 1);
    CHECK_NEAR(x.seconds, 2 * (L + 3e-6) + 63 * (67108864 / 32.0) / 1e9, 1e-9);
    ls_network_release(&n);
}

/* Two machines of each of two switches: neighbours in the ring are apart, or not. */
static void placement_matters(void)
{
    ls_network n = read_text(
        TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":2,\"taper\":2},{\"children\":2}]"));
    int32_t near[] = {0, 1, 2, 3}, far[] = {0, 2, 1, 3};
    ls_job_placement p = {.kind = LS_PLACE_LIST, .nodes = 4, .ranks_per_node = 1, .ranks = 4};
    const ls_transfer t = {LS_TRANSFER_ALL_REDUCE, LS_ALGORITHM_RING, MB, 1};
    ls_transfer_cost c;
    ls_err err = {0};

    p.node = near;
    REQUIRE_OK(ls_transfer_shared(&n, &t, &p, &c, &err), &err);
    CHECK_NEAR(c.seconds, 6 * (L + 2.5e-4), 1e-9);
    p.node = far; /* 0 to 2, 1 to 3 and back: two at a time through links for one */
    REQUIRE_OK(ls_transfer_shared(&n, &t, &p, &c, &err), &err);
    CHECK_NEAR(c.seconds, 6 * (L + 5e-4), 1e-9);
    ls_network_release(&n);
}

/* Members 0 and 2 are at one switch, 4 and 5 at another, which let out one at a time; the others are alone.
 * The first round takes twice as long for 0 to 3, the second for 4 to 7, the third for all. */
static void ranks_go_on_by_themselves(void)
{
    ls_network n = read_text(
        TOPOLOGY("\"kind\":\"fat-tree\",\"levels\":[{\"children\":2,\"taper\":2},{\"children\":8}]"));
    int32_t at[] = {0, 2, 1, 4, 6, 7, 8, 10};
    const ls_job_placement p = {
        .kind = LS_PLACE_LIST, .nodes = 8, .ranks_per_node = 1, .ranks = 8, .node = at};
    const ls_transfer t = {LS_TRANSFER_ALL_REDUCE, LS_ALGORITHM_DOUBLING, MB, 1};
    ls_transfer_cost c;
    ls_err err = {0};

    REQUIRE_OK(ls_transfer_shared(&n, &t, &p, &c, &err), &err);
    CHECK_NEAR(c.seconds, 3 * L + 5e-3, 5e-6); /* all together they would take 6 ms */
    ls_network_release(&n);
}

static void names_are_found(void)
{
    ls_algorithm a;
    ls_transfer_kind k;

    for (int i = 0; i < LS_ALGORITHM_N; i++)
        CHECK(ls_algorithm_from(ls_algorithm_name((ls_algorithm)i), &a) && a == (ls_algorithm)i);
    for (int i = 0; i < LS_TRANSFER_N; i++)
        CHECK(ls_transfer_from(ls_transfer_name((ls_transfer_kind)i), &k) && k == (ls_transfer_kind)i);
    CHECK(!ls_algorithm_from("rings", &a) && !ls_transfer_from("", &k));
}

/* -- how much work it is ----------------------------------------------------------------------------------
 */

static double processor_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* A closed form does not count ranks. */
static void closed_forms_are_fast(void)
{
    ls_network n = read_text(FAT);
    double took[2] = {0};
    static const int32_t ranks[2] = {1000, 100000};

    for (int s = 0; s < 2; s++) {
        const double begun = processor_s();
        for (int i = 0; i < 50; i++)
            for (int a = 0; a < LS_ALGORITHM_N; a++) {
                const ls_transfer_cost c =
                    closed(&n, (ls_algorithm)a, LS_TRANSFER_ALL_REDUCE, 5e7, ranks[s], 16);
                CHECK(c.seconds > 0 && isfinite(c.seconds) && c.visits == 0);
            }
        took[s] = processor_s() - begun;
    }
    printf("  1000 ranks %.1f us, 100,000 ranks %.1f us a transfer\n", took[0] * 1e6 / 250,
           took[1] * 1e6 / 250);
    CHECK(took[1] < 10 * took[0] + 0.1);
    ls_network_release(&n);
}

/* 20 rank counts up to 4096, four kinds: contiguous machines are few classes of flows. */
static void sweeps_are_fast(void)
{
    ls_network n = read_text(FAT);
    int64_t visits = 0;
    const double begun = processor_s();

    for (int i = 1; i <= 20; i++)
        for (int k = 0; k < 4; k++) {
            const int32_t ranks = i == 20 ? 4096 : (int32_t)pow(4096, i / 20.0) + 1;
            visits += shared(&n, LS_ALGORITHM_OURS, (ls_transfer_kind)k, 5e7, ranks, 1).visits;
            visits += shared(&n, LS_ALGORITHM_RABENSEIFNER, (ls_transfer_kind)k, 5e7, ranks, 1).visits;
        }
    printf("  160 transfers: %lld visits, %.0f ms\n", (long long)visits, (processor_s() - begun) * 1e3);
    CHECK(visits > 1000 && visits < 4000000);
    ls_network_release(&n);
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

static void no_memory_is_told(void)
{
    ls_network n = read_text(FAT);
    const ls_job_placement p = {.nodes = 64, .ranks_per_node = 1, .ranks = 64};
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_CLI];
    int failed = 0;

    for (int a = 0; a < LS_ALGORITHM_N; a++)
        for (uint64_t at = 1;; at++) {
            const ls_transfer t = {LS_TRANSFER_ALL_REDUCE, (ls_algorithm)a, MB, 1};
            ls_transfer_cost c;
            ls_err err = {0};
            ls_mem_fail_at(at);
            const ls_status st = ls_transfer_shared(&n, &t, &p, &c, &err);
            ls_mem_fail_at(0);
            if (st == LS_OK) break;
            failed++;
            if (!CHECK_EQ_INT(st, LS_NOMEM) || !CHECK(err.text[0] != '\0')) break;
        }
    CHECK(failed > 10);
    CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_CLI], before);
    ls_network_release(&n);
}

int main(void)
{
    CHECK_RUN(all_reduce_by_hand);
    CHECK_RUN(other_kinds_by_hand);
    CHECK_RUN(machines_share_their_link);
    CHECK_RUN(processors_take_time);
    CHECK_RUN(the_wire_is_between_machines);
    CHECK_RUN(agree_without_contention);
    CHECK_RUN(tapered_trees_are_slower);
    CHECK_RUN(placement_matters);
    CHECK_RUN(ranks_go_on_by_themselves);
    CHECK_RUN(names_are_found);
    CHECK_RUN(closed_forms_are_fast);
    CHECK_RUN(sweeps_are_fast);
    CHECK_RUN(no_memory_is_told);
    return CHECK_DONE();
}
