/* together.c: variables in pieces, written by the ranks that have them, each to its place in the one file.
 *
 * Where tensors lie in the file is known before the first byte is written, so every rank can write its pieces
 * without asking; afterwards each reads some of the tensors for their hashes.  That takes a disk that all
 * see: rank 0 leaves a word beside the file, and where a rank cannot read it, all bytes pass rank 0 instead
 * (exec/pieces.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/log.h"
#include "ckpt/ckpt_internal.h"
#include "comm/comm.h"
#include "exec/peers.h"

#define WHAT  "writing pieces of variables"
#define CHUNK LS_TENSOR_CHUNK
enum { WORD = 32 };
#define NOWHERE UINT64_MAX /* of a variable that does not come into the file */

/* What rank 0 tells. */
typedef struct errand {
    char path[LSI_PATH], word[WORD];
    int32_t n; /* variables */
} errand;

typedef struct storing {
    const ls_state *vars;
    ls_comm *comm;
    errand e;
    uint64_t *at;   /* of each variable in pieces: where it begins in the file */
    uint64_t *hash; /* of each, when it is there */
    char *chunk;
} storing;

static void token_path(const char *path, char *to, size_t size)
{
    snprintf(to, size, "%.*s.word", (int)(size - 8), path);
}

static ls_status open_storing(storing *s, const ls_state *vars, ls_err *err)
{
    const size_t n = (size_t)ls_state_count(vars) + 1;

    *s = (storing){.vars = vars, .comm = ls_peers_comm(ls_state_peers(vars))};
    s->at = ls_alloc(LS_MEM_CKPT, n * sizeof *s->at);
    s->hash = ls_alloc(LS_MEM_CKPT, n * sizeof *s->hash);
    s->chunk = ls_alloc(LS_MEM_CKPT, CHUNK);
    if (s->at == NULL || s->hash == NULL || s->chunk == NULL)
        return ls_fail(err, LS_NOMEM, "checkpoint: no memory");
    return LS_OK;
}

static void close_storing(storing *s)
{
    ls_free(s->at);
    ls_free(s->hash);
    ls_free(s->chunk);
}

/* -- each rank's part -------------------------------------------------------------------------------------
 */

/* Whether this rank sees what rank 0 has left beside the file. */
static bool sees_word(const storing *s)
{
    char path[LSI_PATH + 8], word[WORD] = "";
    FILE *f;
    bool same;

    token_path(s->e.path, path, sizeof path);
    f = fopen(path, "r");
    if (f == NULL) return false;
    same = fread(word, 1, sizeof word, f) == sizeof word && memcmp(word, s->e.word, sizeof word) == 0;
    fclose(f);
    return same;
}

static ls_status refused(const storing *s, const char *call, ls_err *err)
{
    return ls_fail(err, LS_IO, "%s: rank %d cannot %s: %s", s->e.path, ls_comm_rank(s->comm), call,
                   strerror(errno));
}

static ls_status write_all(const storing *s, int fd, const void *from, size_t bytes, uint64_t at, ls_err *err)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(fd, (const char *)from + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused(s, "write", err);
        done += (size_t)n;
    }
    return LS_OK;
}

static ls_status store_piece(const storing *s, int fd, int i, ls_err *err)
{
    const ls_tensor *piece = ls_state_at(s->vars, i);
    const size_t whole = ls_state_whole(s->vars, i).bytes;
    const ls_cut_of cut = ls_state_cut(s->vars, i);
    const size_t first = (size_t)cut.own * piece->bytes;
    const size_t bytes = first >= whole ? 0 : whole - first < piece->bytes ? whole - first : piece->bytes;
    ls_status st = LS_OK;

    /* Of several groups the first one writes. */
    if (ls_group_member(s->comm, cut.group, cut.own) != ls_comm_rank(s->comm)) return LS_OK;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < CHUNK ? bytes - at : CHUNK;
        LS_TRY(ls_tensor_read(piece, at, s->chunk, n, err));
        LS_TRY(write_all(s, fd, s->chunk, n, s->at[i] + first + at, err));
    }
out:
    return st;
}

static ls_status store_pieces(const storing *s, ls_err *err)
{
    const int fd = open(s->e.path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    ls_status st = LS_OK;

    if (fd < 0) return refused(s, "open", err);
    for (int i = 0; i < s->e.n; i++)
        if (s->at[i] != NOWHERE) LS_TRY(store_piece(s, fd, i, err));
    if (fsync(fd) != 0) st = refused(s, "sync", err);
out:
    if (close(fd) != 0 && st == LS_OK) st = refused(s, "close", err);
    return st;
}

static ls_status hash_variable(const storing *s, int fd, int i, XXH3_state_t *h, ls_err *err)
{
    const size_t whole = ls_state_whole(s->vars, i).bytes;
    ls_status st = LS_OK;

    XXH3_64bits_reset(h);
    for (size_t at = 0, n; at < whole; at += n) {
        n = whole - at < CHUNK ? whole - at : CHUNK;
        LS_TRY(lsi_io_read(fd, s->e.path, s->at[i] + at, s->chunk, n, err));
        XXH3_64bits_update(h, s->chunk, n);
    }
    s->hash[i] = XXH3_64bits_digest(h);
out:
    return st;
}

/* Variables are dealt to ranks in turn. */
static ls_status hash_share(const storing *s, ls_err *err)
{
    XXH3_state_t *h = XXH3_createState();
    uint64_t ignored;
    int fd = -1, turn = 0;
    ls_status st = h != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "checkpoint: no memory for a hash");

    if (st == LS_OK) LS_TRY(lsi_io_open(s->e.path, &fd, &ignored, err));
    for (int i = 0; st == LS_OK && i < s->e.n; i++)
        if (s->at[i] != NOWHERE && turn++ % ls_comm_size(s->comm) == ls_comm_rank(s->comm))
            LS_TRY(hash_variable(s, fd, i, h, err));
out:
    if (fd >= 0) close(fd);
    XXH3_freeState(h);
    return st;
}

/* -- all ranks --------------------------------------------------------------------------------------------
 */

/* Whether all have come so far; a rank that has not says why, the others know that one has not. */
static ls_status all_well(const storing *s, ls_status mine, ls_err *err)
{
    double failed = mine != LS_OK;
    ls_status st;

    if (mine != LS_OK && ls_comm_rank(s->comm) != 0) ls_log(LS_LOG_WARN, "%s", err->text);
    st = ls_comm_max(s->comm, &failed, 1, WHAT, mine == LS_OK ? err : &(ls_err){0});

    if (mine != LS_OK || st != LS_OK) return mine != LS_OK ? mine : st;
    return failed > 0 ? ls_fail(err, LS_IO, "%s: another rank could not write or read its part", s->e.path)
                      : LS_OK;
}

static ls_status join_hashes(const storing *s, ls_err *err)
{
    const size_t n = (size_t)s->e.n, ranks = (size_t)ls_comm_size(s->comm);
    uint64_t *all = ls_alloc(LS_MEM_CKPT, (n + 1) * ranks * sizeof *all);
    ls_status st = all_well(s, all != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "checkpoint: no memory"), err);

    if (st == LS_OK) st = ls_comm_gather_all(s->comm, s->hash, n * sizeof *all, all, WHAT, err);
    for (size_t i = 0; st == LS_OK && i < n * ranks; i++) s->hash[i % n] |= all[i];
    ls_free(all);
    return st;
}

/* Failures of a disk end this and not the run: *status is what rank 0 makes of them. */
static ls_status store(storing *s, bool *done, ls_status *status, ls_err *trouble, ls_err *err)
{
    double blind;
    ls_status st = LS_OK;

    LS_TRY(ls_comm_broadcast(s->comm, &s->e, sizeof s->e, 0, WHAT, err));
    LS_TRY(ls_comm_broadcast(s->comm, s->at, (size_t)s->e.n * sizeof *s->at, 0, WHAT, err));
    blind = !sees_word(s);
    LS_TRY(ls_comm_max(s->comm, &blind, 1, WHAT, err));
    *done = blind == 0;
    if (!*done) goto out;
    *status = all_well(s, store_pieces(s, trouble), trouble);
    if (*status == LS_OK) *status = all_well(s, hash_share(s, trouble), trouble);
    if (*status == LS_OK) *status = join_hashes(s, trouble);
    if (*status == LS_LOST || *status == LS_DISAGREE) st = ls_fail(err, *status, "%s", trouble->text);
out:
    return st;
}

ls_status ls_ckpt_assist(const ls_state *vars, ls_err *err)
{
    ls_status status = LS_OK, st = LS_OK;
    ls_err trouble = {0};
    bool done;
    storing s;

    LS_TRY(open_storing(&s, vars, err));
    s.e.n = ls_state_count(vars);
    LS_TRY(store(&s, &done, &status, &trouble, err));
out:
    close_storing(&s);
    return st;
}

/* -- rank 0 -----------------------------------------------------------------------------------------------
 */

static ls_status leave_word(storing *s, ls_err *err)
{
    char path[LSI_PATH + 8];
    FILE *f;
    bool ok;

    snprintf(s->e.word, sizeof s->e.word, "%016llx %08x", (unsigned long long)ls_clock_ns(),
             (unsigned)getpid());
    token_path(s->e.path, path, sizeof path);
    f = fopen(path, "w");
    if (f == NULL) return refused(s, "leave a word beside it", err);
    ok = fwrite(s->e.word, 1, sizeof s->e.word, f) == sizeof s->e.word;
    return fclose(f) == 0 && ok ? LS_OK : refused(s, "leave a word beside it", err);
}

/* Variables in pieces of the table, in their places. */
static const ls_state *find_places(const lsi_table *t, size_t data_at, storing *s)
{
    const ls_state *vars = NULL;

    for (int i = 0; i < t->n; i++)
        if (t->items[i].vars != NULL) vars = t->items[i].vars;
    for (int i = 0; s != NULL && i < s->e.n; i++) s->at[i] = NOWHERE;
    for (int i = 0; s != NULL && i < t->n; i++)
        if (t->items[i].vars != NULL) s->at[t->items[i].index] = data_at + t->items[i].begin;
    return vars;
}

ls_status lsi_store_together(const char *path, lsi_table *t, size_t data_at, ls_err *err)
{
    const ls_state *vars = find_places(t, data_at, NULL);
    char word[LSI_PATH + 8];
    ls_status status = LS_OK, st = LS_OK;
    bool done = false;
    storing s = {0};

    if (vars == NULL || strlen(path) >= sizeof s.e.path) return LS_OK;
    LS_TRY(open_storing(&s, vars, err));
    s.e.n = ls_state_count(vars);
    find_places(t, data_at, &s);
    snprintf(s.e.path, sizeof s.e.path, "%s", path);
    LS_TRY(leave_word(&s, err));
    LS_TRY(ls_pieces_call(vars, err));
    LS_TRY(store(&s, &done, &status, err, err));
    st = status;
    for (int i = 0; done && st == LS_OK && i < t->n; i++) {
        t->items[i].stored = t->items[i].vars != NULL;
        if (t->items[i].stored) t->items[i].xxh3 = s.hash[t->items[i].index];
    }
out:
    token_path(path, word, sizeof word);
    unlink(word);
    close_storing(&s);
    return st;
}
