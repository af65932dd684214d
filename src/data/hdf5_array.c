/* hdf5_array.c: arrays in HDF5 files, read by sample: in one piece from the file, or put together from
 * chunks. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5_internal.h"

size_t lsi_h5_element_size(lsi_h5_element e)
{
    static const size_t sizes[H5_ELEMENTS] = {
        [H5_U1] = 1, [H5_U2] = 2, [H5_U4] = 4, [H5_U8] = 8, [H5_I1] = 1, [H5_I2] = 2,
        [H5_I4] = 4, [H5_I8] = 8, [H5_F2] = 2, [H5_F4] = 4, [H5_F8] = 8};
    return sizes[e];
}

int64_t lsi_h5_sample_elements(const lsi_h5_layout *l)
{
    return ls_shape_count(ls_shape_make(l->shape.rank - 1, l->shape.dim + 1));
}

/* -- files ------------------------------------------------------------------------------------------------
 */

ls_status lsi_h5_open(lsi_h5_file *f, ls_arena *arena, const char *folder, const char *name, ls_err *err)
{
    struct stat info;
    bool alone = !folder || !folder[0] || name[0] == '/';

    *f = (lsi_h5_file){.fd = -1};
    /* Without a name the "folder" is the file. */
    f->path = alone    ? ls_arena_strdup(arena, name)
              : !*name ? ls_arena_strdup(arena, folder)
                       : ls_arena_printf(arena, "%s/%s", folder, name);
    if (!f->path) return ls_fail(err, LS_NOMEM, "no memory for the name of a file");
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 && errno == ENOENT)
        return ls_fail(err, LS_DATA, "%s: " LSI_MISSING "; check the path of the data", f->path);
    if (f->fd < 0)
        return ls_fail(err, LS_DATA, "%s: cannot be opened: %s; check the file's permissions", f->path,
                       strerror(errno));
    if (fstat(f->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return ls_fail(err, LS_DATA, "%s: is no plain file", f->path);
    if (info.st_size == 0) return ls_fail(err, LS_DATA, "%s: is empty; fetch it again", f->path);
    f->size = info.st_size;
    return LS_OK;
}

void lsi_h5_close(lsi_h5_file *f)
{
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

/* -- arrays -----------------------------------------------------------------------------------------------
 */

ls_status lsi_h5_find(lsi_h5_array *a, const lsi_h5_file *f, ls_arena *arena, const char *name, bool *found,
                      ls_err *err)
{
    ls_status st = LS_OK;

    *a = (lsi_h5_array){.file = f, .name = ls_arena_strdup(arena, name)};
    if (!a->name) return ls_fail(err, LS_NOMEM, "no memory for the name of an array");
    LS_TRY(lsi_h5_map(f, name, &a->layout, &a->chunks, found, err));
    if (a->layout.chunked) LS_TRY(lsi_h5_cache_create(&a->cache, a, err));
out:
    return st;
}

void lsi_h5_release(lsi_h5_array *a)
{
    lsi_h5_cache_destroy(a->cache);
    ls_free(a->chunks);
    a->cache = NULL;
    a->chunks = NULL;
}

static ls_status read_piece(const lsi_h5_array *a, int64_t index, uint8_t *out, ls_err *err)
{
    size_t bytes = (size_t)lsi_h5_sample_elements(&a->layout) * lsi_h5_element_size(a->layout.element),
           done = 0;
    off_t at = (off_t)(a->layout.offset + index * (int64_t)bytes);

    while (done < bytes) {
        ssize_t n = pread(a->file->fd, out + done, bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return ls_fail(err, LS_DATA, "%s: sample %" PRId64 " cannot be read at byte %" PRId64 ": %s",
                           a->file->path, index, (int64_t)at + (int64_t)done,
                           n < 0 ? strerror(errno) : "the file has become shorter");
        done += (size_t)n;
    }
    return LS_OK;
}

/* Copies what chunk and sample have in common.  `first` is the chunk's first element in every dimension. */
static void copy_common(const lsi_h5_layout *l, const int64_t *first, int64_t index, const uint8_t *chunk,
                        uint8_t *out)
{
    const int rank = l->shape.rank;
    const size_t size = lsi_h5_element_size(l->element);
    int64_t n[LS_MAX_RANK], at[LS_MAX_RANK] = {0}; /* how far they overlap; the row in work */

    for (int i = 0; i < rank; i++)
        n[i] = first[i] + l->chunk[i] > l->shape.dim[i] ? l->shape.dim[i] - first[i] : l->chunk[i];
    at[0] = index - first[0];
    for (;;) {
        int64_t from = 0, to = 0;
        for (int i = 0; i < rank; i++) from = from * l->chunk[i] + at[i];
        for (int i = 1; i < rank; i++) to = to * l->shape.dim[i] + first[i] + at[i];
        int64_t row = rank > 1 ? n[rank - 1] : 1;
        memcpy(out + (size_t)to * size, chunk + (size_t)from * size, (size_t)row * size);
        int i = rank - 2;
        while (i >= 1 && ++at[i] == n[i]) at[i--] = 0;
        if (i < 1) return;
    }
}

static ls_status read_chunks(const lsi_h5_array *a, int64_t index, uint8_t *out, ls_err *err)
{
    ls_status st = LS_OK;
    const lsi_h5_layout *l = &a->layout;
    int64_t across[LS_MAX_RANK], per_layer = 1;

    for (int i = 0; i < l->shape.rank; i++) {
        across[i] = (l->shape.dim[i] + l->chunk[i] - 1) / l->chunk[i];
        if (i > 0) per_layer *= across[i];
    }
    int64_t layer = index / l->chunk[0];
    for (int64_t k = 0; k < per_layer; k++) {
        int64_t first[LS_MAX_RANK], rest = k;
        const uint8_t *bytes;
        int slot;
        for (int i = l->shape.rank - 1; i >= 1; i--) {
            first[i] = rest % across[i] * l->chunk[i];
            rest /= across[i];
        }
        first[0] = layer * l->chunk[0];
        LS_TRY(lsi_h5_cache_take(a->cache, layer * per_layer + k, &bytes, &slot, err));
        copy_common(l, first, index, bytes, out);
        lsi_h5_cache_give(a->cache, slot);
    }
out:
    return st;
}

ls_status lsi_h5_read(const lsi_h5_array *a, int64_t index, uint8_t *out, ls_err *err)
{
    LS_BUG_IF(index < 0 || index >= a->layout.shape.dim[0]);
    return a->layout.chunked ? read_chunks(a, index, out, err) : read_piece(a, index, out, err);
}
