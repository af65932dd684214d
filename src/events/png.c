/* png.c: signature, header, one block of compressed rows, end. */
#include "events/png.h"

#include <string.h>
#include <zlib.h>

#include "base/alloc.h"

enum { SIGNATURE = 8, CHUNK = 12, HEADER = 13, LARGEST = 1 << 16 };

static void put32(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Length, type, content (already at `at` + 8) and checksum; returns where the next one begins. */
static uint8_t *finish_chunk(uint8_t *at, const char *type, size_t n)
{
    put32(at, n);
    memcpy(at + 4, type, 4);
    put32(at + 8 + n, crc32(0, at + 4, (uInt)(n + 4)));
    return at + CHUNK + n;
}

/* Each row with the number of its filter in front: 1, the difference to the pixel on the left, which suits
 * pictures better than none. */
static void filter_rows(const uint8_t *pixels, int64_t width, int64_t height, int channels, uint8_t *to)
{
    const int64_t row = width * channels;

    for (int64_t y = 0; y < height; y++, to += row + 1, pixels += row) {
        to[0] = 1;
        for (int64_t i = 0; i < row; i++)
            to[1 + i] = (uint8_t)(pixels[i] - (i >= channels ? pixels[i - channels] : 0));
    }
}

ls_status ls_png_encode(const uint8_t *pixels, int64_t width, int64_t height, int channels, uint8_t **out,
                        size_t *n, ls_err *err)
{
    static const uint8_t signature[SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    uint8_t *rows = NULL, *file = NULL, *at;
    uLongf packed;
    size_t raw;
    ls_status st = LS_OK;

    *out = NULL;
    if (width < 1 || height < 1 || width > LARGEST || height > LARGEST || (channels != 1 && channels != 3))
        return ls_fail(err, LS_INVALID, "PNG: %lld x %lld with %d channels cannot be written",
                       (long long)width, (long long)height, channels);
    raw = (size_t)height * ((size_t)width * (size_t)channels + 1);
    packed = compressBound(raw);
    rows = ls_alloc(LS_MEM_CLI, raw);
    file = ls_alloc(LS_MEM_CLI, SIGNATURE + 3 * CHUNK + HEADER + packed);
    if (rows == NULL || file == NULL) {
        st = ls_fail(err, LS_NOMEM, "PNG: no memory for %lld x %lld", (long long)width, (long long)height);
        goto out;
    }
    filter_rows(pixels, width, height, channels, rows);
    memcpy(file, signature, SIGNATURE);
    at = file + SIGNATURE;
    put32(at + 8, (uint64_t)width);
    put32(at + 12, (uint64_t)height);
    memcpy(at + 16, (const uint8_t[]){8, channels == 1 ? 0 : 2, 0, 0, 0}, 5);
    at = finish_chunk(at, "IHDR", HEADER);
    if (compress2(at + 8, &packed, rows, raw, 6) != Z_OK) {
        st = ls_fail(err, LS_NOMEM, "PNG: zlib has no memory");
        goto out;
    }
    at = finish_chunk(at, "IDAT", packed);
    at = finish_chunk(at, "IEND", 0);
    *n = (size_t)(at - file);
    *out = file;
    file = NULL;
out:
    ls_free(rows);
    ls_free(file);
    return st;
}
