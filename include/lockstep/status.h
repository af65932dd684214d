/* status.h: how every function of Lockstep says whether it worked.
 *
 * A function that can fail returns an ls_status and takes, as its last argument, an optional `ls_err *`
 * that receives the text.  The text travels by argument rather than in thread-local storage so that it can
 * cross worker threads and ranks without going stale.  Abort is reserved for our own bugs (LS_BUG_IF):
 * never for input, memory, files, devices or peers. */
#ifndef LOCKSTEP_STATUS_H
#define LOCKSTEP_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Lockstep is compiled with hidden names.  What the public headers declare is visible: these names, and no
 * others, are what the program exports to plug-ins (lockstep/trial.h). */
#pragma GCC visibility push(default)

/* The codes a caller may act on; everything finer is in the text. */
typedef enum ls_status {
    LS_OK = 0,
    LS_INVALID = -1,     /* the caller's request cannot be right: shapes, settings, arguments */
    LS_FORMAT = -2,      /* bytes from outside do not have the promised form */
    LS_IO = -3,          /* the operating system refused a read or write */
    LS_NOMEM = -4,       /* memory could not be had */
    LS_UNSUPPORTED = -5, /* a valid request that this build or device cannot serve */
    LS_DEVICE = -6,      /* a device or its library failed */
    LS_LOST = -7,        /* another rank is gone */
    LS_TIMEOUT = -8,
    LS_CANCELLED = -9,
    LS_DATA = -10, /* a data set or checkpoint is missing, unreadable or damaged; the text names the file */
    LS_DIVERGED = -11, /* the numbers of a training run are no longer finite */
    LS_DISAGREE = -12, /* ranks that must do or hold the same do not */
} ls_status;

#define LS_ERR_TEXT_MAX 2048

/* Start with {0}.  The first failure wins: a later ls_fail on a filled ls_err changes nothing, so the
 * first cause stays first. */
typedef struct ls_err {
    ls_status status;
    char text[LS_ERR_TEXT_MAX];
} ls_err;

#ifdef __cplusplus
#define LS_NORETURN [[noreturn]]
#else
#define LS_NORETURN _Noreturn
#endif

#if defined(__GNUC__)
#define LS_MUST_CHECK      __attribute__((warn_unused_result))
#define LS_PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#else
#define LS_MUST_CHECK
#define LS_PRINTF(fmt, va)
#endif

/* Records `status` and a message in `err` (which may be NULL) and returns `status`. */
ls_status ls_fail(ls_err *err, ls_status status, const char *fmt, ...) LS_PRINTF(3, 4);

/* Puts "context: " in front of the text already in `err`, so that the user reads the path the error took:
 * `train: data/val.h5: dataset "label": expected int64`.  Returns `status` unchanged; does nothing on LS_OK.
 */
ls_status ls_fail_in(ls_err *err, ls_status status, const char *fmt, ...) LS_PRINTF(3, 4);

/* The short lower-case name of a status: "invalid", "no memory", ...  Never NULL. */
const char *ls_status_name(ls_status status);

/* For functions with one exit: `ls_status st = LS_OK;` at the top, `out:` at the bottom. */
#define LS_TRY(call)                                                                                         \
    do {                                                                                                     \
        st = (call);                                                                                         \
        if (st != LS_OK) goto out;                                                                           \
    } while (0)

/* Prints the condition with its place and aborts: only for states that our own code made impossible. */
#define LS_BUG_IF(cond)                                                                                      \
    do {                                                                                                     \
        if (cond) ls_bug(__FILE__, __LINE__, #cond);                                                         \
    } while (0)

LS_NORETURN void ls_bug(const char *file, int line, const char *what);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
