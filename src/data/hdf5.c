/* hdf5.c: data sets in HDF5 files: one array of samples and, if wanted, one of labels.
 *
 * Elements of any plain type become f32 (labels i32); bytes are pixels and go through the same table as
 * everywhere. Where arrays lie and how their bytes are read is in hdf5_map.c, hdf5_array.c and hdf5_chunks.c.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "hdf5_internal.h"

typedef struct hdf5 {
    lsi_h5_file files[2];
    lsi_h5_array samples, labels;
    ls_shape stored;                  /* shape of a sample, before points are taken */
    int64_t elements;                 /* of a stored sample */
    int64_t boxed;                    /* elements that the box is for, from the first on */
    int64_t channels, points, chosen; /* of a cloud: as stored, and how many are taken */
} hdf5;

/* -- elements ---------------------------------------------------------------------------------------------
 */

static uint64_t load_word(const uint8_t *p, size_t size, bool big_endian)
{
    uint64_t word = 0;

    for (size_t i = 0; i < size; i++) word |= (uint64_t)p[big_endian ? size - 1 - i : i] << (8 * i);
    return word;
}

static int64_t load_integer(const uint8_t *p, const lsi_h5_layout *l)
{
    uint64_t word = load_word(p, lsi_h5_element_size(l->element), l->big_endian);

    switch (l->element) {
    case H5_I1: return (int8_t)word;
    case H5_I2: return (int16_t)word;
    case H5_I4: return (int32_t)word;
    case H5_U8: return word > INT64_MAX ? INT64_MAX : (int64_t)word;
    default: return (int64_t)word;
    }
}

static bool is_float(lsi_h5_element e)
{
    return e == H5_F2 || e == H5_F4 || e == H5_F8;
}

static double load_value(const uint8_t *p, const lsi_h5_layout *l)
{
    if (!is_float(l->element)) return (double)load_integer(p, l);
    uint64_t word = load_word(p, lsi_h5_element_size(l->element), l->big_endian);
    double wide;
    float narrow;
    switch (l->element) {
    case H5_F2: return (double)ls_f16_to_f32((uint16_t)word);
    case H5_F4: memcpy(&narrow, &(uint32_t){(uint32_t)word}, sizeof narrow); return (double)narrow;
    default: memcpy(&wide, &word, sizeof wide); return wide;
    }
}

static ls_status not_finite(const hdf5 *x, int64_t index, int64_t element, double value, ls_err *err)
{
    return ls_fail(err, LS_DATA,
                   "%s: \"%s\": sample %" PRId64 ", element %" PRId64
                   " is %g, which no network can learn from; mend the array",
                   x->samples.file->path, x->samples.name, index, element, value);
}

/* Stored bytes to floats, bytes p to p / 255.  `in` may be the end of `out` where elements are not larger
 * than floats: an element is read before a float is written over it. */
static ls_status convert(const hdf5 *x, int64_t index, const uint8_t *in, float *out, ls_err *err)
{
    const lsi_h5_layout *l = &x->samples.layout;
    const size_t size = lsi_h5_element_size(l->element);
    bool finite = true;

    if (l->element == H5_U1) {
        for (int64_t i = 0; i < x->elements; i++) out[i] = (float)in[i] / 255.0f;
        return LS_OK;
    }
    if (l->element == H5_F4 && !l->big_endian)
        memmove(out, in, (size_t)x->elements * size);
    else
        for (int64_t i = 0; i < x->elements; i++) out[i] = (float)load_value(in + (size_t)i * size, l);
    for (int64_t i = 0; i < x->elements; i++) finite &= isfinite(out[i]) != 0;
    for (int64_t i = 0; !finite && i < x->elements; i++)
        if (!isfinite(out[i])) return not_finite(x, index, i, (double)out[i], err);
    return LS_OK;
}

/* The sample's values as stored, as floats, before box and scaling. */
static ls_status read_values(const ls_dataset *d, int64_t index, float *out, ls_err *err)
{
    const hdf5 *x = d->own;
    ls_status st = LS_OK;
    const lsi_h5_layout *l = &x->samples.layout;
    const size_t bytes = (size_t)x->elements * lsi_h5_element_size(l->element);
    uint8_t *wide = NULL, *raw = (uint8_t *)(out + x->elements) - bytes;

    if (lsi_h5_element_size(l->element) > sizeof *out) {
        raw = wide = ls_alloc(LS_MEM_DATA, bytes);
        if (!raw) return ls_fail(err, LS_NOMEM, "no memory for a sample of %zu bytes", bytes);
    }
    LS_TRY(lsi_h5_read(&x->samples, index, raw, err));
    LS_TRY(convert(x, index, raw, out, err));
out:
    ls_free(wide);
    return st;
}

/* -- the box ----------------------------------------------------------------------------------------------
 */

typedef struct box_search {
    const ls_dataset *d;
    pthread_mutex_t lock; /* guards the rest */
    float lo, hi;
    int failed; /* the first thread that did, whose message is shown */
    ls_status status;
    ls_err err;
} box_search;

static void search_part(int thread, int n_threads, void *arg)
{
    box_search *s = arg;
    const hdf5 *x = s->d->own;
    ls_err err = {0};
    ls_status st = LS_OK;
    float lo = INFINITY, hi = -INFINITY,
          *values = ls_alloc(LS_MEM_DATA, sizeof *values * (size_t)x->elements);
    int64_t begin, end;

    ls_parallel_range(s->d->total, thread, n_threads, &begin, &end);
    if (!values) st = ls_fail(&err, LS_NOMEM, "no memory for a sample");
    for (int64_t i = begin; st == LS_OK && i < end; i++) {
        st = read_values(s->d, i, values, &err);
        for (int64_t k = 0; st == LS_OK && k < x->boxed; k++) {
            lo = fminf(lo, values[k]);
            hi = fmaxf(hi, values[k]);
        }
    }
    ls_free(values);
    pthread_mutex_lock(&s->lock);
    s->lo = fminf(s->lo, lo);
    s->hi = fmaxf(s->hi, hi);
    if (st != LS_OK && (s->status == LS_OK || thread < s->failed)) {
        s->failed = thread;
        s->status = st;
        s->err = err;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Over all samples of the file, whatever range is in use: training and validation share one box. */
static ls_status find_box(ls_dataset *d, ls_err *err)
{
    const hdf5 *x = d->own;
    box_search s = {.d = d, .lo = INFINITY, .hi = -INFINITY};

    pthread_mutex_init(&s.lock, NULL);
    ls_parallel_run(ls_parallel_default_threads(1), search_part, &s);
    pthread_mutex_destroy(&s.lock);
    if (s.status != LS_OK) return ls_fail(err, s.status, "%s", s.err.text);
    if (!(s.lo < s.hi))
        return ls_fail(err, LS_DATA, "%s: \"%s\": all coordinates are %g: there is no box around them",
                       x->samples.file->path, x->samples.name, (double)s.lo);
    d->box = (ls_box){.on = true, .lo = s.lo, .hi = s.hi};
    return LS_OK;
}

/* -- opening ----------------------------------------------------------------------------------------------
 */

/* "FILE:/ARRAY" cut in two; without a colon before a slash all of it is the file. */
static ls_status split_name(ls_arena *arena, const char *text, char **file, const char **array, ls_err *err)
{
    const char *colon = strstr(text, ":/");

    *file = ls_arena_strdup(arena, text);
    if (!*file) return ls_fail(err, LS_NOMEM, "no memory for the name of a file");
    if (!colon) return LS_OK;
    (*file)[colon - text] = '\0';
    *array = colon + 1;
    return LS_OK;
}

static ls_status add_samples(ls_dataset *d, hdf5 *x, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const char *name = src->field ? ls_arena_strdup(d->arena, src->field) : "image";
    ls_shape all = x->samples.layout.shape, one = ls_shape_make(all.rank - 1, all.dim + 1);

    if (!name) return ls_fail(err, LS_NOMEM, "no memory for the name of a field");
    x->elements = x->boxed = lsi_h5_sample_elements(&x->samples.layout);
    d->total = all.dim[0];
    LS_TRY(lsi_dataset_check_count(d, x->samples.file->path, err));
    if (x->elements < 1)
        return ls_fail(err, LS_DATA, "%s: \"%s\" has samples without elements; store it again",
                       x->samples.file->path, x->samples.name);
    if (all.rank == 3 && strcmp(name, "image") == 0) one = LS_SHAPE(1, all.dim[1], all.dim[2]);
    if (src->points && (one.rank != 2 || src->points > one.dim[1])) {
        char text[LS_SHAPE_TEXT];
        return ls_fail(err, LS_INVALID,
                       "%" PRId64 " points cannot be taken of samples of shape %s (channels, points)",
                       src->points, ls_shape_text(one, text));
    }
    if (one.rank == 2) {
        x->channels = one.dim[0];
        x->points = one.dim[1];
        if (x->channels > 3) x->boxed = 3 * x->points;
    }
    x->stored = one;
    if (src->points && src->points < x->points) {
        x->chosen = src->points;
        one.dim[1] = src->points;
    }
    lsi_dataset_add_field(d, name, LS_F32, one);
    LS_TRY(lsi_scale_check(&d->scale, one, err));
out:
    return st;
}

static ls_status add_labels(ls_dataset *d, const hdf5 *x, ls_err *err)
{
    const lsi_h5_layout *l = &x->labels.layout;
    char text[LS_SHAPE_TEXT];

    if (is_float(l->element))
        return ls_fail(err, LS_DATA, "%s: \"%s\" are labels of floats; store them as integers",
                       x->labels.file->path, x->labels.name);
    if (l->shape.rank != 1 || l->shape.dim[0] != d->total)
        return ls_fail(err, LS_DATA,
                       "%s: labels \"%s\" of shape %s, but there are %" PRId64
                       " samples; name arrays that belong together",
                       x->labels.file->path, x->labels.name, ls_shape_text(l->shape, text), d->total);
    lsi_dataset_add_field(d, "label", LS_I32, LS_SHAPE_SCALAR);
    return LS_OK;
}

static ls_status open_arrays(ls_dataset *d, hdf5 *x, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const char *images = src->images ? src->images : "train", *labels = "/labels";
    const char *array = src->field && strcmp(src->field, "cloud") == 0 ? "/point_cloud" : "/images";
    bool train = strcmp(images, "train") == 0, usual = train || strcmp(images, "test") == 0, found = false;
    char *file;

    LS_TRY(split_name(d->arena, !usual ? images : train ? "train.h5" : "test.h5", &file, &array, err));
    LS_TRY(lsi_h5_open(&x->files[0], d->arena, src->path, file, err));
    LS_TRY(lsi_h5_find(&x->samples, &x->files[0], d->arena, array, NULL, err));
    LS_TRY(add_samples(d, x, src, err));
    if (!src->labels) {
        /* Beside arrays of the usual names, labels of the usual name are taken along. */
        if (usual) LS_TRY(lsi_h5_find(&x->labels, &x->files[0], d->arena, labels, &found, err));
    } else {
        found = true;
        LS_TRY(split_name(d->arena, src->labels, &file, &labels, err));
        if (file[0]) LS_TRY(lsi_h5_open(&x->files[1], d->arena, src->path, file, err));
        LS_TRY(lsi_h5_find(&x->labels, &x->files[file[0] ? 1 : 0], d->arena, labels, NULL, err));
    }
    if (found) LS_TRY(add_labels(d, x, err));
out:
    return st;
}

static ls_status open_hdf5(ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    hdf5 *x = ls_arena_alloc(d->arena, sizeof *x);

    if (!x) return ls_fail(err, LS_NOMEM, "no memory for a data set");
    x->files[0].fd = x->files[1].fd = -1;
    d->own = x;
    LS_TRY(open_arrays(d, x, src, err));
    if (src->box && strcmp(src->box, "auto") == 0)
        LS_TRY(find_box(d, err));
    else if (src->box)
        LS_TRY(ls_box_parse(&d->box, src->box, err));
out:
    return st;
}

static void close_hdf5(ls_dataset *d)
{
    hdf5 *x = d->own;

    lsi_h5_release(&x->samples);
    lsi_h5_release(&x->labels);
    lsi_h5_close(&x->files[0]);
    lsi_h5_close(&x->files[1]);
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static void finish_sample(const ls_dataset *d, float *values)
{
    const hdf5 *x = d->own;

    if (d->box.on) ls_box_apply(&d->box, values, x->boxed);
    lsi_scale_floats(&d->scale, x->stored, values);
}

/* A cloud of which fewer points are wanted.  Without a key the choice depends on the sample alone. */
static ls_status read_subset(const ls_dataset *d, int64_t index, const ls_rng_key *augment, float *out,
                             ls_err *err)
{
    const hdf5 *x = d->own;
    const ls_rng_key fixed = {0};
    ls_status st = LS_OK;
    float *all = ls_alloc(LS_MEM_DATA, sizeof *all * (size_t)x->elements);
    int64_t *chosen = ls_alloc(LS_MEM_DATA, sizeof *chosen * (size_t)x->chosen);

    if (!all || !chosen) {
        st = ls_fail(err, LS_NOMEM, "no memory for a cloud of %" PRId64 " points", x->points);
        goto out;
    }
    LS_TRY(read_values(d, index, all, err));
    finish_sample(d, all);
    ls_points_choose(augment ? augment : &fixed, augment ? 0 : (uint32_t)index, x->points, x->chosen, chosen);
    ls_points_take(all, x->channels, x->points, chosen, x->chosen, out);
out:
    ls_free(chosen);
    ls_free(all);
    return st;
}

static ls_status read_label(const ls_dataset *d, int64_t index, int32_t *out, ls_err *err)
{
    const hdf5 *x = d->own;
    ls_status st = LS_OK;
    uint8_t bytes[8];
    char path[512];

    LS_TRY(lsi_h5_read(&x->labels, index, bytes, err));
    int64_t label = load_integer(bytes, &x->labels.layout);
    if (out) *out = (int32_t)label;
    snprintf(path, sizeof path, "%s:%s", x->labels.file->path, x->labels.name);
    LS_TRY(lsi_dataset_check_label(d, label, path, index, -1, err));
out:
    return st;
}

static ls_status read_hdf5(const ls_dataset *d, int64_t index, const ls_rng_key *augment, void *const *fields,
                           ls_err *err)
{
    const hdf5 *x = d->own;
    ls_status st = LS_OK;

    if (fields[0] && x->chosen) {
        LS_TRY(read_subset(d, index, augment, fields[0], err));
    } else if (fields[0]) {
        LS_TRY(read_values(d, index, fields[0], err));
        finish_sample(d, fields[0]);
    }
    if (d->n_fields > 1) LS_TRY(read_label(d, index, fields[1], err));
out:
    return st;
}

const lsi_data_kind lsi_kind_hdf5 = {"hdf5", open_hdf5, read_hdf5, close_hdf5};
