/* test_program.c: programs of real plans: what travels and what is computed follows for any number of ranks
 * from a plan for some. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "plans_here.h"
#include "predict/program.h"

/* A machine that is known by its peaks alone: what a node takes is proportional to its bytes. */
static ls_machine by_bytes(void)
{
    ls_machine m = {.name = "test", .device = "cpu", .threads = 1, .flop_s = 1e30, .bytes_s = 1e9};

    return m;
}

static ls_program make(const plans_here *p, int32_t ranks, int32_t here, int32_t group)
{
    const ls_machine m = by_bytes();
    const ls_program_args a = {.plans = p->plan,
                               .n_plans = p->n,
                               .ranks = ranks,
                               .here = here,
                               .shard_group = group,
                               .wire_ratio = 1,
                               .overlap = true};
    ls_program out;
    ls_err err = {0};

    REQUIRE_OK(ls_program_make(&out, &a, &m, &err), &err);
    return out;
}

/* Bytes that a rank sends by docs/sharding.md, of P parameters: 8 P (N - 1) / N, and 12 with fsdp. */
static double by_formula(const char *strategy, double parameters, double ranks, double group)
{
    const double others = (ranks - 1) / ranks, mates = (group - 1) / group;

    if (strcmp(strategy, "fsdp") == 0) return 12 * parameters * others;
    if (strcmp(strategy, "hybrid") == 0) return 8 * parameters * others + 8 * parameters * mates;
    return 8 * parameters * others;
}

typedef struct strategy_case {
    const char *name, *setting, *group;
    int32_t size;
} strategy_case;

static const strategy_case strategies[] = {
    {"ddp", "parallel.strategy=ddp", NULL, 0},
    {"zero1", "parallel.strategy=zero1", NULL, 0},
    {"fsdp", "parallel.strategy=fsdp", NULL, 0},
    {"hybrid", "parallel.strategy=hybrid", "parallel.shard_group=2", 2},
};

/* Every unit is gathered twice only where one asks for it: else not the one with which gradients begin. */
static void open_case(plans_here *p, const char *experiment, const strategy_case *s, int ranks)
{
    const bool pieces = strcmp(s->name, "fsdp") == 0 || s->group != NULL;
    const char *const settings[] = {s->setting, pieces ? "parallel.reshard=always" : NULL, s->group, NULL};

    plans_here_open(p, experiment, settings, ranks, 0);
}

/* A plan for four ranks says what plans for others do, to the byte. */
static void bytes_follow_for_any_number_of_ranks(void)
{
    static const char *const experiments[] = {"mnist", "vit-small", "cosmogan-small"};
    static const int others[] = {2, 6, 8, 14};

    for (size_t e = 0; e < sizeof experiments / sizeof experiments[0]; e++)
        for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
            plans_here four;
            ls_program p;
            open_case(&four, experiments[e], &strategies[s], 4);
            p = make(&four, 4, 0, strategies[s].size);
            CHECK_NEAR(ls_program_traffic(&p, 4), four.traffic, 1e-6);
            for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                plans_here there;
                if (others[i] == strategies[s].size) continue; /* one group alone is fsdp: another plan */
                open_case(&there, experiments[e], &strategies[s], others[i]);
                if (!CHECK_NEAR(ls_program_traffic(&p, others[i]) / there.traffic, 1, 1e-12))
                    printf("  %s, %s, %d ranks\n", experiments[e], strategies[s].name, others[i]);
                plans_here_release(&there);
            }
            ls_program_release(&p);
            plans_here_release(&four);
        }
}

/* Tensors are large there: what pads pieces and what statistics take is less than a hundredth. */
static void bytes_are_those_of_the_formulas(void)
{
    for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
        plans_here four;
        ls_program p;
        open_case(&four, "resnet18-cifar", &strategies[s], 4);
        p = make(&four, 4, 0, strategies[s].size);
        for (int n = 4; n <= 64; n *= 2) {
            const double want =
                by_formula(strategies[s].name, (double)four.parameters, n, strategies[s].size);
            if (!CHECK_NEAR(ls_program_traffic(&p, n) / want, 1, 0.015))
                printf("  %s, %d ranks: %.0f, by formula %.0f\n", strategies[s].name, n,
                       ls_program_traffic(&p, n), want);
        }
        ls_program_release(&p);
        plans_here_release(&four);
    }
}

/* Elements of an owner's update: those of a plan for eight ranks follow from one for four. */
static void updates_are_divided(void)
{
    for (size_t s = 1; s < 3; s++) {
        plans_here four, eight;
        ls_program p, q;
        double owned = 0;
        open_case(&four, "resnet18-cifar", &strategies[s], 4);
        open_case(&eight, "resnet18-cifar", &strategies[s], 8);
        p = make(&four, 4, 0, 0);
        q = make(&eight, 8, 0, 0);
        for (int32_t i = 0; i < p.n_deeds; i++) owned += p.deeds[i].owned_s[LS_SCOPE_ALL];
        CHECK(owned >
              28.0 * (double)four.parameters / 1e9); /* Adam reads 16 and writes 12 bytes an element */
        CHECK(owned < 60.0 * (double)four.parameters / 1e9);
        CHECK_NEAR(ls_program_compute(&p, 8, 8) / ls_program_compute(&q, 8, 8), 1, 0.02);
        CHECK(ls_program_compute(&p, 4, 4) > 1.01 * ls_program_compute(&p, 8, 8));
        ls_program_release(&p);
        ls_program_release(&q);
        plans_here_release(&four);
        plans_here_release(&eight);
    }
}

/* Ranks of a machine that keep variables once divide the update among them. */
static void shared_updates_are_the_machine_s(void)
{
    const char *const settings[] = {"parallel.share=always", NULL};
    plans_here four;
    ls_program p;
    int barriers = 0;

    plans_here_open(&four, "resnet18-cifar", settings, 4, 4);
    p = make(&four, 4, 4, 0);
    for (int32_t i = 0; i < p.n_transfers; i++)
        if (p.transfers[i].kind == LS_TRANSFER_BARRIER) {
            barriers++;
            CHECK_EQ_INT(p.transfers[i].scope, LS_SCOPE_NODE);
        }
    CHECK_EQ_INT(barriers, 2);
    CHECK_EQ_INT(ls_program_members(&p, LS_SCOPE_NODE, 64, 4), 4);
    CHECK_NEAR(ls_program_compute(&p, 64, 4), ls_program_compute(&p, 4, 4), 1e-12);
    CHECK(ls_program_compute(&p, 4, 2) > ls_program_compute(&p, 4, 4));
    ls_program_release(&p);
    plans_here_release(&four);
}

/* Batches that are added up run one after the other, and what is summed travels once. */
static void accumulated_batches_exchange_once(void)
{
    const char *const settings[] = {"parallel.accumulate=3", NULL};
    plans_here once, thrice;
    ls_program p, q;
    int32_t first = -1, runs = 0;

    plans_here_open(&once, "mnist", NULL, 4, 0);
    plans_here_open(&thrice, "mnist", settings, 4, 0);
    p = make(&once, 4, 0, 0);
    q = make(&thrice, 4, 0, 0);
    CHECK_EQ_INT(thrice.n, 2);
    CHECK_EQ_INT(q.samples, 3 * p.samples);
    CHECK(ls_program_compute(&q, 4, 4) > 2.5 * ls_program_compute(&p, 4, 4));
    for (int32_t i = 0; i < q.n_deeds && first < 0; i++) {
        if (q.deeds[i].kind == LS_DEED_RUN && q.deeds[i].plan == 0) runs++;
        if (q.deeds[i].kind == LS_DEED_START) first = i;
    }
    CHECK_EQ_INT(runs, 3);
    CHECK(first > 2);
    CHECK_NEAR(ls_program_traffic(&q, 4) / thrice.traffic, 1, 1e-12);
    ls_program_release(&p);
    ls_program_release(&q);
    plans_here_release(&once);
    plans_here_release(&thrice);
}

/* Between machines of one rank each sums are waited for by the next step. */
static void carried_waits_come_first(void)
{
    const char *const settings[] = {"parallel.carry=always", NULL};
    plans_here plans;
    ls_program p;
    int carried = 0;

    plans_here_open(&plans, "mnist", settings, 2, 1);
    p = make(&plans, 2, 1, 0);
    for (int32_t i = 0; i < p.n_transfers; i++) {
        int32_t start = -1, wait = -1;
        for (int32_t k = 0; k < p.n_deeds; k++) {
            if (p.deeds[k].transfer != i) continue;
            *(p.deeds[k].kind == LS_DEED_START ? &start : &wait) = k;
        }
        carried += p.transfers[i].carried;
        CHECK(start >= 0 && wait >= 0);
        CHECK((wait < start) == p.transfers[i].carried);
    }
    CHECK(carried > 0);
    ls_program_release(&p);
    plans_here_release(&plans);
}

/* Every start is followed by its wait where nothing is to be hidden. */
static void without_overlap_nothing_runs_meanwhile(void)
{
    const ls_machine m = by_bytes();
    plans_here plans;
    ls_program p;
    ls_err err = {0};

    plans_here_open(&plans, "mnist", NULL, 4, 0);
    const ls_program_args a = {
        .plans = plans.plan, .n_plans = plans.n, .ranks = 4, .wire_ratio = 1, .overlap = false};
    REQUIRE_OK(ls_program_make(&p, &a, &m, &err), &err);
    for (int32_t i = 0; i < p.n_deeds; i++)
        if (p.deeds[i].kind == LS_DEED_START) {
            CHECK(i + 1 < p.n_deeds && p.deeds[i + 1].kind == LS_DEED_WAIT);
            CHECK_EQ_INT(p.deeds[i].transfer, p.deeds[i + 1].transfer);
        }
    ls_program_release(&p);
    plans_here_release(&plans);
}

/* Gathers travel as they are; sums in the wire's format, but for single numbers. */
static void the_wire_s_format_is_of_sums(void)
{
    plans_here plans;
    ls_program p;
    int narrow = 0;

    open_case(&plans, "vit-small", &strategies[2], 4);
    p = make(&plans, 4, 0, 0);
    for (int32_t i = 0; i < p.n_transfers; i++) {
        narrow += p.transfers[i].narrow;
        if (p.transfers[i].kind == LS_TRANSFER_ALL_GATHER) CHECK(!p.transfers[i].narrow);
    }
    CHECK(narrow > 0);
    ls_program_release(&p);
    plans_here_release(&plans);
}

/* All nodes take so many times as long, and what they add up to is known. */
static void a_step_that_is_known_scales_its_nodes(void)
{
    const char *const settings[] = {"parallel.strategy=zero1", NULL};
    plans_here four;
    ls_program p, q;
    ls_err err = {0};

    plans_here_open(&four, "mnist", settings, 4, 0);
    p = make(&four, 4, 0, 0);
    q = make(&four, 4, 0, 0);
    CHECK(p.error > 0 && p.given_s == 0);
    REQUIRE_OK(ls_program_take(&q, 0.25, &err), &err);
    CHECK_NEAR(ls_program_compute(&q, 1, 1), 0.25, 1e-12);
    CHECK_NEAR(q.given_s, 0.25, 0);
    CHECK_NEAR(q.scale, 0.25 / ls_program_compute(&p, 1, 1), 1e-9 * q.scale);
    CHECK_NEAR(q.error, 0, 0);
    for (int32_t i = 0; i < p.n_deeds; i++) {
        CHECK_NEAR(q.deeds[i].seconds, q.scale * p.deeds[i].seconds, 1e-12);
        CHECK_NEAR(q.deeds[i].owned_s[LS_SCOPE_ALL], q.scale * p.deeds[i].owned_s[LS_SCOPE_ALL], 1e-12);
    }
    CHECK_NEAR(ls_program_traffic(&q, 8), ls_program_traffic(&p, 8), 0);
    ls_program_release(&p);
    ls_program_release(&q);
    q = (ls_program){0};
    CHECK_STATUS(ls_program_take(&q, 0.25, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "0.25");
    plans_here_release(&four);
}

/* A plan for other ranks than one says is found out by its bytes. */
static void wrong_ranks_are_refused(void)
{
    const ls_machine m = by_bytes();
    plans_here plans;
    ls_program p;
    ls_err err = {0};

    open_case(&plans, "mnist", &strategies[2], 4);
    const ls_program_args a = {
        .plans = plans.plan, .n_plans = plans.n, .ranks = 5, .wire_ratio = 1, .overlap = true};
    CHECK_STATUS(ls_program_make(&p, &a, &m, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "compiled for another number of ranks");
    ls_program_release(&p);
    plans_here_release(&plans);
}

static void memory_that_runs_out_is_said(void)
{
    const ls_machine m = by_bytes();
    plans_here plans;
    uint64_t n = 0;
    ls_status st = LS_NOMEM;

    open_case(&plans, "mnist", &strategies[2], 4);
    const ls_program_args a = {
        .plans = plans.plan, .n_plans = plans.n, .ranks = 4, .wire_ratio = 1, .overlap = true};
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_CLI];
    while (st != LS_OK && n < 1000) {
        ls_program p;
        ls_err err = {0};
        ls_mem_fail_at(++n);
        st = ls_program_make(&p, &a, &m, &err);
        ls_mem_fail_at(0);
        CHECK(st == LS_OK || (st == LS_NOMEM && err.text[0] != '\0'));
        ls_program_release(&p);
        CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_CLI], before);
    }
    CHECK(n > 3 && st == LS_OK);
    plans_here_release(&plans);
}

int main(void)
{
    CHECK_RUN(bytes_follow_for_any_number_of_ranks);
    CHECK_RUN(bytes_are_those_of_the_formulas);
    CHECK_RUN(updates_are_divided);
    CHECK_RUN(shared_updates_are_the_machine_s);
    CHECK_RUN(accumulated_batches_exchange_once);
    CHECK_RUN(carried_waits_come_first);
    CHECK_RUN(without_overlap_nothing_runs_meanwhile);
    CHECK_RUN(the_wire_s_format_is_of_sums);
    CHECK_RUN(a_step_that_is_known_scales_its_nodes);
    CHECK_RUN(wrong_ranks_are_refused);
    CHECK_RUN(memory_that_runs_out_is_said);
    return CHECK_DONE();
}
