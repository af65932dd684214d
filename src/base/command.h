/* command.h: runs another program and collects what it says.
 *
 * For short questions to the tools of a system (Slurm's, for instance), not for work: the caller waits. */
#ifndef LS_BASE_COMMAND_H
#define LS_BASE_COMMAND_H

#include "base/text.h"
#include "lockstep/status.h"

#define LS_COMMAND_OUTPUT_MAX                                                                                \
    ((size_t)4 << 20) /* bytes of each stream that are kept; the rest is dropped                             \
                       */

/* Starts as {0}. */
typedef struct ls_command_result {
    int code;          /* exit code, or 128 + the signal that ended it */
    ls_text out, said; /* standard output; standard error */
} ls_command_result;

/* Runs argv[0], looked for in PATH, with the words argv (ended by NULL) and `input` (NULL: nothing) on its
 * standard input, in a process group of its own, so that Ctrl-C is the caller's alone.  LS_UNSUPPORTED: there
 * is no such program; LS_TIMEOUT: it took longer than `limit_s` and was killed.  Any exit code is LS_OK here:
 * what it means is the caller's business.  Release the result in any case. */
ls_status ls_command_run(ls_command_result *out, const char *const *argv, const char *input, double limit_s,
                         ls_err *err) LS_MUST_CHECK;
void ls_command_release(ls_command_result *r); /* frees and zeroes */

#endif
