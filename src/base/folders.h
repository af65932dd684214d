/* folders.h: makes a folder with all folders that lead to it. */
#ifndef LS_BASE_FOLDERS_H
#define LS_BASE_FOLDERS_H

#include "lockstep/status.h"

/* Folders that are there already are left alone; LS_IO names the one that cannot be made. */
ls_status ls_folders_make(const char *path, ls_err *err) LS_MUST_CHECK;

#endif
