/* predict.c: a step's time on so many ranks, where it goes, and how sure that is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "predict/program.h"
#include "predict/replay_internal.h"

/* Relative errors where nobody has measured (docs/predict.md): times of a network that comes from data
 * sheets; of any network for each doubling of the ranks; steps of a rank, one against the other. */
#define NETWORK_ERROR         0.25
#define NETWORK_PER_DOUBLING  0.05
#define CROWDING_PER_DOUBLING 0.1 /* of ranks on a machine beyond those it was measured with */
#define STEP_SPREAD           0.05
#define TOGETHER_PER_DOUBLING 0.02  /* of a whole step, of ranks beyond those of steps that were measured */
#define BAND                  1.645 /* standard deviations on either side of 90 % */
enum { REPLAYS = 21, SETTLE = 3, REPLAYS_MOST = 10000 };

static const char *const engine_names[LS_ENGINE_N] = {"closed", "replay", "shared"};

const char *ls_engine_name(ls_engine e)
{
    return engine_names[e];
}

bool ls_engine_from(const char *name, ls_engine *out)
{
    for (int e = 0; e < LS_ENGINE_N; e++)
        if (strcmp(name, engine_names[e]) == 0) {
            *out = (ls_engine)e;
            return true;
        }
    return false;
}

/* Everything that one prediction needs. */
typedef struct question {
    const ls_predict_args *a;
    const ls_program *p;
    ls_job_placement place; /* with machines filled where they are looked at */
    int32_t ranks, here, nodes;
    int32_t *machines; /* ours to free */
    ls_engine engine;
    const char *why;
    ls_transfer_cost *costs, *scaled;
    bool *inside;
    double crowding;
    const double *jitter; /* of what a rank computes in a step; NULL: not known */
    double *steps;        /* room for those that are replayed */
    int n_steps;
    ls_err *err;
} question;

/* -- the engine -------------------------------------------------------------------------------------------
 */

/* Whether ranks were measured not to be alike, or not always. */
static bool is_uneven(const question *q)
{
    const ls_machine *m = q->a->machine;

    return q->jitter != NULL || (q->here > 1 && m->n_uneven > 0);
}

static void choose(question *q)
{
    const bool spreads = is_uneven(q);

    if (q->a->engine >= 0) {
        q->engine = (ls_engine)q->a->engine;
        q->why = "it was asked for";
    } else if (q->ranks == 1) {
        q->engine = LS_ENGINE_CLOSED;
        q->why = "one rank has nobody to wait for";
    } else if (q->nodes > 1 && ls_network_blocks(q->a->network, &q->place)) {
        q->engine = LS_ENGINE_SHARED;
        q->why = "ways of different machines share links that are slower than what these have together";
    } else if (spreads) {
        q->engine = LS_ENGINE_REPLAY;
        q->why = "steps of one rank were measured one by one: every rank is replayed with their spread";
    } else {
        q->engine = LS_ENGINE_CLOSED;
        q->why = "no two ways share a slower link, and nobody has measured how steps of a rank spread";
    }
}

static bool draws(const question *q)
{
    return q->engine != LS_ENGINE_CLOSED && q->ranks > 1 && is_uneven(q);
}

/* -- costs of transfers -----------------------------------------------------------------------------------
 */

static ls_status cost_of(const question *q, int32_t i, ls_transfer_cost *out)
{
    const ls_program_transfer *x = &q->p->transfers[i];
    const int32_t members = ls_program_members(q->p, x->scope, q->ranks, q->here);
    const ls_transfer t = {.kind = x->kind,
                           .algorithm = q->a->algorithm,
                           .bytes = ls_program_bytes(q->p, i, members),
                           .wire = x->narrow ? q->p->wire_ratio : 1};

    *out = (ls_transfer_cost){0};
    if (members < 2) return LS_OK;
    if (q->engine == LS_ENGINE_SHARED && members == q->ranks && !q->inside[i])
        return ls_transfer_shared(q->a->network, &t, &q->place, out, q->err);
    *out = ls_transfer_closed(q->a->network, &t, members, q->here < members ? q->here : members);
    return LS_OK;
}

/* Transfers of the same kind and length cost the same, and solving for shared links takes a while. */
static bool same_cost(const question *q, int32_t i, int32_t j)
{
    const ls_program_transfer *x = &q->p->transfers[i], *y = &q->p->transfers[j];
    const int32_t members = ls_program_members(q->p, x->scope, q->ranks, q->here);

    return x->kind == y->kind && x->scope == y->scope && x->narrow == y->narrow &&
           ls_program_bytes(q->p, i, members) == ls_program_bytes(q->p, j, members);
}

static ls_status find_costs(question *q)
{
    ls_status st = LS_OK;

    for (int32_t i = 0; i < q->p->n_transfers; i++) {
        int32_t j = 0;
        q->inside[i] = ls_program_members(q->p, q->p->transfers[i].scope, q->ranks, q->here) <= q->here;
        while (j < i && !same_cost(q, i, j)) j++;
        if (j < i)
            q->costs[i] = q->costs[j];
        else
            LS_TRY(cost_of(q, i, &q->costs[i]));
    }
out:
    return st;
}

/* -- opening ----------------------------------------------------------------------------------------------
 */

static ls_status place(question *q)
{
    const ls_predict_args *a = q->a;

    q->place = a->placement;
    q->ranks = a->placement.ranks;
    q->here = a->placement.ranks_per_node;
    if (q->ranks < 1) return ls_fail(q->err, LS_INVALID, "a job has at least one rank");
    if (q->here < 1 || q->here > q->ranks) q->here = q->ranks;
    q->nodes = (q->ranks + q->here - 1) / q->here;
    q->place.ranks_per_node = q->here;
    q->place.nodes = q->nodes;
    if (q->place.node != NULL) return LS_OK;
    q->machines = ls_alloc(LS_MEM_CLI, sizeof *q->machines * (size_t)q->nodes);
    if (q->machines == NULL) return ls_fail(q->err, LS_NOMEM, "no memory for %d machines", (int)q->nodes);
    q->place.node = q->machines;
    return ls_job_placement_fill(&q->place, a->network, q->err);
}

/* One plan serves many numbers of ranks, but not all. */
static ls_status check_kind(const question *q)
{
    const ls_program *p = q->p;

    if (q->ranks == 1) return LS_OK;
    if (p->ranks == 1)
        return ls_fail(
            q->err, LS_INVALID,
            "the plan was compiled for one rank, which exchanges nothing; %d ranks need one for at "
            "least two",
            (int)q->ranks);
    if (p->ranks > 1 && (p->here == 1) != (q->here == 1))
        return ls_fail(
            q->err, LS_INVALID,
            "the plan was compiled for %d ranks a machine and %d are asked about: ranks that share "
            "a machine have other plans than those that do not",
            (int)p->here, (int)q->here);
    if (p->shard_group > 0 && (q->ranks <= p->shard_group || q->ranks % p->shard_group != 0))
        return ls_fail(q->err, LS_INVALID, "%d ranks are not several groups of %d", (int)q->ranks,
                       (int)p->shard_group);
    return LS_OK;
}

/* How many times as long a rank computes because its machine exchanges with others. */
static double beside_exchanges(const question *q)
{
    const double alone = ls_program_compute(q->p, q->ranks, q->here) * q->crowding;
    double bytes = 0;

    for (int32_t i = 0; i < q->p->n_transfers; i++) {
        const int32_t members = ls_program_members(q->p, q->p->transfers[i].scope, q->ranks, q->here);
        if (members > q->here) bytes += ls_program_bytes(q->p, i, members);
    }
    return alone > 0 ? 1 + q->a->machine->exchanging_s_per_byte * bytes / q->here / alone : 1;
}

static ls_status open_question(question *q, const ls_predict_args *a, ls_err *err)
{
    const size_t n = (size_t)a->program->n_transfers + 1;
    ls_status st = LS_OK;

    *q = (question){.a = a, .p = a->program, .err = err};
    LS_TRY(place(q));
    LS_TRY(check_kind(q));
    q->crowding = 1;
    if (q->p->given_s <= 0) {
        q->crowding = ls_machine_crowded(a->machine, q->here, (double)q->p->batch);
        q->crowding *= beside_exchanges(q);
    }
    q->n_steps = a->replays > 0 ? a->replays : REPLAYS;
    if (q->n_steps > REPLAYS_MOST) q->n_steps = REPLAYS_MOST;
    q->costs = ls_alloc(LS_MEM_CLI, sizeof *q->costs * n);
    q->scaled = ls_alloc(LS_MEM_CLI, sizeof *q->scaled * n);
    q->inside = ls_alloc(LS_MEM_CLI, sizeof *q->inside * n);
    q->steps = ls_alloc(LS_MEM_CLI, sizeof *q->steps * (size_t)q->n_steps);
    if (q->costs == NULL || q->scaled == NULL || q->inside == NULL || q->steps == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for a prediction");
        goto out;
    }
    q->jitter =
        ls_machine_jitter(a->machine, q->here, ls_program_compute(q->p, q->ranks, q->here) * q->crowding);
    choose(q);
    LS_TRY(find_costs(q));
out:
    return st;
}

static void close_question(question *q)
{
    ls_free(q->machines);
    ls_free(q->costs);
    ls_free(q->scaled);
    ls_free(q->inside);
    ls_free(q->steps);
}

/* -- times ------------------------------------------------------------------------------------------------
 */

/* One rank of many that are all alike, with what it computes and what travels taking so many times as
 * long. */
static ls_status alike(question *q, double compute, double network, lsi_replay *r, double *seconds)
{
    double took[2];
    lsi_replay_args a = {.program = q->p,
                         .costs = q->scaled,
                         .inside = q->inside,
                         .ranks = q->ranks,
                         .here = q->here,
                         .copies = 1,
                         .crowding = q->crowding * compute,
                         .settle = SETTLE,
                         .steps = 2};
    ls_status st = LS_OK;

    for (int32_t i = 0; i < q->p->n_transfers; i++) {
        q->scaled[i] = q->costs[i];
        q->scaled[i].seconds *= network;
        q->scaled[i].core_s *= network;
    }
    r->step_s = took;
    LS_TRY(lsi_replay_run(&a, r, q->err));
    *seconds = (took[0] + took[1]) / 2;
out:
    r->step_s = NULL;
    return st;
}

/* All ranks, each with its own draws. */
static ls_status replayed(question *q, ls_spread *spread)
{
    lsi_replay r = {.step_s = q->steps};
    const lsi_replay_args a = {.program = q->p,
                               .costs = q->costs,
                               .inside = q->inside,
                               .ranks = q->ranks,
                               .here = q->here,
                               .copies = q->ranks,
                               .crowding = q->crowding,
                               .jitter = q->jitter,
                               .machine = q->a->machine,
                               .seed = q->a->seed,
                               .settle = SETTLE,
                               .steps = q->n_steps};
    ls_status st = LS_OK;

    LS_TRY(lsi_replay_run(&a, &r, q->err));
    *spread = ls_spread_of(q->steps, (size_t)q->n_steps);
out:
    return st;
}

/* -- the band ---------------------------------------------------------------------------------------------
 */

/* By how much a step changes, in either direction, when computing or the network is off by that much. */
static ls_status change(question *q, double compute, double network, double *out)
{
    double usual, more, less;
    ls_status st = LS_OK;

    *out = 0;
    if (compute == 0 && network == 0) return LS_OK;
    LS_TRY(alike(q, 1, 1, &(lsi_replay){0}, &usual));
    LS_TRY(alike(q, exp(compute), exp(network), &(lsi_replay){0}, &more));
    LS_TRY(alike(q, exp(-compute), exp(-network), &(lsi_replay){0}, &less));
    if (usual > 0 && less > 0) *out = fmax(fabs(log(more / usual)), fabs(log(usual / less)));
out:
    return st;
}

/* The most ranks and machines that were measured. */
typedef struct extent {
    double ranks, nodes;
} extent;

/* Where nobody has measured, two.  A file that does not say how many machines there were says nothing of
 * them: as many as ranks. */
static extent extent_of(const ls_network *n)
{
    const double ranks = n->measured_ranks > 1 ? n->measured_ranks : 2;

    return (extent){ranks, n->measured_nodes > 0 ? n->measured_nodes : ranks};
}

/* By how many doublings the job is larger, in ranks or in machines, whichever are more: 64 ranks of two
 * machines say little of 64 machines. */
static double beyond(const question *q, extent measured)
{
    const double ranks = log2(q->ranks / measured.ranks), nodes = log2(q->nodes / measured.nodes);

    return fmax(0, fmax(ranks, nodes));
}

/* Right costs of all parts do not make a right step: what ranks wait for is a model, too. */
static void find_together_errors(const question *q, ls_prediction *o)
{
    const ls_machine *m = q->a->machine;
    extent measured = extent_of(q->a->network);

    for (int32_t i = 0; i < m->n_together; i++) {
        measured.ranks = fmax(measured.ranks, m->together[i].ranks);
        measured.nodes = fmax(measured.nodes, m->together[i].nodes);
    }
    o->error_together = ls_machine_together_error(m);
    o->error_extrapolated = hypot(o->error_extrapolated, TOGETHER_PER_DOUBLING * beyond(q, measured));
}

static ls_status find_errors(question *q, ls_prediction *o, const ls_spread *spread)
{
    const ls_network *n = q->a->network;
    const ls_machine *m = q->a->machine;
    const double doublings = beyond(q, extent_of(n));
    const double each = n->error_per_doubling > 0 ? n->error_per_doubling : NETWORK_PER_DOUBLING;
    const double fit = n->measured_ranks > 0 || n->error > 0 ? n->error : NETWORK_ERROR;
    const double here = m->n_crowding > 0 ? m->crowding[m->n_crowding - 1].ranks : 1;
    double compute, network = 0, crowd = 0, uneven = 0;
    ls_status st = LS_OK;

    LS_TRY(change(q, q->p->error, 0, &compute));
    if (draws(q)) LS_TRY(change(q, ls_machine_uneven_error(m, q->here), 0, &uneven));
    if (q->ranks > 1) LS_TRY(change(q, 0, fit, &network));
    o->error_fit = sqrt(compute * compute + uneven * uneven + network * network);
    LS_TRY(change(q, 0, each * doublings, &o->error_extrapolated));
    /* What sharing a machine costs does not go on as it began: caches and memory fill up at some number. */
    if (m->own_exchange && q->here > here && q->p->given_s <= 0)
        LS_TRY(change(q, CROWDING_PER_DOUBLING * log2(q->here / here), 0, &crowd));
    o->error_extrapolated = hypot(o->error_extrapolated, crowd);
    if (q->ranks > 1) find_together_errors(q, o);
    if (draws(q))
        o->error_spread = (spread->p84 - spread->p16) / 2 / spread->p50;
    else
        o->error_spread = q->jitter != NULL ? (q->jitter[84] - q->jitter[16]) / 2 : STEP_SPREAD;
out:
    return st;
}

static void make_band(ls_prediction *o)
{
    const double error =
        sqrt(o->error_fit * o->error_fit + o->error_together * o->error_together +
             o->error_spread * o->error_spread + o->error_extrapolated * o->error_extrapolated);

    o->lo = o->mid * exp(-BAND * error);
    o->hi = o->mid * exp(BAND * error);
}

/* -- all of it --------------------------------------------------------------------------------------------
 */

/* Ranks may have unequal shares of an update: all wait for the largest, which is the program's. */
static void find_rates(const question *q, ls_prediction *o)
{
    const double equal = (double)q->p->samples * q->ranks;
    const double samples = q->a->samples > 0 ? (double)q->a->samples : equal;
    const double alone =
        q->a->alone_s > 0 ? q->a->alone_s : ls_program_compute(q->p, 1, 1) * samples / fmax(equal, 1);

    if (o->mid <= 0) return;
    o->samples_per_s = samples / o->mid;
    o->efficiency = alone / o->mid;
}

static ls_status answer(question *q, ls_prediction *o)
{
    lsi_replay r = {0};
    ls_spread spread = {0};
    double closed;
    ls_status st = LS_OK;

    LS_TRY(alike(q, 1, 1, &r, &closed));
    o->mid = closed;
    if (draws(q)) {
        LS_TRY(replayed(q, &spread));
        /* The slowest of several is not faster than the median of one: less is chance of few draws. */
        o->mid = fmax(closed, spread.p50);
    }
    o->parts.compute_s = r.compute_s;
    o->parts.core_s = r.core_s > 1e-9 * closed ? r.core_s : 0; /* else a rounding of differences of clocks */
    o->parts.exposed_s = fmax(0, closed - o->parts.compute_s - o->parts.core_s);
    o->parts.straggle_s = o->mid - closed;
    LS_TRY(find_errors(q, o, &spread));
    make_band(o);
    for (int32_t i = 0; i < q->p->n_transfers; i++) o->wire_bytes += q->costs[i].wire_bytes;
    find_rates(q, o);
out:
    return st;
}

ls_status ls_predict(ls_prediction *out, const ls_predict_args *a, ls_err *err)
{
    question q;
    ls_status st = LS_OK;

    *out = (ls_prediction){0};
    LS_TRY(open_question(&q, a, err));
    *out = (ls_prediction){.ranks = q.ranks, .nodes = q.nodes, .engine = q.engine, .why = q.why};
    LS_TRY(answer(&q, out));
out:
    close_question(&q);
    return st;
}

ls_status ls_predict_timeline(const ls_predict_args *a, ls_predict_span **spans, int *n, ls_err *err)
{
    const int most = 3 * (a->program->n_deeds + 1);
    lsi_replay r = {.most_spans = most};
    question q;
    double unused;
    ls_status st = LS_OK;

    *spans = NULL;
    *n = 0;
    LS_TRY(open_question(&q, a, err));
    r.spans = ls_alloc(LS_MEM_CLI, sizeof *r.spans * (size_t)most);
    if (r.spans == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for a timeline");
        goto out;
    }
    st = alike(&q, 1, 1, &r, &unused);
    if (st != LS_OK) {
        ls_free(r.spans);
        goto out;
    }
    *spans = r.spans;
    *n = r.n_spans;
out:
    close_question(&q);
    return st;
}
