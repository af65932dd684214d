/* data_internal.h: what the kinds of data sets share: the table of kinds, files in memory, pixel scaling. */
#ifndef LS_DATA_DATA_INTERNAL_H
#define LS_DATA_DATA_INTERNAL_H

#include "base/alloc.h"
#include "data/data.h"

enum { LSI_SCALE_CHANNELS = 3 };

/* What is done to every pixel, by channel or to all alike; `table` holds the results for bytes. */
typedef struct lsi_scale {
    const char *name;
    int channels;                                                 /* 1: all alike */
    float shift[LSI_SCALE_CHANNELS], divisor[LSI_SCALE_CHANNELS]; /* (x - shift) / divisor */
    float table[LSI_SCALE_CHANNELS][256];
} lsi_scale;

ls_status lsi_scale_init(lsi_scale *s, const char *normalise, ls_err *err) LS_MUST_CHECK;
/* LS_INVALID unless samples of that shape (channels, height, width, or any other of one channel) can be
 * normalised so. */
ls_status lsi_scale_check(const lsi_scale *s, ls_shape shape, ls_err *err) LS_MUST_CHECK;
/* The place of a channel in the tables. */
int lsi_scale_channel(const lsi_scale *s, int64_t channel);
float lsi_scale_value(const lsi_scale *s, int64_t channel, float x);
/* All values of one sample in their place. */
void lsi_scale_floats(const lsi_scale *s, ls_shape shape, float *values);

/* -- files ------------------------------------------------------------------------------------------------
 */

/* A whole file: mapped, or unpacked into memory when it is compressed (told by its first bytes, not by its
 * name). */
typedef struct lsi_file {
    const char *path; /* as in messages; the arena's */
    const uint8_t *data;
    size_t size;
    bool mapped;
} lsi_file;

/* Opens `name` in the folder `folder` (which may be NULL; an absolute name ignores it), or `name`.gz where
 * the first does not exist. */
ls_status lsi_file_open(lsi_file *f, ls_arena *arena, const char *folder, const char *name,
                        ls_err *err) LS_MUST_CHECK;
void lsi_file_close(lsi_file *f);
/* Whether lsi_file_open would find something. */
bool lsi_file_exists(const char *folder, const char *name);

/* -- data sets --------------------------------------------------------------------------------------------
 */

typedef struct lsi_data_kind {
    const char *name;
    /* Fills total, fields and own; small things go into d->arena.  close is called in any case. */
    ls_status (*open)(ls_dataset *d, const ls_data_source *src, ls_err *err);
    /* `index` counts from the start of the files. */
    ls_status (*read)(const ls_dataset *d, int64_t index, const ls_rng_key *augment, void *const *fields,
                      ls_err *err);
    void (*close)(ls_dataset *d);
} lsi_data_kind;

enum { LSI_MAX_FIELDS = 16 };

struct ls_dataset {
    const lsi_data_kind *kind;
    ls_arena *arena;
    int64_t first, count; /* the range in use */
    int64_t *chosen; /* with a split: the `count` samples of the range, counted from `first`; else NULL */
    int64_t total;   /* samples in the files */
    int64_t classes;
    bool of_experiment, fixed_classes;
    lsi_scale scale;
    ls_transform transform;
    bool transforms; /* the kind applies `transform`, or has no need to */
    ls_box box;      /* of point clouds */
    int n_fields;
    ls_field fields[LSI_MAX_FIELDS];
    int64_t ignored; /* files that are no samples, and one of them; the arena's */
    const char *first_ignored;
    const char **class_names; /* of labels 0 to n_classes - 1, where the set knows them; the arena's */
    int64_t n_classes;
    void *own; /* of the kind; from the arena, zeroed */
};

/* Parts of messages that say which settings to change, as the user writes them. */
typedef enum lsi_data_setting {
    LSI_SET_RANGE,
    LSI_SET_PATH,
    LSI_SET_LABELS,
    LSI_SET_RESIZE,
    LSI_SET_PAD,
    LSI_SET_CROP,
    LSI_SET_FLIP,
    LSI_SET_BOX,
    LSI_SET_POINTS,
    LSI_SET_FIELD,
    LSI_SETTINGS
} lsi_data_setting;
const char *lsi_setting(bool of_experiment, lsi_data_setting which);

/* "raise model.classes", or what else helps against labels beyond d->classes. */
const char *lsi_more_classes(const ls_dataset *d);

/* In the text of every file or folder that is not there. */
#define LSI_MISSING "no such file"

/* Adds a field; the name is not copied. */
void lsi_dataset_add_field(ls_dataset *d, const char *name, ls_dtype dtype, ls_shape shape);
/* LS_DATA when d->total is 0; for kinds that can name the file. */
ls_status lsi_dataset_check_count(const ls_dataset *d, const char *path, ls_err *err) LS_MUST_CHECK;
/* LS_DATA unless `label` is in 0 to d->classes - 1 (any that fits an i32 when classes is 0).
 * `byte` is the label's place in the file, or -1 where that says nothing. */
ls_status lsi_dataset_check_label(const ls_dataset *d, int64_t label, const char *path, int64_t sample,
                                  int64_t byte, ls_err *err) LS_MUST_CHECK;

/* Sample `index` of the pattern "waves": an image (c, h, w) of values from 0 to 1. */
void lsi_waves_draw(const ls_rng_key *key, uint32_t index, int64_t class, int64_t classes, int64_t c,
                    int64_t h, int64_t w, float *out);

extern const lsi_data_kind lsi_kind_idx, lsi_kind_cifar, lsi_kind_npy, lsi_kind_hdf5, lsi_kind_images,
    lsi_kind_synthetic;

#endif
