/* metrics.c: formats, cuts back and appends the lines of metrics.jsonl. */
#include "events/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "events/append.h"

/* How every line begins; what reads the step back relies on it. */
#define STEP_KEY    "\"step\": "
#define STEP_PREFIX "{" STEP_KEY
#define TIME_KEY    "\"time_s\": "

struct ls_metrics {
    ls_append file;
    ls_text line;
};

/* --- formatting --- */

static void add_string(ls_text *t, const char *s)
{
    ls_text_add(t, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            ls_text_add(t, "\\%c", c);
        } else if (c < 0x20) {
            ls_text_add(t, "\\u%04x", c);
        } else {
            ls_text_add(t, "%c", c);
        }
    }
    ls_text_add(t, "\"");
}

static void add_number(ls_text *t, double value)
{
    char buf[40];
    if (!isfinite(value)) {
        ls_text_add(t, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, value);
        if (strtod(buf, NULL) == value) break; /* 17 digits always come back as they were */
    }
    ls_text_add(t, "%s", buf);
}

/* The member that says what the nulls were, if there are any. */
static void add_not_finite(ls_text *t, const ls_metrics_line *line)
{
    bool any = false;
    for (int64_t i = 0; i < line->n_values; i++) {
        double value = line->values[i].value;
        if (isfinite(value)) continue;
        ls_text_add(t, any ? ", " : ", \"not_finite\": {");
        any = true;
        add_string(t, line->values[i].name);
        ls_text_add(t, ": \"%s\"", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
    if (any) ls_text_add(t, "}");
}

void ls_metrics_format(ls_text *out, const ls_metrics_line *line)
{
    ls_text_add(out, STEP_KEY "%" PRId64 ", \"epoch\": ", line->step);
    add_number(out, line->epoch);
    ls_text_add(out, ", " TIME_KEY);
    add_number(out, line->time_s);
    for (int64_t i = 0; i < line->n_values; i++) {
        ls_text_add(out, ", ");
        add_string(out, line->values[i].name);
        ls_text_add(out, ": ");
        add_number(out, line->values[i].value);
    }
    add_not_finite(out, line);
}

/* --- cutting back --- */

/* Whether the first name behind the time begins with `undone`. */
static bool is_undone(const char *line, const char *undone)
{
    const char *at = undone != NULL ? strstr(line, TIME_KEY) : NULL;
    if (at == NULL || (at = strchr(at, ',')) == NULL || strncmp(at, ", \"", 3) != 0) return false;
    return strncmp(at + 3, undone, strlen(undone)) == 0;
}

/* True when `line` is a report of a step after `last_step`, or one of it that will be made again.  Lines of
 * another form are left alone. */
static bool is_later(const char *line, int64_t last_step, const char *undone)
{
    size_t n = strlen(STEP_PREFIX);
    char *end;
    if (strncmp(line, STEP_PREFIX, n) != 0) return false;
    errno = 0;
    long long step = strtoll(line + n, &end, 10);
    if (end == line + n || errno != 0) return false;
    return step > last_step || (step == last_step && is_undone(end, undone));
}

/* How many bytes of `path` to keep; 0 when there is no such file. */
static ls_status find_end(const char *path, int64_t last_step, const char *undone, int64_t *out, ls_err *err)
{
    char head[256]; /* of the line: enough for its step, and for the beginning of its first name */
    size_t n = 0;
    int64_t at = 0;
    int c;
    *out = 0;
    FILE *f = fopen(path, "r");
    if (!f && errno == ENOENT) return LS_OK;
    if (!f) return ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
    while ((c = getc(f)) != EOF) {
        at++;
        if (c != '\n') {
            if (n < sizeof head - 1) head[n++] = (char)c;
            continue;
        }
        head[n] = '\0';
        n = 0;
        if (is_later(head, last_step, undone)) break;
        *out = at;
    }
    bool failed = ferror(f) != 0;
    fclose(f);
    return failed ? ls_fail(err, LS_IO, "%s: cannot be read", path) : LS_OK;
}

/* --- the file --- */

ls_status ls_metrics_open(ls_metrics **out, const char *path, int64_t last_step, const char *undone,
                          ls_err *err)
{
    ls_status st = LS_OK;
    int64_t keep = 0;
    *out = NULL;
    ls_metrics *m = ls_alloc(LS_MEM_CLI, sizeof *m);
    if (!m) return ls_fail(err, LS_NOMEM, "%s: out of memory", path);
    m->file.fd = -1;
    if (last_step >= 0) LS_TRY(find_end(path, last_step, undone, &keep, err));
    LS_TRY(ls_append_open(&m->file, path, O_WRONLY, "metrics", err));
    if (m->file.bytes != keep) {
        if (ftruncate(m->file.fd, (off_t)keep) != 0) {
            st = ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
            goto out;
        }
        m->file.bytes = keep;
    }
    *out = m;
    m = NULL;
out:
    ls_metrics_close(m);
    return st;
}

void ls_metrics_write(ls_metrics *m, const ls_metrics_line *line)
{
    if (!m) return;
    m->line.length = 0;
    m->line.failed = false;
    ls_text_add(&m->line, "{");
    ls_metrics_format(&m->line, line);
    ls_text_add(&m->line, "}\n");
    if (m->line.failed) {
        ls_append_lost(&m->file);
    } else {
        ls_append_write(&m->file, m->line.data, m->line.length);
    }
}

void ls_metrics_flush(ls_metrics *m)
{
    if (m) ls_append_flush(&m->file);
}

void ls_metrics_close(ls_metrics *m)
{
    if (!m) return;
    ls_append_close(&m->file);
    ls_text_release(&m->line);
    ls_free(m);
}

int64_t ls_metrics_missing(const ls_metrics *m)
{
    return m ? ls_append_missing(&m->file) : 0;
}
