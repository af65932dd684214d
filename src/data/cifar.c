/* cifar.c: CIFAR-10 in its binary form: records of one label byte and 3 x 32 x 32 pixel bytes, in one to five
 * files. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transform_internal.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS, MAX_FILES = 5 };

typedef struct cifar {
    int n_files;
    lsi_file file[MAX_FILES];
    int64_t end[MAX_FILES]; /* the index after the file's last sample */
} cifar;

static ls_status add_file(ls_dataset *d, cifar *x, const char *folder, const char *name, ls_err *err)
{
    ls_status st = LS_OK;
    lsi_file *f = &x->file[x->n_files++];

    LS_TRY(lsi_file_open(f, d->arena, folder, name, err));
    if (f->size % RECORD != 0)
        return ls_fail(
            err, LS_DATA,
            "%s: truncated: %zu bytes are no multiple of %d, the last record begins at byte %zu; fetch "
            "the file again",
            f->path, f->size, RECORD, f->size / RECORD * RECORD);
    d->total += (int64_t)(f->size / RECORD);
    x->end[x->n_files - 1] = d->total;
    LS_TRY(lsi_dataset_check_count(d, f->path, err));
out:
    return st;
}

static ls_status open_cifar(ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const char *images = src->images;
    char name[32];
    cifar *x = ls_arena_alloc(d->arena, sizeof *x);

    if (!x) return ls_fail(err, LS_NOMEM, "no memory for a data set");
    d->own = x;
    if (images && strcmp(images, "test") == 0) {
        LS_TRY(add_file(d, x, src->path, "test_batch.bin", err));
    } else if (images && strcmp(images, "train") != 0) {
        LS_TRY(add_file(d, x, src->path, images, err));
    } else {
        for (int i = 1; i <= MAX_FILES; i++) {
            snprintf(name, sizeof name, "data_batch_%d.bin", i);
            if (i > 1 && !lsi_file_exists(src->path, name)) break;
            LS_TRY(add_file(d, x, src->path, name, err));
        }
    }
    LS_TRY(lsi_transform_add_field(d, src, "image", 3, 32, 32, err));
    lsi_dataset_add_field(d, "label", LS_I32, LS_SHAPE_SCALAR);
out:
    return st;
}

static ls_status read_cifar(const ls_dataset *d, int64_t index, const ls_rng_key *augment,
                            void *const *fields, ls_err *err)
{
    const cifar *x = d->own;
    ls_status st = LS_OK;
    lsi_scratch scratch = {0};
    int file = 0;

    while (index >= x->end[file]) file++;
    int64_t byte = (index - (file ? x->end[file - 1] : 0)) * RECORD;
    const uint8_t *record = x->file[file].data + byte;
    int32_t label = record[0];
    lsi_pixels pixels = lsi_pixels_planar(record + 1, 3, 32, 32);
    if (fields[0])
        LS_TRY(lsi_transform_apply(d, 0, &pixels, augment, &scratch, x->file[file].path, fields[0], err));
    if (fields[1]) memcpy(fields[1], &label, sizeof label);
    LS_TRY(lsi_dataset_check_label(d, label, x->file[file].path, index, byte, err));
out:
    lsi_scratch_release(&scratch);
    return st;
}

static void close_cifar(ls_dataset *d)
{
    cifar *x = d->own;
    for (int i = 0; i < x->n_files; i++) lsi_file_close(&x->file[i]);
}

const lsi_data_kind lsi_kind_cifar = {"cifar", open_cifar, read_cifar, close_cifar};
