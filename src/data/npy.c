/* npy.c: NumPy's files of one array, memory mapped: an array of images and, if wanted, one of labels.
 *
 * The header is the text of a Python dictionary with three keys; it is read by looking for the keys, as all
 * programs that write such files write it in one of two or three ways. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "transform_internal.h"

typedef enum element { U1, I4, I8, F4, F8, N_ELEMENTS } element;

static const struct {
    const char *descr;
    int64_t size;
} elements[N_ELEMENTS] = {{"|u1", 1}, {"<i4", 4}, {"<i8", 8}, {"<f4", 4}, {"<f8", 8}};

typedef struct array {
    lsi_file file;
    element type;
    ls_shape shape;
    size_t offset; /* of the first element */
} array;

typedef struct npy {
    array images, labels;
    ls_shape one;     /* image, as it is stored */
    int64_t elements; /* of it */
} npy;

/* -- header -----------------------------------------------------------------------------------------------
 */

/* What follows 'key': in the text, past blanks; NULL when there is none. */
static const char *value_of(const char *text, const char *key)
{
    const char *p = strstr(text, key);

    if (!p) return NULL;
    p += strlen(key);
    if (*p != '\'' && *p != '"') return NULL;
    p++;
    while (isspace((unsigned char)*p)) p++;
    if (*p++ != ':') return NULL;
    while (isspace((unsigned char)*p)) p++;
    return p;
}

static ls_status parse_type(array *a, const char *text, bool labels, ls_err *err)
{
    const char *p = value_of(text, "descr");
    const char *allowed = labels ? "|u1, <i4, <i8" : "|u1, <f4, <f8";

    for (element e = 0; p && (*p == '\'' || *p == '"') && e < N_ELEMENTS; e++) {
        bool fits = e == U1 || labels == (e == I4 || e == I8);
        if (fits && strncmp(p + 1, elements[e].descr, 3) == 0 && p[4] == *p) {
            a->type = e;
            return LS_OK;
        }
    }
    return ls_fail(err, LS_DATA,
                   "%s: byte 10: elements of type %.12s cannot be used; save the array as one of %s",
                   a->file.path, p ? p : "(none)", allowed);
}

static ls_status parse_shape(array *a, const char *text, ls_err *err)
{
    const char *p = value_of(text, "shape");
    char *end;

    if (!p || *p++ != '(') goto bad;
    while (*p != ')') {
        if (!isdigit((unsigned char)*p) || a->shape.rank == LS_MAX_RANK) goto bad;
        long long n = strtoll(p, &end, 10);
        if (n == INT64_MAX) goto bad;
        a->shape.dim[a->shape.rank++] = n;
        p = end;
        while (*p == ',' || isspace((unsigned char)*p)) p++;
    }
    if (a->shape.rank < 1 || !ls_shape_valid(a->shape)) goto bad;
    return LS_OK;
bad:
    return ls_fail(
        err, LS_DATA,
        "%s: byte 10: the header \"%.80s\" has no shape of 1 to %d dimensions; save the array again",
        a->file.path, text, LS_MAX_RANK);
}

static ls_status find_header(array *a, size_t *start, size_t *length, ls_err *err)
{
    const lsi_file *f = &a->file;
    const uint8_t *p = f->data;

    if (f->size < 12 || memcmp(p, "\x93NUMPY", 6) != 0)
        return ls_fail(err, LS_DATA, "%s: byte 0: does not begin like a .npy file; save it with numpy.save",
                       f->path);
    if (p[6] < 1 || p[6] > 3)
        return ls_fail(err, LS_DATA,
                       "%s: byte 6: version %d of the format is not known; save the array again", f->path,
                       p[6]);
    *start = p[6] == 1 ? 10 : 12;
    *length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1) *length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (*length > f->size - *start)
        return ls_fail(err, LS_DATA, "%s: truncated: a header of %zu bytes in a file of %zu; fetch it again",
                       f->path, *length, f->size);
    return LS_OK;
}

static ls_status parse_header(array *a, bool labels, ls_err *err)
{
    ls_status st = LS_OK;
    char text[4096];
    size_t start = 0, length = 0;

    LS_TRY(find_header(a, &start, &length, err));
    a->offset = start + length;
    if (length >= sizeof text) length = sizeof text - 1; /* real ones are 118 bytes long */
    memcpy(text, a->file.data + start, length);
    text[length] = '\0';
    const char *fortran = value_of(text, "fortran_order");
    if (!fortran || strncmp(fortran, "False", 5) != 0)
        return ls_fail(err, LS_DATA,
                       "%s: byte 10: the array is not in C order; save numpy.ascontiguousarray of it",
                       a->file.path);
    LS_TRY(parse_type(a, text, labels, err));
    LS_TRY(parse_shape(a, text, err));
    int64_t have = (int64_t)(a->file.size - a->offset),
            want = ls_shape_count(a->shape) * elements[a->type].size;
    if (have != want) {
        char shape[LS_SHAPE_TEXT];
        return ls_fail(err, LS_DATA,
                       "%s: %s: %s elements %s need %" PRId64 " bytes, but %" PRId64
                       " follow the header; fetch the file again",
                       a->file.path, have < want ? "truncated" : "wrong size", ls_shape_text(a->shape, shape),
                       elements[a->type].descr, want, have);
    }
out:
    return st;
}

/* -- the set ----------------------------------------------------------------------------------------------
 */

static ls_status open_labels(ls_dataset *d, npy *x, const char *folder, const char *name, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(lsi_file_open(&x->labels.file, d->arena, folder, name, err));
    LS_TRY(parse_header(&x->labels, true, err));
    if (x->labels.shape.rank != 1 || x->labels.shape.dim[0] != d->total) {
        char shape[LS_SHAPE_TEXT];
        return ls_fail(
            err, LS_DATA,
            "%s: labels of shape %s, but %s has %" PRId64 " images; name files that belong together",
            x->labels.file.path, ls_shape_text(x->labels.shape, shape), x->images.file.path, d->total);
    }
    lsi_dataset_add_field(d, "label", LS_I32, LS_SHAPE_SCALAR);
out:
    return st;
}

static ls_status open_images(ls_dataset *d, npy *x, const ls_data_source *src, const char *folder,
                             const char *name, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(lsi_file_open(&x->images.file, d->arena, folder, name, err));
    LS_TRY(parse_header(&x->images, false, err));
    ls_shape all = x->images.shape, one = ls_shape_make(all.rank - 1, all.dim + 1);
    if (all.rank == 3) one = LS_SHAPE(1, all.dim[1], all.dim[2]);
    d->total = all.dim[0];
    LS_TRY(lsi_dataset_check_count(d, x->images.file.path, err));
    x->elements = ls_shape_count(one);
    if (x->elements < 1)
        return ls_fail(err, LS_DATA, "%s: byte 10: samples without elements; save the array again",
                       x->images.file.path);
    LS_TRY(lsi_scale_check(&d->scale, one, err));
    x->one = one;
    if (x->images.type == U1 && one.rank == 3)
        LS_TRY(lsi_transform_add_field(d, src, "image", one.dim[0], one.dim[1], one.dim[2], err));
    else
        lsi_dataset_add_field(d, "image", LS_F32, one);
out:
    return st;
}

static ls_status open_npy(ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const char *folder = src->images ? src->path : NULL, *images = src->images ? src->images : src->path;
    const char *labels = src->labels;
    npy *x = ls_arena_alloc(d->arena, sizeof *x);

    if (!x) return ls_fail(err, LS_NOMEM, "no memory for a data set");
    d->own = x;
    if (!images)
        return ls_fail(err, LS_INVALID, "which .npy file?  Name it, or its folder: %s=...",
                       lsi_setting(src->of_experiment, LSI_SET_PATH));
    for (int test = 0; src->images && test < 2; test++) {
        const char *usual = test ? "test-labels.npy" : "train-labels.npy";
        if (strcmp(src->images, test ? "test" : "train") != 0) continue;
        images = test ? "test-images.npy" : "train-images.npy";
        if (!labels && lsi_file_exists(folder, usual)) labels = usual;
    }
    LS_TRY(open_images(d, x, src, folder, images, err));
    if (labels) LS_TRY(open_labels(d, x, folder, labels, err));
out:
    return st;
}

static ls_status read_floats(const ls_dataset *d, const npy *x, int64_t index, float *out, ls_err *err)
{
    const array *a = &x->images;
    int64_t size = elements[a->type].size, first = index * x->elements;
    const uint8_t *in = a->file.data + a->offset + first * size;

    for (int64_t i = 0; i < x->elements; i++) {
        double value;
        float narrow;
        /* Headers of odd lengths exist: elements need not be aligned. */
        if (a->type == F4) {
            memcpy(&narrow, in + i * 4, 4);
            value = narrow;
        } else {
            memcpy(&value, in + i * 8, 8);
            narrow = (float)value;
        }
        if (!isfinite(narrow))
            return ls_fail(err, LS_DATA,
                           "%s: sample %" PRId64 ", element %" PRId64 " (byte %" PRId64
                           ") is %g, which no network can learn from; mend the array",
                           a->file.path, index, i, (int64_t)a->offset + (first + i) * size, value);
        out[i] = narrow;
    }
    lsi_scale_floats(&d->scale, x->one, out);
    return LS_OK;
}

/* What is no feature map has no transform, and one channel. */
static ls_status read_bytes(const ls_dataset *d, const npy *x, int64_t index, const ls_rng_key *augment,
                            float *out, ls_err *err)
{
    const uint8_t *in = x->images.file.data + x->images.offset + index * x->elements;
    const int64_t *dim = x->one.dim;
    lsi_pixels pixels = lsi_pixels_planar(in, dim[0], dim[1], dim[2]);
    lsi_scratch scratch = {0};
    ls_status st = LS_OK;

    if (d->transforms)
        st = lsi_transform_apply(d, 0, &pixels, augment, &scratch, x->images.file.path, out, err);
    else
        for (int64_t i = 0; i < x->elements; i++) out[i] = d->scale.table[0][in[i]];
    lsi_scratch_release(&scratch);
    return st;
}

static ls_status read_label(const ls_dataset *d, const npy *x, int64_t index, int32_t *out, ls_err *err)
{
    const array *a = &x->labels;
    int64_t byte = (int64_t)a->offset + index * elements[a->type].size, label = 0;
    const uint8_t *in = a->file.data + byte;

    if (a->type == U1) {
        label = *in;
    } else if (a->type == I4) {
        int32_t narrow;
        memcpy(&narrow, in, sizeof narrow);
        label = narrow;
    } else {
        memcpy(&label, in, sizeof label);
    }
    if (out) *out = (int32_t)label;
    return lsi_dataset_check_label(d, label, a->file.path, index, byte, err);
}

static ls_status read_npy(const ls_dataset *d, int64_t index, const ls_rng_key *augment, void *const *fields,
                          ls_err *err)
{
    const npy *x = d->own;
    ls_status st = LS_OK;

    if (fields[0] && x->images.type == U1)
        LS_TRY(read_bytes(d, x, index, augment, fields[0], err));
    else if (fields[0])
        LS_TRY(read_floats(d, x, index, fields[0], err));
    if (d->n_fields > 1) LS_TRY(read_label(d, x, index, fields[1], err));
out:
    return st;
}

static void close_npy(ls_dataset *d)
{
    npy *x = d->own;
    lsi_file_close(&x->images.file);
    lsi_file_close(&x->labels.file);
}

const lsi_data_kind lsi_kind_npy = {"npy", open_npy, read_npy, close_npy};
