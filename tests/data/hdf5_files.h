/* hdf5_files.h: small HDF5 files for the tests of the loader. */
#ifndef LS_TESTS_HDF5_FILES_H
#define LS_TESTS_HDF5_FILES_H

#include "data/hdf5_internal.h"

/* Writes `n` arrays as `name` in the test's folder, over what is there; returns the path (static). */
const char *hdf5_write(const char *name, const lsi_h5_content *contents, int n);

/* Samples whose element k of sample i is hdf5_value(i, k), in the element type at `arg` (an lsi_h5_content).
 */
void hdf5_sample(void *arg, int64_t i, void *out);
int hdf5_value(int64_t sample, int64_t element);
/* Labels i % 10. */
void hdf5_label(void *arg, int64_t i, void *out);

#endif
