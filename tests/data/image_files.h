/* image_files.h: image folders of the test's own, made by the program's writer, and what is in them. */
#ifndef LS_TESTS_IMAGE_FILES_H
#define LS_TESTS_IMAGE_FILES_H

#include "data/data.h"
#include "data/make.h"

/* A new folder under the build folder with the set that `o` describes (o->path is ignored); static text. */
const char *image_folder(const ls_data_make_options *o);
/* Removes all that was made. */
void image_clean(void);

/* The bytes of a file (malloc). */
unsigned char *image_load(const char *path, size_t *size);
void image_store(const char *path, const void *bytes, size_t size);

#endif
