/* fit.c: links from exchanges that were timed: non-negative least squares on relative errors.
 *
 * The closed forms are sums and maxima of what is linear in latencies, seconds per byte and times of the
 * processor, so that each turn takes them as linear where they stand, and a few turns are enough.  Times that
 * are far off (somebody else had the machine) count for less than their square (Huber). */
#include "predict/fit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "predict/collective.h"
#include "predict/network.h"
#include "predict/nnls.h"

/* Unknowns: the figures of `inside`, then those of `node`; a rate as seconds per byte. */
enum { UNKNOWNS = 2 * LS_FIT_FIGURES, NODE = LS_FIT_FIGURES, NEAR = 3, TURNS = 40 };

#define LEAST_PER_BYTE 1e-15 /* a rate is never without an end */
#define FLOOR          0.03  /* relative: closed forms are not better than that, however still the machine */
#define CORE_FLOOR     5e-7  /* seconds: core times are not known better */
#define MOST_ERROR     10.0  /* what a file takes: times are not known at all */
#define HUBER          1.5   /* in standard deviations */

/* What rows scatter alike.  Short vectors scatter more: what a switch or a shaper lets through at once, and
 * when a rank is woken, is most of their time; they must not blur what the long ones say of the rate. */
typedef enum kin { KIN_LONG, KIN_SHORT, KIN_CORE, KIN_N } kin;

/* One measured time, or one core time. */
typedef struct row {
    const ls_collective_time *of;
    bool core;
    double y, scale; /* what it is, and what 1 is in residuals */
} row;

typedef struct fit {
    row *rows;
    int n;
    double x[UNKNOWNS];
    double sigma[KIN_N]; /* of residuals, but for those that are far off */
    double variance[UNKNOWNS];
} fit;

const char *ls_fit_figure_name(ls_fit_figure f)
{
    static const char *const names[] = {"latency_s", "bytes_s", "message_s", "core_s_per_byte"};

    return names[f];
}

/* -- the model --------------------------------------------------------------------------------------------
 */

static ls_link link_of(const double *x)
{
    const double per_byte = x[LS_FIT_RATE] > LEAST_PER_BYTE ? x[LS_FIT_RATE] : LEAST_PER_BYTE;

    return (ls_link){.latency_s = x[LS_FIT_LATENCY],
                     .bytes_s = 1 / per_byte,
                     .message_s = x[LS_FIT_MESSAGE],
                     .core_s_per_byte = x[LS_FIT_CORE]};
}

static ls_transfer_cost cost_of(const ls_collective_time *t, const double *x)
{
    const ls_network n = {.kind = LS_NETWORK_FLAT, .inside = link_of(x), .node = link_of(x + NODE)};
    const ls_transfer transfer = {.kind = t->kind == LS_COLL_ALL_REDUCE       ? LS_TRANSFER_ALL_REDUCE
                                          : t->kind == LS_COLL_REDUCE_SCATTER ? LS_TRANSFER_REDUCE_SCATTER
                                                                              : LS_TRANSFER_ALL_GATHER,
                                  .algorithm = LS_ALGORITHM_OURS,
                                  .bytes = ls_collective_wire_bytes(t)};

    return ls_transfer_closed(&n, &transfer, t->ranks, t->most_on_host);
}

static double model(const row *r, const double *x)
{
    const ls_transfer_cost c = cost_of(r->of, x);

    return r->core ? c.core_s : c.seconds;
}

static kin kin_of(const row *r)
{
    return r->core ? KIN_CORE : r->of->bytes >= LS_FIT_LONG ? KIN_LONG : KIN_SHORT;
}

/* In units of what is expected of it. */
static double residual(const row *r, const double *x)
{
    return (model(r, x) - r->y) / r->scale;
}

/* -- rows -------------------------------------------------------------------------------------------------
 */

/* The spread of a median of so many rounds, and what no closed form knows better. */
static double scale_of(const ls_collective_time *t)
{
    const double spread =
        1.25 * 0.5 * (t->seconds.p84 - t->seconds.p16) / t->seconds.p50 / sqrt((double)t->rounds);

    return t->seconds.p50 * sqrt(spread * spread + FLOOR * FLOOR);
}

/* A wire of 16 bits takes conversions that no link has. */
static bool is_usable(const ls_collective_time *t, bool crowded)
{
    return t->wire == LS_WIRE_F32 && (crowded || !t->oversubscribed);
}

/* The caller frees f->rows. */
static ls_status fill_rows(fit *f, const ls_collective_time *of, int n, bool crowded, ls_err *err)
{
    *f = (fit){.rows = ls_alloc(LS_MEM_CLI, sizeof *f->rows * 2 * (size_t)n)};
    if (f->rows == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d measured times", n);
    for (int i = 0; i < n; i++) {
        const ls_collective_time *t = &of[i];
        if (!is_usable(t, crowded)) continue;
        f->rows[f->n++] = (row){.of = t, .y = t->seconds.p50, .scale = scale_of(t)};
        f->rows[f->n++] =
            (row){.of = t,
                  .core = true,
                  .y = t->core_s,
                  .scale = sqrt(FLOOR * FLOOR * t->core_s * t->core_s + CORE_FLOOR * CORE_FLOOR)};
    }
    return LS_OK;
}

/* -- solving ----------------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The standard deviations of residuals: what two thirds of them are within, since some may be far off. */
static void find_sigma(fit *f, double *scratch)
{
    for (int k = 0; k < KIN_N; k++) {
        size_t n = 0;
        for (int i = 0; i < f->n; i++)
            if (kin_of(&f->rows[i]) == (kin)k) scratch[n++] = fabs(residual(&f->rows[i], f->x));
        qsort(scratch, n, sizeof *scratch, by_value);
        f->sigma[k] = (n > 0 ? ls_quantile_sorted(scratch, n, 0.6827) : 0) + 1e-6;
    }
    /* Never less: a fit that meets the short ones and no long one would stay so. */
    f->sigma[KIN_SHORT] = fmax(f->sigma[KIN_SHORT], f->sigma[KIN_LONG]);
}

/* What is minimised: squares near 0, and no more than linear far off. */
static double loss(const fit *f, const double *x)
{
    double sum = 0;

    for (int i = 0; i < f->n; i++) {
        const double r = fabs(residual(&f->rows[i], x)) / f->sigma[kin_of(&f->rows[i])];
        sum += r < HUBER ? r * r : HUBER * (2 * r - HUBER);
    }
    return sum;
}

/* Where the closed forms are linear, d model / d x is exact with any step. */
static void slopes(const row *r, const double *x, double *out)
{
    const double at = model(r, x);

    for (int k = 0; k < UNKNOWNS; k++) {
        static const double unit[LS_FIT_FIGURES] = {1e-6, 1e-11, 1e-6, 1e-11};
        double moved[UNKNOWNS];
        const double step = 1e-3 * (x[k] > unit[k % NODE] ? x[k] : unit[k % NODE]);
        memcpy(moved, x, sizeof moved);
        moved[k] += step;
        out[k] = (model(r, moved) - at) / step;
    }
}

/* The equations at x: what the linear forms there give is to be what was measured. */
static void linearise(const fit *f, ls_nnls *a)
{
    *a = (ls_nnls){.n = UNKNOWNS};
    for (int i = 0; i < f->n; i++) {
        const row *r = &f->rows[i];
        const double at = model(r, f->x), one = r->scale * f->sigma[kin_of(r)], off = fabs(at - r->y) / one;
        double d[UNKNOWNS], y = r->y - at;
        slopes(r, f->x, d);
        for (int k = 0; k < UNKNOWNS; k++) y += d[k] * f->x[k];
        ls_nnls_add(a, d, y, (off > HUBER ? sqrt(HUBER / off) : 1) / one);
    }
}

/* Half way, and half of that, until it is better; false: it is not. */
static bool approach(fit *f, const double *to)
{
    const double now = loss(f, f->x);

    for (double share = 1; share > 1e-3; share /= 2) {
        double x[UNKNOWNS];
        for (int k = 0; k < UNKNOWNS; k++) x[k] = f->x[k] + share * (to[k] - f->x[k]);
        if (loss(f, x) >= now) continue;
        memcpy(f->x, x, sizeof x);
        return true;
    }
    return false;
}

static bool in_class(const ls_collective_time *t, bool several)
{
    return (t->hosts > 1) == several;
}

/* What the processors of a machine's ranks reach together through a link, of the rows where that is most, for
 * one byte a second of one of them: inside each adds its own share, between machines every byte is sent and
 * received by all (collective_ours.c).  Of one rank that would be a half: its rate is not below once. */
static double cores_of(const fit *f, int first)
{
    int most = 2;

    for (int i = 0; first == NODE && i < f->n; i++)
        if (in_class(f->rows[i].of, true) && f->rows[i].of->most_on_host > most)
            most = f->rows[i].of->most_on_host;
    return most / 2.0;
}

/* A rate that shows in no row is any that is not below what the processors reach: the fit ends at an
 * accident, or at no time at all.  It becomes what they reach, which is known, and changes no row. */
static void settle_rates(fit *f, const ls_nnls *a)
{
    for (int first = 0; first < UNKNOWNS; first += NODE) {
        const double core = f->x[first + LS_FIT_CORE];
        double *per_byte = &f->x[first + LS_FIT_RATE];
        if (core > 0 && (*per_byte <= 0 || !(a->gram[first + LS_FIT_RATE][first + LS_FIT_RATE] > 0)))
            *per_byte = core / cores_of(f, first);
    }
}

/* From links with that rate on. */
static void solve_from(fit *f, double per_byte, double *scratch)
{
    const double begin[LS_FIT_FIGURES] = {1e-6, per_byte, 1e-6, 1e-11};
    double to[UNKNOWNS];
    ls_nnls a;

    for (int k = 0; k < UNKNOWNS; k++) f->x[k] = begin[k % NODE];
    for (int turn = 0; turn < TURNS; turn++) {
        find_sigma(f, scratch);
        /* Nothing is far off before it is near, and the long ones say where that is. */
        for (int k = 0; turn < NEAR && k < KIN_N; k++) f->sigma[k] = k == KIN_SHORT ? 1e8 : 1e6;
        linearise(f, &a);
        ls_nnls_solve(&a, to);
        if (!approach(f, to) && turn > NEAR) break;
    }
    find_sigma(f, scratch);
    linearise(f, &a);
    ls_nnls_variance(&a, f->x, f->variance);
    settle_rates(f, &a);
}

/* How far off the rows are that count: short vectors where none is long. */
static double distance(const fit *f)
{
    double sum[KIN_N] = {0};

    for (int i = 0; i < f->n; i++) sum[kin_of(&f->rows[i])] += fabs(residual(&f->rows[i], f->x));
    return sum[KIN_CORE] + (sum[KIN_LONG] > 0 ? sum[KIN_LONG] : sum[KIN_SHORT]);
}

/* Where the processor is slower than the wire, the rate changes nothing, and no turn comes back from there:
 * the best of several beginnings counts. */
static ls_status solve(fit *f, ls_err *err)
{
    static const double begin[] = {1e-10, 1e-9, 1e-8};
    double *scratch = ls_alloc(LS_MEM_CLI, sizeof *scratch * (size_t)f->n), least = INFINITY;
    fit best = *f;

    if (scratch == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d measured times", f->n);
    for (size_t k = 0; k < sizeof begin / sizeof begin[0]; k++) {
        double sum;
        solve_from(f, begin[k], scratch);
        sum = distance(f);
        if (sum >= least) continue;
        least = sum;
        best = *f;
    }
    *f = best;
    ls_free(scratch);
    return LS_OK;
}

/* Of times: root mean square of relative errors, as standard error with so many unknowns.  Steps exchange
 * long vectors; where none are long, all count. */
static double relative_error(const fit *f, int unknowns)
{
    double sum[2] = {0};
    int n[2] = {0};

    for (int i = 0; i < f->n; i++) {
        const row *r = &f->rows[i];
        const bool is_long = r->of->bytes >= LS_FIT_LONG;
        double off;
        if (r->core) continue;
        off = model(r, f->x) / r->y - 1;
        sum[is_long] += off * off;
        n[is_long]++;
    }
    return sqrt(sum[n[1] > 0] / (n[n[1] > 0] > 2 * unknowns ? n[n[1] > 0] - unknowns : n[n[1] > 0]));
}

/* -- what the most ranks say of the others' fit -----------------------------------------------------------
 */

/* The most ranks of a class below `below`; 0: none. */
static int most_ranks(const fit *f, bool several, int below)
{
    int most = 0;

    for (int i = 0; i < f->n; i++) {
        const ls_collective_time *t = f->rows[i].of;
        if (in_class(t, several) && t->ranks < below && t->ranks > most) most = t->ranks;
    }
    return most;
}

/* The error per doubling by which the fit of fewer ranks misses the times of the most, of one machine or of
 * several; 0: there is but one count. */
static ls_status look_ahead(const fit *all, bool several, double *error, ls_err *err)
{
    const int most = most_ranks(all, several, INT32_MAX), next = most_ranks(all, several, most);
    fit part = *all, test = *all;
    ls_status st = LS_OK;

    *error = 0;
    if (next == 0) return LS_OK;
    part.rows = ls_alloc(LS_MEM_CLI, sizeof *part.rows * 2 * (size_t)all->n);
    if (part.rows == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d measured times", all->n);
    test.rows = part.rows + all->n;
    part.n = test.n = 0;
    for (int i = 0; i < all->n; i++) {
        const ls_collective_time *t = all->rows[i].of;
        if (in_class(t, several) && t->ranks == most)
            test.rows[test.n++] = all->rows[i];
        else
            part.rows[part.n++] = all->rows[i];
    }
    LS_TRY(solve(&part, err));
    memcpy(test.x, part.x, sizeof test.x);
    *error = relative_error(&test, 0) / log2((double)most / next);
out:
    ls_free(part.rows);
    return st;
}

/* -- words ------------------------------------------------------------------------------------------------
 */

LS_PRINTF(2, 3)
static void note(ls_fit *out, const char *fmt, ...)
{
    va_list args;

    if (out->n_notes == LS_FIT_NOTES) return;
    va_start(args, fmt);
    vsnprintf(out->note[out->n_notes++], sizeof out->note[0], fmt, args);
    va_end(args);
}

static int count_sizes(const fit *f, bool several, const ls_collective_time **least,
                       const ls_collective_time **most)
{
    int64_t seen = 0;
    int n = 0;

    *least = *most = NULL;
    for (;;) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < f->n; i++) {
            const ls_collective_time *t = f->rows[i].of;
            if (!in_class(t, several) || t->bytes <= seen || t->bytes > next) continue;
            next = t->bytes;
            if (n == 0) *least = t;
            *most = t;
        }
        if (next == INT64_MAX) return n;
        seen = next;
        n++;
    }
}

/* Whether short vectors show the latency, and long ones the rate. */
static void note_regimes(ls_fit *out, const fit *f, bool several)
{
    const char *name = several ? "node" : "inside";
    const ls_collective_time *least, *most;
    ls_transfer_cost c;
    char text[32];
    const int n = count_sizes(f, several, &least, &most);

    if (n == 0) return;
    if (n < 3)
        note(out,
             "%s: only %d length%s of vectors: latency and rate cannot be told apart well; measure at "
             "least 3",
             name, n, n == 1 ? "" : "s");
    c = cost_of(least, f->x);
    if (c.latency_s < 0.5 * c.seconds)
        note(out,
             "%s: the shortest vectors (%s) take most of their time by their bytes: the latency is not "
             "well known; add shorter ones",
             name, ls_text_bytes((double)least->bytes, text));
    c = cost_of(most, f->x);
    if (c.latency_s > 0.5 * c.seconds)
        note(out,
             "%s: the longest vectors (%s) take most of their time by latency: the rate is not well "
             "known; add longer ones",
             name, ls_text_bytes((double)most->bytes, text));
}

static void note_counts(ls_fit *out, const fit *f, bool several)
{
    const int most = most_ranks(f, several, INT32_MAX);

    if (most == 0 || most_ranks(f, several, most) > 0) return;
    note(out,
         "%s: only %d ranks were measured: what more of them change is not known; measure another number",
         several ? "node" : "inside", most);
}

static void note_left_out(ls_fit *out, const fit *f, const ls_collective_time *of, int n, bool crowded)
{
    double sum = 0;
    int narrow = 0, full = 0;

    for (int i = 0; i < n; i++) {
        full += of[i].oversubscribed;
        if (of[i].wire == LS_WIRE_F32 || (!crowded && of[i].oversubscribed)) continue;
        sum += log(of[i].seconds.p50 / cost_of(&of[i], f->x).seconds);
        narrow++;
    }
    if (full > 0 && crowded)
        note(out, "all ranks shared cores with others: this says little of machines with a core for each");
    else if (full > 0)
        note(out, "%d times of ranks that shared cores were left out", full);
    if (narrow > 0)
        note(out,
             "16 bits on the wire take %.2f times what these links say of as many bytes: conversions "
             "are in no link",
             exp(sum / narrow));
}

/* -- the whole --------------------------------------------------------------------------------------------
 */

/* Whether any row has gone through the link: what it took may be nothing, and that is known then. */
static bool was_measured(const fit *f, int first)
{
    for (int i = 0; i < f->n; i++)
        if (first == NODE ? f->rows[i].of->hosts > 1 : f->rows[i].of->most_on_host > 1) return true;
    return false;
}

static void take_link(ls_fit_link *out, const fit *f, int first)
{
    const ls_link l = link_of(f->x + first);

    out->measured = was_measured(f, first);
    for (int k = 0; k < LS_FIT_FIGURES; k++) {
        const double x = f->x[first + k], v = f->variance[first + k];
        out->error[k] = x > 0 && v > 0 ? sqrt(v) / x : NAN;
    }
    if (!out->measured) return;
    out->figure[LS_FIT_LATENCY] = l.latency_s;
    out->figure[LS_FIT_RATE] = l.bytes_s;
    out->figure[LS_FIT_MESSAGE] = l.message_s;
    out->figure[LS_FIT_CORE] = l.core_s_per_byte;
}

static void describe(ls_fit *out, const fit *f)
{
    for (int i = 0; i < f->n; i++) {
        const ls_collective_time *t = f->rows[i].of;
        if (t->ranks > out->measured_ranks) out->measured_ranks = t->ranks;
        if (t->hosts > out->measured_nodes) out->measured_nodes = t->hosts;
        if (t->most_on_host > out->ranks_per_node) out->ranks_per_node = t->most_on_host;
        out->used += !f->rows[i].core;
    }
    take_link(&out->inside, f, 0);
    take_link(&out->node, f, NODE);
    if (!out->node.measured)
        note(out, "node: all ranks were on one machine: nothing is known of links between machines; measure "
                  "with --nodes, mpirun or srun on two or more");
    if (!out->inside.measured)
        note(out,
             "inside: no machine had two ranks: nothing is known of links inside one; measure with -n 2");
}

/* So many figures were fitted. */
static int count_figures(const ls_fit *out)
{
    int n = 0;

    for (int k = 0; k < LS_FIT_FIGURES; k++)
        n += isfinite(out->inside.error[k]) + isfinite(out->node.error[k]);
    return n;
}

ls_status ls_fit_network(ls_fit *out, const ls_collective_time *of, int n, ls_err *err)
{
    fit f = {0};
    bool crowded = true;
    ls_status st = LS_OK;

    *out = (ls_fit){0};
    for (int i = 0; i < n; i++)
        if (is_usable(&of[i], false)) crowded = false;
    if (n > 0) LS_TRY(fill_rows(&f, of, n, crowded, err));
    if (f.n == 0)
        LS_TRY(ls_fail(err, LS_DATA,
                       "there is no time of an exchange with f32 on the wire; `lockstep bench --collectives "
                       "-n 2 --export FILE` measures some"));
    LS_TRY(solve(&f, err));
    describe(out, &f);
    out->error = relative_error(&f, count_figures(out));
    for (int several = 0; several < 2; several++) {
        double ahead;
        note_regimes(out, &f, several);
        note_counts(out, &f, several);
        LS_TRY(look_ahead(&f, several, &ahead, err));
        if (ahead > out->error_per_doubling) out->error_per_doubling = ahead;
    }
    note_left_out(out, &f, of, n, crowded);
out:
    ls_free(f.rows);
    return st;
}

void ls_fit_fill(const ls_fit *f, ls_network *n)
{
    const double *inside = f->inside.measured ? f->inside.figure : f->node.figure,
                 *node = f->node.measured ? f->node.figure : f->inside.figure;

    n->kind = LS_NETWORK_FLAT;
    n->ranks_per_node = f->ranks_per_node;
    n->inside =
        (ls_link){inside[LS_FIT_LATENCY], inside[LS_FIT_RATE], inside[LS_FIT_MESSAGE], inside[LS_FIT_CORE]};
    n->node = (ls_link){node[LS_FIT_LATENCY], node[LS_FIT_RATE], node[LS_FIT_MESSAGE], node[LS_FIT_CORE]};
    n->error = fmin(f->error, MOST_ERROR);
    n->error_per_doubling = fmin(f->error_per_doubling, MOST_ERROR);
    n->measured_ranks = f->measured_ranks;
    n->measured_nodes = f->measured_nodes;
    n->measured_per_node = f->inside.measured ? f->ranks_per_node : 1;
}
