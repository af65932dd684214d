/* data.h: sets of samples, read by index.
 *
 * A data set is a list of samples with the same fields ("image", "label"); reading sample i writes each field
 * in the element type and row-major shape that ls_dataset_fields tells.  A set is immutable once open, and
 * any number of threads may read from it at once.  What is wrong with a set (a file is missing, damaged, or
 * does not fit another) is LS_DATA, and the text names file, place, value and remedy; what is wrong with the
 * request (an unknown kind, a range beyond the set) is LS_INVALID. */
#ifndef LS_DATA_DATA_H
#define LS_DATA_DATA_H

#include "base/rng.h"
#include "data/points.h"
#include "data/transform.h"
#include "lockstep/tensor.h"

/* One field of one sample, without the batch dimension. */
typedef struct ls_field {
    const char *name;
    ls_dtype dtype;
    ls_shape shape;
} ls_field;

typedef struct ls_dataset ls_dataset;

/* Which set to open.  Start with {0}; strings may be NULL and need not live longer than ls_dataset_open.
 *
 * Kind "idx": MNIST's format, plain or gzip.  `path` is a folder; `images` is "train" (also when NULL:
 * train-images-idx3-ubyte[.gz]), "test" (t10k-...) or a file name, in `path` unless it is absolute; `labels`
 * names the file of labels, else its name follows from that of the images.  Fields: image f32 (1, H, W),
 * label i32 ().
 *
 * Kind "cifar": CIFAR-10's binary batches.  `images` is "train" (also when NULL: data_batch_1.bin to _5.bin,
 * as many as there are), "test" (test_batch.bin) or a file name.  Fields: image f32 (3, 32, 32), label i32
 * ().
 *
 * Kind "npy": NumPy arrays of u1, f4 or f8, memory mapped; the first dimension counts samples, and (N, H, W)
 * becomes images of one channel.  `images` is a file name, "train" or "test" (train-images.npy, ...), or
 * NULL: then `path` is the file.  `labels` names an optional array of u1, i4 or i8; "train" and "test" take
 * train-labels.npy, ... where it exists.  Fields: image f32, and label i32 () when there are labels.
 *
 * Kind "images": folders of JPEG and PNG files, told by their content.  With the layout "classes" (also when
 * NULL) `path` holds train/CLASS/FILE and test/CLASS/FILE (or val/...); the training set's
 * class folders in the order of their names are labels 0, 1, ...  Fields: image f32 (channels, H, W), label
 * i32 ().  With the layout "unpaired" `path` holds trainA, trainB, testA, testB (or train/A, ...); a set has
 * as many samples as the larger of the two folders has files, and begins again at the start of the smaller
 * one.  Fields: image_a and image_b; in training the second follows an order of its own, so that partners
 * change from epoch to epoch. `images` is "train" (also when NULL), "test", or another name in the place of
 * these.  Grey images get equal channels; alpha is dropped, 16 bits become 8, CMYK becomes RGB.  Without a
 * crop all images must be of one size.
 *
 * Kind "hdf5": arrays in HDF5 files, of integers or floats, in one piece or in chunks, packed by deflate or
 * not. `images` is "FILE:/ARRAY", "train" (also when NULL: train.h5:/images, or :/point_cloud where the field
 * is "cloud") or "test" (test.h5:...); without a FILE, `path` is the file.  `labels` is "FILE:/ARRAY", or
 * ":/ARRAY" in the same file; "train" and "test" take :/labels where it exists.  The first dimension counts
 * samples, and images (N, H, W) become those of one channel.  Fields: image (or what `field` says) f32, and
 * label i32 () when there are labels.
 *
 * Kind "synthetic": `count` samples made up from `seed`, with the given `fields` (by default those of MNIST).
 * A label is one of `classes` (0: 10); an image is the pattern of its class under noise, so that it can be
 * learnt; other fields are noise, floats in [-1, 1) and integers in [0, classes).  `pattern` is "tiles" (also
 * when NULL; light and dark in fixed places, which a linear classifier learns) or "waves" (trains of waves in
 * random places, of random phase and colour, in which it finds next to nothing).  Two ranges of one seed
 * share their patterns: training set and test set. */
typedef struct ls_data_source {
    const char *kind, *path, *images, *labels;
    int64_t first, end; /* the range of samples to use; end 0: all */
    /* Not 0: of the range, the first floor(split * n) samples of a permutation keyed by split_seed, or with
     * `rest` all others; both in stored order.  So that one file holds training set and validation set. */
    double split;
    uint64_t split_seed;
    bool rest;
    /* Not 0: of what is left, floor(hold * n) samples of another permutation of the same seed are held out:
     * the set is the others, or with `held` these; both in stored order. */
    double hold;
    bool held;
    /* What is done to pixels p / 255 (and to floats as they are): "none" or NULL, "mnist" (x - 0.1307) /
     * 0.3081, "unit" to -1..1; for three channels "imagenet" and "cifar", less the mean, divided by the
     * standard deviation of each. */
    const char *normalise;
    ls_transform transform; /* of images that are stored as bytes; synthetic ones have no need of it */
    const char *layout;     /* images: "classes" or NULL, "unpaired" */
    int64_t channels;       /* images: 3 (also when 0) or 1 */
    const char *field;      /* hdf5: the name of the samples' field; NULL: image */
    const char
        *box; /* hdf5: brings point clouds to 0..1: "LO:HI", "auto" to look for them, NULL: not (points.h) */
    int64_t points;         /* hdf5: of each cloud (channels, points) so many, chosen at random; 0: all */
    int64_t classes;        /* labels must be below; 0: not checked */
    bool fixed_classes;     /* they are the model's, which has no setting for them */
    bool labels_optional;   /* a set without labels is opened as one without that field */
    int n_fields;           /* synthetic: what to make */
    const ls_field *fields; /* synthetic */
    uint64_t seed;          /* synthetic */
    int64_t count;          /* synthetic */
    const char *pattern;    /* synthetic */
    bool of_experiment; /* messages name settings as an experiment does (data.crop), not as `lockstep data`
                           does (crop) */
} ls_data_source;

ls_status ls_dataset_open(ls_dataset **out, const ls_data_source *src, ls_err *err) LS_MUST_CHECK;
void ls_dataset_close(ls_dataset *d); /* accepts NULL */

const char *ls_dataset_kind(const ls_dataset *d);
/* Samples in the range, at least 1. */
int64_t ls_dataset_count(const ls_dataset *d);
/* The number of fields, and the fields, which live as long as the set. */
int ls_dataset_fields(const ls_dataset *d, const ls_field **out);
/* The place of the field called `name`, or -1. */
int ls_dataset_find(const ls_dataset *d, const char *name);
/* Bytes of one sample's field `i`. */
size_t ls_dataset_field_bytes(const ls_dataset *d, int i);

/* The number of classes and their names by label, which live as long as the set; 0 where the set does not say
 * (folders of images do). */
int64_t ls_dataset_classes(const ls_dataset *d, const char *const **names);
/* How many files lie among the samples and are none, such as notes.txt between images; *first names one. */
int64_t ls_dataset_ignored(const ls_dataset *d, const char **first);

/* The box that brings point clouds to 0..1, or NULL without one. */
const ls_box *ls_dataset_box(const ls_dataset *d);

/* Writes sample `index` (0 to count - 1) into fields[i]; a NULL pointer leaves that field out.  `augment`
 * keys the random changes that the transform makes (and the partner of an unpaired image); with NULL there
 * are none.  Its step is the epoch, its sample_base the position in it.  On LS_DATA the contents of the
 * fields are undefined and other samples can still be read. */
ls_status ls_dataset_read(const ls_dataset *d, int64_t index, const ls_rng_key *augment, void *const *fields,
                          ls_err *err) LS_MUST_CHECK;

#endif
