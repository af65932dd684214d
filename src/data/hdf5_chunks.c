/* hdf5_chunks.c: chunks of HDF5 arrays: undoing their filters, and a few unpacked ones kept for the next
 * sample.
 *
 * A chunk may hold many samples; in stored order the next sample is mostly in the chunk at hand.  The cache
 * is the only thing that readers share.  Its lock is not held while a chunk is read and unpacked, so that
 * workers do that side by side. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "hdf5_internal.h"

/* -- filters ----------------------------------------------------------------------------------------------
 */

int64_t lsi_h5_chunk_bytes(const lsi_h5_layout *l)
{
    int64_t bytes = (int64_t)lsi_h5_element_size(l->element);

    for (int i = 0; i < l->shape.rank; i++) bytes *= l->chunk[i];
    return bytes;
}

size_t lsi_h5_chunk_room(const lsi_h5_layout *l)
{
    /* Checksums add 4 bytes each; what deflate cannot pack grows by less than a thousandth. */
    size_t bytes = (size_t)lsi_h5_chunk_bytes(l);
    return bytes + bytes / 512 + 4 * LSI_H5_MAX_FILTERS + 1024;
}

uint32_t lsi_h5_fletcher32(const uint8_t *data, size_t n)
{
    /* Both sums are of 16-bit words, highest byte first, in one's complement; a last odd byte is the high
     * one.  So many words fit 32 bits before the carries must be added. */
    enum { WORDS = 360 };
    uint32_t a = 0, b = 0;

    for (size_t i = 0; i < n;) {
        const size_t end = n - i > 2 * WORDS ? i + 2 * WORDS : n;
        for (; i + 1 < end; i += 2) {
            a += (uint32_t)data[i] << 8 | data[i + 1];
            b += a;
        }
        if (i < end) {
            a += (uint32_t)data[i++] << 8;
            b += a;
        }
        a = (a & 0xffff) + (a >> 16);
        b = (b & 0xffff) + (b >> 16);
    }
    a = (a & 0xffff) + (a >> 16);
    b = (b & 0xffff) + (b >> 16);
    return b << 16 | a;
}

static ls_status undo_fletcher32(const uint8_t *data, size_t *n, ls_err *err)
{
    if (*n < 4) return ls_fail(err, LS_DATA, "too short for its checksum");
    *n -= 4;
    const uint8_t *p = data + *n;
    uint32_t want = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24,
             have = lsi_h5_fletcher32(data, *n);
    if (want != have)
        return ls_fail(err, LS_DATA, "checksum %08" PRIx32 " does not match the stored %08" PRIx32, have,
                       want);
    return LS_OK;
}

static ls_status undo_deflate(const uint8_t *in, uint8_t *out, size_t room, size_t *n, ls_err *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in, /* zlib does not write there, but does not say so */
                  .avail_in = (uInt)*n,
                  .next_out = out,
                  .avail_out = (uInt)room};

    if (room > UINT32_MAX || inflateInit(&z) != Z_OK) return ls_fail(err, LS_NOMEM, "no memory to unpack");
    int rc = inflate(&z, Z_FINISH);
    *n = room - z.avail_out;
    inflateEnd(&z);
    return rc == Z_STREAM_END ? LS_OK : ls_fail(err, LS_DATA, "its compressed data is damaged");
}

/* Bytes of equal rank stand together; what is left over at the end stays as it is. */
static void undo_shuffle(const uint8_t *in, uint8_t *out, size_t n, size_t size)
{
    size_t elements = n / size;

    for (size_t b = 0; b < size; b++)
        for (size_t i = 0; i < elements; i++) out[i * size + b] = in[b * elements + i];
    memcpy(out + elements * size, in + elements * size, n - elements * size);
}

ls_status lsi_h5_unpack(const lsi_h5_layout *l, const lsi_h5_chunk *c, uint8_t *in, uint8_t *spare,
                        uint8_t **out, ls_err *err)
{
    ls_status st = LS_OK;
    size_t n = c->bytes, size = lsi_h5_element_size(l->element);
    uint8_t *from = in, *to = spare;

    for (int i = l->n_filters - 1; i >= 0; i--) {
        if (c->skipped >> i & 1) continue;
        if (l->filter[i] == H5_FLETCHER32) {
            LS_TRY(undo_fletcher32(from, &n, err));
            continue; /* in place */
        }
        if (l->filter[i] == H5_SHUFFLE && size == 1) continue;
        if (l->filter[i] == H5_SHUFFLE)
            undo_shuffle(from, to, n, size);
        else
            LS_TRY(undo_deflate(from, to, lsi_h5_chunk_room(l), &n, err));
        uint8_t *swap = from;
        from = to;
        to = swap;
    }
    *out = from;
    if ((int64_t)n != lsi_h5_chunk_bytes(l))
        return ls_fail(err, LS_DATA, "unpacks to %zu bytes and not to %" PRId64, n, lsi_h5_chunk_bytes(l));
out:
    return st;
}

/* -- cache ------------------------------------------------------------------------------------------------
 */

enum { MAX_SLOTS = 16, MIN_SLOTS = 2 };
#define CACHE_BYTES ((int64_t)64 << 20) /* kept when no reader needs them; more readers may hold more */

typedef enum slot_state { EMPTY, LOADING, READY } slot_state;

typedef struct slot {
    uint8_t *buffer, *spare, *data; /* data is one of the other two */
    int64_t chunk;
    slot_state state;
    int users;     /* readers that hold it */
    uint64_t last; /* when it was given back: the oldest is taken first */
} slot;

struct lsi_h5_cache {
    const lsi_h5_array *array;
    int n;
    pthread_mutex_t lock; /* guards everything below, except the bytes of slots that are LOADING or in use */
    pthread_cond_t changed;
    uint64_t clock;
    slot slots[MAX_SLOTS];
};

ls_status lsi_h5_cache_create(lsi_h5_cache **out, const lsi_h5_array *a, ls_err *err)
{
    lsi_h5_cache *c = ls_alloc(LS_MEM_DATA, sizeof *c);
    int64_t fits = CACHE_BYTES / (2 * (int64_t)lsi_h5_chunk_room(&a->layout));

    *out = c;
    if (!c) return ls_fail(err, LS_NOMEM, "%s: no memory for its chunks", a->file->path);
    c->array = a;
    c->n = fits < MIN_SLOTS ? MIN_SLOTS : fits > MAX_SLOTS ? MAX_SLOTS : (int)fits;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    return LS_OK;
}

void lsi_h5_cache_destroy(lsi_h5_cache *c)
{
    if (!c) return;
    for (int i = 0; i < c->n; i++) {
        ls_free(c->slots[i].buffer);
        ls_free(c->slots[i].spare);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    ls_free(c);
}

static ls_status load(const lsi_h5_array *a, slot *s, int64_t k, ls_err *err)
{
    const lsi_h5_chunk *chunk = &a->chunks[k];
    size_t room = lsi_h5_chunk_room(&a->layout);
    ls_err inner = {0};

    if (!s->buffer) s->buffer = ls_alloc(LS_MEM_DATA, room);
    if (!s->spare) s->spare = ls_alloc(LS_MEM_DATA, room);
    if (!s->buffer || !s->spare)
        return ls_fail(err, LS_NOMEM, "%s: no memory for a chunk of %zu bytes", a->file->path, room);
    for (size_t done = 0; done < chunk->bytes;) {
        ssize_t n =
            pread(a->file->fd, s->buffer + done, chunk->bytes - done, (off_t)chunk->offset + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return ls_fail(err, LS_DATA, "%s: cannot be read at byte %" PRId64 ": %s", a->file->path,
                           chunk->offset + (int64_t)done, n < 0 ? strerror(errno) : "it has become shorter");
        done += (size_t)n;
    }
    ls_status st = lsi_h5_unpack(&a->layout, chunk, s->buffer, s->spare, &s->data, &inner);
    if (st == LS_OK) return LS_OK;
    return ls_fail(err, st, "%s: \"%s\": chunk %" PRId64 " (byte %" PRId64 "): %s; fetch the file again",
                   a->file->path, a->name, k, chunk->offset, inner.text);
}

/* The slot that holds chunk `k` or is about to, or -1. */
static int find(const lsi_h5_cache *c, int64_t k)
{
    for (int i = 0; i < c->n; i++)
        if (c->slots[i].state != EMPTY && c->slots[i].chunk == k) return i;
    return -1;
}

/* A slot nobody uses, the longest unused first, or -1. */
static int free_slot(const lsi_h5_cache *c)
{
    int best = -1;

    for (int i = 0; i < c->n; i++) {
        const slot *s = &c->slots[i];
        if (s->users == 0 && (best < 0 || s->last < c->slots[best].last)) best = i;
    }
    return best;
}

ls_status lsi_h5_cache_take(lsi_h5_cache *c, int64_t k, const uint8_t **out, int *at, ls_err *err)
{
    ls_status st = LS_OK;
    int i;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        i = find(c, k);
        if (i >= 0 && c->slots[i].state == READY) {
            c->slots[i].users++;
            break;
        }
        if (i < 0)
            i = free_slot(c);
        else
            i = -1;
        if (i >= 0) {
            slot *s = &c->slots[i];
            s->state = LOADING;
            s->chunk = k;
            s->users = 1;
            pthread_mutex_unlock(&c->lock);
            st = load(c->array, s, k, err);
            pthread_mutex_lock(&c->lock);
            s->state = st == LS_OK ? READY : EMPTY;
            s->users = st == LS_OK ? 1 : 0;
            pthread_cond_broadcast(&c->changed);
            break;
        }
        pthread_cond_wait(&c->changed, &c->lock);
    }
    if (st == LS_OK) {
        *out = c->slots[i].data;
        *at = i;
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

void lsi_h5_cache_give(lsi_h5_cache *c, int at)
{
    pthread_mutex_lock(&c->lock);
    c->slots[at].users--;
    c->slots[at].last = ++c->clock;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}
