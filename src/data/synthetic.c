/* synthetic.c: samples made up from a seed, with something in them to be learnt.
 *
 * With the pattern "tiles" every class has a coarse pattern of light and dark tiles; an image is the pattern
 * of its class under noise of the same strength.  Only the tiles are stored: the rest is a function of seed
 * and index.  The pattern "waves" is in waves.c. */
#include <inttypes.h>
#include <string.h>

#include "data_internal.h"

enum { TILES = 7, DEFAULT_CLASSES = 10, MAX_CLASSES = 1 << 20 };

typedef struct synthetic {
    ls_rng_key key;
    int64_t classes;
    bool waves;
    int8_t *tiles[LSI_MAX_FIELDS]; /* of an image: classes x channels x TILES x TILES of -1 or 1 */
    uint32_t stream[LSI_MAX_FIELDS];
} synthetic;

/* An image as channels, height and width; what is no feature map counts as one row. */
static void image_size(ls_shape s, int64_t *c, int64_t *h, int64_t *w)
{
    bool map = s.rank == 3;
    *c = map ? s.dim[0] : 1;
    *h = map ? s.dim[1] : 1;
    *w = map ? s.dim[2] : ls_shape_count(s);
}

static ls_status make_tiles(ls_dataset *d, synthetic *x, int field, ls_err *err)
{
    int64_t c, h, w;

    image_size(d->fields[field].shape, &c, &h, &w);
    int64_t n = c * TILES * TILES;
    x->tiles[field] = ls_alloc(LS_MEM_DATA, (size_t)(x->classes * n));
    if (!x->tiles[field])
        return ls_fail(err, LS_NOMEM, "no memory for the patterns of %" PRId64 " classes", x->classes);
    uint32_t stream = ls_rng_stream("synthetic.pattern") + (uint32_t)field;
    for (int64_t k = 0; k < x->classes; k++)
        for (int64_t i = 0; i < n; i++)
            x->tiles[field][k * n + i] = ls_rng_word(&x->key, stream, (uint32_t)k, (uint64_t)i) & 1 ? 1 : -1;
    return LS_OK;
}

static bool is_image(const ls_field *f)
{
    return f->dtype == LS_F32 && strcmp(f->name, "image") == 0;
}

static ls_status add_fields(ls_dataset *d, synthetic *x, const ls_data_source *src, ls_err *err)
{
    ls_status st = LS_OK;
    const ls_field usual[] = {{"image", LS_F32, LS_SHAPE(1, 28, 28)}, {"label", LS_I32, LS_SHAPE_SCALAR}};
    const ls_field *fields = src->n_fields ? src->fields : usual;
    int n = src->n_fields ? src->n_fields : 2;

    if (n > LSI_MAX_FIELDS)
        return ls_fail(err, LS_INVALID, "%d fields are more than the %d a synthetic set can have", n,
                       LSI_MAX_FIELDS);
    for (int i = 0; i < n; i++) {
        char *name = ls_arena_strdup(d->arena, fields[i].name);
        if (!name) return ls_fail(err, LS_NOMEM, "no memory for a field");
        if (fields[i].dtype != LS_F32 && fields[i].dtype != LS_I32)
            return ls_fail(err, LS_INVALID, "field \"%s\": synthetic data are f32 or i32, not %s", name,
                           ls_dtype_name(fields[i].dtype));
        if (!ls_shape_valid(fields[i].shape) || ls_shape_count(fields[i].shape) < 1)
            return ls_fail(err, LS_INVALID, "field \"%s\": its shape holds no element", name);
        lsi_dataset_add_field(d, name, fields[i].dtype, fields[i].shape);
        x->stream[i] = ls_rng_stream(name) ^ ls_rng_stream("synthetic.noise");
        if (!is_image(&d->fields[i])) continue;
        LS_TRY(lsi_scale_check(&d->scale, fields[i].shape, err));
        if (!x->waves) LS_TRY(make_tiles(d, x, i, err));
    }
out:
    return st;
}

static ls_status open_synthetic(ls_dataset *d, const ls_data_source *src, ls_err *err)
{
    synthetic *x = ls_arena_alloc(d->arena, sizeof *x);

    if (!x) return ls_fail(err, LS_NOMEM, "no memory for a data set");
    d->own = x;
    d->transforms = true; /* images are made in the size that is asked for */
    x->key = (ls_rng_key){.seed_lo = (uint32_t)src->seed, .seed_hi = (uint32_t)(src->seed >> 32)};
    x->classes = src->classes ? src->classes : DEFAULT_CLASSES;
    if (x->classes < 1 || x->classes > MAX_CLASSES)
        return ls_fail(err, LS_INVALID, "%" PRId64 " classes: a synthetic set has 1 to %d", x->classes,
                       MAX_CLASSES);
    /* The index is one word of the random numbers' counter. */
    if (src->count < 1 || src->count > UINT32_MAX)
        return ls_fail(err, LS_INVALID, "count %" PRId64 ": a synthetic set has 1 to %" PRIu32 " samples",
                       src->count, UINT32_MAX);
    d->total = src->count;
    x->waves = src->pattern && strcmp(src->pattern, "waves") == 0;
    if (src->pattern && !x->waves && strcmp(src->pattern, "tiles") != 0)
        return ls_fail(err, LS_INVALID, "pattern \"%s\": there are tiles and waves", src->pattern);
    return add_fields(d, x, src, err);
}

static float noise(uint32_t word)
{
    return 2.0f * ls_rng_uniform(word) - 1.0f;
}

/* One row: the tiles' light and dark around 0.5, and the noise, a quarter of the range each. */
static void draw_row(const ls_dataset *d, const synthetic *x, int field, uint32_t index, int64_t channel,
                     const int8_t *tiles, int64_t at, int64_t w, float *out)
{
    uint32_t word[4];

    for (int64_t i = 0; i < w; i++) {
        uint64_t element = (uint64_t)(at + i);
        if (i == 0 || element % 4 == 0)
            ls_rng_block(&x->key, x->stream[field], index, (uint32_t)(element / 4), word);
        float value = 0.5f + 0.25f * (float)tiles[i * TILES / w] + 0.25f * noise(word[element % 4]);
        out[i] = lsi_scale_value(&d->scale, channel, value);
    }
}

static void draw_image(const ls_dataset *d, const synthetic *x, int field, uint32_t index, int64_t class,
                       float *out)
{
    int64_t c, h, w;

    image_size(d->fields[field].shape, &c, &h, &w);
    if (x->waves) {
        lsi_waves_draw(&x->key, index, class, x->classes, c, h, w, out);
        lsi_scale_floats(&d->scale, d->fields[field].shape, out);
        return;
    }
    for (int64_t i = 0; i < c; i++) {
        for (int64_t y = 0; y < h; y++) {
            const int8_t *tiles = x->tiles[field] + ((class * c + i) * TILES + y * TILES / h) * TILES;
            int64_t at = (i * h + y) * w;
            draw_row(d, x, field, index, i, tiles, at, w, out + at);
        }
    }
}

static void draw_noise(const ls_field *f, const synthetic *x, uint32_t stream, uint32_t index, void *out)
{
    int64_t n = ls_shape_count(f->shape);

    for (int64_t i = 0; i < n; i++) {
        uint32_t word = ls_rng_word(&x->key, stream, index, (uint64_t)i);
        if (f->dtype == LS_F32)
            ((float *)out)[i] = noise(word);
        else
            ((int32_t *)out)[i] = (int32_t)((uint64_t)word * (uint64_t)x->classes >> 32);
    }
}

static ls_status read_synthetic(const ls_dataset *d, int64_t index, const ls_rng_key *augment,
                                void *const *fields, ls_err *err)
{
    const synthetic *x = d->own;
    uint32_t class_word = ls_rng_word(&x->key, ls_rng_stream("synthetic.label"), (uint32_t)index, 0);
    int32_t class = (int32_t)((uint64_t)class_word * (uint64_t)x->classes >> 32);

    (void)augment;
    (void)err;
    for (int i = 0; i < d->n_fields; i++) {
        const ls_field *f = &d->fields[i];
        if (!fields[i]) continue;
        if (is_image(f))
            draw_image(d, x, i, (uint32_t)index, class, fields[i]);
        else if (f->dtype == LS_I32 && f->shape.rank == 0 && strcmp(f->name, "label") == 0)
            memcpy(fields[i], &class, sizeof class);
        else
            draw_noise(f, x, x->stream[i], (uint32_t)index, fields[i]);
    }
    return LS_OK;
}

static void close_synthetic(ls_dataset *d)
{
    synthetic *x = d->own;
    for (int i = 0; i < LSI_MAX_FIELDS; i++) ls_free(x->tiles[i]);
}

const lsi_data_kind lsi_kind_synthetic = {"synthetic", open_synthetic, read_synthetic, close_synthetic};
