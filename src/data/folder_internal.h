/* folder_internal.h: the names in a folder, in the order of their bytes. */
#ifndef LS_DATA_FOLDER_INTERNAL_H
#define LS_DATA_FOLDER_INTERNAL_H

#include <stdint.h>

#include "base/alloc.h"

typedef struct lsi_folder {
    const char *path;   /* the arena's, as are the names */
    const char **names; /* sorted */
    int64_t n;
    int64_t n_others; /* files that are no images and were left out, and one of them */
    const char *other;
} lsi_folder;

typedef enum lsi_folder_what { LSI_FOLDER_FILES, LSI_FOLDER_FOLDERS } lsi_folder_what;

bool lsi_folder_exists(const char *path);
/* Whether a file that begins so is a JPEG or a PNG file. */
bool lsi_is_image(const uint8_t *bytes, size_t n);
/* Lists the images of a folder, or its sub-folders; names that begin with a dot are passed over. LS_DATA when
 * the folder cannot be read, holds none of what is wanted, or (asked for files) holds folders.  Release in
 * any case. */
ls_status lsi_folder_list(lsi_folder *f, ls_arena *arena, const char *path, lsi_folder_what what,
                          ls_err *err) LS_MUST_CHECK;
void lsi_folder_release(lsi_folder *f);

#endif
