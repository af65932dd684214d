/* png.c: PNG files, by libpng.
 *
 * As with JPEG, the library leaves a failed call by longjmp, and everything it could jump over lives in a
 * `job`.  Its memory comes from base/alloc.h, and it is told to refuse chunks that would unpack to much. */
#include "data/png.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "base/grow.h"
#include "image_internal.h"

enum {
    UNPACKED_PER_BYTE = 1032, /* deflate gives no more */
    MAX_CHUNK = 8 << 20       /* bytes of one unpacked text or profile, which nobody here looks at */
};

typedef struct job {
    png_structp png;
    png_infop info;
    jmp_buf escape;
    const char *path;
    const uint8_t *bytes;
    size_t size, at; /* of `bytes`; of what is written into memory, `at` alone */
    uint8_t *out;
    size_t room;
    bool writing, nomem;
    ls_status status;
    ls_err *err;
} job;

/* -- what libpng calls ------------------------------------------------------------------------------------
 */

LS_NORETURN static void leave(job *j, ls_status status)
{
    j->status = status;
    longjmp(j->escape, 1);
}

LS_NORETURN static void on_error(png_structp png, png_const_charp why)
{
    job *j = png_get_error_ptr(png);

    if (j->nomem) leave(j, ls_fail(j->err, LS_NOMEM, "%s: no memory (%s)", j->path, why));
    if (j->writing) leave(j, ls_fail(j->err, LS_IO, "%s: cannot be written: %s", j->path, why));
    leave(j, ls_fail(j->err, LS_DATA, "%s: damaged PNG: %s; fetch the file again", j->path, why));
}

/* Warnings are about what surrounds the pixels: profiles, texts, times. */
static void on_warning(png_structp png, png_const_charp why)
{
    (void)png;
    (void)why;
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t bytes)
{
    job *j = png_get_mem_ptr(png);
    void *p = ls_alloc(LS_MEM_DATA, bytes);

    if (!p) j->nomem = true;
    return p;
}

static void on_free(png_structp png, png_voidp p)
{
    (void)png;
    ls_free(p);
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    job *j = png_get_io_ptr(png);

    if (n > j->size - j->at) png_error(png, "the file ends early");
    memcpy(to, j->bytes + j->at, n);
    j->at += n;
}

/* -- decoding ---------------------------------------------------------------------------------------------
 */

static ls_status no_memory(job *j)
{
    return ls_fail(j->err, LS_NOMEM, "%s: no memory to read or write a PNG file", j->path);
}

/* Whatever the file holds becomes 8 bits of grey or of red, green and blue. */
static void simplify(job *j)
{
    png_set_expand(j->png);
    png_set_strip_16(j->png);
    png_set_strip_alpha(j->png);
}

static void read_rows(job *j, uint8_t *to, int64_t height, size_t row_bytes)
{
    int passes = png_set_interlace_handling(j->png);

    png_read_update_info(j->png, j->info);
    if (png_get_rowbytes(j->png, j->info) != row_bytes) png_error(j->png, "rows of an unexpected length");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < height; y++) png_read_row(j->png, to + (size_t)y * row_bytes, NULL);
    png_read_end(j->png, NULL);
}

static bool run(job *j, lsi_decoder *decoder, bool header_only, lsi_pixels *out)
{
    if (setjmp(j->escape)) return false;
    j->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, j, on_error, on_warning, j, on_malloc, on_free);
    if (j->png) j->info = png_create_info_struct(j->png);
    if (!j->info) leave(j, no_memory(j));
    png_set_read_fn(j->png, j, on_read);
    png_set_user_limits(j->png, LSI_IMAGE_SIDE, LSI_IMAGE_SIDE);
    png_set_chunk_malloc_max(j->png, MAX_CHUNK);
    png_read_info(j->png, j->info);
    const int64_t height = png_get_image_height(j->png, j->info),
                  width = png_get_image_width(j->png, j->info);
    const size_t packed = png_get_rowbytes(j->png, j->info) * (size_t)height / UNPACKED_PER_BYTE;
    j->status = lsi_image_check_size(j->path, height, width, packed, j->size, j->err);
    if (j->status != LS_OK) return false;
    const bool colours = (png_get_color_type(j->png, j->info) & PNG_COLOR_MASK_COLOR) != 0;
    *out = lsi_pixels_interleaved(NULL, colours ? 3 : 1, height, width);
    if (header_only) return true;
    uint8_t *to = lsi_scratch_need(&decoder->pixels, (size_t)(out->row_step * height));
    if (!to) leave(j, no_memory(j));
    simplify(j);
    read_rows(j, to, height, (size_t)out->row_step);
    out->data = to;
    return true;
}

ls_status lsi_png_decode(lsi_decoder *d, const char *path, const uint8_t *bytes, size_t size,
                         bool header_only, lsi_pixels *out, ls_err *err)
{
    job j = {.path = path, .bytes = bytes, .size = size, .err = err};
    bool ok = run(&j, d, header_only, out);

    png_destroy_read_struct(&j.png, &j.info, NULL);
    return ok ? LS_OK : j.status;
}

/* -- encoding ---------------------------------------------------------------------------------------------
 */

/* A file in memory that grows. */
static void on_write(png_structp png, png_bytep from, size_t n)
{
    job *j = png_get_io_ptr(png);

    if (!LS_GROW(LS_MEM_DATA, j->out, j->at + n, j->room)) {
        j->nomem = true;
        png_error(png, "the file grows");
    }
    memcpy(j->out + j->at, from, n);
    j->at += n;
}

static void on_flush(png_structp png)
{
    (void)png;
}

/* Into `file`, or where there is none into memory. */
static bool compress_rows(job *j, const lsi_pixels *in, FILE *file, uint8_t *row)
{
    if (setjmp(j->escape)) return false;
    j->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, j, on_error, on_warning, j, on_malloc, on_free);
    if (j->png) j->info = png_create_info_struct(j->png);
    if (!j->info) leave(j, no_memory(j));
    if (file)
        png_init_io(j->png, file);
    else
        png_set_write_fn(j->png, j, on_write, on_flush);
    png_set_IHDR(j->png, j->info, (png_uint_32)in->width, (png_uint_32)in->height, 8,
                 in->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(j->png, j->info);
    for (int64_t y = 0; y < in->height; y++) {
        lsi_pixels_row(in, y, row);
        png_write_row(j->png, row);
    }
    png_write_end(j->png, NULL);
    return true;
}

ls_status lsi_png_write(const char *path, const lsi_pixels *in, ls_err *err)
{
    job j = {.path = path, .writing = true, .err = err};
    lsi_image_file f;
    ls_status st = lsi_image_create(&f, path, in, err);

    if (st != LS_OK) return st;
    if (!compress_rows(&j, in, f.file, f.row)) st = j.status;
    png_destroy_write_struct(&j.png, &j.info);
    return lsi_image_finish(&f, st, err);
}

ls_status ls_png_encode(const uint8_t *pixels, int64_t width, int64_t height, int channels, uint8_t **out,
                        size_t *n, ls_err *err)
{
    job j = {.path = "PNG", .writing = true, .err = err};
    const lsi_pixels in = lsi_pixels_interleaved(pixels, channels, height, width);
    uint8_t *row;
    bool ok;

    *out = NULL;
    *n = 0;
    if (width < 1 || height < 1 || width > LSI_IMAGE_SIDE || height > LSI_IMAGE_SIDE ||
        (channels != 1 && channels != 3))
        return ls_fail(err, LS_INVALID, "PNG: %lld x %lld with %d channels cannot be written",
                       (long long)width, (long long)height, channels);
    row = ls_alloc(LS_MEM_DATA, (size_t)(width * channels));
    if (!row) return no_memory(&j);
    ok = compress_rows(&j, &in, NULL, row);
    png_destroy_write_struct(&j.png, &j.info);
    ls_free(row);
    if (!ok) {
        ls_free(j.out);
        return j.status;
    }
    *out = j.out;
    *n = j.at;
    return LS_OK;
}
