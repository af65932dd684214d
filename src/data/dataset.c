/* dataset.c: what all kinds of data sets have in common: finding the kind, the range, the fields. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "data/order.h"
#include "data_internal.h"

static const lsi_data_kind *const kinds[] = {&lsi_kind_idx,  &lsi_kind_cifar,  &lsi_kind_npy,
                                             &lsi_kind_hdf5, &lsi_kind_images, &lsi_kind_synthetic};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static ls_status find_kind(const char *name, const lsi_data_kind **out, ls_err *err)
{
    const char *names[N_KINDS], *near;

    for (int i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i]->name;
        *out = kinds[i];
        if (name && strcmp(name, names[i]) == 0) return LS_OK;
    }
    near = name ? ls_text_nearest(name, names, N_KINDS) : NULL;
    return ls_fail(err, LS_INVALID,
                   "no kind of data \"%s\"; %s%s%s there are idx, cifar, npy, hdf5, images, synthetic",
                   name ? name : "", near ? "did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

const char *lsi_setting(bool of_experiment, lsi_data_setting which)
{
    static const char *const names[LSI_SETTINGS][2] = {
        [LSI_SET_RANGE] = {"first and end", "data.train_range or data.test_range"},
        [LSI_SET_PATH] = {"path", "data.path"},
        [LSI_SET_LABELS] = {"labels", "data.train_labels or data.test_labels"},
        [LSI_SET_RESIZE] = {"resize", "data.resize"},
        [LSI_SET_PAD] = {"pad", "data.pad"},
        [LSI_SET_CROP] = {"crop", "data.crop"},
        [LSI_SET_FLIP] = {"flip", "data.flip"},
        [LSI_SET_BOX] = {"box", "data.box"},
        [LSI_SET_POINTS] = {"points", "data.points"},
        [LSI_SET_FIELD] = {"field", "data.field"},
    };

    return names[which][of_experiment];
}

const char *lsi_more_classes(const ls_dataset *d)
{
    if (d->fixed_classes) return "take a model of more classes (model.trial)";
    return d->of_experiment ? "raise model.classes" : "raise classes";
}

ls_status lsi_dataset_check_count(const ls_dataset *d, const char *path, ls_err *err)
{
    if (d->total > 0) return LS_OK;
    return ls_fail(err, LS_DATA, "%s: holds no samples; check what it was made from", path);
}

static ls_status check_transform(const ls_dataset *d, const ls_transform *t, ls_err *err)
{
    const lsi_data_setting which = t->resize ? LSI_SET_RESIZE
                                   : t->pad  ? LSI_SET_PAD
                                   : t->crop ? LSI_SET_CROP
                                             : LSI_SET_FLIP;

    if (d->transforms || !(t->resize || t->pad || t->crop || t->flip)) return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "%s is for images of bytes, which this set of kind %s does not hold; leave it out",
                   lsi_setting(d->of_experiment, which), d->kind->name);
}

static ls_status set_range(ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    int64_t end = src->end ? src->end : d->total;

    if (d->total < 1) return lsi_dataset_check_count(d, src->path ? src->path : src->kind, err);
    if (src->first < 0 || end > d->total || src->first >= end)
        return ls_fail(err, LS_INVALID,
                       "samples %" PRId64 " to %" PRId64 " were asked for, but the set has 0 to %" PRId64
                       "; change %s",
                       src->first, end, d->total, lsi_setting(d->of_experiment, LSI_SET_RANGE));
    d->first = src->first;
    d->count = end - src->first;
    return LS_OK;
}

/* Where sets of a kind come from; what can be made is made by `lockstep data make`. */
static const char *origin(const char *kind)
{
    static const struct {
        const char *kind, *text;
    } origins[] = {
        {"idx", "Debian's package dataset-fashion-mnist has such files in /usr/share/datasets/fashion-mnist, "
                "MNIST is "
                "published as four of them"},
        {"cifar", "CIFAR-10 is published in this form as its \"binary version\""},
        {"npy", "numpy.save writes such files"},
        {"hdf5", "h5py writes such files"},
        {"images", "they are folders of JPEG or PNG files, train/CLASS/FILE and test/CLASS/FILE"},
    };

    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++)
        if (strcmp(origins[i].kind, kind) == 0) return origins[i].text;
    return NULL;
}

/* A set that is not there: the text goes on with how it is had. */
static void advise(const ls_data_source *src, ls_err *err)
{
    const char *from = origin(src->kind);
    const char *kind = src->layout && strcmp(src->layout, "unpaired") == 0 ? "unpaired" : src->kind;
    const char *make = src->points || (src->field && strcmp(src->field, "cloud") == 0) ? " points=P" : "";
    char here[PATH_MAX];
    size_t n = err ? strlen(err->text) : 0;

    if (!err || !from || !strstr(err->text, LSI_MISSING)) return;
    if (src->path && src->path[0] != '/' && getcwd(here, sizeof here)) {
        snprintf(err->text + n, sizeof err->text - n,
                 "; \"%.200s\" is looked for in the working directory, %.400s", src->path, here);
        n = strlen(err->text);
    }
    snprintf(err->text + n, sizeof err->text - n,
             "; %s; `lockstep data make kind=%s%s path=FOLDER` makes a small synthetic set%s", from, kind,
             make, src->of_experiment ? ", and data.kind=synthetic needs no files" : "");
}

/* Keeps of the set the share of it that comes first in a permutation, or with `rest` the others. */
static ls_status choose(ls_dataset *d, double share, uint64_t seed, uint64_t turn, bool rest, ls_err *err)
{
    const int64_t n = d->count, n_first = (int64_t)floor(share * (double)n);
    const int64_t wanted = rest ? n - n_first : n_first;
    int64_t *chosen = NULL, k = 0;
    bool *in_first;
    ls_status st = LS_OK;

    if (share == 0) return LS_OK;
    if (wanted < 1)
        return ls_fail(err, LS_INVALID, "a split of %" PRId64 " samples at %g leaves one part empty", n,
                       share);
    in_first = ls_alloc(LS_MEM_DATA, sizeof *in_first * (size_t)n);
    chosen = ls_alloc(LS_MEM_DATA, sizeof *chosen * (size_t)wanted);
    if (!in_first || !chosen) {
        st = ls_fail(err, LS_NOMEM, "no memory for a split");
        goto out;
    }
    for (int64_t i = 0; i < n_first; i++) in_first[ls_order_at(seed, turn, n, i)] = true;
    /* In the order of the file, which is the cheapest to read; shuffling is the loader's. */
    for (int64_t i = 0; i < n; i++)
        if (in_first[i] != rest) chosen[k++] = d->chosen ? d->chosen[i] : i;
    ls_free(d->chosen);
    d->chosen = chosen;
    d->count = wanted;
    chosen = NULL;
out:
    ls_free(in_first);
    ls_free(chosen);
    return st;
}

/* What has no effect is refused. */
static ls_status check_options(const ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    const lsi_data_setting option = src->box      ? LSI_SET_BOX
                                    : src->points ? LSI_SET_POINTS
                                    : src->field  ? LSI_SET_FIELD
                                                  : LSI_SETTINGS;

    if (src->pattern && d->kind != &lsi_kind_synthetic)
        return ls_fail(err, LS_INVALID, "pattern is for synthetic data, not for kind %s; leave it out",
                       d->kind->name);
    if (option == LSI_SETTINGS || d->kind == &lsi_kind_hdf5) return LS_OK;
    return ls_fail(err, LS_INVALID, "%s is for data of kind hdf5, not %s; leave it out",
                   lsi_setting(d->of_experiment, option), d->kind->name);
}

ls_status ls_dataset_open(ls_dataset **out, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const lsi_data_kind *kind;
    ls_dataset *d = NULL;

    *out = NULL;
    LS_TRY(find_kind(src->kind, &kind, err));
    d = ls_alloc(LS_MEM_DATA, sizeof *d);
    if (!d) return ls_fail(err, LS_NOMEM, "no memory for a data set");
    d->kind = kind;
    d->classes = src->classes;
    d->of_experiment = src->of_experiment;
    d->fixed_classes = src->fixed_classes;
    LS_TRY(ls_arena_create(&d->arena, LS_MEM_DATA, err));
    LS_TRY(lsi_scale_init(&d->scale, src->normalise, err));
    LS_TRY(check_options(d, src, err));
    st = kind->open(d, src, err);
    if (st == LS_DATA) advise(src, err);
    if (st != LS_OK) goto out;
    LS_TRY(check_transform(d, &src->transform, err));
    LS_TRY(set_range(d, src, err));
    /* By two permutations of one seed, one after the other: how much is held out for validation does not
     * change which samples are the test's. */
    LS_TRY(choose(d, src->split, src->split_seed, 0, src->rest, err));
    LS_TRY(choose(d, src->hold, src->split_seed, 1, !src->held, err));
    *out = d;
    d = NULL;
out:
    ls_dataset_close(d);
    return st;
}

void ls_dataset_close(ls_dataset *d)
{
    if (!d) return;
    if (d->own) d->kind->close(d);
    ls_free(d->chosen);
    ls_arena_destroy(d->arena);
    ls_free(d);
}

const char *ls_dataset_kind(const ls_dataset *d)
{
    return d->kind->name;
}

int64_t ls_dataset_count(const ls_dataset *d)
{
    return d->count;
}

int ls_dataset_fields(const ls_dataset *d, const ls_field **out)
{
    *out = d->fields;
    return d->n_fields;
}

int ls_dataset_find(const ls_dataset *d, const char *name)
{
    for (int i = 0; i < d->n_fields; i++)
        if (strcmp(d->fields[i].name, name) == 0) return i;
    return -1;
}

size_t ls_dataset_field_bytes(const ls_dataset *d, int i)
{
    return (size_t)ls_shape_count(d->fields[i].shape) * ls_dtype_size(d->fields[i].dtype);
}

int64_t ls_dataset_classes(const ls_dataset *d, const char *const **names)
{
    *names = d->class_names;
    return d->n_classes;
}

int64_t ls_dataset_ignored(const ls_dataset *d, const char **first)
{
    *first = d->first_ignored;
    return d->ignored;
}

const ls_box *ls_dataset_box(const ls_dataset *d)
{
    return d->box.on ? &d->box : NULL;
}

ls_status ls_dataset_read(const ls_dataset *d, int64_t index, const ls_rng_key *augment, void *const *fields,
                          ls_err *err)
{
    LS_BUG_IF(index < 0 || index >= d->count);
    return d->kind->read(d, d->first + (d->chosen ? d->chosen[index] : index), augment, fields, err);
}

void lsi_dataset_add_field(ls_dataset *d, const char *name, ls_dtype dtype, ls_shape shape)
{
    LS_BUG_IF(d->n_fields == LSI_MAX_FIELDS);
    d->fields[d->n_fields++] = (ls_field){name, dtype, shape};
}

ls_status lsi_dataset_check_label(const ls_dataset *d, int64_t label, const char *path, int64_t sample,
                                  int64_t byte, ls_err *err)
{
    int64_t limit = d->classes ? d->classes : INT32_MAX;
    char place[40] = "";

    if (label >= 0 && label < limit) return LS_OK;
    if (byte >= 0) snprintf(place, sizeof place, " (byte %" PRId64 ")", byte);
    return ls_fail(err, LS_DATA,
                   "%s: the label of sample %" PRId64 "%s is %" PRId64
                   ", but labels must lie in 0 to %" PRId64 "; mend the file, or %s",
                   path, sample, place, label, limit - 1, lsi_more_classes(d));
}
