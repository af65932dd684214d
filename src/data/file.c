/* file.c: whole files in memory: mapped, or unpacked when they are gzip files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data_internal.h"

/* No deflate stream unpacks to more than 1032 times its size: a damaged length cannot ask for more. */
#define MAX_RATIO ((size_t)1032)

/* -- names ------------------------------------------------------------------------------------------------
 */

static void join(char *buf, size_t size, const char *folder, const char *name, const char *suffix)
{
    if (!folder || !folder[0] || name[0] == '/')
        snprintf(buf, size, "%s%s", name, suffix);
    else
        snprintf(buf, size, "%s/%s%s", folder, name, suffix);
}

/* The path of the file, or of its compressed form where only that exists. */
static bool locate(char *buf, size_t size, const char *folder, const char *name)
{
    join(buf, size, folder, name, ".gz");
    if (access(buf, F_OK) == 0) {
        char plain[4096];
        join(plain, sizeof plain, folder, name, "");
        if (access(plain, F_OK) != 0) return true;
    }
    join(buf, size, folder, name, "");
    return access(buf, F_OK) == 0;
}

bool lsi_file_exists(const char *folder, const char *name)
{
    char path[4096];
    return locate(path, sizeof path, folder, name);
}

/* -- gzip -------------------------------------------------------------------------------------------------
 */

static bool is_gzip(const uint8_t *p, size_t size)
{
    return size >= 18 && p[0] == 0x1f && p[1] == 0x8b;
}

/* Where the first guess of the length was wrong, which several streams in one file make it. */
static ls_status grow(uint8_t **out, size_t *room, size_t limit, const char *path, ls_err *err)
{
    size_t wanted = *room < limit / 2 ? *room * 2 : limit;
    if (wanted <= *room)
        return ls_fail(err, LS_DATA, "%s: unpacks to more than gzip allows; the file is damaged", path);
    uint8_t *larger = ls_realloc(LS_MEM_DATA, *out, wanted);
    if (!larger) return ls_fail(err, LS_NOMEM, "%s: no memory for %zu unpacked bytes", path, wanted);
    *out = larger;
    *room = wanted;
    return LS_OK;
}

static ls_status inflate_all(z_stream *z, const uint8_t *in, size_t n_in, uint8_t **out, size_t *room,
                             size_t *used, const char *path, ls_err *err)
{
    ls_status st = LS_OK;
    size_t at = 0, limit = n_in * MAX_RATIO + 64;

    for (;;) {
        size_t chunk_in = n_in - at, chunk_out = *room - *used;
        z->next_in = (Bytef *)(uintptr_t)(in + at); /* zlib does not write there, but does not say so */
        z->avail_in = chunk_in > 1u << 30 ? 1u << 30 : (uInt)chunk_in;
        z->next_out = *out + *used;
        z->avail_out = chunk_out > 1u << 30 ? 1u << 30 : (uInt)chunk_out;
        int rc = inflate(z, Z_NO_FLUSH);
        at = (size_t)(z->next_in - in);
        *used = (size_t)(z->next_out - *out);
        if (rc == Z_STREAM_END) {
            /* Several streams in a row are one file. */
            if (!is_gzip(in + at, n_in - at)) return LS_OK;
            rc = inflateReset(z);
        }
        if (rc == Z_MEM_ERROR) return ls_fail(err, LS_NOMEM, "%s: no memory to unpack", path);
        if (rc != Z_OK && rc != Z_BUF_ERROR)
            return ls_fail(err, LS_DATA, "%s: gzip data damaged near byte %zu (%s); fetch the file again",
                           path, at, z->msg ? z->msg : "bad stream");
        if (*used < *room && at == n_in)
            return ls_fail(err, LS_DATA, "%s: the gzip file ends early, after %zu bytes; fetch it again",
                           path, n_in);
        if (*used == *room) LS_TRY(grow(out, room, limit, path, err));
    }
out:
    return st;
}

static ls_status unpack(lsi_file *f, const uint8_t *in, size_t n_in, ls_err *err)
{
    ls_status st = LS_OK;
    z_stream z = {0};
    uint8_t *out = NULL;
    const uint8_t *end = in + n_in - 4; /* the length modulo 2^32 */
    size_t room = (size_t)end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 | (size_t)end[3] << 24,
           used = 0;

    if (room > n_in * MAX_RATIO) room = n_in * MAX_RATIO;
    room += 1; /* inflate needs a byte to spare to see the end */
    if (inflateInit2(&z, 15 + 16) != Z_OK) return ls_fail(err, LS_NOMEM, "%s: no memory to unpack", f->path);
    out = ls_alloc(LS_MEM_DATA, room);
    if (!out) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory for %zu unpacked bytes", f->path, room);
        goto out;
    }
    LS_TRY(inflate_all(&z, in, n_in, &out, &room, &used, f->path, err));
    f->data = out;
    f->size = used;
    f->mapped = false;
    out = NULL;
out:
    ls_free(out);
    inflateEnd(&z);
    return st;
}

/* -- opening ----------------------------------------------------------------------------------------------
 */

static ls_status map(lsi_file *f, int fd, ls_err *err)
{
    struct stat info;
    void *p;

    if (fstat(fd, &info) != 0) return ls_fail(err, LS_DATA, "%s: %s", f->path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return ls_fail(err, LS_DATA, "%s: is no plain file", f->path);
    if (info.st_size == 0) return ls_fail(err, LS_DATA, "%s: is empty; fetch it again", f->path);
    p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return ls_fail(err, LS_DATA, "%s: cannot be read: %s", f->path, strerror(errno));
    f->data = p;
    f->size = (size_t)info.st_size;
    f->mapped = true;
    return LS_OK;
}

ls_status lsi_file_open(lsi_file *f, ls_arena *arena, const char *folder, const char *name, ls_err *err)
{
    ls_status st = LS_OK;
    char path[4096];
    lsi_file packed;
    int fd = -1;

    *f = (lsi_file){0};
    locate(path, sizeof path, folder, name);
    f->path = ls_arena_strdup(arena, path);
    if (!f->path) return ls_fail(err, LS_NOMEM, "no memory for the name of a file");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return ls_fail(err, LS_DATA, "%s: " LSI_MISSING " (nor with .gz); check the path of the data", path);
    if (fd < 0)
        return ls_fail(err, LS_DATA, "%s: cannot be opened: %s; check the file's permissions", path,
                       strerror(errno));
    LS_TRY(map(f, fd, err));
    if (is_gzip(f->data, f->size)) {
        packed = *f;
        f->data = NULL;
        st = unpack(f, packed.data, packed.size, err);
        lsi_file_close(&packed);
    }
out:
    close(fd);
    return st;
}

void lsi_file_close(lsi_file *f)
{
    if (f->mapped && f->data) munmap((void *)(uintptr_t)f->data, f->size);
    if (!f->mapped) ls_free((void *)(uintptr_t)f->data);
    f->data = NULL;
    f->size = 0;
}
