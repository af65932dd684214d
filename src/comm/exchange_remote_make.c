/* exchange_remote_make.c: how an exchange between machines is cut into slices, who sums what, and the memory
 * for it. */
#include "comm/exchange_remote.h"

#include <stdlib.h>

#include "base/alloc.h"

/* Slices are short enough for the transport to send them at once, without asking (module/mpi.c): a message
 * that is agreed upon first needs both sides at hand at the same time, and they compute.  On lines they are
 * shorter, and more of them in hand: what one look can put on its way must last until the next.
 * They are not shorter than a message is worth, but of a vector that makes fewer of these than there are
 * machines: those that had one would have to hear all others and answer them.  LEAST_SLICE is what takes
 * about as long to send as a message itself. */
enum {
    MPI_SLOTS = 8,
    SLICES_PER_RANK = 2,
    MIN_SLICE = 16 * 1024,
    LEAST_SLICE = 1024,
    LINE = 16, /* of a cache */
    MAX_SLICE = LS_TRANSPORT_AT_ONCE / (int)sizeof(float),
    MAX_LINE_SLICE = MAX_SLICE / 2
};

/* -- slices -------------------------------------------------------------------------------------------------
 */

/* Of ranks that are absent it is assumed. */
static bool has_lines(const ls_comm *c)
{
    return c->remote == NULL || c->remote->lines != NULL;
}

int64_t ls_exchange_slice(int64_t n, int machines, int most, bool lines)
{
    const int64_t longest = lines ? MAX_LINE_SLICE : MAX_SLICE;
    int64_t size = n / ((int64_t)machines * most * SLICES_PER_RANK), least = (n + machines - 1) / machines;

    least = (least + LINE - 1) / LINE * LINE;
    if (least < LEAST_SLICE) least = LEAST_SLICE;
    if (least > MIN_SLICE) least = MIN_SLICE;
    if (size < least) size = least;
    return size > longest ? longest : size;
}

static int64_t slice_size(const ls_comm *c, int64_t n)
{
    int most = c->remote != NULL ? 1 : c->local_size; /* of ranks that are absent */

    for (int h = 0; c->remote != NULL && h < c->hosts; h++)
        if (c->remote->host_size[h] > most) most = c->remote->host_size[h];
    return ls_exchange_slice(n, c->hosts, most, has_lines(c));
}

/* The longest one. */
static int64_t longest_slice(ls_collective kind, int64_t n, int ranks, int64_t size)
{
    const int64_t whole = lsi_has_pieces(kind) ? ls_exchange_piece(n, ranks) : n;

    return size < whole ? size : whole;
}

/* -- making -------------------------------------------------------------------------------------------------
 */

static int by_first_leaf(const void *a, const void *b)
{
    const lsi_share *s = a, *t = b;

    return (s->node.first > t->node.first) - (s->node.first < t->node.first);
}

/* Adds the subtrees that a machine's parts make up. */
static ls_status add_shares(ls_exchange *x, const lsi_claim *all, int host, int *n, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    lsi_node *nodes = NULL;
    lsi_sum_plan plan = {0};
    int *owner = NULL, n_parts;
    lsi_share *more;

    LS_TRY(lsi_list_parts(x, host, all, &nodes, &owner, &n_parts, err));
    LS_TRY(lsi_sum_plan_make(&plan, x->n_shards, nodes, n_parts, err));
    more = ls_realloc(LS_MEM_COMM, f->share, (size_t)(*n + plan.n_out) * sizeof *more);
    if (more == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    f->share = more;
    for (int i = 0; i < plan.n_out; i++) f->share[(*n)++] = (lsi_share){plan.out[i], host, i};
    f->n_shares[host] = plan.n_out;
out:
    lsi_sum_plan_release(&plan);
    ls_free(owner);
    ls_free(nodes);
    return st;
}

static ls_status plan_total(ls_exchange *x, const lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = x->remote;
    lsi_node *nodes = NULL;
    int n = 0;

    f->n_shares = ls_alloc(LS_MEM_COMM, (size_t)x->c->hosts * sizeof *f->n_shares);
    f->share = ls_alloc(LS_MEM_COMM, sizeof *f->share);
    if (f->n_shares == NULL || f->share == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    if (lsi_copies(x->kind)) return LS_OK; /* there is nothing to add up */
    for (int h = 0; h < x->c->hosts; h++) LS_TRY(add_shares(x, all, h, &n, err));
    qsort(f->share, (size_t)n, sizeof *f->share, by_first_leaf);
    nodes = ls_alloc(LS_MEM_COMM, (size_t)n * sizeof *nodes);
    if (nodes == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    for (int i = 0; i < n; i++) nodes[i] = f->share[i].node;
    LS_TRY(lsi_sum_plan_make(&f->total, x->n_shards, nodes, n, err));
    LS_BUG_IF(f->total.n_out != 1);
out:
    ls_free(nodes);
    return st;
}

static int most_hands(const ls_comm *c)
{
    return has_lines(c) ? LSI_MOST_SLOTS : MPI_SLOTS;
}

/* So many slices can be in hand at once: a rank has no more of its own, which it shares out with those of its
 * machine (exchange_remote.c, owner_of). */
static int hands_of(const ls_comm *c, int64_t n_slices)
{
    const int most = most_hands(c);
    const int64_t rounds = (n_slices + c->hosts - 1) / c->hosts,
                  own = (rounds + c->local_size - 1) / c->local_size * c->hosts,
                  enough = own < n_slices ? own : n_slices;

    return enough < most ? (int)enough : most;
}

/* So many of a rank's own slices in a row one of them may speak for.  (Each would cost a message; on wires
 * of 40 Gbit/s that was a fifth of the time of a gather.) */
static int spoken_for(const ls_comm *c)
{
    return most_hands(c) / 2;
}

/* Where machines differ in ranks, turns of theirs do not come together: each slice speaks for itself. */
static void choose_stretch(const ls_comm *c, ls_collective kind, lsi_remote_exchange *f)
{
    const int homes = kind == LS_COLL_BROADCAST ? 1 : c->hosts,
              rounds = spoken_for(c) > homes ? spoken_for(c) / homes : 1;

    f->speakers = f->stretch = 1;
    for (int h = 0; h < c->hosts; h++)
        if (c->remote->host_size[h] != c->local_size) return;
    f->speakers = c->local_size;
    f->stretch = rounds * c->local_size;
}

static size_t lined_up(size_t bytes)
{
    const size_t line = LINE * sizeof(float);

    return (bytes + line - 1) / line * line;
}

/* With so many bytes of each. */
static lsi_block_plan plan_block(int hosts, size_t own, size_t got, size_t out, size_t in)
{
    lsi_block_plan p;

    p.peers = 2 * (size_t)hosts * sizeof(ls_transport_request);
    p.own = lined_up(p.peers + 2 * (size_t)hosts * sizeof(int));
    p.got = p.own + lined_up(own);
    p.out = p.got + lined_up(got);
    p.in = p.out + lined_up(out);
    p.bytes = p.in + lined_up(in);
    return p;
}

/* What is in a block of a slice of n floats: this machine's shares (what is its only one goes out as it is),
 * and at home those of the others unless lines hold them.  Where this machine's only share is not needed,
 * what the others sent is made wide in its place.  On a narrow wire also what goes out and comes in. */
static void plan_blocks(lsi_remote_exchange *f, int hosts, size_t n, size_t mine, size_t others, bool one)
{
    const size_t share = n * sizeof(float), narrow = f->wire == LS_WIRE_F32 ? 0 : n * lsi_wire_bytes(f->wire);

    if (one) {
        f->home = plan_block(hosts, f->held ? 0 : others * share, 0, narrow, others * narrow);
        f->home.got = f->home.own;
    } else {
        f->home = plan_block(hosts, mine * share, f->held ? 0 : others * share, narrow, others * narrow);
    }
    f->away = plan_block(hosts, one && f->held ? 0 : mine * share, 0, mine * narrow, narrow);
}

/* Two tags per slice.  When they are used up they begin anew: two exchanges that share tags would have to be
 * millions of slices apart, and messages with equal tags still arrive in order. */
void lsi_remote_choose_slices(ls_exchange *x)
{
    lsi_remote *f = x->c->remote;

    x->chunk = slice_size(x->c, x->n);
    x->n_chunks =
        lsi_has_pieces(x->kind) ? x->size * lsi_slices_per_piece(x) : (x->n + x->chunk - 1) / x->chunk;
    if (2 * x->n_chunks > x->c->place.last_tag - f->next_tag) f->next_tag = LSI_FIRST_EXCHANGE_TAG;
    x->first_tag = f->next_tag;
    f->next_tag += (int)(2 * x->n_chunks);
}

ls_status lsi_remote_exchange_create(ls_exchange *x, const lsi_claim *all, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_remote_exchange *f = ls_alloc(LS_MEM_COMM, sizeof *f);

    if (f == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
    x->remote = f;
    f->wire = (ls_wire)all[0].wire;
    f->convert = lsi_narrow_loops_best(f->wire);
    if (2 * x->n_chunks >= x->c->place.last_tag)
        return ls_fail(err, LS_UNSUPPORTED, "%s: too long for the tags of this MPI", x->name);
    LS_TRY(plan_total(x, all, err));
    f->in_at = ls_alloc(LS_MEM_COMM, (size_t)(f->total.n_in + x->plan.n_in) * sizeof *f->in_at);
    f->out_at = ls_alloc(LS_MEM_COMM, (size_t)(x->plan.n_out + 1) * sizeof *f->out_at);
    f->weight = ls_alloc(LS_MEM_COMM, (size_t)f->total.n_in * sizeof *f->weight);
    f->stack = ls_alloc(LS_MEM_COMM, (size_t)f->total.depth * LSI_SUM_BLOCK * sizeof *f->stack);
    if (f->in_at == NULL || f->out_at == NULL || f->weight == NULL || f->stack == NULL) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory", x->name);
        goto out;
    }
    f->held = x->c->remote->lines != NULL && f->wire == LS_WIRE_F32;
    f->own_share = -1;
    for (int i = 0; i < f->total.n_in; i++) {
        f->weight[i] = 1;
        if (x->plan.n_in == 1 && f->share[i].host == x->c->host) f->own_share = i;
    }
    f->slots = hands_of(x->c, x->n_chunks);
    f->ahead = most_hands(x->c);
    choose_stretch(x->c, x->kind, f);
    plan_blocks(f, x->c->hosts, (size_t)longest_slice(x->kind, x->n, x->size, x->chunk),
                (size_t)f->n_shares[x->c->host], (size_t)(f->total.n_in - f->n_shares[x->c->host]),
                f->own_share >= 0);
out:
    return st;
}

void lsi_remote_exchange_destroy(ls_exchange *x)
{
    lsi_remote_exchange *f = x->remote;

    if (f == NULL) return;
    lsi_remote_exchange_ended(x);
    for (int i = 0; i < f->slots; i++) lsi_stock_give(&x->c->remote->blocks, f->hand[i].block);
    ls_free(f->stack);
    ls_free(f->weight);
    ls_free(f->out_at);
    ls_free(f->in_at);
    lsi_sum_plan_release(&f->total);
    ls_free(f->share);
    ls_free(f->n_shares);
    ls_free(f);
    x->remote = NULL;
}

/* -- what it takes ------------------------------------------------------------------------------------------
 */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The last machine of ranks that are absent may have fewer. */
static int ranks_at(const ls_comm *c, int host)
{
    if (c->remote != NULL) return c->remote->host_size[host];
    return (int)least(c->local_size, c->size - (int64_t)host * c->local_size);
}

/* Ranks that are absent are neighbours on their machines. */
static int64_t rank_at(const ls_comm *c, int host, int local)
{
    return c->remote != NULL ? c->remote->ranks_of[host][local] : (int64_t)host * c->local_size + local;
}

/* The subtrees that the leaves of a machine make up, whose ranks have all leaves between them in their order.
 */
static size_t shares_of(const ls_comm *c, int64_t n_leaves, int host)
{
    lsi_node parts[LSI_MAX_PARTS];
    int64_t first = 0, end = 0; /* of neighbours */
    size_t n = 0;

    for (int i = 0; i < ranks_at(c, host); i++) {
        const int64_t rank = rank_at(c, host, i), from = rank * n_leaves / c->size;
        if (from != end) {
            n += (size_t)lsi_tree_parts(n_leaves, first, end, parts);
            first = from;
        }
        end = (rank + 1) * n_leaves / c->size;
    }
    return n + (size_t)lsi_tree_parts(n_leaves, first, end, parts);
}

static int64_t slices_of(const ls_comm *c, const lsi_claim *m, int64_t size)
{
    const int64_t piece = ls_exchange_piece(m->n, c->size);

    if (lsi_has_pieces((ls_collective)m->kind)) return c->size * ((piece + size - 1) / size);
    return (m->n + size - 1) / size;
}

/* How many slices of this rank there may be at once. */
typedef struct counts {
    int64_t home, away; /* in hand, that are at home here, or elsewhere: now more of these, now of those */
    int64_t early;      /* here before they are awaited, of each rank that owns them elsewhere */
} counts;

/* Of neighbouring slices each machine has one, unless machines with more ranks have more pieces. */
static counts count_slices(const ls_comm *c, const lsi_claim *m, int64_t slices, int hands, bool alike)
{
    const bool pieces = lsi_has_pieces((ls_collective)m->kind), root = m->kind == LS_COLL_BROADCAST;
    const int64_t ahead = hands + (pieces || root ? spoken_for(c) : 0),
                  own = ((slices + c->hosts - 1) / c->hosts + c->local_size - 1) / c->local_size;

    if (root || (pieces && !alike)) return (counts){hands, hands, least(ahead, slices)};
    return (counts){
        .home = least((hands + c->hosts - 1) / c->hosts + 1, least(own, hands)),
        .away = least(hands - hands / c->hosts + 1, hands),
        .early = least((ahead + c->hosts - 1) / c->hosts + 1, alike ? own : slices),
    };
}

/* So many blocks of a stock (0: of what slices in hand take, 1: of lines). */
static void count_blocks(ls_transit *out, int stock, size_t n, size_t bytes)
{
    int number;
    const size_t each = lsi_stock_bytes(bytes, &number);

    out->bytes[stock * LSI_STOCK_SIZES + number] += n * each;
}

/* What lies here before it is awaited. */
static void count_early(const ls_comm *c, const lsi_claim *m, const size_t *shares, bool alike, size_t early,
                        size_t share, ls_transit *out)
{
    for (int h = 0; h < c->hosts; h++) {
        const size_t owners = alike ? 1 : (size_t)ranks_at(c, h),
                     message = (lsi_copies((ls_collective)m->kind) ? 1 : shares[h]) * share;
        if (h == c->host) continue;
        if (m->kind == LS_COLL_BROADCAST && h != (c->host == 0 ? 1 : 0)) continue; /* from one alone */
        count_blocks(out, 1, owners * early, message);
    }
}

void lsi_remote_exchange_transit(const ls_comm *c, const lsi_claim *m, ls_transit *out)
{
    const int64_t size = slice_size(c, m->n), slices = slices_of(c, m, size),
                  slice = longest_slice((ls_collective)m->kind, m->n, c->size, size);
    const bool copies = lsi_copies((ls_collective)m->kind);
    const int hands = hands_of(c, slices);
    lsi_remote_exchange f = {.wire = (ls_wire)m->wire, .held = has_lines(c) && m->wire == LS_WIRE_F32};
    size_t *shares = ls_alloc(LS_MEM_COMM, (size_t)c->hosts * sizeof *shares), others = 0;
    bool alike = true;
    counts n;

    LS_BUG_IF(2 * LSI_STOCK_SIZES != LS_TRANSIT_SIZES);
    if (m->n == 0 || shares == NULL) goto out;
    for (int h = 0; h < c->hosts; h++) {
        if (ranks_at(c, h) != c->local_size) alike = false;
        shares[h] = copies ? 0 : shares_of(c, m->n_shards, h);
        if (h != c->host) others += shares[h];
    }
    n = count_slices(c, m, slices, hands, alike);
    plan_blocks(&f, c->hosts, (size_t)slice, shares[c->host], others,
                c->local_size == 1 && shares[c->host] == 1);
    count_blocks(out, 0, (size_t)n.home, f.home.bytes);
    count_blocks(out, 0, (size_t)n.away, f.away.bytes);
    if (has_lines(c))
        count_early(c, m, shares, alike, (size_t)n.early, (size_t)slice * lsi_wire_bytes(f.wire), out);
out:
    ls_free(shares);
}
