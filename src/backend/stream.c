/* stream.c: the first failure of several streams. */
#include "backend/stream.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

void ls_stream_fail(const ls_stream *s, ls_status status, const char *fmt, ...)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* threads of a kernel may fail at once */
    char text[LS_ERR_TEXT_MAX / 2];
    va_list ap;

    if (s == NULL) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&lock);
    if (!s->failure->told) {
        s->failure->node = s->node;
        ls_fail(&s->failure->why, status, "%s", text);
        s->failure->told = true;
    }
    pthread_mutex_unlock(&lock);
}
