/* idx.c: data sets in the format of MNIST: a file of images and a file of labels, bytes with big-endian
 * headers. */
#include <inttypes.h>
#include <string.h>

#include "transform_internal.h"

enum { MAGIC_IMAGES = 0x00000803, MAGIC_LABELS = 0x00000801, HEADER_IMAGES = 16, HEADER_LABELS = 8 };

typedef struct idx {
    lsi_file images, labels;
    int64_t height, width, pixels; /* of one image */
} idx;

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static ls_status check_magic(const lsi_file *f, uint32_t want, size_t header, const char *what, ls_err *err)
{
    if (f->size < header)
        return ls_fail(err, LS_DATA, "%s: %zu bytes cannot hold an IDX header of %zu; fetch the file again",
                       f->path, f->size, header);
    if (big_endian(f->data) != want)
        return ls_fail(err, LS_DATA,
                       "%s: byte 0: 0x%08" PRIx32 " is not 0x%08" PRIx32
                       ", with which an IDX file of %s begins; is this the right file?",
                       f->path, big_endian(f->data), want, what);
    return LS_OK;
}

/* The file must hold `count` items of `each` bytes after its header, and nothing else. */
static ls_status check_size(const lsi_file *f, size_t header, int64_t count, int64_t each, ls_err *err)
{
    int64_t have = (int64_t)(f->size - header);

    /* Division, because count * each may be beyond 64 bits. */
    if (count == 0 ? have == 0 : have % count == 0 && have / count == each) return LS_OK;
    bool short_ = each > 0 && have / each < count;
    return ls_fail(err, LS_DATA,
                   "%s: %s: the header at byte 4 promises %" PRId64 " items of %" PRId64
                   " bytes, but %" PRId64 " bytes follow it; fetch the file again",
                   f->path, short_ ? "truncated" : "wrong size", count, each, have);
}

static ls_status parse_images(ls_dataset *d, idx *x, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const lsi_file *f = &x->images;
    ls_shape shape;

    LS_TRY(check_magic(f, MAGIC_IMAGES, HEADER_IMAGES, "images", err));
    d->total = big_endian(f->data + 4);
    shape = LS_SHAPE(1, big_endian(f->data + 8), big_endian(f->data + 12));
    if (!ls_shape_valid(shape) || ls_shape_count(shape) < 1)
        return ls_fail(err, LS_DATA,
                       "%s: byte 8: images of %" PRId64 " x %" PRId64 " cannot be; fetch the file again",
                       f->path, shape.dim[1], shape.dim[2]);
    x->pixels = ls_shape_count(shape);
    LS_TRY(check_size(f, HEADER_IMAGES, d->total, x->pixels, err));
    LS_TRY(lsi_dataset_check_count(d, f->path, err));
    x->height = shape.dim[1];
    x->width = shape.dim[2];
    LS_TRY(lsi_transform_add_field(d, src, "image", 1, x->height, x->width, err));
out:
    return st;
}

static ls_status parse_labels(ls_dataset *d, idx *x, ls_err *err)
{
    ls_status st = LS_OK;
    const lsi_file *f = &x->labels;
    int64_t count;

    LS_TRY(check_magic(f, MAGIC_LABELS, HEADER_LABELS, "labels", err));
    count = big_endian(f->data + 4);
    LS_TRY(check_size(f, HEADER_LABELS, count, 1, err));
    if (count != d->total)
        return ls_fail(err, LS_DATA,
                       "%s: byte 4: %" PRId64 " labels, but %s has %" PRId64
                       " images; name files that belong together",
                       f->path, count, x->images.path, d->total);
    lsi_dataset_add_field(d, "label", LS_I32, LS_SHAPE_SCALAR);
out:
    return st;
}

/* -- names ------------------------------------------------------------------------------------------------
 */

static bool is_word(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

/* "a/b-images-idx3-ubyte" to "a/b-labels-idx1-ubyte"; NULL when the name has no "images" in it. */
static const char *labels_name(ls_arena *arena, const char *images)
{
    const char *slash = strrchr(images, '/'), *at = strstr(slash ? slash : images, "images");
    char *name;

    if (!at) return NULL;
    name = ls_arena_printf(arena, "%.*slabels%s", (int)(at - images), images, at + strlen("images"));
    if (!name) return NULL;
    char *rank = strstr(name, "idx3");
    if (rank) rank[3] = '1';
    return name;
}

static ls_status open_idx(ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const char *images = src->images, *labels = src->labels;
    idx *x = ls_arena_alloc(d->arena, sizeof *x);

    if (!x) return ls_fail(err, LS_NOMEM, "no memory for a data set");
    d->own = x;
    if (!images || is_word(images, "train")) images = "train-images-idx3-ubyte";
    if (is_word(images, "test")) images = "t10k-images-idx3-ubyte";
    if (!labels) labels = labels_name(d->arena, images);
    if (!labels && src->labels_optional) labels = "";
    if (!labels)
        return ls_fail(err, LS_INVALID, "which labels belong to \"%s\"?  Name their file: %s", images,
                       lsi_setting(src->of_experiment, LSI_SET_LABELS));
    LS_TRY(lsi_file_open(&x->images, d->arena, src->path, images, err));
    LS_TRY(parse_images(d, x, src, err));
    if (!src->labels && src->labels_optional && !lsi_file_exists(src->path, labels)) return LS_OK;
    LS_TRY(lsi_file_open(&x->labels, d->arena, src->path, labels, err));
    LS_TRY(parse_labels(d, x, err));
out:
    return st;
}

static ls_status read_idx(const ls_dataset *d, int64_t index, const ls_rng_key *augment, void *const *fields,
                          ls_err *err)
{
    const idx *x = d->own;
    const int64_t byte = HEADER_LABELS + index;
    int32_t label;
    ls_status st = LS_OK;
    lsi_scratch scratch = {0};
    lsi_pixels pixels =
        lsi_pixels_planar(x->images.data + HEADER_IMAGES + index * x->pixels, 1, x->height, x->width);

    if (fields[0])
        LS_TRY(lsi_transform_apply(d, 0, &pixels, augment, &scratch, x->images.path, fields[0], err));
    if (!x->labels.data) goto out;
    label = x->labels.data[byte];
    if (fields[1]) memcpy(fields[1], &label, sizeof label);
    LS_TRY(lsi_dataset_check_label(d, label, x->labels.path, index, byte, err));
out:
    lsi_scratch_release(&scratch);
    return st;
}

static void close_idx(ls_dataset *d)
{
    idx *x = d->own;
    lsi_file_close(&x->images);
    lsi_file_close(&x->labels);
}

const lsi_data_kind lsi_kind_idx = {"idx", open_idx, read_idx, close_idx};
