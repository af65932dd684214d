/* together_load.c: variables in pieces, read by the ranks that have them, each from its place in the file.
 *
 * A hash is that of a whole tensor, and no rank reads one for its piece.  So before anything is overwritten
 * the ranks of a machine look through the file together, each at some of the tensors: a machine may have a
 * copy of its own.  Where a rank does not see the file, all bytes pass rank 0 instead (exec/pieces.h). */
#include <unistd.h>
#include <xxhash.h>

#include "base/log.h"
#include "ckpt/together_internal.h"
#include "exec/peers.h"

#define WHAT "reading pieces of variables"

/* The file as rank 0 has it, by its header and its length. */
static bool opens(const lsi_together *s, int *fd)
{
    uint64_t bytes = 0;
    char *header = NULL;
    bool same = lsi_io_open(s->e.path, fd, &bytes, &(ls_err){0}) == LS_OK && bytes == s->e.file_bytes;

    if (same) header = ls_alloc(LS_MEM_CKPT, s->e.header_bytes);
    same = header != NULL &&
           lsi_io_read(*fd, s->e.path, 0, header, s->e.header_bytes, &(ls_err){0}) == LS_OK &&
           XXH3_64bits(header, s->e.header_bytes) == s->e.header_xxh3;
    ls_free(header);
    return same;
}

/* Variables are dealt to the ranks of a machine in turn; *bad is the first of this rank's that is damaged. */
static ls_status prove_share(const lsi_together *s, int fd, int *bad, ls_err *err)
{
    XXH3_state_t *h = XXH3_createState();
    int turn = 0;
    ls_status st = h != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "checkpoint: no memory for a hash");

    *bad = -1;
    for (int i = 0; st == LS_OK && i < s->e.n && *bad < 0; i++) {
        uint64_t hash;
        if (s->at[i] == LSI_NOWHERE || turn++ % ls_comm_local_size(s->comm) != ls_comm_local_rank(s->comm))
            continue;
        LS_TRY(lsi_together_hash(s, fd, i, h, &hash, err));
        if (hash != s->hash[i]) *bad = i;
    }
out:
    XXH3_freeState(h);
    return st;
}

static ls_status read_piece(const lsi_together *s, int fd, int i, ls_err *err)
{
    const ls_tensor *piece = ls_state_at(s->vars, i);
    size_t first, bytes;
    ls_status st = LS_OK;

    ls_state_piece(s->vars, i, &first, &bytes);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < LS_TENSOR_CHUNK ? bytes - at : LS_TENSOR_CHUNK;
        LS_TRY(lsi_io_read(fd, s->e.path, s->at[i] + first + at, s->chunk, n, err));
        LS_TRY(ls_tensor_write(piece, at, s->chunk, n, err));
    }
out:
    return st;
}

static ls_status read_pieces(const lsi_together *s, int fd, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; st == LS_OK && i < s->e.n; i++)
        if (s->at[i] != LSI_NOWHERE) st = read_piece(s, fd, i, err);
    return st;
}

/* What was found, by all: *bad becomes the first damaged variable of rank 0's machine, or -1.  A machine
 * whose own copy is damaged or cannot be read says so and becomes blind: bytes then pass rank 0. */
static ls_status share_proof(const lsi_together *s, ls_status *mine, int *bad, bool *blind, ls_err *trouble,
                             ls_err *err)
{
    const bool first = ls_comm_host(s->comm) == 0;
    double found[2] = {first && *bad >= 0 ? s->e.n - *bad : 0, !first && (*bad >= 0 || *mine != LS_OK)};
    ls_status st = LS_OK;

    if (found[1] > 0) {
        ls_log(LS_LOG_WARN, "%s, as rank %d sees it, %s \"%s\": all is read by rank 0 instead", s->e.path,
               ls_comm_rank(s->comm), *mine != LS_OK ? "cannot be read:" : "is damaged in",
               *mine != LS_OK ? trouble->text : ls_state_at(s->vars, *bad)->name);
        *mine = LS_OK;
        *trouble = (ls_err){0};
    }
    LS_TRY(ls_comm_max(s->comm, found, 2, WHAT, err));
    *bad = found[0] > 0 ? s->e.n - (int)found[0] : -1;
    *blind = found[1] > 0 && *bad < 0;
out:
    return st;
}

ls_status lsi_together_load(lsi_together *s, bool *done, int *bad, ls_status *status, ls_err *trouble,
                            ls_err *err)
{
    int fd = -1;
    double unseen;
    bool blind;
    ls_status st = LS_OK;

    *bad = -1;
    LS_TRY(ls_comm_broadcast(s->comm, s->hash, (size_t)s->e.n * sizeof *s->hash, 0, WHAT, err));
    unseen = !opens(s, &fd);
    LS_TRY(ls_comm_max(s->comm, &unseen, 1, WHAT, err));
    *done = unseen == 0;
    if (!*done) goto out;
    *status = prove_share(s, fd, bad, trouble);
    LS_TRY(share_proof(s, status, bad, &blind, trouble, err));
    *done = !blind;
    *status = lsi_together_all_well(s, *status, trouble);
    if (*status == LS_OK && *bad < 0 && *done)
        *status = lsi_together_all_well(s, read_pieces(s, fd, trouble), trouble);
    if (*status == LS_LOST || *status == LS_DISAGREE) st = ls_fail(err, *status, "%s", trouble->text);
out:
    if (fd >= 0) close(fd);
    return st;
}
