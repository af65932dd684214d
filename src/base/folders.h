/* folders.h: makes a folder with all folders that lead to it. */
#ifndef LS_BASE_FOLDERS_H
#define LS_BASE_FOLDERS_H

#include "lockstep/status.h"

/* Folders that are there already are left alone.  The text names the one that cannot be made; the status is
 * ls_folders_status. */
ls_status ls_folders_make(const char *path, ls_err *err) LS_MUST_CHECK;

/* Of a file or folder that could not be made, by its errno: LS_INVALID where another place has to be named,
 * as it lies where this user may not write; else LS_IO. */
ls_status ls_folders_status(int number);

#endif
