/* save.c: writing a checkpoint under a temporary name and giving it its own when it is on the disk. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "ckpt/ckpt_internal.h"
#include "exec/tensor.h"

const char *ls_ckpt_name(int64_t step, char *buf)
{
    snprintf(buf, LS_CKPT_NAME, "step-%08lld", (long long)step);
    return buf;
}

int64_t ls_ckpt_step_of(const char *name)
{
    char again[LS_CKPT_NAME];
    int64_t step;

    if (strncmp(name, "step-", 5) != 0) return -1;
    step = strtoll(name + 5, NULL, 10);
    return strcmp(ls_ckpt_name(step, again), name) == 0 ? step : -1;
}

size_t ls_ckpt_bytes(const ls_state *vars)
{
    /* Both files describe each tensor in a few hundred bytes beside its name; blocks and the caller's state
     * are covered by the constant. */
    size_t bytes = (size_t)256 << 10;

    for (int i = 0; i < ls_state_count(vars); i++) {
        const ls_tensor t = ls_state_whole(vars, i);
        bytes += t.bytes + 2 * strlen(t.name) + 640;
    }
    return bytes;
}

/* -- the two files ----------------------------------------------------------------------------------------
 */

typedef struct writing {
    const lsi_io *io;
    int fd;
    const char *path;
    XXH3_state_t *hash; /* of the tensor that is being written */
} writing;

static ls_status write_chunk(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const writing *w = ctx;

    (void)offset;
    XXH3_64bits_update(w->hash, chunk, bytes);
    return lsi_io_write(w->io, w->fd, w->path, chunk, bytes, err);
}

/* The hash is that of the bytes on their way to the file: pieces of other ranks pass here once. */
static ls_status write_item(writing *w, lsi_item *x, ls_err *err)
{
    ls_status st;

    if (x->stored) return lsi_io_skip(w->fd, w->path, x->bytes, err);
    XXH3_64bits_reset(w->hash);
    if (x->vars != NULL)
        st = ls_pieces_visit(x->vars, x->index, write_chunk, w, err);
    else if (x->from != NULL)
        st = lsi_ckpt_visit(x->from, x->name, write_chunk, w, err);
    else
        st = x->tensor != NULL ? ls_tensor_visit(x->tensor, write_chunk, w, err)
                               : write_chunk(w, x->host, 0, x->bytes, err);
    x->xxh3 = XXH3_64bits_digest(w->hash);
    return st;
}

ls_status lsi_st_write(const lsi_io *io, const char *path, lsi_table *t, const ls_text *header, ls_err *err)
{
    writing w = {io, -1, path, XXH3_createState()};
    ls_status st = LS_OK;
    int fd = -1, e;

    if (w.hash == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", path);
    LS_TRY(lsi_io_create(io, path, &fd, err));
    LS_TRY(lsi_io_write(io, fd, path, header->data, header->length, err));
    w.fd = fd;
    LS_TRY(lsi_store_together(path, t, header->length, err));
    for (int i = 0; i < t->n; i++) LS_TRY(write_item(&w, &t->items[i], err));
    st = lsi_io_finish(io, fd, path, err);
    fd = -1;
out:
    e = errno;
    if (fd >= 0) close(fd);
    XXH3_freeState(w.hash);
    errno = e;
    return st;
}

static ls_status write_text(const lsi_io *io, const char *path, const ls_text *text, ls_err *err)
{
    /* A file of no tensors is its header. */
    lsi_table none = {0};

    return lsi_st_write(io, path, &none, text, err);
}

static ls_status write_files(const lsi_io *io, const char *dir, lsi_manifest *m, ls_err *err)
{
    ls_text header = {0}, manifest = {0};
    char path[LSI_PATH];
    ls_status st = LS_OK;
    int e;

    LS_TRY(lsi_st_header(&m->tensors, &header, err));
    m->header_bytes = header.length;
    m->header_xxh3 = XXH3_64bits(header.data, header.length);
    LS_TRY(lsi_io_mkdir(io, dir, err));
    LS_TRY(lsi_io_join(path, sizeof path, dir, LSI_CKPT_TENSORS, err));
    LS_TRY(lsi_st_write(io, path, &m->tensors, &header, err)); /* which finds the hashes */
    LS_TRY(lsi_manifest_text(m, &manifest, err));
    LS_TRY(lsi_io_join(path, sizeof path, dir, LSI_CKPT_MANIFEST, err));
    LS_TRY(write_text(io, path, &manifest, err));
    LS_TRY(lsi_io_sync_dir(io, dir, err));
out:
    e = errno;
    ls_text_release(&header);
    ls_text_release(&manifest);
    errno = e;
    return st;
}

ls_status lsi_ckpt_write(const lsi_io *io, const char *dir, lsi_table *t, uint64_t plan_hash,
                         const json_t *state, double metric, ls_err *err)
{
    lsi_manifest m = {.version = LS_VERSION, .plan_hash = plan_hash, .state = state, .metric = metric};
    char partial[LSI_PATH], parent[LSI_PATH], whole[LSI_PATH];
    size_t length = strlen(dir);
    ls_status st = LS_OK;
    int e;

    while (length > 1 && dir[length - 1] == '/') length--; /* "a/" would put the partial one inside */
    if (length + sizeof LSI_CKPT_PARTIAL + sizeof LSI_CKPT_TENSORS > sizeof partial)
        return ls_fail(err, LS_INVALID, "%.60s...: the path is too long", dir);
    snprintf(whole, sizeof whole, "%.*s", (int)length, dir);
    snprintf(partial, sizeof partial, "%.*s%s", (int)length, dir, LSI_CKPT_PARTIAL);
    lsi_io_remove(partial); /* left by a process that was killed */
    LS_TRY(lsi_st_arrange(t, err));
    m.tensors = *t;
    LS_TRY(write_files(io, partial, &m, err));
    /* The files and the folder that lists them are on the disk; then the name; then the folder that holds the
     * name.  A loss of power leaves the old checkpoint or the new one, never a name without its bytes. */
    LS_TRY(lsi_io_replace(io, partial, whole, err));
    LS_TRY(lsi_io_sync_dir(io, lsi_io_parent(whole, parent, sizeof parent), err));
out:
    e = errno;
    if (st != LS_OK) lsi_io_remove(partial);
    errno = e;
    return st;
}

/* -- for callers ------------------------------------------------------------------------------------------
 */

ls_status ls_ckpt_save(const char *dir, const ls_tensor *const *tensors, int n, uint64_t plan_hash,
                       const json_t *state, ls_err *err)
{
    lsi_table t = {0};
    ls_status st = LS_OK;

    LS_TRY(lsi_table_of_tensors(&t, tensors, n, err));
    LS_TRY(lsi_ckpt_write(NULL, dir, &t, plan_hash, state, (double)NAN, err));
out:
    lsi_table_release(&t);
    return st;
}

ls_status ls_ckpt_save_state(const char *dir, const ls_state *vars, uint64_t plan_hash, const json_t *state,
                             ls_err *err)
{
    lsi_table t = {0};
    ls_status st = LS_OK;

    LS_TRY(lsi_table_of_state(&t, vars, err));
    LS_TRY(lsi_ckpt_write(NULL, dir, &t, plan_hash, state, (double)NAN, err));
out:
    lsi_table_release(&t);
    return st;
}
