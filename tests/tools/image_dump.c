/* image_dump.c: writes the images of a folder as the data layer reads them, for tests/data/compare_pillow.py.
 *
 * Usage: image_dump FOLDER CHANNELS RESIZE CROP > FILE.  FOLDER/CLASS/FILE are read in order; each is written
 * as channels, height, width (three 32-bit numbers) and its bytes, channels one after another. */
#include <stdio.h>
#include <stdlib.h>

#include "data/data.h"

static ls_status dump(const ls_dataset *d, ls_err *err)
{
    const ls_field *f;
    ls_status st = LS_OK;
    float *image = malloc(ls_dataset_field_bytes(d, 0));
    int64_t n;

    ls_dataset_fields(d, &f);
    n = ls_shape_count(f[0].shape);
    if (!image) return ls_fail(err, LS_NOMEM, "no memory");
    for (int64_t i = 0; i < ls_dataset_count(d); i++) {
        const int32_t head[3] = {(int32_t)f[0].shape.dim[0], (int32_t)f[0].shape.dim[1],
                                 (int32_t)f[0].shape.dim[2]};
        LS_TRY(ls_dataset_read(d, i, NULL, (void *const[]){image, NULL}, err));
        fwrite(head, sizeof head[0], 3, stdout);
        for (int64_t k = 0; k < n; k++) putchar((int)(image[k] * 255.0f + 0.5f));
    }
out:
    free(image);
    return st;
}

int main(int argc, char **argv)
{
    ls_err err = {0};
    ls_dataset *d = NULL;
    ls_status st = LS_OK;

    if (argc != 5) return 2;
    LS_TRY(ls_dataset_open(&d,
                           &(ls_data_source){.kind = "images",
                                             .path = argv[1],
                                             .channels = atoi(argv[2]),
                                             .transform = {.resize = atoi(argv[3]), .crop = atoi(argv[4])}},
                           &err));
    LS_TRY(dump(d, &err));
out:
    if (st != LS_OK) fprintf(stderr, "image_dump: %s\n", err.text);
    ls_dataset_close(d);
    return st != LS_OK;
}
