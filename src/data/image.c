/* image.c: an image file of either format, told by its first bytes, in the channels that are asked for.
 *
 * Colours are converted as Pillow's convert("RGB") and convert("L") do it, so that pixels are equal to what a
 * Python program would have read. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder_internal.h"
#include "image_internal.h"

/* Larger files are no images that fit LSI_IMAGE_PIXELS. */
#define MAX_FILE ((size_t)1 << 30)

void lsi_decoder_release(lsi_decoder *d)
{
    lsi_scratch_release(&d->file);
    lsi_scratch_release(&d->pixels);
    lsi_scratch_release(&d->resized);
}

ls_status lsi_image_check_size(const char *path, int64_t height, int64_t width, size_t least, size_t size,
                               ls_err *err)
{
    if (height < 1 || width < 1 || height > LSI_IMAGE_SIDE || width > LSI_IMAGE_SIDE ||
        height * width > LSI_IMAGE_PIXELS)
        return ls_fail(err, LS_DATA,
                       "%s: claims to be %" PRId64 " x %" PRId64
                       " pixels (height x width), more than the %" PRId64
                       " that are allowed; make it smaller, or fetch it again",
                       path, height, width, LSI_IMAGE_PIXELS);
    if (size < least)
        return ls_fail(err, LS_DATA,
                       "%s: damaged: %zu bytes cannot hold the %" PRId64 " x %" PRId64
                       " pixels it claims; fetch the file again",
                       path, size, height, width);
    return LS_OK;
}

/* -- files ------------------------------------------------------------------------------------------------
 */

static ls_status read_all(int fd, const char *path, uint8_t *to, size_t size, ls_err *err)
{
    size_t at = 0;

    while (at < size) {
        ssize_t n = read(fd, to + at, size - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ls_fail(err, LS_DATA, "%s: cannot be read: %s", path, strerror(errno));
        if (n == 0)
            return ls_fail(err, LS_DATA, "%s: ends after %zu of %zu bytes; is it being written?", path, at,
                           size);
        at += (size_t)n;
    }
    return LS_OK;
}

static ls_status load(lsi_decoder *d, const char *path, const uint8_t **bytes, size_t *size, ls_err *err)
{
    ls_status st = LS_OK;
    struct stat info;
    uint8_t *to;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) != 0) {
        st = ls_fail(err, LS_DATA, "%s: cannot be opened: %s", path, strerror(errno));
        goto out;
    }
    *size = (size_t)info.st_size;
    if (!S_ISREG(info.st_mode) || *size == 0 || *size > MAX_FILE) {
        st = ls_fail(err, LS_DATA, "%s: %s", path,
                     !S_ISREG(info.st_mode) ? "is no plain file"
                     : *size == 0           ? "is empty; fetch it again"
                                            : "has more than a gigabyte, which no image here has");
        goto out;
    }
    to = lsi_scratch_need(&d->file, *size);
    if (!to) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory for %zu bytes", path, *size);
        goto out;
    }
    *bytes = to;
    LS_TRY(read_all(fd, path, to, *size, err));
out:
    if (fd >= 0) close(fd);
    return st;
}

/* -- channels ---------------------------------------------------------------------------------------------
 */

/* Adobe's files hold 255 minus the ink. */
static void cmyk_to_rgb(uint8_t *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int light = p[4 * i + 3];
        for (int c = 0; c < 3; c++) {
            int product = (255 - p[4 * i + c]) * light + 128;
            p[3 * i + c] = (uint8_t)(light - (((product >> 8) + product) >> 8));
        }
    }
}

/* ITU-R 601-2 luma. */
static void rgb_to_grey(uint8_t *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)((p[3 * i] * 19595 + p[3 * i + 1] * 38470 + p[3 * i + 2] * 7471 + 0x8000) >> 16);
}

static void set_channels(lsi_decoder *d, int64_t channels, lsi_pixels *image)
{
    const int64_t n = image->height * image->width;
    uint8_t *p = d->pixels.data;

    if (image->channels == 4) {
        if (image->data) cmyk_to_rgb(p, n);
        *image = lsi_pixels_interleaved(image->data, 3, image->height, image->width);
    }
    if (image->channels == 3 && channels == 1) {
        if (image->data) rgb_to_grey(p, n);
        *image = lsi_pixels_interleaved(image->data, 1, image->height, image->width);
    }
    if (image->channels == 1 && channels == 3) {
        image->channels = 3;
        image->channel_step = 0;
    }
}

ls_status lsi_image_read(lsi_decoder *d, const char *path, int64_t channels, bool header_only,
                         lsi_pixels *out, ls_err *err)
{
    ls_status st = LS_OK;
    const uint8_t *bytes = NULL;
    size_t size = 0;

    LS_TRY(load(d, path, &bytes, &size, err));
    if (lsi_is_image(bytes, size) && bytes[0] == 0xff)
        LS_TRY(lsi_jpeg_decode(d, path, bytes, size, header_only, out, err));
    else if (lsi_is_image(bytes, size))
        LS_TRY(lsi_png_decode(d, path, bytes, size, header_only, out, err));
    else
        return ls_fail(
            err, LS_DATA,
            "%s: is neither a JPEG nor a PNG file by its first bytes; fetch it again, or take it away", path);
    set_channels(d, channels, out);
out:
    return st;
}
