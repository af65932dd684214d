/* json.c: JSON in files and texts. */
#include "base/json.h"

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
