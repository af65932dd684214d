/* data_files.h: small data sets in a folder of the test's own, whole and damaged. */
#ifndef LS_TESTS_DATA_FILES_H
#define LS_TESTS_DATA_FILES_H

#include "data/data.h"

/* A new empty folder under the build folder; the same one during one test program. */
const char *data_folder(void);
/* Removes the folder and the files written by the functions below. */
void data_clean(void);

/* Writes `size` bytes as `name` in the folder, gzip-compressed if asked; returns the full path (static). */
const char *data_write(const char *name, const void *bytes, size_t size, bool gzip);

/* IDX files "NAME-images-idx3-ubyte" and "NAME-labels-idx1-ubyte": pixel i of sample s is data_pixel(s, i),
 * the label is s % 10. */
void data_write_idx(const char *name, int count, int rows, int cols, bool gzip);
int data_pixel(int sample, int i);

/* A .npy file, version 1, with this header text and these bytes behind it. */
const char *data_write_npy(const char *name, const char *header, const void *bytes, size_t size);

/* Opening `src` must fail with `want` and a text that contains both parts; NULL parts are not looked for. */
void data_check_refused(const ls_data_source *src, ls_status want, const char *part, const char *other);

#endif
