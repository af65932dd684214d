/* collective_rounds.c: the rounds of messages that algorithms consist of.
 *
 * As MPI libraries do it: where members are no power of two, the first ones fold two by two, and the rest
 * goes on without one of each; recursive halving begins with neighbours, so that the longest messages have
 * the shortest way; a long vector is broadcast by scattering it and gathering it everywhere. */
#include <string.h>

#include "predict/collective_internal.h"

static const char *const algorithm_names[LS_ALGORITHM_N] = {"ours", "ring", "rabenseifner", "doubling",
                                                            "hierarchical"};
static const char *const transfer_names[LS_TRANSFER_N] = {"all_reduce", "reduce_scatter", "all_gather",
                                                          "broadcast", "barrier"};

const char *ls_algorithm_name(ls_algorithm a)
{
    return algorithm_names[a];
}

bool ls_algorithm_from(const char *name, ls_algorithm *out)
{
    for (int i = 0; i < LS_ALGORITHM_N; i++)
        if (strcmp(algorithm_names[i], name) == 0) {
            *out = (ls_algorithm)i;
            return true;
        }
    return false;
}

const char *ls_transfer_name(ls_transfer_kind k)
{
    return transfer_names[k];
}

bool ls_transfer_from(const char *name, ls_transfer_kind *out)
{
    for (int i = 0; i < LS_TRANSFER_N; i++)
        if (strcmp(transfer_names[i], name) == 0) {
            *out = (ls_transfer_kind)i;
            return true;
        }
    return false;
}

/* -- making -----------------------------------------------------------------------------------------------
 */

static void add(lsi_rounds *r, lsi_pattern pattern, int32_t distance, double bytes, int32_t times)
{
    if (times == 0) return;
    LS_BUG_IF(r->n == LSI_ROUNDS_MOST);
    r->of[r->n++] = (lsi_round){pattern, distance, bytes, times};
}

static int32_t power_within(int32_t members)
{
    return 1 << (31 - __builtin_clz((unsigned)members));
}

/* Messages get shorter by half, from neighbours outwards. */
static void add_halving(lsi_rounds *r, double bytes)
{
    const int32_t power = power_within(r->members);

    for (int32_t d = 1; d < power; d *= 2) {
        bytes /= 2;
        add(r, LSI_XOR, d, bytes, 1);
    }
}

/* The way back. */
static void add_doubling(lsi_rounds *r, double bytes)
{
    const int32_t power = power_within(r->members);

    for (int32_t d = power / 2; d >= 1; d /= 2) add(r, LSI_XOR, d, bytes / (2 * d), 1);
}

static void add_folded(lsi_rounds *r, lsi_pattern pattern, double bytes)
{
    if (power_within(r->members) < r->members) add(r, pattern, 1, bytes, 1);
}

/* Everybody has a piece, and gets those of all: Bruck's way where members are no power of two. */
static void add_gather(lsi_rounds *r, double bytes)
{
    const int32_t power = power_within(r->members);

    if (power == r->members) {
        add_doubling(r, bytes);
        return;
    }
    for (int32_t d = 1; d < r->members; d *= 2) {
        const int32_t pieces = d < r->members - d ? d : r->members - d;
        add(r, LSI_SHIFT, d, bytes * pieces / r->members, 1);
    }
}

static void add_scatter(lsi_rounds *r, double bytes)
{
    int32_t d = power_within(r->members);

    if (d == r->members) d /= 2;
    for (; d >= 1; d /= 2) {
        const int32_t pieces = d < r->members - d ? d : r->members - d;
        add(r, LSI_SCATTER, d, bytes * pieces / r->members, 1);
    }
}

static void add_barrier(lsi_rounds *r)
{
    for (int32_t d = 1; d < r->members; d *= 2) add(r, LSI_SHIFT, d, 0, 1);
}

static void make_ring(lsi_rounds *r, ls_transfer_kind kind, double bytes)
{
    const double piece = bytes / r->members;

    if (kind == LS_TRANSFER_BROADCAST) add_scatter(r, bytes);
    add(r, LSI_SHIFT, 1, piece, (kind == LS_TRANSFER_ALL_REDUCE ? 2 : 1) * (r->members - 1));
}

static void make_halving(lsi_rounds *r, ls_transfer_kind kind, double bytes)
{
    switch (kind) {
    case LS_TRANSFER_ALL_REDUCE:
        add_folded(r, LSI_FOLD, bytes);
        add_halving(r, bytes);
        add_doubling(r, bytes);
        add_folded(r, LSI_UNFOLD, bytes);
        break;
    case LS_TRANSFER_REDUCE_SCATTER:
        add_folded(r, LSI_FOLD, bytes);
        add_halving(r, bytes);
        add_folded(r, LSI_UNFOLD, bytes / r->members);
        break;
    case LS_TRANSFER_BROADCAST:
        add_scatter(r, bytes);
        add_gather(r, bytes);
        break;
    default: add_gather(r, bytes);
    }
}

static void make_doubling(lsi_rounds *r, ls_transfer_kind kind, double bytes)
{
    const int32_t power = power_within(r->members);

    if (kind == LS_TRANSFER_ALL_REDUCE) {
        add_folded(r, LSI_FOLD, bytes);
        for (int32_t d = 1; d < power; d *= 2) add(r, LSI_XOR, d, bytes, 1);
        add_folded(r, LSI_UNFOLD, bytes);
    } else if (kind == LS_TRANSFER_BROADCAST) {
        for (int32_t d = 1; d < r->members; d *= 2) add(r, LSI_TREE, d, bytes, 1);
    } else {
        make_halving(r, kind, bytes);
    }
}

void lsi_rounds_make(lsi_rounds *r, const ls_transfer *t, int32_t ranks, int32_t per_node)
{
    const bool machines = t->algorithm == LS_ALGORITHM_OURS || t->algorithm == LS_ALGORITHM_HIERARCHICAL;
    const double bytes = machines ? t->bytes / per_node : t->bytes;

    *r = (lsi_rounds){.members = machines ? (ranks - 1) / per_node + 1 : ranks,
                      .per_node = machines ? 1 : per_node,
                      .abreast = machines ? per_node : 1,
                      .wire = lsi_wire_of(t)};
    if (r->members < 2) return;
    if (t->kind == LS_TRANSFER_BARRIER)
        add_barrier(r);
    else if (t->algorithm == LS_ALGORITHM_RABENSEIFNER)
        make_halving(r, t->kind, bytes);
    else if (t->algorithm == LS_ALGORITHM_DOUBLING)
        make_doubling(r, t->kind, bytes);
    else
        make_ring(r, t->kind, bytes);
}

/* -- who sends to whom ------------------------------------------------------------------------------------
 */

/* After folding `extra` pairs, the odd one of each is left. */
static int32_t exchange_target(int32_t distance, int32_t members, int32_t i)
{
    const int32_t power = power_within(members), extra = members - power;
    int32_t own, other;

    if (i < 2 * extra && i % 2 == 0) return -1;
    own = i < 2 * extra ? i / 2 : i - extra;
    other = own ^ distance;
    return other < extra ? 2 * other + 1 : other + extra;
}

int32_t lsi_round_target(const lsi_round *r, int32_t members, int32_t i)
{
    const int32_t folded = 2 * (members - power_within(members)), d = r->distance;

    switch (r->pattern) {
    case LSI_SHIFT: return (int32_t)(((int64_t)i + d) % members);
    case LSI_XOR: return exchange_target(d, members, i);
    case LSI_FOLD: return i < folded && i % 2 == 0 ? i + 1 : -1;
    case LSI_UNFOLD: return i < folded && i % 2 == 1 ? i - 1 : -1;
    case LSI_TREE: return i < d && i < members - d ? i + d : -1;
    case LSI_SCATTER: return i % (2 * d) == 0 && i < members - d ? i + d : -1;
    }
    return -1;
}
