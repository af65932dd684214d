/* json.c: JSON in files and texts. */
#include "base/json.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/replace.h"
#include "base/whole.h"

ls_status ls_json_read(json_t **out, const char *path, size_t most, ls_err *err)
{
    json_error_t why;
    char *text = NULL;
    size_t n;
    ls_status st;

    *out = NULL;
    st = ls_whole_plain(&text, &n, path, most, err);
    if (st != LS_OK) return st;
    *out = json_loadb(text, n, 0, &why);
    if (*out == NULL) st = ls_fail(err, LS_DATA, "%s:%d: no JSON: %s", path, why.line, why.text);
    ls_free(text);
    return st;
}

static int append(const char *text, size_t n, void *to)
{
    ls_text_add(to, "%.*s", (int)n, text);
    return ((ls_text *)to)->failed ? -1 : 0;
}

void ls_json_add(ls_text *to, const json_t *value, size_t flags)
{
    if (json_dump_callback(value, append, to, flags) != 0) to->failed = true;
}

const char *ls_json_show(const json_t *value, char buf[LS_JSON_SHOWN])
{
    const size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT;
    const size_t n = json_dumpb(value, buf, LS_JSON_SHOWN, flags);

    if (json_is_array(value) || json_is_object(value))
        snprintf(buf, LS_JSON_SHOWN, json_is_array(value) ? "a list" : "an object");
    else if (n == 0 || n >= LS_JSON_SHOWN)
        snprintf(buf, LS_JSON_SHOWN, "a text of %zu bytes", json_string_length(value));
    else
        buf[n] = '\0';
    return buf;
}

ls_status ls_json_write(const char *path, const json_t *value, ls_err *err)
{
    ls_text text = {0};
    ls_status st;

    ls_json_add(&text, value, LS_JSON_FILE_FLAGS);
    ls_text_add(&text, "\n");
    if (text.failed)
        st = ls_fail(err, LS_NOMEM, "%s: no memory to write it", path);
    else
        st = ls_replace_file(path, text.data, text.length, err);
    ls_text_release(&text);
    return st;
}
