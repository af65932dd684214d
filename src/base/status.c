/* status.c: error text that travels by argument (see lockstep/status.h). */
#include "lockstep/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ls_status ls_fail(ls_err *err, ls_status status, const char *fmt, ...)
{
    if (err && err->status == LS_OK) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        err->status = status;
    }
    return status;
}

ls_status ls_fail_in(ls_err *err, ls_status status, const char *fmt, ...)
{
    if (!err || status == LS_OK) return status;
    /* A callee may fail without words (hot calls return the status alone); its name is then the text. */
    if (err->status == LS_OK) ls_fail(err, status, "%s", ls_status_name(status));

    char context[LS_ERR_TEXT_MAX / 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(context, sizeof context - 2, fmt, ap);
    va_end(ap);
    size_t n = strlen(context), old = strlen(err->text);
    memcpy(context + n, ": ", 2);
    n += 2;

    /* When both do not fit, the end of the older text is lost: the path is what locates the error. */
    if (old > sizeof err->text - 1 - n) old = sizeof err->text - 1 - n;
    memmove(err->text + n, err->text, old);
    memcpy(err->text, context, n);
    err->text[n + old] = '\0';
    return status;
}

const char *ls_status_name(ls_status status)
{
    switch (status) {
    case LS_OK: return "ok";
    case LS_INVALID: return "invalid";
    case LS_FORMAT: return "bad format";
    case LS_IO: return "input/output error";
    case LS_NOMEM: return "no memory";
    case LS_UNSUPPORTED: return "unsupported";
    case LS_DEVICE: return "device error";
    case LS_LOST: return "rank lost";
    case LS_TIMEOUT: return "timeout";
    case LS_CANCELLED: return "cancelled";
    case LS_DATA: return "bad data";
    case LS_DIVERGED: return "diverged";
    case LS_DISAGREE: return "ranks disagree";
    }
    return "unknown status";
}

void ls_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "lockstep: bug: %s:%d: %s\n", file, line, what);
    abort();
}
