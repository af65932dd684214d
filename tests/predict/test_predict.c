/* test_predict.c: predictions: which engine, where the time goes, how wide the band is, and what they cost.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "predict/program.h"

enum { DEEDS = 32, TRANSFERS = 12 };

typedef struct job {
    ls_deed deeds[DEEDS];
    ls_program_transfer transfers[TRANSFERS];
    int64_t counts[TRANSFERS];
    int32_t sizes[TRANSFERS];
    ls_program p;
    ls_machine m;
    ls_network n;
} job;

static void add(job *j, ls_deed_kind kind, double seconds, int32_t transfer)
{
    j->deeds[j->p.n_deeds++] = (ls_deed){.kind = kind, .seconds = seconds, .transfer = transfer};
}

/* A forward pass of 100 ms, then `n` buckets of 4 MB, 10 ms of computing before each. */
static void fill(job *j, int n)
{
    *j = (job){.m = {.name = "test", .device = "cpu", .threads = 1, .flop_s = 1e12, .bytes_s = 1e11}};
    j->p = (ls_program){.deeds = j->deeds, .transfers = j->transfers, .samples = 32, .wire_ratio = 1};
    j->p.n_transfers = n;
    j->n = (ls_network){.name = "test",
                        .kind = LS_NETWORK_FLAT,
                        .inside = {1e-6, 1e10, 0, 0},
                        .node = {5e-6, 1e9, 0, 0},
                        .error = 0.1,
                        .error_per_doubling = 0.02,
                        .measured_ranks = 4,
                        .measured_nodes = 4};
    add(j, LS_DEED_RUN, 0.1, -1);
    for (int i = 0; i < n; i++) {
        j->counts[i] = 1000000;
        j->sizes[i] = 4;
        j->transfers[i] = (ls_program_transfer){.kind = LS_TRANSFER_ALL_REDUCE,
                                                .n_tensors = 1,
                                                .counts = &j->counts[i],
                                                .sizes = &j->sizes[i],
                                                .narrow = true};
        if (i > 0 || n == 1) add(j, LS_DEED_RUN, 0.01, -1);
        add(j, LS_DEED_START, 0, i);
    }
    for (int i = 0; i < n; i++) add(j, LS_DEED_WAIT, 0, i);
}

static ls_predict_args args_of(const job *j, int32_t ranks, int32_t here)
{
    return (ls_predict_args){.program = &j->p,
                             .machine = &j->m,
                             .network = &j->n,
                             .placement = {.ranks = ranks, .ranks_per_node = here},
                             .engine = -1,
                             .seed = 5};
}

static ls_prediction ask(const ls_predict_args *a)
{
    ls_prediction o;
    ls_err err = {0};

    REQUIRE_OK(ls_predict(&o, a, &err), &err);
    CHECK(o.lo > 0 && o.lo <= o.mid && o.mid <= o.hi);
    CHECK_NEAR(o.parts.compute_s + o.parts.core_s + o.parts.exposed_s + o.parts.straggle_s, o.mid,
               1e-9 * o.mid);
    CHECK(o.why != NULL && o.why[0] != '\0');
    return o;
}

static void spread(job *j, double sigma)
{
    j->m.n_jitter = 1;
    j->m.jitter[0].step_s = 1;
    for (int i = 0; i < LS_JITTER_N; i++) { /* near a normal distribution: the logistic one */
        const double q = fmin(fmax(i / 100.0, 0.005), 0.995);
        j->m.jitter[0].alone[i] = exp(sigma * log(q / (1 - q)) / 1.702);
    }
}

/* -- times ------------------------------------------------------------------------------------------------
 */

static void one_rank_computes(void)
{
    job j;
    ls_prediction o;

    fill(&j, 3);
    const ls_predict_args a = args_of(&j, 1, 1);
    o = ask(&a);
    CHECK_NEAR(o.mid, 0.12, 1e-12);
    CHECK_NEAR(o.efficiency, 1, 1e-12);
    CHECK_NEAR(o.samples_per_s, 32 / 0.12, 1e-6);
    CHECK_NEAR(o.wire_bytes, 0, 0);
    CHECK_EQ_INT(o.engine, LS_ENGINE_CLOSED);
}

/* What is exposed is what the transfers take beyond the computing behind their start. */
static void exposed_time_is_that_of_the_wire(void)
{
    job j;
    ls_prediction o;
    double each;

    fill(&j, 3);
    const ls_predict_args a = args_of(&j, 8, 1);
    each = ls_transfer_closed(&j.n, &(ls_transfer){LS_TRANSFER_ALL_REDUCE, LS_ALGORITHM_OURS, 4e6, 1}, 8, 1)
               .seconds;
    REQUIRE(each > 0.0065);
    o = ask(&a);
    CHECK_NEAR(o.mid, fmax(0.1 + 3 * each, fmax(0.11 + 2 * each, 0.12 + each)), 1e-9);
    CHECK_NEAR(o.parts.compute_s, 0.12, 1e-12);
    CHECK_NEAR(o.parts.straggle_s, 0, 1e-12);
    CHECK_EQ_INT(o.nodes, 8);
    CHECK(o.wire_bytes >= 3 * 2 * 4e6 * 7 / 8 * 0.999);
    j.p.wire_ratio = 0.5;
    CHECK(ask(&a).wire_bytes < 0.51 * o.wire_bytes);
    /* Four ranks a machine add in fp32, and only what leaves it is narrow. */
    j.n.node.bytes_s = 1e15;
    const ls_predict_args both = args_of(&j, 8, 4);
    const double narrow = ask(&both).mid;
    j.p.wire_ratio = 1;
    CHECK_NEAR(narrow, ask(&both).mid, 1e-6 * narrow);
    j.p.wire_ratio = 0.5;
    const ls_predict_args inside = args_of(&j, 8, 8); /* where the wire's format is nobody's */
    o = ask(&inside);
    j.p.wire_ratio = 1;
    CHECK_NEAR(ask(&inside).mid, o.mid, 0);
}

static void crowded_ranks_are_slower(void)
{
    ls_crowding crowding[] = {{1, 0, 1}, {4, 0, 1.3}};
    job j;
    ls_prediction o;

    fill(&j, 3);
    j.m.crowding = crowding;
    j.m.n_crowding = 2;
    const ls_predict_args a = args_of(&j, 4, 4);
    o = ask(&a);
    CHECK_NEAR(o.parts.compute_s, 1.3 * 0.12, 1e-12);
    CHECK(o.efficiency < 1 / 1.29);
}

/* Three vectors of 4 MB between machines, of which each of two ranks has half; none within one. */
static void exchanges_slow_what_is_computed(void)
{
    job j;
    ls_predict_args a;
    ls_prediction o;

    fill(&j, 3);
    j.m.exchanging_s_per_byte = 1e-9;
    a = args_of(&j, 8, 1);
    o = ask(&a);
    CHECK_NEAR(o.parts.compute_s, 0.12 + 0.012, 1e-12);
    a = args_of(&j, 8, 2);
    o = ask(&a);
    CHECK_NEAR(o.parts.compute_s, 0.12 + 0.006, 1e-12);
    a = args_of(&j, 8, 8);
    o = ask(&a);
    CHECK_NEAR(o.parts.compute_s, 0.12, 1e-12);
}

/* What ranks of a machine do to one another is in a step that somebody has measured there. */
static void a_step_that_is_known_is_not_crowded(void)
{
    ls_crowding crowding[] = {{1, 0, 1}, {4, 0, 1.3}};
    job j;
    ls_predict_args a;
    ls_prediction o;
    ls_err err = {0};

    fill(&j, 3);
    j.m.crowding = crowding;
    j.m.n_crowding = 2;
    j.m.exchanging_s_per_byte = 1e-9;
    j.m.own_exchange = true;
    j.p.error = 0.3;
    REQUIRE_OK(ls_program_take(&j.p, 0.24, &err), &err);
    a = args_of(&j, 16, 8);
    o = ask(&a);
    CHECK_NEAR(o.parts.compute_s, 0.24, 1e-12);
    CHECK(o.error_fit < 0.1); /* the network's alone */
    a = args_of(&j, 1, 1);
    o = ask(&a);
    CHECK_NEAR(o.mid, 0.24, 1e-12);
    CHECK_NEAR(o.error_fit, 0, 0);
    CHECK_NEAR(o.hi / o.mid, exp(1.645 * 0.05), 1e-9); /* how steps spread is not known */
}

static void engines_are_chosen_by_rule(void)
{
    job j;
    ls_predict_args a;
    double by_rule;

    fill(&j, 3);
    a = args_of(&j, 16, 1);
    CHECK_EQ_INT(ask(&a).engine, LS_ENGINE_CLOSED);
    spread(&j, 0.05);
    CHECK_EQ_INT(ask(&a).engine, LS_ENGINE_REPLAY);
    CHECK(ask(&a).parts.straggle_s > 0.04 * 0.12);
    CHECK_CONTAINS(ask(&a).why, "one by one");
    a.engine = LS_ENGINE_CLOSED;
    CHECK_NEAR(ask(&a).parts.straggle_s, 0, 0);
    CHECK_CONTAINS(ask(&a).why, "asked for");
    a.engine = -1;
    j.n.kind = LS_NETWORK_FAT_TREE; /* switches of four machines with a quarter of their rate upwards */
    j.n.n_levels = 2;
    j.n.level[0] = (ls_network_level){4, 4, 1e-6};
    j.n.level[1] = (ls_network_level){64, 1, 1e-6};
    CHECK_EQ_INT(ask(&a).engine, LS_ENGINE_SHARED);
    CHECK_CONTAINS(ask(&a).why, "share");
    by_rule = ask(&a).mid;
    a.engine = LS_ENGINE_REPLAY;
    CHECK(ask(&a).mid < 0.9 * by_rule);
    CHECK_EQ_INT(ask(&a).engine, LS_ENGINE_REPLAY);
}

static void names_of_engines_are_read_back(void)
{
    ls_engine e;

    for (int i = 0; i < LS_ENGINE_N; i++) {
        CHECK(ls_engine_from(ls_engine_name((ls_engine)i), &e));
        CHECK_EQ_INT(e, i);
    }
    CHECK(!ls_engine_from("oracle", &e));
}

/* Ranks of a machine wait for its slowest; how slow that will be is known as well as it was alike. */
static void the_slowest_rank_is_waited_for(void)
{
    static double factors[] = {0.98, 1, 1, 1.2};
    job j;
    ls_predict_args a;
    ls_prediction sure, unsure;

    fill(&j, 3);
    j.m.uneven = factors;
    j.m.n_uneven = 4;
    a = args_of(&j, 4, 4);
    sure = ask(&a);
    CHECK_NEAR(sure.parts.straggle_s, 0.2 * 0.12, 1e-3);
    j.m.uneven_error = 0.3;
    unsure = ask(&a);
    CHECK_NEAR(unsure.mid, sure.mid, 0);
    CHECK_NEAR(unsure.error_fit, hypot(sure.error_fit, 0.3), 0.05);
    a = args_of(&j, 4, 1); /* a machine each */
    CHECK_NEAR(ask(&a).error_fit, sure.error_fit, 0.05);
}

/* Draws depend on the seed alone. */
static void a_replay_is_repeated(void)
{
    job j;
    ls_predict_args a;
    ls_prediction o, p;

    fill(&j, 3);
    spread(&j, 0.05);
    a = args_of(&j, 64, 1);
    o = ask(&a);
    p = ask(&a);
    CHECK_NEAR(o.mid, p.mid, 0);
    a.seed = 6;
    CHECK(ask(&a).mid != o.mid);
    CHECK_NEAR(ask(&a).mid, o.mid, 0.03 * o.mid);
}

static void a_timeline_has_the_step(void)
{
    job j;
    ls_predict_args a;
    ls_predict_span *spans = NULL;
    double last = 0, compute = 0;
    int n = 0, exchanges = 0;
    ls_err err = {0};

    fill(&j, 3);
    a = args_of(&j, 8, 1);
    REQUIRE_OK(ls_predict_timeline(&a, &spans, &n, &err), &err);
    for (int i = 0; i < n; i++) {
        CHECK(spans[i].begin_s >= -1e-12 && spans[i].end_s >= spans[i].begin_s);
        last = fmax(last, spans[i].end_s);
        if (strcmp(spans[i].lane, "compute") == 0) compute += spans[i].end_s - spans[i].begin_s;
        exchanges += strcmp(spans[i].lane, "exchange") == 0;
    }
    CHECK_EQ_INT(exchanges, 3);
    CHECK_NEAR(compute, 0.12, 1e-9);
    CHECK_NEAR(last, ask(&a).mid, 1e-9);
    ls_free(spans);
}

static void no_ranks_are_refused(void)
{
    job j;
    ls_prediction o;
    ls_err err = {0};

    fill(&j, 3);
    const ls_predict_args a = args_of(&j, 0, 1);
    CHECK_STATUS(ls_predict(&o, &a, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "at least one rank");
}

static void refused(const job *j, int32_t ranks, int32_t here, const char *words)
{
    const ls_predict_args a = args_of(j, ranks, here);
    ls_prediction o;
    ls_err err = {0};

    CHECK_STATUS(ls_predict(&o, &a, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, words);
}

static void plans_of_other_jobs_are_refused(void)
{
    job j;

    fill(&j, 3);
    j.p.ranks = j.p.here = 1;
    refused(&j, 4, 1, "compiled for one rank");
    j.p.ranks = 4;
    refused(&j, 4, 2, "compiled for 1 ranks a machine and 2 are asked about");
    j.p.here = 4;
    refused(&j, 4, 1, "compiled for 4 ranks a machine and 1 are asked about");
    j.p.shard_group = 2;
    refused(&j, 2, 2, "2 ranks are not several groups of 2");
    refused(&j, 5, 5, "5 ranks are not several groups of 2");
}

/* Every allocation that fails is said, and what was had is given back. */
static void memory_that_runs_out_is_said(void)
{
    job j;
    uint64_t n = 0;
    ls_status st = LS_NOMEM;

    fill(&j, 3);
    spread(&j, 0.05);
    const ls_predict_args a = args_of(&j, 16, 1);
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_CLI];
    while (st != LS_OK && n < 1000) {
        ls_prediction o;
        ls_err err = {0};
        ls_mem_fail_at(++n);
        st = ls_predict(&o, &a, &err);
        ls_mem_fail_at(0);
        CHECK(st == LS_OK || (st == LS_NOMEM && err.text[0] != '\0'));
        CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_CLI], before);
    }
    CHECK(n > 5 && st == LS_OK);
}

/* Ranks that do not divide batch.global have unequal shares, and steps of the largest. */
static void rates_are_of_the_samples_that_there_are(void)
{
    job j;
    ls_predict_args a;
    ls_prediction equal, fewer;

    fill(&j, 1);
    j.p.samples = 15;
    a = args_of(&j, 7, 1);
    equal = ask(&a);
    CHECK_NEAR(equal.samples_per_s, 7 * 15 / equal.mid, 1e-9 * equal.samples_per_s);
    a.samples = 100; /* two ranks of 15 and five of 14 */
    fewer = ask(&a);
    CHECK_NEAR(fewer.mid, equal.mid, 0);
    CHECK_NEAR(fewer.samples_per_s, 100 / fewer.mid, 1e-9 * fewer.samples_per_s);
    CHECK_NEAR(fewer.efficiency, equal.efficiency * 100 / 105, 1e-12);
}

/* -- the band ---------------------------------------------------------------------------------------------
 */

static void the_band_has_its_parts(void)
{
    job j;
    ls_predict_args a;
    ls_prediction o, far;
    double all, first;

    fill(&j, 3);
    j.p.error = 0.04;
    a = args_of(&j, 4, 1);
    o = ask(&a);
    CHECK_NEAR(o.error_extrapolated, 0, 0); /* as many were measured */
    CHECK_NEAR(o.error_spread, 0.05, 1e-12);
    CHECK(o.error_fit > 0.03 && o.error_fit < 0.06);
    CHECK_NEAR(o.error_together, 0.04, 1e-12); /* no whole step was measured */
    all = sqrt(o.error_fit * o.error_fit + o.error_together * o.error_together +
               o.error_spread * o.error_spread);
    CHECK_NEAR(o.hi / o.mid, exp(1.645 * all), 1e-9);
    CHECK_NEAR(o.mid / o.lo, exp(1.645 * all), 1e-9);
    first = o.hi / o.mid;
    for (int32_t ranks = 8; ranks <= 1024; ranks *= 2) { /* farther, wider */
        a = args_of(&j, ranks, 1);
        far = ask(&a);
        CHECK(far.error_extrapolated > o.error_extrapolated);
        o = far;
    }
    CHECK(o.hi / o.mid > 1.1 * first);
    j.n.measured_ranks = 0; /* nobody has measured the network */
    j.n.error = j.n.error_per_doubling = 0;
    CHECK(ask(&a).error_fit > o.error_fit && ask(&a).error_extrapolated > o.error_extrapolated);
}

/* Of ranks or of machines, whichever go farther beyond what was measured. */
static void machines_are_extrapolated_as_ranks_are(void)
{
    job j;
    ls_predict_args a;
    double nodes;

    fill(&j, 3);
    j.n.measured_ranks = 64;
    j.n.measured_nodes = 2;
    j.n.error_per_doubling = 0.1;
    a = args_of(&j, 64, 32);
    CHECK_NEAR(ask(&a).error_extrapolated, 0, 0);
    a = args_of(&j, 64, 1); /* five times twice as many machines */
    nodes = ask(&a).error_extrapolated;
    CHECK(nodes > 0.02 * log2(64 / 2));
    j.n.measured_nodes = 0; /* nobody has said */
    CHECK_NEAR(ask(&a).error_extrapolated, 0, 0);
    j.n.measured_ranks = j.n.measured_nodes = 2;
    CHECK_NEAR(ask(&a).error_extrapolated, nodes, 1e-12);
}

/* What the network errs by matters as far as it is exposed. */
static void hidden_transfers_do_not_widen_the_band(void)
{
    job j;
    ls_predict_args a;

    fill(&j, 1);
    add(&j, LS_DEED_RUN, 0.0, -1);
    j.deeds[3] = (ls_deed){.kind = LS_DEED_RUN, .seconds = 1, .transfer = -1}; /* before the wait */
    j.deeds[4] = (ls_deed){.kind = LS_DEED_WAIT, .transfer = 0};
    a = args_of(&j, 64, 1);
    CHECK_NEAR(ask(&a).error_fit, 0, 1e-12);
    CHECK_NEAR(ask(&a).error_extrapolated, 0.02 * log2(64 / 4), 1e-12); /* of the step itself */
}

/* Steps that were measured and met make the band narrower, those that were missed wider; and they are ranks
 * that were measured. */
static void measured_steps_tell(void)
{
    ls_together met[40],
        missed = {.experiment = "a", .ranks = 2, .nodes = 2, .measured_s = 2, .computed_s = 1};
    job j;
    ls_predict_args a;
    ls_prediction none, o;

    fill(&j, 3);
    a = args_of(&j, 64, 1);
    none = ask(&a);
    for (int i = 0; i < 40; i++)
        met[i] = (ls_together){.experiment = "a", .ranks = 16, .nodes = 16, .measured_s = 1, .computed_s = 1};
    j.m.together = met;
    j.m.n_together = 1;
    o = ask(&a);
    CHECK(o.error_together < none.error_together && o.error_together > 0.8 * none.error_together);
    CHECK(o.error_extrapolated < none.error_extrapolated);
    j.m.n_together = 40;
    CHECK(ask(&a).error_together < 0.4 * none.error_together);
    j.m.together = &missed;
    j.m.n_together = 1;
    o = ask(&a);
    CHECK_NEAR(o.error_together, sqrt((4 * 0.04 * 0.04 + log(2) * log(2)) / 5), 1e-9);
    CHECK_NEAR(o.error_extrapolated, none.error_extrapolated, 1e-12); /* fewer than the network's */
    a = args_of(&j, 1, 1);
    CHECK_NEAR(ask(&a).error_together, 0, 0); /* a rank alone waits for nobody */
}

/* Uniform, and normal, numbers of the test's own. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    const double u = uniform(state);

    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * uniform(state));
}

/* Steps of a machine that spreads as measured, and is as far off as its fits may be: of 4000, nine in ten lie
 * within the band. */
static void the_band_holds_nine_of_ten(void)
{
    enum { TRIES = 4000, MET = 400 };
    static const int32_t ranks[] = {2, 8, 64};
    static ls_together met[MET]; /* so that fits and spread alone make the band */
    uint64_t state = 42;

    for (int i = 0; i < MET; i++)
        met[i] = (ls_together){.experiment = "a", .ranks = 64, .nodes = 64, .measured_s = 1, .computed_s = 1};

    for (size_t k = 0; k < sizeof ranks / sizeof ranks[0]; k++) {
        job j;
        ls_predict_args a;
        ls_prediction o;
        int within = 0;
        fill(&j, 1);
        j.n.node.bytes_s = 1e15; /* computing alone counts */
        j.n.node.latency_s = 0;
        j.p.error = 0.06;
        j.m.together = met;
        j.m.n_together = MET;
        spread(&j, 0.05);
        a = args_of(&j, ranks[k], 1);
        a.replays = 2001;
        o = ask(&a);
        for (int i = 0; i < TRIES; i++) {
            const double off = exp(0.06 * normal(&state));
            double slowest = 0;
            for (int32_t r = 0; r < ranks[k]; r++) {
                const double x = uniform(&state) * 100;
                const int q = (int)x;
                slowest = fmax(slowest, j.m.jitter[0].alone[q] +
                                            (j.m.jitter[0].alone[q + 1] - j.m.jitter[0].alone[q]) * (x - q));
            }
            within += 0.11 * slowest * off >= o.lo && 0.11 * slowest * off <= o.hi;
        }
        /* 0.9 with a standard error of 0.005 over tries; tails that are not normal may shift it as much. */
        if (!CHECK_NEAR((double)within / TRIES, 0.9, 0.02))
            printf("  %d ranks: %d of %d\n", (int)ranks[k], within, TRIES);
    }
}

/* -- cost -------------------------------------------------------------------------------------------------
 */

static void a_hundred_thousand_ranks_take_little_memory(void)
{
    const int32_t ranks = check_is_slow_build() ? 5000 : 100000;
    job j;
    ls_predict_args a;
    ls_mem_stats before;
    ls_prediction o;

    fill(&j, 10);
    spread(&j, 0.05);
    j.p.own_exchange = true;
    j.n.node.core_s_per_byte = 1e-10;
    a = args_of(&j, ranks, 1);
    before = ls_mem_stats_now();
    ls_mem_restart_peak();
    o = ask(&a);
    CHECK_EQ_INT(o.engine, LS_ENGINE_REPLAY);
    CHECK(o.parts.straggle_s > 0);
    CHECK(ls_mem_stats_now().peak_bytes < ((size_t)64 << 20));
    CHECK(ls_mem_stats_now().n_allocs - before.n_allocs < 1000);
}

int main(void)
{
    CHECK_RUN(one_rank_computes);
    CHECK_RUN(exposed_time_is_that_of_the_wire);
    CHECK_RUN(crowded_ranks_are_slower);
    CHECK_RUN(exchanges_slow_what_is_computed);
    CHECK_RUN(a_step_that_is_known_is_not_crowded);
    CHECK_RUN(engines_are_chosen_by_rule);
    CHECK_RUN(names_of_engines_are_read_back);
    CHECK_RUN(the_slowest_rank_is_waited_for);
    CHECK_RUN(a_replay_is_repeated);
    CHECK_RUN(a_timeline_has_the_step);
    CHECK_RUN(no_ranks_are_refused);
    CHECK_RUN(plans_of_other_jobs_are_refused);
    CHECK_RUN(memory_that_runs_out_is_said);
    CHECK_RUN(rates_are_of_the_samples_that_there_are);
    CHECK_RUN(the_band_has_its_parts);
    CHECK_RUN(machines_are_extrapolated_as_ranks_are);
    CHECK_RUN(hidden_transfers_do_not_widen_the_band);
    CHECK_RUN(measured_steps_tell);
    CHECK_RUN(the_band_holds_nine_of_ten);
    CHECK_RUN(a_hundred_thousand_ranks_take_little_memory);
    return CHECK_DONE();
}
