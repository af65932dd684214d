/* event_files.h: what the tests of this folder share: folders of their own, files as bytes. */
#ifndef LS_TESTS_EVENT_FILES_H
#define LS_TESTS_EVENT_FILES_H

#include <stddef.h>

#define FOLDER_MAX 256

/* Makes an empty folder under $TMPDIR or /tmp. */
void make_folder(char out[FOLDER_MAX]);
/* Removes the folder and the files in it. */
void remove_folder(const char *folder);

/* The file's bytes, NUL-terminated; the caller frees them. */
char *read_bytes(const char *path, size_t *n);
void write_bytes(const char *path, const void *data, size_t n);

#endif
