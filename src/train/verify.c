/* verify.c: whether all replicas of the model are equal, and if not, whose is another.
 *
 * What every rank has of its own is compared between ranks.  What the ranks of a machine keep once (decision
 * 13) is one replica of that machine, whichever of its ranks reads it: it is compared between machines, and
 * each rank reads a part of it.  On one machine it has nothing to be compared with, and is left out. */
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
    int32_t host;
    int32_t has_shared;
} said;

/* Pieces are no replicas. */
static bool is_model(const ls_state *s, int i)
{
    if (ls_state_in_pieces(s, i)) return false;
    return ls_state_role(s, i) == LS_VAR_PARAM || ls_state_role(s, i) == LS_VAR_BUFFER;
}

/* Adds variable i to a hash of several. */
static ls_status hash_variable(const ls_state *s, int i, uint64_t *all, ls_err *err)
{
    const ls_tensor *t = ls_state_at(s, i);
    uint64_t hash = 0;
    const ls_status st = ls_tensor_hash(t, XXH3_64bits(t->name, strlen(t->name)), &hash, err);

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
        if (!is_model(s, i) || (only >= 0 && i != only)) continue;
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

/* How many of the n words are equal to word i. */
static int votes(const uint64_t *word, int n, int i)
{
    int same = 0;

    for (int k = 0; k < n; k++) same += word[k] == word[i];
    return same;
}

static int most_votes(const uint64_t *word, int n)
{
    int best = 0;

    for (int i = 1; i < n; i++)
        if (votes(word, n, i) > votes(word, n, best)) best = i;
    return best;
}

/* "rank 1", "ranks 1, 3 and 2 more" of those whose word is (not) that of `of`. */
static void name_members(const uint64_t *word, int n, int of, bool equal, const char *kind, char text[200])
{
    enum { MOST = 8 };
    const int all = equal ? votes(word, n, of) : n - votes(word, n, of);
    size_t used = (size_t)snprintf(text, 200, "%s%s", kind, all > 1 ? "s" : "");
    int named = 0;

    for (int i = 0; i < n && named < MOST; i++)
        if ((word[i] == word[of]) == equal)
            used += (size_t)snprintf(text + used, 200 - used, "%s %d", named++ > 0 ? "," : "", i);
    if (all > named) snprintf(text + used, 200 - used, " and %d more", all - named);
}

bool ls_verify_judge(const uint64_t *word, int n, const char *kind, char *text, size_t bytes)
{
    const int best = most_votes(word, n);
    char odd[200], even[200];

    if (votes(word, n, best) == n) return true;
    name_members(word, n, best, false, kind, odd);
    name_members(word, n, best, true, kind, even);
    if (2 * votes(word, n, best) > n)
        snprintf(text, bytes, "%s: other weights than %s, which agree", odd, even);
    else
        snprintf(text, bytes, "other weights on %s than on %s; too few agree to say whose are wrong", even,
                 odd);
    return false;
}

/* -- asking -----------------------------------------------------------------------------------------------
 */

/* What everybody said becomes one word per rank and one per machine. */
static bool judge(const ls_comm *c, const said *all, uint64_t *word, char *text, size_t bytes)
{
    const int ranks = ls_comm_size(c), hosts = ls_comm_hosts(c);

    for (int r = 0; r < ranks; r++) word[r] = all[r].own;
    if (!ls_verify_judge(word, ranks, "rank", text, bytes)) return false;
    /* Where one machine shares and another does not, its ranks were compared as far as they can be. */
    for (int r = 0; r < ranks; r++)
        if (!all[r].has_shared) return true;
    memset(word, 0, (size_t)hosts * sizeof *word);
    for (int r = 0; r < ranks; r++) word[all[r].host] ^= all[r].shared;
    return ls_verify_judge(word, hosts, "machine", text, bytes);
}

static ls_status ask(ls_comm *c, const ls_state *s, int only, bool *equal, char *text, size_t bytes,
                     ls_err *err)
{
    said mine;
    said *all = ls_alloc(LS_MEM_COMM, (size_t)ls_comm_size(c) * sizeof *all);
    uint64_t *word = ls_alloc(LS_MEM_COMM, (size_t)ls_comm_size(c) * sizeof *word);
    ls_status st = LS_OK;

    if (all == NULL || word == NULL) {
        st = ls_fail(err, LS_NOMEM, "comparing weights: no memory");
        goto out;
    }
    LS_TRY(hash_all(c, s, only, &mine, err));
    LS_TRY(ls_comm_gather_all(c, &mine, sizeof mine, all, "comparing weights", err));
    *equal = judge(c, all, word, text, bytes);
out:
    ls_free(all);
    ls_free(word);
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
        if (is_model(s, i)) LS_TRY(ask(c, s, i, &equal, text, sizeof text, err));
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
        if (!is_model(s->state, i)) continue;
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
