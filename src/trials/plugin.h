/* plugin.h: trials outside of Lockstep: shared objects that end with LS_TRIAL_PLUGIN (lockstep/trial.h). */
#ifndef LS_TRIALS_PLUGIN_H
#define LS_TRIALS_PLUGIN_H

#include "lockstep/trial.h"

/* Whether `name` means a file rather than a trial of this build: it has a '/' or ends in ".so". */
bool ls_plugin_is_named(const char *name);

/* Loads the trial in `path` (with a '/'), for as long as the process lives; *xxh3 is the hash of the file, so
 * that ranks can tell whether they have the same one.  LS_INVALID, naming the file and what to do, when it is
 * missing, no shared object, no plug-in, one for another LS_TRIAL_API, or its trial is not complete. */
ls_status ls_plugin_load(const ls_trial **out, uint64_t *xxh3, const char *path, ls_err *err) LS_MUST_CHECK;

#endif
