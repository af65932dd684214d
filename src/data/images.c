/* images.c: folders of JPEG and PNG files, one per class, or two without labels.
 *
 * Opening lists the folders and reads no image, but for the size of the first where no crop fixes it.  What
 * decoding needs is kept from one image to the next: as many decoders as threads have read at the same time.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "data/order.h"
#include "folder_internal.h"
#include "image_internal.h"

typedef struct idle_decoder {
    lsi_decoder decoder;
    struct idle_decoder *next;
} idle_decoder;

typedef struct images {
    bool unpaired;
    int64_t channels;
    int64_t n_folders;
    lsi_folder *folders; /* of files: one per class, or A and B */
    int64_t *end;        /* per folder: the index after its last image, all folders counted through */
    pthread_mutex_t lock;
    bool has_lock;
    idle_decoder *idle; /* under `lock` */
} images;

/* -- folders ----------------------------------------------------------------------------------------------
 */

/* The folder of one part of the set: "train", "test" or "val", or another name; `suffix` is A or B. */
static bool find_part(char *buf, size_t size, const char *path, const char *part, const char *suffix)
{
    const char *const names[] = {part, strcmp(part, "test") == 0 ? "val" : part};

    for (int i = 0; i < 2; i++) {
        snprintf(buf, size, "%s/%s%s", path, names[i], suffix);
        if (lsi_folder_exists(buf)) return true;
        if (!suffix[0]) continue;
        snprintf(buf, size, "%s/%s/%s", path, names[i], suffix);
        if (lsi_folder_exists(buf)) return true;
    }
    snprintf(buf, size, "%s/%s%s", path, part, suffix);
    return false;
}

static ls_status set_folders(images *x, int64_t n, ls_err *err)
{
    x->folders = ls_alloc(LS_MEM_DATA, sizeof *x->folders * (size_t)n);
    x->end = ls_alloc(LS_MEM_DATA, sizeof *x->end * (size_t)n);
    x->n_folders = x->folders ? n : 0;
    return x->folders && x->end ? LS_OK : ls_fail(err, LS_NOMEM, "no memory for %" PRId64 " folders", n);
}

static ls_status list_files(ls_dataset *d, images *x, int64_t k, const char *path, ls_err *err)
{
    ls_status st = lsi_folder_list(&x->folders[k], d->arena, path, LSI_FOLDER_FILES, err);

    if (st != LS_OK) return st;
    const lsi_folder *f = &x->folders[k];
    x->end[k] = (k ? x->end[k - 1] : 0) + f->n;
    if (f->n_others && !d->ignored) {
        d->first_ignored = ls_arena_printf(d->arena, "%s/%s", f->path, f->other);
        if (!d->first_ignored) return ls_fail(err, LS_NOMEM, "no memory for the name of a file");
    }
    d->ignored += f->n_others;
    return LS_OK;
}

static ls_status check_classes(const ls_dataset *d, const lsi_folder *classes, ls_err *err)
{
    if (!d->classes || classes->n <= d->classes) return LS_OK;
    return ls_fail(err, LS_DATA,
                   "%s: holds %" PRId64 " folders of classes, but labels must lie in 0 to %" PRId64
                   " (%s ... %s); name the folder of the classes, or %s",
                   classes->path, classes->n, d->classes - 1, classes->names[0],
                   classes->names[classes->n - 1], lsi_more_classes(d));
}

/* Every folder in `part` must be one of `classes`; both are sorted.  A class may lack images in a part. */
static ls_status list_classes(ls_dataset *d, images *x, const lsi_folder *classes, const lsi_folder *part,
                              ls_err *err)
{
    ls_status st = LS_OK;
    int64_t at = 0;
    char path[4096 + 512];

    LS_TRY(set_folders(x, classes->n, err));
    for (int64_t k = 0; k < classes->n; k++) {
        x->end[k] = k ? x->end[k - 1] : 0;
        if (at == part->n || strcmp(part->names[at], classes->names[k]) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", part->path, part->names[at++]);
        LS_TRY(list_files(d, x, k, path, err));
    }
    if (at < part->n)
        return ls_fail(err, LS_DATA, "%s/%s: no such class in %s; which label would it have?", part->path,
                       part->names[at], classes->path);
    d->total = x->end[classes->n - 1];
out:
    return st;
}

/* Labels are those of the training images, so that a part in which a class is missing means the same. */
static ls_status open_classes(ls_dataset *d, images *x, const ls_data_source *src, const char *part,
                              ls_err *err)
{
    ls_status st = LS_OK;
    lsi_folder classes = {0}, own = {0};
    char path[4096], train[4096];

    /* Without a part by that name the folder itself may hold the classes, if no part was asked for. */
    if (!find_part(path, sizeof path, src->path, part, "") && !src->images)
        snprintf(path, sizeof path, "%s", src->path);
    if (!find_part(train, sizeof train, src->path, "train", "")) memcpy(train, path, sizeof train);
    LS_TRY(lsi_folder_list(&own, d->arena, path, LSI_FOLDER_FOLDERS, err));
    LS_TRY(lsi_folder_list(&classes, d->arena, train, LSI_FOLDER_FOLDERS, err));
    LS_TRY(check_classes(d, &classes, err));
    d->class_names = ls_arena_alloc(d->arena, sizeof *d->class_names * (size_t)classes.n);
    if (!d->class_names) {
        st = ls_fail(err, LS_NOMEM, "no memory for the names of classes");
        goto out;
    }
    memcpy(d->class_names, classes.names, sizeof *d->class_names * (size_t)classes.n);
    d->n_classes = classes.n;
    LS_TRY(list_classes(d, x, &classes, &own, err));
out:
    lsi_folder_release(&classes);
    lsi_folder_release(&own);
    return st;
}

static ls_status open_unpaired(ls_dataset *d, images *x, const ls_data_source *src, const char *part,
                               ls_err *err)
{
    ls_status st = LS_OK;
    char path[4096];

    LS_TRY(set_folders(x, 2, err));
    for (int k = 0; k < 2; k++) {
        (void)find_part(path, sizeof path, src->path, part, k ? "B" : "A");
        LS_TRY(list_files(d, x, k, path, err));
        if (x->folders[k].n > d->total) d->total = x->folders[k].n;
    }
out:
    return st;
}

/* -- decoders ---------------------------------------------------------------------------------------------
 */

static idle_decoder *take_decoder(images *x)
{
    idle_decoder *w;

    pthread_mutex_lock(&x->lock);
    w = x->idle;
    if (w) x->idle = w->next;
    pthread_mutex_unlock(&x->lock);
    return w ? w : ls_alloc(LS_MEM_DATA, sizeof *w);
}

static void give_back(images *x, idle_decoder *w)
{
    pthread_mutex_lock(&x->lock);
    w->next = x->idle;
    x->idle = w;
    pthread_mutex_unlock(&x->lock);
}

/* -- the set ----------------------------------------------------------------------------------------------
 */

/* The size of the first image, from folder k on, whose size can be read; damaged ones are met again in their
 * turn. */
static ls_status probe(images *x, int64_t k, int64_t *height, int64_t *width, ls_err *err)
{
    ls_status st = LS_DATA;
    ls_err first = {0};
    idle_decoder *w = take_decoder(x);
    char path[4096 + 512];

    if (!w) return ls_fail(err, LS_NOMEM, "no memory for a decoder");
    for (; st == LS_DATA && k < x->n_folders; k++) {
        const lsi_folder *f = &x->folders[k];
        for (int64_t i = 0; st == LS_DATA && i < f->n; i++) {
            lsi_pixels image = {0};
            snprintf(path, sizeof path, "%s/%s", f->path, f->names[i]);
            st = lsi_image_read(&w->decoder, path, x->channels, true, &image, &first);
            *height = image.height;
            *width = image.width;
        }
    }
    give_back(x, w);
    return st == LS_OK ? LS_OK : ls_fail(err, st, "%s", first.text);
}

static ls_status add_image(ls_dataset *d, images *x, const ls_data_source *src, const char *name, int64_t k,
                           ls_err *err)
{
    ls_status st = LS_OK;
    int64_t height = src->transform.crop, width = height;

    if (!lsi_transform_fixes_size(&src->transform)) LS_TRY(probe(x, k, &height, &width, err));
    LS_TRY(lsi_transform_add_field(d, src, name, x->channels, height, width, err));
out:
    return st;
}

static ls_status set_layout(images *x, const ls_data_source *src, ls_err *err)
{
    const char *layout = src->layout ? src->layout : "classes";

    x->unpaired = strcmp(layout, "unpaired") == 0;
    x->channels = src->channels ? src->channels : 3;
    if (!x->unpaired && strcmp(layout, "classes") != 0)
        return ls_fail(err, LS_INVALID, "no layout \"%s\" of images; there are classes, unpaired", layout);
    if (x->channels != 1 && x->channels != 3)
        return ls_fail(err, LS_INVALID, "images of %" PRId64 " channels; they have 3, or 1 for grey",
                       x->channels);
    if (!src->path)
        return ls_fail(err, LS_INVALID, "which folder of images?  Name it: %s=FOLDER",
                       lsi_setting(src->of_experiment, LSI_SET_PATH));
    return LS_OK;
}

static ls_status open_images(ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const char *part = src->images ? src->images : "train";
    images *x = ls_arena_alloc(d->arena, sizeof *x);

    if (!x) return ls_fail(err, LS_NOMEM, "no memory for a data set");
    d->own = x;
    LS_TRY(set_layout(x, src, err));
    x->has_lock = pthread_mutex_init(&x->lock, NULL) == 0;
    if (!x->has_lock) return ls_fail(err, LS_NOMEM, "no memory for a lock");
    if (x->unpaired) {
        LS_TRY(open_unpaired(d, x, src, part, err));
        LS_TRY(add_image(d, x, src, "image_a", 0, err));
        LS_TRY(add_image(d, x, src, "image_b", 1, err));
    } else {
        LS_TRY(open_classes(d, x, src, part, err));
        LS_TRY(add_image(d, x, src, "image", 0, err));
        lsi_dataset_add_field(d, "label", LS_I32, LS_SHAPE_SCALAR);
    }
out:
    return st;
}

static ls_status read_file(const ls_dataset *d, images *x, int64_t folder, int64_t index, int field,
                           const ls_rng_key *augment, float *out, ls_err *err)
{
    const lsi_folder *f = &x->folders[folder];
    ls_status st = LS_OK;
    idle_decoder *w = take_decoder(x);
    lsi_pixels image;
    char path[4096 + 512];

    if (!w) return ls_fail(err, LS_NOMEM, "no memory for a decoder");
    snprintf(path, sizeof path, "%s/%s", f->path, f->names[index]);
    LS_TRY(lsi_image_read(&w->decoder, path, x->channels, false, &image, err));
    LS_TRY(lsi_transform_apply(d, field, &image, augment, &w->decoder.resized, path, out, err));
out:
    give_back(x, w);
    return st;
}

/* The first folder whose end lies beyond the index. */
static int64_t folder_of(const images *x, int64_t index)
{
    int64_t lo = 0, hi = x->n_folders - 1;

    while (lo < hi) {
        int64_t middle = (lo + hi) / 2;
        if (index < x->end[middle])
            hi = middle;
        else
            lo = middle + 1;
    }
    return lo;
}

/* In training B has a permutation of its own over the same range, by the position in the epoch. */
static int64_t partner(const ls_dataset *d, int64_t index, const ls_rng_key *augment)
{
    if (!augment) return index;
    uint64_t seed = (uint64_t)augment->seed_hi << 32 | augment->seed_lo;
    int64_t position = (int64_t)augment->sample_base % d->count;
    const int64_t k = ls_order_at(seed ^ ls_rng_stream("data.partner"), augment->step, d->count, position);
    return d->first + (d->chosen ? d->chosen[k] : k);
}

static ls_status read_images(const ls_dataset *d, int64_t index, const ls_rng_key *augment,
                             void *const *fields, ls_err *err)
{
    images *x = d->own;
    ls_status st = LS_OK;

    if (x->unpaired) {
        const int64_t at[2] = {index, partner(d, index, augment)};
        for (int k = 0; k < 2; k++)
            if (fields[k]) LS_TRY(read_file(d, x, k, at[k] % x->folders[k].n, k, augment, fields[k], err));
        return LS_OK;
    }
    const int64_t folder = folder_of(x, index);
    const int32_t label = (int32_t)folder;
    if (fields[1]) memcpy(fields[1], &label, sizeof label);
    if (fields[0])
        LS_TRY(
            read_file(d, x, folder, index - (folder ? x->end[folder - 1] : 0), 0, augment, fields[0], err));
out:
    return st;
}

static void close_images(ls_dataset *d)
{
    images *x = d->own;

    while (x->idle) {
        idle_decoder *w = x->idle;
        x->idle = w->next;
        lsi_decoder_release(&w->decoder);
        ls_free(w);
    }
    for (int64_t k = 0; k < x->n_folders; k++) lsi_folder_release(&x->folders[k]);
    ls_free(x->folders);
    ls_free(x->end);
    if (x->has_lock) pthread_mutex_destroy(&x->lock);
}

const lsi_data_kind lsi_kind_images = {"images", open_images, read_images, close_images};
