/* make.h: writes small synthetic sets in the real formats, for trying things out without a download. */
#ifndef LS_DATA_MAKE_H
#define LS_DATA_MAKE_H

#include "data/data.h"

/* Start with {0}. */
typedef struct ls_data_make_options {
    const char *kind;    /* idx, cifar, npy, hdf5, images (a folder per class), unpaired (folders A and B) */
    const char *path;    /* the folder; made when it is not there, as are those that lead to it */
    int64_t train, test; /* samples; 0: 1000 and 200 */
    int64_t classes;     /* 0: 10; at most 256 */
    ls_shape shape; /* channels, height, width; rank 0: that of the format, (1, 28, 28) where it has none, (3,
                       32, 32) for image files */
    uint64_t seed;
    bool gzip;           /* idx, hdf5: compressed files */
    bool png;            /* images and unpaired: PNG files, else JPEG */
    const char *pattern; /* of images: "tiles" (also when NULL) or "waves", see ls_data_source */
    int64_t points; /* hdf5: clouds of so many points instead of images; each class is a coil of its own */
    int64_t maps;   /* npy: square maps of so many pixels a side instead of images: smooth fields of floats
                       from -1 to 1, without labels */
} ls_data_make_options;

/* Writes the files under the names by which the kind finds them ("train" and "test" of ls_data_source).  The
 * samples are those of a synthetic set with the same seed, rounded to bytes; the test set follows the
 * training set in it.  Unpaired images are scenes with plain ellipses in A and striped ones in B, one half of
 * the samples each.  JPEG files are what is left after compression.  A file that is already there is never
 * overwritten: LS_INVALID. */
ls_status ls_data_make(const ls_data_make_options *o, ls_err *err) LS_MUST_CHECK;

#endif
