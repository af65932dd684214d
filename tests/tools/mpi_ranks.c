/* mpi_ranks.c: one rank of the tests of comm under MPI; test_mpi_slow.sh starts several.
 *
 * mpi_ranks CASE: runs it and ends with the number of things that went wrong. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bodies.h"
#include "comm/exchange_internal.h"
#include "comm/lines.h"
#include "ranks.h"

/* Everything that must hold on any number of ranks. */
static int everything(ls_comm *c)
{
    static const sum_case cases[] = {{.n = 1000, .shards = 8, .steps = 3},
                                     {.n = 0, .shards = 0, .steps = 3},
                                     {.n = 100003, .shards = 0, .steps = 2},
                                     {.n = 70001, .shards = 13, .steps = 2},
                                     {.n = 400000, .shards = 0, .steps = 2}};
    const int64_t shards = 13;
    int wrong = rank_gathers(c, NULL) + rank_folds(c, NULL) + rank_overlaps(c, NULL) + rank_moves(c, NULL) +
                rank_moves_long(c, NULL) + rank_moves_in(c, NULL) + rank_gives_leaves(c, &shards) +
                rank_works_in_barriers(c, NULL);

    for (size_t i = 0; i < sizeof cases / sizeof *cases && wrong == 0; i++)
        wrong += rank_sums_steps(c, &cases[i]);
    if (wrong == 0 && (ls_comm_size(c) == 2 || ls_comm_size(c) == 4)) wrong += rank_weighs(c, NULL);
    if (wrong == 0 && ls_comm_size(c) <= 4) wrong += rank_weighs_nothing(c, NULL);
    return wrong;
}

/* On a narrow wire all ranks hold the same bits, near the exact sum; inside a machine nothing is rounded.  Of
 * a reduce-scatter, which has several slices of every piece, each looks at its own. */
static int narrow(ls_comm *c, ls_collective kind, ls_wire wire, double tolerance)
{
    const bool scatters = kind == LS_COLL_REDUCE_SCATTER;
    const int n = scatters ? 300001 : 50000, size = ls_comm_size(c);
    const int64_t piece = ls_exchange_piece(n, size), lo = scatters ? ls_comm_rank(c) * piece : 0,
                  hi = scatters && lo + piece < n ? lo + piece : n;
    ls_exchange_options o = {.name = "narrow", .kind = kind, .n = n, .wire = wire};
    int wrong = 0;
    ls_exchange *x;
    ls_err err = {0};
    double worst = 0;
    uint64_t hash = 0;

    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");
    if (wrong > 0) return wrong;
    fill_parts(x, 5, size, n);
    ls_exchange_start(x, 1);
    wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
    for (int64_t i = lo; i < hi && wrong == 0; i++) {
        double sum = 0, off;
        uint32_t bits;
        for (int r = 0; r < size; r++) sum += (double)noise(5, (uint64_t)r, (uint64_t)i);
        off = (double)ls_exchange_result(x)[i] - sum;
        if (off < 0) off = -off;
        if (off > worst) worst = off;
        memcpy(&bits, &ls_exchange_result(x)[i], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(1099511628211);
    }
    if (!(worst <= tolerance * size) || (ls_comm_hosts(c) > 1 && worst < tolerance / 1000)) {
        printf("rank %d: largest error on the narrow wire is %g\n", ls_comm_rank(c), worst);
        wrong++;
    }
    if (!scatters)
        wrong += expect_status(c, ls_comm_agree(c, hash, "narrow result", &err), LS_OK, &err, "agree");
    ls_exchange_destroy(x);
    return wrong;
}

/* Ends one rank in the middle; what the others say depends on who kills them first, so they only must end. */
static int lose_one(ls_comm *c)
{
    ls_err err = {0};

    if (ls_comm_barrier(c, "before", &err) != LS_OK) return 1;
    if (ls_comm_rank(c) == 1) raise(SIGKILL);
    ls_status st = ls_comm_barrier(c, "after", &err);
    printf("rank %d: %s\n", ls_comm_rank(c), err.text);
    fflush(stdout);
    return st == LS_LOST ? 4 : 1;
}

/* Two machines: rank 1 sends another length than rank 0 awaits, which rank 0 alone finds.  It is lost to the
 * run, says why, and ends: it must not take rank 1 for one that knows. */
static int misfit(ls_comm *c)
{
    enum { N = 200000, SENT = 12 }; /* long enough for LSI_LONG */
    ls_exchange_options o = {.name = "misfit", .n = N};
    ls_exchange *x, *next;
    ls_transport_request r;
    ls_err err = {0};
    const char few[SENT] = "";
    uint64_t sent;
    int wrong = expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");

    if (wrong == 0) wrong += expect_status(c, ls_exchange_create(&next, c, &o, &err), LS_OK, &err, "create");
    if (wrong > 0) return wrong;
    if (ls_comm_rank(c) == 1) { /* in place of its share of the first slice */
        wrong += expect_status(
            c, lsi_lines_send(c->remote->lines, few, SENT, 0, LSI_LONG, x->first_tag, 0, 1, &r, &err), LS_OK,
            &err, "send");
        return ls_comm_barrier(c, "that rank 0 does not come to", &err) == LS_LOST ? 4 : wrong + 1;
    }
    ls_exchange_start(x, 1);
    wrong += expect_status(c, ls_exchange_wait(x, &err), LS_LOST, &err, "wait");
    printf("rank %d: %s\n", ls_comm_rank(c), err.text);
    fflush(stdout);
    sent = ls_comm_sent_bytes(c);
    ls_exchange_start(x, 1); /* as a plan does that comes to the end of its step: nobody gets any of it */
    ls_exchange_start(next, 1);
    wrong += expect_status(c, ls_exchange_wait(x, &err), LS_LOST, &err, "wait once more");
    wrong += expect_status(c, ls_exchange_wait(next, &err), LS_LOST, &err, "wait for the next");
    if (ls_comm_sent_bytes(c) != sent) wrong += printf("rank 0 sends though the run is over\n");
    return wrong == 0 ? 4 : wrong;
}

/* -- several buckets in hand ------------------------------------------------------------------------------
 */

enum { BUCKETS = 6 };
static const int64_t bucket_n[BUCKETS] = {300000, 70, 1000003, 20000, 524288, 131072};
static const ls_collective bucket_kind[BUCKETS] = {LS_COLL_ALL_REDUCE, LS_COLL_ALL_REDUCE,
                                                   LS_COLL_ALL_REDUCE, LS_COLL_REDUCE_SCATTER,
                                                   LS_COLL_ALL_REDUCE, LS_COLL_REDUCE_SCATTER};

/* Every fourth is 0; what such a rank has are no numbers. */
static float weight_in(int t, int k, int rank)
{
    return (t + k + rank) % 4 == 3 ? 0 : (float)(1 + (7 * t + 3 * k + rank) % 11) * 0.3f;
}

static float value_in(int t, int k, int rank, int64_t i)
{
    return noise((uint64_t)(100 * t + k), (uint64_t)rank, (uint64_t)i);
}

/* The weighted sum along the tree over ranks. */
static float sum_in(int t, int k, int size, int first, int width, int64_t i)
{
    float left;

    if (width == 1) {
        const float w = weight_in(t, k, first);
        return w == 0 ? 0 : w * value_in(t, k, first, i);
    }
    left = sum_in(t, k, size, first, width / 2, i);
    if (first + width / 2 >= size) return left;
    return left + sum_in(t, k, size, first + width / 2, width / 2, i);
}

static int compare_bucket(const ls_comm *c, const ls_exchange *x, int t, int k)
{
    const int size = ls_comm_size(c), rank = ls_comm_rank(c);
    const int64_t n = bucket_n[k], piece = ls_exchange_piece(n, size);
    const bool whole = bucket_kind[k] == LS_COLL_ALL_REDUCE;
    const int64_t lo = whole ? 0 : rank * piece, hi = whole || lo + piece > n ? n : lo + piece;
    int width = 1;

    while (width < size) width *= 2;
    for (int64_t i = lo; i < hi; i++) {
        const float want = sum_in(t, k, size, 0, width, i), got = ls_exchange_result(x)[i];
        if (memcmp(&want, &got, sizeof got) == 0) continue;
        printf("rank %d: step %d, bucket %d, element %lld: %.9g, expected %.9g\n", rank, t, k, (long long)i,
               (double)got, (double)want);
        return 1;
    }
    return 0;
}

/* Several are under way at once, some of which overtake others.  A part is sent as it lies: it is written
 * over as soon as its exchange is over, and all ranks have the sums of what was there, bit for bit. */
static int buckets(ls_comm *c)
{
    const int rank = ls_comm_rank(c);
    ls_exchange *x[BUCKETS] = {NULL};
    uint64_t pace = 13 * (uint64_t)rank;
    ls_err err = {0};
    int wrong = 0;

    for (int k = 0; k < BUCKETS && wrong == 0; k++) {
        const ls_exchange_options o = {
            .name = "buckets", .n = bucket_n[k], .kind = bucket_kind[k], .newest_first = k % 3 == 2};
        wrong += expect_status(c, ls_exchange_create(&x[k], c, &o, &err), LS_OK, &err, "create");
    }
    for (int t = 0; t < 6 && wrong == 0; t++) {
        for (int k = 0; k < BUCKETS; k++) {
            float *part = ls_exchange_part(x[k], 0);
            const float w = weight_in(t, k, rank);
            for (int64_t i = 0; i < bucket_n[k]; i++) part[i] = w == 0 ? NAN : value_in(t, k, rank, i);
            ls_exchange_start(x[k], w);
            dawdle(&pace);
            for (int j = 0; j <= k; j++) ls_exchange_progress(x[j]);
        }
        for (int k = 0; k < BUCKETS && wrong == 0; k++) {
            wrong += expect_status(c, ls_exchange_wait(x[k], &err), LS_OK, &err, "wait");
            memset(ls_exchange_part(x[k], 0), 0x7e, sizeof(float) * (size_t)bucket_n[k]);
            wrong += compare_bucket(c, x[k], t, k);
        }
    }
    for (int k = 0; k < BUCKETS; k++) ls_exchange_destroy(x[k]);
    return wrong;
}

/* -- a rank that is late ----------------------------------------------------------------------------------
 */

/* A parcel, and the block of a word, for each of those that are under way at once. */
enum { SMALL_CHANGE = 64 * 1024 };

/* Reads what comes while it waits for something else: until nothing has come for a while. */
static void wait_for_all(ls_exchange *other)
{
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_COMM];
    size_t most = before;
    uint64_t grown = ls_clock_ns();

    while (ls_clock_ns() - grown < (most == before ? UINT64_C(2000000000) : UINT64_C(200000000))) {
        const size_t now = ls_mem_stats_now().live_bytes[LS_MEM_COMM];
        if (ls_exchange_progress(other)) return; /* nobody else has started it */
        if (now > most) most = now, grown = ls_clock_ns();
    }
    printf("kept %zu bytes\n", most - before);
}

/* However far the others could run ahead of rank 0's machine, no rank takes more than was planned.  They
 * start `other`, which it waits for meanwhile, when all is over. */
static int late(ls_comm *c, ls_collective kind, ls_wire wire)
{
    enum { N = 6000001 };
    const bool first = ls_comm_host(c) == c->remote->host_of[0];
    const ls_exchange_options o = {.name = "late", .kind = kind, .n = N, .root = 1, .wire = wire},
                              small = {.name = "other", .n = 5};
    ls_transit t;
    size_t planned;
    ls_exchange *x, *other;
    ls_err err = {0};
    size_t before, took;
    int wrong = expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");

    if (wrong == 0)
        wrong += expect_status(c, ls_exchange_create(&other, c, &small, &err), LS_OK, &err, "create");
    if (wrong > 0) return wrong;
    ls_exchange_transit(c, &o, &t);
    planned = ls_transit_bytes(&t) + SMALL_CHANGE;
    ls_mem_restart_peak();
    before = ls_mem_stats_now().peak_bytes;
    if (first) {
        ls_exchange_start(other, 1);
        if (c->remote->lines != NULL) wait_for_all(other); /* MPI keeps what comes itself */
    }
    ls_exchange_start(x, 1);
    wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
    if (!first) ls_exchange_start(other, 1);
    wrong += expect_status(c, ls_exchange_wait(other, &err), LS_OK, &err, "wait for the other");
    took = ls_mem_stats_now().peak_bytes - before;
    printf("rank %d: took %zu bytes of %zu\n", ls_comm_rank(c), took, planned);
    wrong += took > planned;
    ls_exchange_destroy(other);
    ls_exchange_destroy(x);
    return wrong;
}

static int report_place(ls_comm *c)
{
    printf("rank %d of %d: host %d of %d, %d of %d there, %s\n", ls_comm_rank(c), ls_comm_size(c),
           ls_comm_host(c), ls_comm_hosts(c), ls_comm_local_rank(c), ls_comm_local_size(c), ls_comm_kind(c));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    ls_comm *c;
    ls_err err = {0};
    int wrong = 99;

    if (ls_comm_open_mpi(&c, &err) != LS_OK) {
        printf("%s\n", err.text);
        return 98;
    }
    if (strcmp(what, "everything") == 0) wrong = everything(c);
    if (strcmp(what, "narrow") == 0)
        wrong = narrow(c, LS_COLL_ALL_REDUCE, LS_WIRE_BF16, 0x1p-7) +
                narrow(c, LS_COLL_ALL_REDUCE, LS_WIRE_F16, 0x1p-10) +
                narrow(c, LS_COLL_REDUCE_SCATTER, LS_WIRE_BF16, 0x1p-7) +
                narrow(c, LS_COLL_REDUCE_SCATTER, LS_WIRE_F16, 0x1p-10);
    if (strcmp(what, "lose") == 0) wrong = lose_one(c);
    if (strcmp(what, "misfit") == 0) wrong = misfit(c);
    if (strcmp(what, "buckets") == 0) wrong = buckets(c);
    /* One in a process: what one took is used again by the next. */
    if (strcmp(what, "late-sum") == 0) wrong = late(c, LS_COLL_ALL_REDUCE, LS_WIRE_F32);
    if (strcmp(what, "late-scatter") == 0) wrong = late(c, LS_COLL_REDUCE_SCATTER, LS_WIRE_F32);
    if (strcmp(what, "late-gather") == 0) wrong = late(c, LS_COLL_ALL_GATHER, LS_WIRE_F32);
    if (strcmp(what, "late-broadcast") == 0) wrong = late(c, LS_COLL_BROADCAST, LS_WIRE_F32);
    if (strcmp(what, "late-narrow-sum") == 0) wrong = late(c, LS_COLL_ALL_REDUCE, LS_WIRE_BF16);
    if (strcmp(what, "late-narrow-scatter") == 0) wrong = late(c, LS_COLL_REDUCE_SCATTER, LS_WIRE_BF16);
    if (strcmp(what, "place") == 0) wrong = report_place(c);
    ls_comm_close(c);
    return wrong;
}
