/* replace.h: writes a whole file so that readers see the old one or the new one, never a part.
 *
 * The bytes go to a new file beside `path`, PATH.PID-RANDOM.partial: one that nobody else has, also on
 * another machine (a link there is never followed).  They are on the disk before it is renamed, and the
 * renaming is before the call returns.  The folder must be there.  Two processes that write the same path do
 * not disturb each other: the last one wins. */
#ifndef LS_BASE_REPLACE_H
#define LS_BASE_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lockstep/status.h"

/* LS_IO names the file; what was at `path` is then still there, and nothing beside it.  Devices, pipes and
 * what else is no file are not replaced. */
ls_status ls_replace_file(const char *path, const void *bytes, size_t n, ls_err *err) LS_MUST_CHECK;

/* Whether ls_replace_file would begin: for those who have much to do, or to say, before there is anything to
 * write.  LS_IO as there. */
ls_status ls_replace_check(const char *path, ls_err *err) LS_MUST_CHECK;

enum { LS_REPLACE_PATH = 4300 };

/* The names that belong to a path, made beforehand. */
typedef struct ls_replace_names {
    char path[LS_REPLACE_PATH], aside[LS_REPLACE_PATH + 32], folder[LS_REPLACE_PATH];
} ls_replace_names;

/* LS_IO when the path is too long, or is that of a device or a pipe. */
ls_status ls_replace_name(ls_replace_names *names, const char *path, ls_err *err) LS_MUST_CHECK;
/* Asked when the bytes are on the disk, right before the renaming: false means that the file is not this
 * process's to replace any more. */
typedef struct ls_replace_gate {
    bool (*open)(const void *arg);
    const void *arg;
} ls_replace_gate;

/* ls_replace_file with names of ls_replace_name: 0 or the errno; ECANCELED: the gate (NULL: none) is not
 * open. May be called from a signal handler if the gate may. */
int ls_replace_named(const ls_replace_names *names, const void *bytes, size_t n, const ls_replace_gate *gate);

/* The same for what is written piece by piece: begin, write to `f`, then commit or abandon.  Neither does
 * anything to one that failed to begin. */
typedef struct ls_replace_stream {
    ls_replace_names names;
    FILE *f;
} ls_replace_stream;

ls_status ls_replace_begin(ls_replace_stream *s, const char *path, ls_err *err) LS_MUST_CHECK;
/* LS_IO also when a write to `f` has failed before; the path then has what it had. */
ls_status ls_replace_commit(ls_replace_stream *s, ls_err *err) LS_MUST_CHECK;
void ls_replace_abandon(ls_replace_stream *s);

/* fsync of a folder: what was renamed in it stays renamed.  0 or the errno; a file system that cannot is no
 * failure.  May be called from a signal handler. */
int ls_replace_sync_folder(const char *folder);

#endif
