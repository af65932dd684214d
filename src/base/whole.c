/* whole.c: a file in memory. */
#include "base/whole.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* Sizes are not asked for: a file may grow while it is read, and a pipe has none. */
ls_status ls_whole_file(char **out, size_t *n, const char *path, size_t most, ls_err *err)
{
    FILE *f = fopen(path, "rb");
    size_t capacity = 64 * 1024, length = 0;
    char *data = NULL;
    ls_status st = LS_OK;

    *out = NULL;
    *n = 0;
    if (f == NULL) return ls_fail(err, LS_DATA, "%s: %s", path, strerror(errno));
    for (;;) {
        char *grown = ls_realloc(LS_MEM_CLI, data, capacity + 1);
        if (grown == NULL) {
            st = ls_fail(err, LS_NOMEM, "%s: no memory to read it", path);
            goto out;
        }
        data = grown;
        length += fread(data + length, 1, capacity - length, f);
        if (length < capacity) break;
        if (length > most) {
            st = ls_fail(err, LS_DATA, "%s: more than %zu bytes", path, most);
            goto out;
        }
        capacity *= 2;
    }
    if (ferror(f)) {
        st = ls_fail(err, LS_DATA, "%s: %s", path, strerror(errno));
    } else if (length > most) {
        st = ls_fail(err, LS_DATA, "%s: more than %zu bytes", path, most);
    } else {
        data[length] = '\0';
        *out = data;
        *n = length;
        data = NULL;
    }
out:
    ls_free(data);
    fclose(f);
    return st;
}
