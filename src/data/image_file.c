/* image_file.c: what writing a JPEG and writing a PNG file have in common. */
#include <errno.h>
#include <string.h>

#include "image_internal.h"

ls_status lsi_image_create(lsi_image_file *f, const char *path, const lsi_pixels *in, ls_err *err)
{
    *f = (lsi_image_file){.path = path};
    f->row = ls_alloc(LS_MEM_DATA, (size_t)(in->width * in->channels));
    if (!f->row) return ls_fail(err, LS_NOMEM, "%s: no memory for a row of pixels", path);
    f->file = fopen(path, "wbx");
    if (f->file) return LS_OK;
    ls_free(f->row);
    if (errno == EEXIST)
        return ls_fail(err, LS_INVALID, "%s: is already there; choose another folder, or remove it", path);
    return ls_fail(err, LS_IO, "%s: cannot be written: %s", path, strerror(errno));
}

ls_status lsi_image_finish(lsi_image_file *f, ls_status st, ls_err *err)
{
    bool failed = ferror(f->file) != 0;

    failed |= fclose(f->file) != 0;
    ls_free(f->row);
    if (st == LS_OK && failed)
        return ls_fail(err, LS_IO, "%s: cannot be written: %s", f->path, strerror(errno));
    return st;
}

void lsi_pixels_row(const lsi_pixels *in, int64_t y, uint8_t *row)
{
    for (int64_t x = 0; x < in->width; x++)
        for (int64_t c = 0; c < in->channels; c++)
            row[x * in->channels + c] =
                in->data[c * in->channel_step + y * in->row_step + x * in->column_step];
}
