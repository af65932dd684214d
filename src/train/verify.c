/* verify.c: whether all replicas of the model are equal, and if not, whose is another.
 *
 * What every rank has of its own is compared between ranks.  What the ranks of a machine keep once (decision
 * 13) is one replica of that machine, whichever of its ranks reads it: it is compared between machines, and
 * each rank reads a part of it.  On one machine it has nothing to be compared with, and is left out.
 *
 * Pieces of a model that all ranks have between them (fsdp) have no replica.  Where groups of ranks have a
 * model each (hybrid), rank i of every group has the same piece and updates it by itself: that one is
 * compared between groups. */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/log.h"
#include "exec/pieces.h"
#include "exec/tensor.h"
#include "train/team.h"

/* What one rank says of its variables. */
typedef struct said {
    uint64_t own;    /* hash of those that are its own */
    uint64_t shared; /* its part of those of the machine; parts are joined by xor */
    uint64_t pieces; /* hash of its pieces */
    int32_t host;
    int32_t piece;      /* which one it has of those */
    int64_t has_shared; /* as wide as the rest: every byte that travels is set */
} said;

/* Whether variable i is part of the model and somebody else has the same. */
static bool is_compared(const ls_comm *c, const ls_state *s, int i)
{
    if (ls_state_role(s, i) != LS_VAR_PARAM && ls_state_role(s, i) != LS_VAR_BUFFER) return false;
    return !ls_state_in_pieces(s, i) || ls_group_size(c, ls_state_cut(s, i).group) < ls_comm_size(c);
}

/* Adds variable i to a hash of several; of a piece, what is not beyond the variable's end, where anything may
 * be. */
static ls_status hash_variable(const ls_state *s, int i, uint64_t *all, ls_err *err)
{
    ls_tensor t = *ls_state_at(s, i);
    uint64_t hash = 0;
    size_t first;
    ls_status st;

    if (ls_state_in_pieces(s, i)) ls_state_piece(s, i, &first, &t.bytes);
    st = ls_tensor_hash(&t, XXH3_64bits(t.name, strlen(t.name)), &hash, err);
    *all ^= hash;
    return st;
}

/* Of variable `only`, or of all (-1). */
static ls_status hash_all(const ls_comm *c, const ls_state *s, int only, said *x, ls_err *err)
{
    int turn = 0;
    ls_status st = LS_OK;

    *x = (said){.host = ls_comm_host(c)};
    for (int i = 0; i < ls_state_count(s); i++) {
        if (!is_compared(c, s, i) || (only >= 0 && i != only)) continue;
        if (ls_state_in_pieces(s, i)) {
            x->piece = ls_state_cut(s, i).own;
            LS_TRY(hash_variable(s, i, &x->pieces, err));
            continue;
        }
        if (!ls_state_shared(s, i)) {
            LS_TRY(hash_variable(s, i, &x->own, err));
            continue;
        }
        x->has_shared = 1;
        if (turn++ % ls_comm_local_size(c) == ls_comm_local_rank(c))
            LS_TRY(hash_variable(s, i, &x->shared, err));
    }
out:
    return st;
}

/* -- judging ----------------------------------------------------------------------------------------------
 */

enum { LEFT_OUT, WITH_MOST, OTHERS }; /* ls_vote.side */

/* How many have the piece of vote i, and how many of these its word. */
static int voters(const ls_vote *v, int n, int i)
{
    int same = 0;

    for (int k = 0; k < n; k++) same += v[k].piece == v[i].piece;
    return same;
}

static int votes(const ls_vote *v, int n, int i)
{
    int same = 0;

    for (int k = 0; k < n; k++) same += v[k].piece == v[i].piece && v[k].word == v[i].word;
    return same;
}

/* Of those that have the piece; -1: nobody has. */
static int most_votes(const ls_vote *v, int n, int piece)
{
    int best = -1;

    for (int i = 0; i < n; i++) {
        if (v[i].piece != piece || (best >= 0 && v[i].word == v[best].word)) continue;
        if (best < 0 || votes(v, n, i) > votes(v, n, best)) best = i;
    }
    return best;
}

/* "rank 1", "ranks 1, 3 and 2 more" of those on one side. */
static void name_members(const ls_vote *v, int n, int side, const char *kind, char text[200])
{
    enum { MOST = 8 };
    int all = 0, named = 0;
    size_t used;

    for (int i = 0; i < n; i++) all += v[i].side == side;
    used = (size_t)snprintf(text, 200, "%s%s", kind, all > 1 ? "s" : "");
    for (int i = 0; i < n && named < MOST; i++)
        if (v[i].side == side)
            used += (size_t)snprintf(text + used, 200 - used, "%s %d", named++ > 0 ? "," : "", i);
    if (all > named) snprintf(text + used, 200 - used, " and %d more", all - named);
}

/* Who is on which side, in all pieces that differ; but one sentence cannot say of some pieces whose are wrong
 * and of others that nobody knows, so that these are left out when those came first, and the other way.
 * Whether all agree; *clear: whether the wrong ones are known. */
static bool take_sides(ls_vote *v, int n, bool *clear)
{
    bool equal = true;
    int pieces = 0;

    for (int i = 0; i < n; i++) {
        v[i].side = LEFT_OUT;
        if (v[i].piece >= pieces) pieces = v[i].piece + 1;
    }
    for (int p = 0; p < pieces; p++) {
        const int best = most_votes(v, n, p);
        if (best < 0 || votes(v, n, best) == voters(v, n, best)) continue;
        const bool majority = 2 * votes(v, n, best) > voters(v, n, best);
        if (equal) *clear = majority;
        equal = false;
        for (int i = 0; i < n && majority == *clear; i++)
            if (v[i].piece == p) v[i].side = v[i].word == v[best].word ? WITH_MOST : OTHERS;
    }
    return equal;
}

bool ls_verify_judge(ls_vote *v, int n, const char *kind, char *text, size_t bytes)
{
    char odd[200], even[200];
    bool clear = false;

    if (take_sides(v, n, &clear)) return true;
    name_members(v, n, OTHERS, kind, odd);
    name_members(v, n, WITH_MOST, kind, even);
    if (clear)
        snprintf(text, bytes, "%s: other weights than %s, which agree", odd, even);
    else
        snprintf(text, bytes, "other weights on %s than on %s; too few agree to say whose are wrong", even,
                 odd);
    return false;
}

/* -- asking -----------------------------------------------------------------------------------------------
 */

/* Of what everybody has of its own, then of pieces, then of what machines keep once. */
static bool judge(const ls_comm *c, const said *all, ls_vote *v, char *text, size_t bytes)
{
    const int ranks = ls_comm_size(c), hosts = ls_comm_hosts(c);
    bool shared = true;

    for (int r = 0; r < ranks; r++) v[r] = (ls_vote){.word = all[r].own};
    if (!ls_verify_judge(v, ranks, "rank", text, bytes)) return false;
    /* Ranks that have no pieces all say the same. */
    for (int r = 0; r < ranks; r++) v[r] = (ls_vote){.word = all[r].pieces, .piece = all[r].piece};
    if (!ls_verify_judge(v, ranks, "rank", text, bytes)) return false;
    /* Where one machine shares and another does not, its ranks were compared as far as they can be. */
    for (int r = 0; r < ranks; r++) shared = shared && all[r].has_shared;
    if (!shared) return true;
    for (int h = 0; h < hosts; h++) v[h] = (ls_vote){0};
    for (int r = 0; r < ranks; r++) v[all[r].host].word ^= all[r].shared;
    return ls_verify_judge(v, hosts, "machine", text, bytes);
}

static ls_status ask(ls_comm *c, const ls_state *s, int only, bool *equal, char *text, size_t bytes,
                     ls_err *err)
{
    said mine;
    said *all = ls_alloc(LS_MEM_COMM, (size_t)ls_comm_size(c) * sizeof *all);
    ls_vote *v = ls_alloc(LS_MEM_COMM, (size_t)ls_comm_size(c) * sizeof *v);
    ls_status st = LS_OK;

    if (all == NULL || v == NULL) {
        st = ls_fail(err, LS_NOMEM, "comparing weights: no memory");
        goto out;
    }
    LS_TRY(hash_all(c, s, only, &mine, err));
    LS_TRY(ls_comm_gather_all(c, &mine, sizeof mine, all, "comparing weights", err));
    *equal = judge(c, all, v, text, bytes);
out:
    ls_free(all);
    ls_free(v);
    return st;
}

/* The first variable that differs; all ranks look for it together, since all know that there is one. */
static ls_status find_variable(ls_comm *c, const ls_state *s, const char **name, ls_err *err)
{
    ls_status st = LS_OK;
    char text[512];

    *name = NULL;
    for (int i = 0; i < ls_state_count(s) && *name == NULL; i++) {
        bool equal = true;
        if (is_compared(c, s, i)) LS_TRY(ask(c, s, i, &equal, text, sizeof text, err));
        if (!equal) *name = ls_state_at(s, i)->name;
    }
out:
    return st;
}

ls_status ls_team_compare_weights(ls_comm *c, const ls_session *s, ls_err *err)
{
    const char *name = NULL;
    char text[512];
    bool equal;
    ls_status st = LS_OK;

    if (c == NULL || ls_comm_size(c) == 1) return LS_OK;
    LS_TRY(ask(c, s->state, -1, &equal, text, sizeof text, err));
    if (equal) goto out;
    LS_TRY(find_variable(c, s->state, &name, err));
    st = ls_fail(err, LS_DISAGREE,
                 "comparing weights: %s%s%s%s; go on from the last checkpoint with --resume", text,
                 name != NULL ? " (first in \"" : "", name != NULL ? name : "", name != NULL ? "\")" : "");
out:
    return st;
}

void ls_team_say_what_is_compared(const ls_comm *c, const ls_session *s)
{
    int shared = 0, own = 0;

    if (c == NULL || ls_comm_rank(c) != 0 || ls_comm_hosts(c) > 1) return;
    for (int i = 0; i < ls_state_count(s->state); i++) {
        if (!is_compared(c, s->state, i)) continue;
        if (ls_state_shared(s->state, i))
            shared++;
        else
            own++;
    }
    if (shared > 0)
        ls_log(LS_LOG_INFO,
               "the ranks of this machine keep %d variables of the model once: parallel.verify_every "
               "compares the %d "
               "that each has of its own (parallel.share=never: all)",
               shared, own);
}
