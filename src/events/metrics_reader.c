/* metrics_reader.c: lines of metrics.jsonl as objects; what is none is counted. */
#include "events/metrics_reader.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

void ls_metrics_reader_begin(ls_metrics_reader *r, const char *text, size_t n)
{
    *r = (ls_metrics_reader){.at = text, .end = text + n};
}

static bool is_number(const json_t *line, const char *key)
{
    return json_is_number(json_object_get(line, key));
}

/* NULL for a report, else why it is none. */
static const char *trouble(const json_t *line, const json_error_t *why)
{
    if (line == NULL) return why->text;
    if (!json_is_object(line)) return "";
    if (!is_number(line, "step") || !is_number(line, "epoch") || !is_number(line, "time_s"))
        return "\"step\", \"epoch\" and \"time_s\" are not all there, as numbers";
    return NULL;
}

static void count(ls_metrics_reader *r, const json_t *line, const char *why)
{
    const bool is_object = json_is_object(line);

    if (r->damage.lines++ > 0) return;
    r->damage.first = r->line;
    snprintf(r->damage.why, sizeof r->damage.why, "%s%s%s", is_object ? "" : "no JSON object",
             is_object || why[0] == '\0' ? "" : ": ", why);
}

json_t *ls_metrics_next(ls_metrics_reader *r)
{
    const char *next;

    while (r->at < r->end && (next = memchr(r->at, '\n', (size_t)(r->end - r->at))) != NULL) {
        json_error_t error = {0};
        json_t *line = json_loadb(r->at, (size_t)(next - r->at), 0, &error);
        const char *why = trouble(line, &error);
        r->at = next + 1;
        r->line++;
        if (why == NULL) return line;
        count(r, line, why);
        json_decref(line);
    }
    return NULL;
}

void ls_metrics_warn(const ls_metrics_damage *d, const char *path)
{
    char more[64] = "";

    if (d->lines == 0) return;
    if (d->lines > 1) snprintf(more, sizeof more, " (and %lld more such lines)", (long long)d->lines - 1);
    ls_log(LS_LOG_WARN, "%s, line %lld: %s; left out%s: the other reports are shown", path,
           (long long)d->first, d->why, more);
}
