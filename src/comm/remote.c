/* remote.c: the control plane between machines.
 *
 * A round over several machines is two rounds inside each (control.c), and between them the leaders send
 * their machine's mail to each other.  What arrives lies in the heap, in one block per machine, where all
 * ranks read it. Blocks are written by the leader after the first round and read by the others after the
 * second; the next first round comes after everybody has read. */
#include <string.h>

#include "base/alloc.h"
#include "comm/comm_internal.h"

enum { CONTROL_TAG = LSI_FIRST_EXCHANGE_TAG - 1 };
#define TICKET_BYTES ((size_t)LSI_LINE) /* in front of a block */

static size_t block_room(int ranks)
{
    return TICKET_BYTES + (size_t)ranks * LSI_REMOTE_BYTES;
}

/* Blocks lie in the order of hosts, each with room for all its ranks. */
static char *block_of(const ls_comm *c, int host)
{
    size_t at = 0;

    for (int h = 0; h < host; h++) at += block_room(c->remote->host_size[h]);
    return c->remote->staging + at;
}

/* -- making ------------------------------------------------------------------------------------------------
 */

static bool allocate(ls_comm *c)
{
    lsi_remote *f = c->remote;
    size_t size = (size_t)c->size, hosts = (size_t)c->hosts;

    f->host_of = ls_alloc(LS_MEM_COMM, size * sizeof *f->host_of);
    f->local_of = ls_alloc(LS_MEM_COMM, size * sizeof *f->local_of);
    f->host_size = ls_alloc(LS_MEM_COMM, hosts * sizeof *f->host_size);
    f->ranks_of = ls_alloc(LS_MEM_COMM, hosts * sizeof *f->ranks_of + size * sizeof **f->ranks_of);
    f->in_turns = ls_alloc(LS_MEM_COMM, size * sizeof *f->in_turns);
    f->wait = ls_alloc(LS_MEM_COMM, 2 * hosts * sizeof *f->wait);
    return f->host_of != NULL && f->local_of != NULL && f->host_size != NULL && f->ranks_of != NULL &&
           f->in_turns != NULL && f->wait != NULL;
}

static void take_in_turns(const ls_comm *c)
{
    lsi_remote *f = c->remote;
    int n = 0;

    for (int local = 0; n < c->size; local++)
        for (int h = 0; h < c->hosts; h++)
            if (local < f->host_size[h]) f->in_turns[n++] = f->ranks_of[h][local];
}

ls_status lsi_remote_create(ls_comm *c, const int *host_of, ls_err *err)
{
    ls_status st = LS_OK;
    void *window;
    size_t bytes = 0, unused;
    int *next;

    c->remote = ls_alloc(LS_MEM_COMM, sizeof *c->remote);
    if (c->remote == NULL || !allocate(c)) return ls_fail(err, LS_NOMEM, "no memory for a communicator");
    lsi_remote *f = c->remote;
    for (int r = 0; r < c->size; r++) {
        f->host_of[r] = host_of[r];
        f->local_of[r] = f->host_size[host_of[r]]++;
    }
    next = (int *)(f->ranks_of + c->hosts);
    for (int h = 0; h < c->hosts; h++) {
        f->ranks_of[h] = next;
        next += f->host_size[h];
        bytes += block_room(f->host_size[h]);
    }
    for (int r = 0; r < c->size; r++) f->ranks_of[f->host_of[r]][f->local_of[r]] = r;
    take_in_turns(c);
    f->next_tag = LSI_FIRST_EXCHANGE_TAG;
    LS_TRY(lsi_window_map(c, bytes, 1, 0, &unused, &window, err));
    f->staging = window;
out:
    return st;
}

void lsi_remote_destroy(ls_comm *c)
{
    lsi_remote *f = c->remote;

    if (f == NULL) return;
    lsi_lines_close(f->lines);
    lsi_stock_release(&f->blocks);
    lsi_heap_unmap(c->heap, f->staging);
    ls_free(f->wait);
    ls_free(f->in_turns);
    ls_free(f->ranks_of);
    ls_free(f->host_size);
    ls_free(f->local_of);
    ls_free(f->host_of);
    ls_free(f);
    c->remote = NULL;
}

/* -- a round ------------------------------------------------------------------------------------------------
 */

/* Bytes of a machine's block in this round. */
static size_t block_bytes(const ls_comm *c, int host, int root, size_t piece)
{
    if (root < 0) return TICKET_BYTES + (size_t)c->remote->host_size[host] * piece;
    return TICKET_BYTES + (c->remote->host_of[root] == host ? piece : 0);
}

static void pack(ls_comm *c, int root, size_t piece, uint64_t ticket)
{
    char *block = block_of(c, c->host), *at = block + TICKET_BYTES;

    memcpy(block, &ticket, sizeof ticket);
    for (int i = 0; i < c->local_size && piece > 0; i++) {
        if (root >= 0 && c->remote->ranks_of[c->host][i] != root) continue;
        memcpy(at, lsi_mail(c->heap, i, c->round), piece);
        at += piece;
    }
}

/* The leaders whose blocks have not come, or who have not taken this one. */
static void leaders_awaited(void *comm, bool *ranks)
{
    ls_comm *c = comm;
    int n = 0;

    for (int h = 0; h < c->hosts; h++) {
        bool over = false;
        ls_err err = {0};
        if (h == c->host) continue;
        if (c->transport->test(&c->remote->wait[n], 2, &over, &err) != LS_OK) /* it may say so once only */
            ls_comm_heap_end(c->heap, err.status, err.text);
        if (!over) ranks[c->remote->ranks_of[h][0]] = true;
        n += 2;
    }
}

/* The leader's part: its block to all other leaders, theirs to here. */
static ls_status swap_blocks(ls_comm *c, int root, size_t piece, const char *what, const lsi_meanwhile *m,
                             ls_err *err)
{
    ls_status st = LS_OK;
    lsi_wait wait = {.what = what, .awaited = leaders_awaited, .of = c};
    bool finished = false;
    int n = 0;

    for (int h = 0; h < c->hosts; h++) {
        int leader = c->remote->ranks_of[h][0];
        if (h == c->host) continue;
        /* A peer in another operation may say less or more than expected; the ticket then tells. */
        LS_TRY(c->transport->receive(block_of(c, h), block_room(c->remote->host_size[h]), leader, CONTROL_TAG,
                                     &c->remote->wait[n++], err));
        LS_TRY(c->transport->send(block_of(c, c->host), block_bytes(c, c->host, root, piece), leader,
                                  CONTROL_TAG, &c->remote->wait[n++], err));
    }
    while (true) {
        LS_TRY(c->transport->test(c->remote->wait, n, &finished, err));
        if (finished) break;
        LS_TRY(lsi_meanwhile_turn(c, &wait, NULL, NULL, m, err));
    }
    lsi_wait_end(c, &wait);
out:
    return st;
}

ls_status lsi_remote_round(ls_comm *c, int root, size_t piece, uint64_t ticket, const char *what,
                           const lsi_meanwhile *m, ls_err *err)
{
    ls_status st = LS_OK;

    if (c->local_rank == 0) {
        pack(c, root, piece, ticket);
        st = swap_blocks(c, root, piece, what, m, err);
        if (st != LS_OK) { /* the other ranks of the machine wait for this one */
            ls_comm_heap_abort(c->heap, c->rank, err != NULL ? err->text : "lost its peers");
            return st;
        }
    }
    LS_TRY(lsi_local_round(c, ticket, what, m, err));
    for (int h = 0; h < c->hosts; h++) {
        if (memcmp(block_of(c, h), &ticket, sizeof ticket) == 0) continue;
        c->disagreed = true;
        return ls_fail(err, LS_DISAGREE, "rank %d is in %s, but rank %d is in something else", c->rank, what,
                       c->remote->ranks_of[h][0]);
    }
out:
    return st;
}

const char *lsi_remote_mail(const ls_comm *c, int rank, int root, size_t piece)
{
    size_t before = root < 0 ? (size_t)c->remote->local_of[rank] * piece : 0;

    return block_of(c, c->remote->host_of[rank]) + TICKET_BYTES + before;
}
