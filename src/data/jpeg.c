/* jpeg.c: JPEG files, by libjpeg-turbo.
 *
 * The library leaves a failed call by longjmp.  Everything it could jump over lives in a `job`, which the
 * caller of `run` cleans up, whichever way it came back.  Scaled decoding is not used: its pixels differ from
 * those of a whole image resized. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "image_internal.h"

enum {
    MAX_SCANS = 500,        /* a progressive file of kilobytes could ask for days of work */
    ROWS = 8,               /* per call */
    PIXELS_PER_BYTE = 1024, /* more than 512 no Huffman code gives; small images are not worth a look */
    QUALITY = 95
};
#define MAX_MEMORY (512L << 20)

typedef struct job {
    struct jpeg_decompress_struct d;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    const char *path;
    ls_status status; /* of the failure; its text is in `err` */
    ls_err *err;
} job;

/* -- what libjpeg calls -----------------------------------------------------------------------------------
 */

LS_NORETURN static void leave(job *j, ls_status status)
{
    j->status = status;
    longjmp(j->escape, 1);
}

LS_NORETURN static void on_error(j_common_ptr common)
{
    job *j = common->client_data;
    char why[JMSG_LENGTH_MAX];

    common->err->format_message(common, why);
    if (common->err->msg_code == JERR_OUT_OF_MEMORY)
        leave(j, ls_fail(j->err, LS_NOMEM, "%s: no memory (%s)", j->path, why));
    if (!common->is_decompressor) leave(j, ls_fail(j->err, LS_IO, "%s: cannot be written: %s", j->path, why));
    leave(j, ls_fail(j->err, LS_DATA, "%s: damaged JPEG: %s; fetch the file again", j->path, why));
}

/* Warnings say that pixels were made up; those few that do not are passed over, as real files give them. */
static void on_message(j_common_ptr common, int level)
{
    const int code = common->err->msg_code;

    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR)
        on_error(common);
}

static void on_output(j_common_ptr common)
{
    (void)common;
}

static void on_progress(j_common_ptr common)
{
    job *j = common->client_data;

    if (j->d.input_scan_number > MAX_SCANS)
        leave(j, ls_fail(j->err, LS_DATA, "%s: more than %d scans; save the JPEG anew", j->path, MAX_SCANS));
}

static void prepare(job *j, const char *path, ls_err *err)
{
    j->path = path;
    j->err = err;
    j->d.err = j->c.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = on_error;
    j->errors.emit_message = on_message;
    j->errors.output_message = on_output;
    j->progress.progress_monitor = on_progress;
}

/* -- decoding ---------------------------------------------------------------------------------------------
 */

static void choose_colours(job *j)
{
    switch (j->d.jpeg_color_space) {
    case JCS_GRAYSCALE: j->d.out_color_space = JCS_GRAYSCALE; break;
    case JCS_YCbCr:
    case JCS_RGB: j->d.out_color_space = JCS_RGB; break;
    case JCS_CMYK:
    case JCS_YCCK: j->d.out_color_space = JCS_CMYK; break;
    default:
        leave(j, ls_fail(j->err, LS_DATA, "%s: a JPEG of %d channels is no image; save it as RGB", j->path,
                         j->d.num_components));
    }
    jpeg_calc_output_dimensions(&j->d);
}

static void read_rows(job *j, uint8_t *to, size_t row_bytes)
{
    while (j->d.output_scanline < j->d.output_height) {
        JSAMPROW rows[ROWS];
        for (size_t i = 0; i < ROWS; i++) {
            size_t y = j->d.output_scanline + i;
            rows[i] = to + (y < j->d.output_height ? y : j->d.output_height - 1) * row_bytes;
        }
        unsigned left = j->d.output_height - j->d.output_scanline;
        jpeg_read_scanlines(&j->d, rows, left < ROWS ? left : ROWS);
    }
}

static bool run(job *j, lsi_decoder *decoder, const uint8_t *bytes, size_t size, bool header_only,
                lsi_pixels *out)
{
    if (setjmp(j->escape)) return false;
    jpeg_create_decompress(&j->d);
    j->d.client_data = j;
    j->d.progress = &j->progress;
    j->d.mem->max_memory_to_use = MAX_MEMORY;
    jpeg_mem_src(&j->d, bytes, (unsigned long)size);
    jpeg_read_header(&j->d, TRUE);
    const int64_t height = j->d.image_height, width = j->d.image_width;
    const int64_t least = height * width > 1 << 20 ? height * width / PIXELS_PER_BYTE : 0;
    j->status = lsi_image_check_size(j->path, height, width, (size_t)least, size, j->err);
    if (j->status != LS_OK) return false;
    choose_colours(j);
    *out = lsi_pixels_interleaved(NULL, j->d.out_color_components, height, width);
    if (header_only) return true;
    const size_t row_bytes = (size_t)out->row_step;
    uint8_t *to = lsi_scratch_need(&decoder->pixels, row_bytes * (size_t)height);
    if (!to)
        leave(j, ls_fail(j->err, LS_NOMEM, "%s: no memory for %lld pixels", j->path,
                         (long long)(height * width)));
    jpeg_start_decompress(&j->d);
    read_rows(j, to, row_bytes);
    jpeg_finish_decompress(&j->d);
    out->data = to;
    return true;
}

ls_status lsi_jpeg_decode(lsi_decoder *d, const char *path, const uint8_t *bytes, size_t size,
                          bool header_only, lsi_pixels *out, ls_err *err)
{
    job j = {.status = LS_OK};

    prepare(&j, path, err);
    bool ok = run(&j, d, bytes, size, header_only, out);
    jpeg_destroy_decompress(&j.d);
    return ok ? LS_OK : j.status;
}

/* -- encoding ---------------------------------------------------------------------------------------------
 */

static bool compress(job *j, const lsi_pixels *in, FILE *file, uint8_t *row)
{
    if (setjmp(j->escape)) return false;
    jpeg_create_compress(&j->c);
    j->c.client_data = j;
    jpeg_stdio_dest(&j->c, file);
    j->c.image_height = (JDIMENSION)in->height;
    j->c.image_width = (JDIMENSION)in->width;
    j->c.input_components = (int)in->channels;
    j->c.in_color_space = in->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&j->c);
    jpeg_set_quality(&j->c, QUALITY, TRUE);
    jpeg_start_compress(&j->c, TRUE);
    for (int64_t y = 0; y < in->height; y++) {
        lsi_pixels_row(in, y, row);
        jpeg_write_scanlines(&j->c, &row, 1);
    }
    jpeg_finish_compress(&j->c);
    return true;
}

ls_status lsi_jpeg_write(const char *path, const lsi_pixels *in, ls_err *err)
{
    job j = {.status = LS_OK};
    lsi_image_file f;
    ls_status st = lsi_image_create(&f, path, in, err);

    if (st != LS_OK) return st;
    prepare(&j, path, err);
    if (!compress(&j, in, f.file, f.row)) st = j.status;
    jpeg_destroy_compress(&j.c);
    return lsi_image_finish(&f, st, err);
}
