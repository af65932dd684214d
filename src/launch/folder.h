/* folder.h: a folder for temporary files of a launcher's libraries, which does not stay behind.
 *
 * It is locked as long as the launcher lives, so that what a killed launcher has left can be told from what
 * is in use: the next one removes it. */
#ifndef LS_LAUNCH_FOLDER_H
#define LS_LAUNCH_FOLDER_H

#include "lockstep/status.h"

typedef struct lsi_folder {
    char path[64];
    int lock; /* a descriptor; -1: there is no folder */
} lsi_folder;

/* In $TMPDIR or /tmp.  Remove in any case; start with a lock of -1. */
ls_status lsi_folder_make(lsi_folder *f, ls_err *err) LS_MUST_CHECK;
void lsi_folder_remove(lsi_folder *f);

#endif
