/* plugin.h: trials outside of Lockstep: shared objects that end with LS_TRIAL_PLUGIN (lockstep/trial.h). */
#ifndef LS_TRIALS_PLUGIN_H
#define LS_TRIALS_PLUGIN_H

#include "lockstep/trial.h"

/* Whether `name` means a file rather than a trial of this build: it has a '/' or ends in ".so". */
bool ls_plugin_is_named(const char *name);

/* Who has named a plug-in: loading it runs its code. */
typedef enum ls_plugin_trust {
    LS_PLUGIN_BY_HAND, /* the user: whatever it is */
    LS_PLUGIN_BY_RUN /* a run's own record: only the file that it was trained with, of this user or of root */
} ls_plugin_trust;

/* Loads the trial in `path` (with a '/'), for as long as the process lives; *xxh3 is the hash of the file, so
 * that ranks can tell whether they have the same one.  With LS_PLUGIN_BY_RUN it is that of the record before
 * (0: there is none), and another file is refused before any of its code runs.  LS_INVALID, naming the file
 * and what to do, when it is missing, no shared object, no plug-in, one for another LS_TRIAL_API, or its
 * trial is not complete. */
ls_status ls_plugin_load(const ls_trial **out, uint64_t *xxh3, ls_plugin_trust trust, const char *path,
                         ls_err *err) LS_MUST_CHECK;

#endif
