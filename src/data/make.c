/* make.c: synthetic samples in the formats of real sets. */
#include "data/make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/folders.h"
#include "data/npy_write.h"
#include "image_internal.h"
#include "make_internal.h"

typedef enum part { TRAIN, TEST } part;

typedef struct maker {
    ls_data_make_options o;
    ls_dataset *set;
    int64_t first, end; /* samples of the part in work */
    int64_t pixels;
    float *image;
    uint8_t *bytes;
} maker;

/* -- one file ---------------------------------------------------------------------------------------------
 */

typedef struct output {
    char path[4096];
    gzFile file;
} output;

static ls_status create(output *out, const maker *m, const char *name, ls_err *err)
{
    bool gzip = m->o.gzip;

    snprintf(out->path, sizeof out->path, "%s/%s%s", m->o.path, name, gzip ? ".gz" : "");
    errno = 0;
    out->file = gzopen(out->path, gzip ? "wbx" : "wbxT"); /* T: as it is; x: only a new file */
    if (out->file) return LS_OK;
    if (errno == EEXIST)
        return ls_fail(err, LS_INVALID, "%s: is already there; choose another folder, or remove it",
                       out->path);
    return ls_fail(err, LS_IO, "%s: cannot be written: %s", out->path, errno ? strerror(errno) : "no memory");
}

static ls_status put(output *out, const void *bytes, size_t n, ls_err *err)
{
    if (gzwrite(out->file, bytes, (unsigned)n) == (int)n) return LS_OK;
    return ls_fail(err, LS_IO, "%s: cannot be written: %s", out->path, strerror(errno));
}

/* Closes the file; what could not be written until then fails here. */
static ls_status finish(output *out, ls_status st, ls_err *err)
{
    int rc = out->file ? gzclose(out->file) : Z_OK;

    if (st == LS_OK && rc != Z_OK)
        return ls_fail(err, LS_IO, "%s: cannot be written: %s", out->path, strerror(errno));
    return st;
}

/* -- samples ----------------------------------------------------------------------------------------------
 */

ls_status lsi_make_load(const lsi_make_part *p, int64_t index, uint8_t *bytes, int32_t *label, ls_err *err)
{
    void *const fields[] = {bytes ? p->image : NULL, label};
    ls_status st = ls_dataset_read(p->set, index, NULL, fields, err);

    for (int64_t i = 0; bytes && i < p->pixels; i++) bytes[i] = (uint8_t)(p->image[i] * 255.0f + 0.5f);
    return st;
}

static lsi_make_part part_of(const maker *m, part p)
{
    return (lsi_make_part){&m->o, m->set, m->first, m->end, m->pixels, m->image, p == TEST};
}

/* Each sample of the part: the label before the image, or only one of them. */
static ls_status put_samples(const maker *m, output *out, bool label, bool image, ls_err *err)
{
    ls_status st = LS_OK;
    const lsi_make_part part = part_of(m, TRAIN);

    for (int64_t i = m->first; i < m->end; i++) {
        int32_t value;
        LS_TRY(lsi_make_load(&part, i, image ? m->bytes : NULL, &value, err));
        uint8_t byte = (uint8_t)value;
        if (label) LS_TRY(put(out, &byte, 1, err));
        if (image) LS_TRY(put(out, m->bytes, (size_t)m->pixels, err));
    }
out:
    return st;
}

static ls_status write_file(const maker *m, const char *name, const void *header, size_t n_header, bool label,
                            bool image, ls_err *err)
{
    ls_status st = LS_OK;
    output out = {.file = NULL};

    LS_TRY(create(&out, m, name, err));
    if (n_header) LS_TRY(put(&out, header, n_header, err));
    LS_TRY(put_samples(m, &out, label, image, err));
out:
    return finish(&out, st, err);
}

/* -- formats ----------------------------------------------------------------------------------------------
 */

static void big_endian(uint8_t *p, int64_t value)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(value >> (24 - 8 * i));
}

static ls_status write_idx(const maker *m, part p, ls_err *err)
{
    ls_status st = LS_OK;
    uint8_t header[16];

    big_endian(header, 0x803);
    big_endian(header + 4, m->end - m->first);
    big_endian(header + 8, m->o.shape.dim[1]);
    big_endian(header + 12, m->o.shape.dim[2]);
    LS_TRY(write_file(m, p == TRAIN ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", header, 16, false,
                      true, err));
    big_endian(header, 0x801);
    LS_TRY(write_file(m, p == TRAIN ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", header, 8, true,
                      false, err));
out:
    return st;
}

static ls_status write_cifar(const maker *m, part p, ls_err *err)
{
    return write_file(m, p == TRAIN ? "data_batch_1.bin" : "test_batch.bin", NULL, 0, true, true, err);
}

/* Maps are floats and have no labels. */
static ls_status write_maps(const maker *m, part p, ls_err *err)
{
    const lsi_make_part part = part_of(m, p);
    const int64_t side = m->o.maps;
    char header[LS_NPY_HEADER];
    output out = {.file = NULL};
    ls_status st = LS_OK;

    LS_TRY(create(&out, m, p == TRAIN ? "train-images.npy" : "test-images.npy", err));
    LS_TRY(put(&out, header, ls_npy_header(header, "<f4", LS_SHAPE(m->end - m->first, side, side)), err));
    for (int64_t i = m->first; i < m->end; i++) {
        lsi_make_map(&part, i, m->image);
        LS_TRY(put(&out, m->image, sizeof *m->image * (size_t)m->pixels, err));
    }
out:
    return finish(&out, st, err);
}

static ls_status write_npy(const maker *m, part p, ls_err *err)
{
    ls_status st = LS_OK;
    char header[LS_NPY_HEADER];
    int64_t count = m->end - m->first;
    const int64_t *dim = m->o.shape.dim;

    if (m->o.maps) return write_maps(m, p, err);
    LS_TRY(write_file(m, p == TRAIN ? "train-images.npy" : "test-images.npy", header,
                      ls_npy_header(header, "|u1", LS_SHAPE(count, dim[0], dim[1], dim[2])), false, true,
                      err));
    LS_TRY(write_file(m, p == TRAIN ? "train-labels.npy" : "test-labels.npy", header,
                      ls_npy_header(header, "|u1", LS_SHAPE(count)), true, false, err));
out:
    return st;
}

/* -- image files ------------------------------------------------------------------------------------------
 */

/* The maker's bytes as FOLDER/NUMBER.jpg or .png. */
static ls_status write_image(const maker *m, const char *folder, int64_t number, ls_err *err)
{
    char path[4096 + 64];
    const int64_t *dim = m->o.shape.dim;
    const lsi_pixels pixels = lsi_pixels_planar(m->bytes, dim[0], dim[1], dim[2]);

    snprintf(path, sizeof path, "%s/%05" PRId64 ".%s", folder, number, m->o.png ? "png" : "jpg");
    return m->o.png ? lsi_png_write(path, &pixels, err) : lsi_jpeg_write(path, &pixels, err);
}

static ls_status write_classes(const maker *m, part p, ls_err *err)
{
    ls_status st = LS_OK;
    const lsi_make_part part = part_of(m, p);
    char root[2048], folder[4096];

    snprintf(root, sizeof root, "%s/%s", m->o.path, p == TRAIN ? "train" : "test");
    LS_TRY(ls_folders_make(root, err));
    for (int64_t i = m->first; i < m->end; i++) {
        int32_t label;
        LS_TRY(lsi_make_load(&part, i, m->bytes, &label, err));
        snprintf(folder, sizeof folder, "%s/class-%03d", root, (int)label);
        LS_TRY(ls_folders_make(folder, err));
        LS_TRY(write_image(m, folder, i - m->first, err));
    }
out:
    return st;
}

/* B holds other scenes than A, drawn differently: what a translation has to learn. */
static ls_status write_unpaired(const maker *m, part p, ls_err *err)
{
    ls_status st = LS_OK;
    char folder[2][4096];
    const int64_t middle = (m->first + m->end + 1) / 2;

    for (int k = 0; k < 2; k++) {
        snprintf(folder[k], sizeof folder[k], "%s/%s%c", m->o.path, p == TRAIN ? "train" : "test", "AB"[k]);
        LS_TRY(ls_folders_make(folder[k], err));
    }
    for (int64_t i = m->first; i < m->end; i++) {
        bool b = i >= middle;
        lsi_make_scene(m->o.seed, i, b, m->o.shape, m->bytes);
        LS_TRY(write_image(m, folder[b], i - (b ? middle : m->first), err));
    }
out:
    return st;
}

static ls_status write_hdf5(const maker *m, part p, ls_err *err)
{
    const lsi_make_part part = part_of(m, p);

    return lsi_make_hdf5(&part, err);
}

static const struct {
    const char *name;
    ls_status (*write)(const maker *m, part p, ls_err *err);
    int64_t channels, side; /* what the format prescribes, or 0 */
    bool files;             /* one per image */
} formats[] = {{"idx", write_idx, 1, 0, false},       {"cifar", write_cifar, 3, 32, false},
               {"npy", write_npy, 0, 0, false},       {"hdf5", write_hdf5, 0, 0, false},
               {"images", write_classes, 0, 0, true}, {"unpaired", write_unpaired, 0, 0, true}};

enum { N_FORMATS = sizeof formats / sizeof formats[0], MAX_SIDE = 4096 };

/* -- everything -------------------------------------------------------------------------------------------
 */

static ls_status complete(maker *m, int format, ls_err *err)
{
    ls_data_make_options *o = &m->o;
    int64_t c = formats[format].channels, side = formats[format].side;

    if (!o->train) o->train = 1000;
    if (!o->test) o->test = 200;
    if (!o->classes) o->classes = 10;
    const bool files = formats[format].files;
    if (o->maps && o->shape.rank)
        return ls_fail(err, LS_INVALID, "the side of maps is their shape; leave the shape out");
    if (o->maps) o->shape = LS_SHAPE(1, o->maps, o->maps);
    if (!o->shape.rank && files) o->shape = LS_SHAPE(3, 32, 32);
    if (!o->shape.rank) o->shape = LS_SHAPE(c ? c : 1, side ? side : 28, side ? side : 28);
    const int64_t *dim = o->shape.dim;
    char text[LS_SHAPE_TEXT];
    bool fits = o->shape.rank == 3 && (!c || dim[0] == c) && (!side || (dim[1] == side && dim[2] == side));
    for (int i = 0; fits && i < 3; i++) fits = dim[i] >= 1 && dim[i] <= MAX_SIDE;
    if (files) fits = fits && (dim[0] == 1 || dim[0] == 3);
    if (!fits)
        return ls_fail(err, LS_INVALID, "images of shape %s cannot be written as %s; leave the shape out",
                       ls_shape_text(o->shape, text), o->kind);
    if (o->points && strcmp(o->kind, "hdf5") != 0)
        return ls_fail(err, LS_INVALID, "clouds of points can be written as hdf5, not as %s", o->kind);
    if (o->pattern && (o->points || o->maps))
        return ls_fail(err, LS_INVALID,
                       "a pattern is for images, not for clouds of points or maps; leave it out");
    if (o->points < 0 || o->points > MAX_SIDE * MAX_SIDE)
        return ls_fail(err, LS_INVALID, "%" PRId64 " points: a cloud has at most %d", o->points,
                       MAX_SIDE * MAX_SIDE);
    if (o->maps && strcmp(o->kind, "npy") != 0)
        return ls_fail(err, LS_INVALID, "maps can be written as npy, not as %s", o->kind);
    if (o->maps && (o->maps < 8 || o->maps > MAX_SIDE))
        return ls_fail(err, LS_INVALID, "maps of %" PRId64 " pixels a side: there are those of 8 to %d",
                       o->maps, MAX_SIDE);
    if (o->classes < 1 || o->classes > 256)
        return ls_fail(err, LS_INVALID, "%" PRId64 " classes: labels are bytes, 1 to 256 are possible",
                       o->classes);
    if (o->train < 1 || o->test < 1 || o->train > INT32_MAX || o->test > INT32_MAX)
        return ls_fail(err, LS_INVALID,
                       "%" PRId64 " and %" PRId64 " samples: neither may be below 1 or beyond %d", o->train,
                       o->test, INT32_MAX);
    if (o->gzip && strcmp(o->kind, "idx") != 0 && strcmp(o->kind, "hdf5") != 0)
        return ls_fail(err, LS_INVALID, "only idx and hdf5 files are written compressed, not %s", o->kind);
    if (o->png && !files) return ls_fail(err, LS_INVALID, "only images are written as PNG, not %s", o->kind);
    if (formats[format].write == write_unpaired && (o->train < 2 || o->test < 2))
        return ls_fail(err, LS_INVALID, "unpaired images need at least 2 samples for their two folders");
    m->pixels = ls_shape_count(o->shape);
    return LS_OK;
}

static ls_status prepare(maker *m, ls_err *err)
{
    ls_status st = LS_OK;
    const ls_field fields[] = {{"image", LS_F32, m->o.shape}, {"label", LS_I32, LS_SHAPE_SCALAR}};
    const ls_data_source src = {.kind = "synthetic",
                                .count = m->o.train + m->o.test,
                                .seed = m->o.seed,
                                .classes = m->o.classes,
                                .pattern = m->o.pattern,
                                .n_fields = 2,
                                .fields = fields};

    LS_TRY(ls_dataset_open(&m->set, &src, err));
    m->image = ls_alloc(LS_MEM_DATA, sizeof *m->image * (size_t)m->pixels);
    m->bytes = ls_alloc(LS_MEM_DATA, (size_t)m->pixels);
    if (!m->image || !m->bytes) return ls_fail(err, LS_NOMEM, "no memory for a sample");
    LS_TRY(ls_folders_make(m->o.path, err));
out:
    return st;
}

ls_status ls_data_make(const ls_data_make_options *o, ls_err *err)
{
    ls_status st = LS_OK;
    maker m = {.o = *o};
    int format = 0;

    while (format < N_FORMATS && (!o->kind || strcmp(formats[format].name, o->kind) != 0)) format++;
    if (format == N_FORMATS)
        return ls_fail(err, LS_INVALID,
                       "no format \"%s\" to write; there are idx, cifar, npy, hdf5, images, unpaired",
                       o->kind ? o->kind : "");
    if (!o->path) return ls_fail(err, LS_INVALID, "into which folder?  Name it in `path`");
    LS_TRY(complete(&m, format, err));
    LS_TRY(prepare(&m, err));
    m.end = m.o.train;
    LS_TRY(formats[format].write(&m, TRAIN, err));
    m.first = m.o.train;
    m.end = m.o.train + m.o.test;
    LS_TRY(formats[format].write(&m, TEST, err));
out:
    ls_dataset_close(m.set);
    ls_free(m.image);
    ls_free(m.bytes);
    return st;
}
