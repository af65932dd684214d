/* test_probe.c: what ranks did at the same time is added up, and nothing else: ranks that take turns on a
 * core are worth one. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/probe.h"
#include "check.h"

#define SLOT LS_PROBE_SLOT_S

static void pieces_are_credited_by_time(void)
{
    float slots[LS_PROBE_SLOTS] = {0};
    double all = 0;

    ls_probe_credit(slots, 0.25 * SLOT, 0.75 * SLOT, 8); /* within one slot */
    CHECK_NEAR(slots[0], 8, 1e-5);
    ls_probe_credit(slots, 0.5 * SLOT, 2.5 * SLOT, 100); /* over three: a quarter, a half, a quarter */
    CHECK_NEAR(slots[0], 33, 1e-4);
    CHECK_NEAR(slots[1], 50, 1e-4);
    CHECK_NEAR(slots[2], 25, 1e-4);
    ls_probe_credit(slots, -SLOT, SLOT, 10); /* begun before the first */
    CHECK_NEAR(slots[0], 38, 1e-4);
    ls_probe_credit(slots, (LS_PROBE_SLOTS - 0.5) * SLOT, (LS_PROBE_SLOTS + 0.5) * SLOT, 10);
    CHECK_NEAR(slots[LS_PROBE_SLOTS - 1], 5, 1e-4);
    ls_probe_credit(slots, (LS_PROBE_SLOTS + 1) * SLOT, (LS_PROBE_SLOTS + 2) * SLOT, 1e9);
    ls_probe_credit(slots, -3 * SLOT, -2 * SLOT, 1e9);
    for (int i = 0; i < LS_PROBE_SLOTS; i++) all += (double)slots[i];
    CHECK_NEAR(all, 118, 1e-3);
}

/* Eight ranks share two cores: in every slot two of them are at work, each at a core's peak. */
static void turns_are_not_added_up(void)
{
    enum { RANKS = 8, CORES = 2 };
    ls_probe_work of[RANKS] = {0};
    ls_probe p = {.isa = "kept"};

    for (int r = 0; r < RANKS; r++) {
        strcpy(of[r].machine, "one");
        for (int i = 0; i < LS_PROBE_SLOTS; i++)
            if (i % (RANKS / CORES) == r / CORES) of[r].done[LS_PROBE_FMA][i] = (float)(100 * SLOT);
    }
    ls_probe_combine(of, RANKS, &p);
    CHECK_NEAR(p.flop_s, 200, 1e-3); /* not 800 */
    CHECK_EQ_STR(p.isa, "kept");
}

/* Machines do not share cores: each has its own best slot, whenever that is. */
static void machines_are_added_up(void)
{
    ls_probe_work of[3] = {0};
    ls_probe p = {0};

    strcpy(of[0].machine, "a");
    strcpy(of[1].machine, "b");
    strcpy(of[2].machine, "a");
    of[0].done[LS_PROBE_READ][3] = of[2].done[LS_PROBE_READ][3] = (float)(10 * SLOT);
    of[0].done[LS_PROBE_READ][4] = (float)(15 * SLOT); /* alone in that slot: less than both before */
    of[1].done[LS_PROBE_READ][9] = (float)(30 * SLOT);
    of[1].done[LS_PROBE_COPY][0] = (float)(7 * SLOT);
    ls_probe_combine(of, 3, &p);
    CHECK_NEAR(p.read_b_s, 50, 1e-3);
    CHECK_NEAR(p.copy_b_s, 7, 1e-3);
    CHECK_NEAR(p.flop_s, 0, 0);
}

/* -- this machine -----------------------------------------------------------------------------------------
 */

enum { RANKS_MAX = 64 };

typedef struct rank {
    pthread_t thread;
    ls_comm *comm;
    ls_probe peak;
    ls_status st;
    ls_err err;
} rank;

static void *rank_main(void *arg)
{
    rank *r = arg;

    r->st = ls_probe_machine(1, r->comm, &r->peak, &r->err);
    return NULL;
}

/* What one thread reaches, more than `wanted` if it ever does: on a busy machine it may be disturbed in every
 * slot, so that a single look finds less than there is, but none finds more. */
static double best_of_one(double wanted)
{
    double best = 0;

    for (int look = 0; look < 50 && !(best > wanted); look++) {
        ls_probe one;
        ls_err err = {0};
        REQUIRE_OK(ls_probe_machine(1, NULL, &one, &err), &err);
        if (one.flop_s > best) best = one.flop_s;
    }
    return best;
}

/* Four ranks to a core reach what its cores have, whatever each of them reaches in its turn. */
static void many_ranks_have_no_more_cores(void)
{
    static rank ranks[RANKS_MAX];
    ls_comm *comm[RANKS_MAX];
    const int cores = ls_parallel_cores(), n = 4 * cores < RANKS_MAX ? 4 * cores : RANKS_MAX;
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_threads(comm, n, &err), &err);
    for (int r = 0; r < n; r++) {
        ranks[r].comm = comm[r];
        REQUIRE(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]) == 0);
    }
    for (int r = 0; r < n; r++) pthread_join(ranks[r].thread, NULL);
    for (int r = 0; r < n; r++) {
        REQUIRE_OK(ranks[r].st, &ranks[r].err);
        CHECK_NEAR(ranks[r].peak.flop_s, ranks[0].peak.flop_s, 0); /* all say the same */
    }
    /* The sum of turns would be 4 times what there is. */
    const double enough = ranks[0].peak.flop_s / (1.6 * cores), one = best_of_one(enough);
    printf("%d ranks on %d cores: %.3g FLOP/s, one %.3g\n", n, cores, ranks[0].peak.flop_s, one);
    if (n > 2 * cores) CHECK(one > enough);
    CHECK(ranks[0].peak.flop_s > 0 && ranks[0].peak.read_b_s > 0 && ranks[0].peak.copy_b_s > 0);
    for (int r = 0; r < n; r++) ls_comm_close(comm[r]);
}

int main(void)
{
    CHECK_RUN(pieces_are_credited_by_time);
    CHECK_RUN(turns_are_not_added_up);
    CHECK_RUN(machines_are_added_up);
    CHECK_RUN(many_ranks_have_no_more_cores);
    return CHECK_DONE();
}
