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
#include "ckpt/together_internal.h"
#include "exec/peers.h"

#define WHAT  "writing pieces of variables"
#define CHUNK LS_TENSOR_CHUNK

static void token_path(const char *path, char *to, size_t size)
{
    snprintf(to, size, "%.*s.word", (int)(size - 8), path);
}

ls_status lsi_together_open(lsi_together *s, const ls_state *vars, ls_err *err)
{
    const size_t n = (size_t)ls_state_count(vars) + 1;

    *s = (lsi_together){.vars = vars, .comm = ls_peers_comm(ls_state_peers(vars))};
    s->at = ls_alloc(LS_MEM_CKPT, n * sizeof *s->at);
    s->hash = ls_alloc(LS_MEM_CKPT, n * sizeof *s->hash);
    s->chunk = ls_alloc(LS_MEM_CKPT, CHUNK);
    if (s->at == NULL || s->hash == NULL || s->chunk == NULL)
        return ls_fail(err, LS_NOMEM, "checkpoint: no memory");
    return LS_OK;
}

void lsi_together_close(lsi_together *s)
{
    ls_free(s->at);
    ls_free(s->hash);
    ls_free(s->chunk);
}

/* -- each rank's part -------------------------------------------------------------------------------------
 */

/* Whether this rank sees what rank 0 has left beside the file. */
static bool sees_word(const lsi_together *s)
{
    char path[LSI_PATH + 8], word[LSI_WORD] = "";
    FILE *f;
    bool same;

    token_path(s->e.path, path, sizeof path);
    f = fopen(path, "r");
    if (f == NULL) return false;
    same = fread(word, 1, sizeof word, f) == sizeof word && memcmp(word, s->e.word, sizeof word) == 0;
    fclose(f);
    return same;
}

static ls_status refused(const lsi_together *s, const char *call, ls_err *err)
{
    return ls_fail(err, LS_IO, "%s: rank %d cannot %s: %s", s->e.path, ls_comm_rank(s->comm), call,
                   strerror(errno));
}

static ls_status write_all(const lsi_together *s, int fd, const void *from, size_t bytes, uint64_t at,
                           ls_err *err)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(fd, (const char *)from + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused(s, "write", err);
        done += (size_t)n;
    }
    return LS_OK;
}

static ls_status store_piece(const lsi_together *s, int fd, int i, ls_err *err)
{
    const ls_tensor *piece = ls_state_at(s->vars, i);
    const ls_cut_of cut = ls_state_cut(s->vars, i);
    size_t first, bytes;
    ls_status st = LS_OK;

    ls_state_piece(s->vars, i, &first, &bytes);
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

static ls_status store_pieces(const lsi_together *s, ls_err *err)
{
    const int fd = open(s->e.path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    ls_status st = LS_OK;

    if (fd < 0) return refused(s, "open", err);
    for (int i = 0; i < s->e.n; i++)
        if (s->at[i] != LSI_NOWHERE) LS_TRY(store_piece(s, fd, i, err));
    if (fsync(fd) != 0) st = refused(s, "sync", err);
out:
    if (close(fd) != 0 && st == LS_OK) st = refused(s, "close", err);
    return st;
}

ls_status lsi_together_hash(const lsi_together *s, int fd, int i, XXH3_state_t *h, uint64_t *hash,
                            ls_err *err)
{
    const size_t whole = ls_state_whole(s->vars, i).bytes;
    ls_status st = LS_OK;

    XXH3_64bits_reset(h);
    for (size_t at = 0, n; at < whole; at += n) {
        n = whole - at < CHUNK ? whole - at : CHUNK;
        LS_TRY(lsi_io_read(fd, s->e.path, s->at[i] + at, s->chunk, n, err));
        XXH3_64bits_update(h, s->chunk, n);
    }
    *hash = XXH3_64bits_digest(h);
out:
    return st;
}

/* Variables are dealt to ranks in turn. */
static ls_status hash_share(const lsi_together *s, ls_err *err)
{
    XXH3_state_t *h = XXH3_createState();
    uint64_t ignored;
    int fd = -1, turn = 0;
    ls_status st = h != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "checkpoint: no memory for a hash");

    if (st == LS_OK) LS_TRY(lsi_io_open(s->e.path, &fd, &ignored, err));
    for (int i = 0; st == LS_OK && i < s->e.n; i++)
        if (s->at[i] != LSI_NOWHERE && turn++ % ls_comm_size(s->comm) == ls_comm_rank(s->comm))
            LS_TRY(lsi_together_hash(s, fd, i, h, &s->hash[i], err));
out:
    if (fd >= 0) close(fd);
    XXH3_freeState(h);
    return st;
}

/* -- all ranks --------------------------------------------------------------------------------------------
 */

ls_status lsi_together_all_well(const lsi_together *s, ls_status mine, ls_err *err)
{
    double failed = mine != LS_OK;
    ls_status st;

    if (mine != LS_OK && ls_comm_rank(s->comm) != 0) ls_log(LS_LOG_WARN, "%s", err->text);
    st = ls_comm_max(s->comm, &failed, 1, WHAT, mine == LS_OK ? err : &(ls_err){0});

    if (mine != LS_OK || st != LS_OK) return mine != LS_OK ? mine : st;
    return failed > 0 ? ls_fail(err, LS_IO, "%s: another rank could not write or read its part", s->e.path)
                      : LS_OK;
}

static ls_status join_hashes(const lsi_together *s, ls_err *err)
{
    const size_t n = (size_t)s->e.n, ranks = (size_t)ls_comm_size(s->comm);
    uint64_t *all = ls_alloc(LS_MEM_CKPT, (n + 1) * ranks * sizeof *all);
    ls_status st =
        lsi_together_all_well(s, all != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "checkpoint: no memory"), err);

    if (st == LS_OK) st = ls_comm_gather_all(s->comm, s->hash, n * sizeof *all, all, WHAT, err);
    for (size_t i = 0; st == LS_OK && i < n * ranks; i++) s->hash[i % n] |= all[i];
    ls_free(all);
    return st;
}

/* Failures of a disk end this and not the run: *status is what rank 0 makes of them. */
static ls_status store(lsi_together *s, bool *done, ls_status *status, ls_err *trouble, ls_err *err)
{
    double blind = !sees_word(s);
    ls_status st = LS_OK;

    LS_TRY(ls_comm_max(s->comm, &blind, 1, WHAT, err));
    *done = blind == 0;
    if (!*done) goto out;
    *status = lsi_together_all_well(s, store_pieces(s, trouble), trouble);
    if (*status == LS_OK) *status = lsi_together_all_well(s, hash_share(s, trouble), trouble);
    if (*status == LS_OK) *status = join_hashes(s, trouble);
    if (*status == LS_LOST || *status == LS_DISAGREE) st = ls_fail(err, *status, "%s", trouble->text);
out:
    return st;
}

/* What rank 0 wants, and where variables begin. */
static ls_status share_errand(lsi_together *s, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_comm_broadcast(s->comm, &s->e, sizeof s->e, 0, WHAT, err));
    LS_TRY(ls_comm_broadcast(s->comm, s->at, (size_t)s->e.n * sizeof *s->at, 0, WHAT, err));
out:
    return st;
}

ls_status ls_ckpt_assist(const ls_state *vars, ls_err *err)
{
    ls_status status = LS_OK, st = LS_OK;
    ls_err trouble = {0};
    bool done;
    int bad;
    lsi_together s;

    LS_TRY(lsi_together_open(&s, vars, err));
    s.e.n = ls_state_count(vars);
    LS_TRY(share_errand(&s, err));
    LS_TRY(s.e.loads != 0 ? lsi_together_load(&s, &done, &bad, &status, &trouble, err)
                          : store(&s, &done, &status, &trouble, err));
out:
    lsi_together_close(&s);
    return st;
}

/* -- rank 0 -----------------------------------------------------------------------------------------------
 */

static ls_status leave_word(lsi_together *s, ls_err *err)
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
static const ls_state *find_places(const lsi_table *t, size_t data_at, lsi_together *s)
{
    const ls_state *vars = NULL;

    for (int i = 0; i < t->n; i++)
        if (t->items[i].vars != NULL) vars = t->items[i].vars;
    for (int i = 0; s != NULL && i < s->e.n; i++) s->at[i] = LSI_NOWHERE;
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
    lsi_together s = {0};

    if (vars == NULL || strlen(path) >= sizeof s.e.path) return LS_OK;
    LS_TRY(lsi_together_open(&s, vars, err));
    s.e.n = ls_state_count(vars);
    find_places(t, data_at, &s);
    snprintf(s.e.path, sizeof s.e.path, "%s", path);
    LS_TRY(leave_word(&s, err));
    LS_TRY(ls_pieces_call(vars, err));
    LS_TRY(share_errand(&s, err));
    LS_TRY(store(&s, &done, &status, err, err));
    st = status;
    for (int i = 0; done && st == LS_OK && i < t->n; i++) {
        t->items[i].stored = t->items[i].vars != NULL;
        if (t->items[i].stored) t->items[i].xxh3 = s.hash[t->items[i].index];
    }
out:
    token_path(path, word, sizeof word);
    unlink(word);
    lsi_together_close(&s);
    return st;
}

ls_status lsi_load_together(const lsi_source *from, const ls_state *vars, bool *done, int *bad, ls_err *err)
{
    ls_status status = LS_OK, st = LS_OK;
    lsi_together s = {0};

    *done = false;
    *bad = -1;
    if (strlen(from->path) >= sizeof s.e.path) return LS_OK;
    LS_TRY(lsi_together_open(&s, vars, err));
    s.e = (lsi_errand){.file_bytes = from->file_bytes,
                       .header_bytes = from->header_bytes,
                       .header_xxh3 = from->header_xxh3,
                       .n = ls_state_count(vars),
                       .loads = 1};
    snprintf(s.e.path, sizeof s.e.path, "%s", from->path);
    for (int i = 0; i < s.e.n; i++)
        if (!from->place(from->ctx, i, &s.at[i], &s.hash[i])) s.at[i] = LSI_NOWHERE;
    LS_TRY(ls_pieces_call(vars, err));
    LS_TRY(share_errand(&s, err));
    LS_TRY(lsi_together_load(&s, done, bad, &status, err, err));
    st = status;
out:
    lsi_together_close(&s);
    return st;
}
