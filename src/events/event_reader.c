/* event_reader.c: TFRecords to values, trusting nothing. */
#include "events/event_reader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/whole.h"
#include "events/crc32c.h"
#include "events/events_internal.h"
#include "events/wire.h"

#define NAME_MAX_BYTES 1024 /* tags and names of plugins beyond this are refused */
#define FILE_MAX_BYTES ((size_t)16 << 30)

struct ls_event_reader {
    char *owned; /* NULL over the caller's bytes */
    const uint8_t *data;
    size_t n, at; /* `at`: start of the record after the current one */
    size_t torn;
    const char *damage; /* what was found wrong, or NULL */
    size_t record;      /* start of the current record, for messages */
    lsi_span values;    /* what is left of the current event's Summary */
    ls_event current;   /* its step and time */
    char tag[NAME_MAX_BYTES], plugin[NAME_MAX_BYTES];
};

/* --- the file --- */

ls_status ls_event_reader_memory(ls_event_reader **out, const void *data, size_t n, ls_err *err)
{
    *out = ls_alloc(LS_MEM_CLI, sizeof **out);
    if (!*out) return ls_fail(err, LS_NOMEM, "event reader: out of memory");
    (*out)->data = data;
    (*out)->n = n;
    return LS_OK;
}

ls_status ls_event_reader_open(ls_event_reader **out, const char *path, ls_err *err)
{
    ls_status st = LS_OK;
    char *data = NULL;
    size_t n = 0;
    *out = NULL;
    LS_TRY(ls_whole_file(&data, &n, path, FILE_MAX_BYTES, err));
    LS_TRY(ls_event_reader_memory(out, data, n, err));
    (*out)->owned = data;
    data = NULL;
out:
    ls_free(data);
    return st;
}

void ls_event_reader_close(ls_event_reader *r)
{
    if (!r) return;
    ls_free(r->owned);
    ls_free(r);
}

size_t ls_event_reader_torn(const ls_event_reader *r)
{
    return r->torn;
}

/* --- messages --- */

/* Nothing behind the first damage can be trusted: it stays the answer. */
static ls_status bad(ls_event_reader *r, ls_err *err, const char *what)
{
    r->damage = what;
    return ls_fail(err, LS_FORMAT, "event record at byte %zu: %s", r->record, what);
}

/* Finds the last field `number` of the message `s`, as the format wants it; false when there is none or
 * when the message is damaged, which *damaged says. */
static bool find_field(lsi_span s, int number, int type, lsi_field *out, bool *damaged)
{
    lsi_field f = {0};
    lsi_wire_result result;
    bool found = false;
    while ((result = lsi_wire_next(&s, &f)) == LSI_WIRE_FIELD) {
        if (f.number == number && f.type == type) {
            *out = f;
            found = true;
        }
    }
    if (result == LSI_WIRE_BAD) *damaged = true;
    return found && !*damaged;
}

static int64_t find_int(lsi_span s, int number, bool *damaged)
{
    lsi_field f = {0};
    return find_field(s, number, LSI_WIRE_VARINT, &f, damaged) ? (int64_t)f.bits : 0;
}

static bool find_bytes(lsi_span s, int number, lsi_span *out, bool *damaged)
{
    lsi_field f = {0};
    if (!find_field(s, number, LSI_WIRE_BYTES, &f, damaged)) return false;
    *out = f.bytes;
    return true;
}

/* Copies a name; one that is too long or holds a NUL is damage. */
static void copy_name(char out[NAME_MAX_BYTES], lsi_span s, bool *damaged)
{
    size_t n = (size_t)(s.end - s.at);
    if (n >= NAME_MAX_BYTES || memchr(s.at, 0, n)) {
        *damaged = true;
        return;
    }
    memcpy(out, s.at, n);
    out[n] = '\0';
}

static void set_bytes(ls_event *e, lsi_span s)
{
    e->bytes = (const char *)s.at;
    e->n_bytes = (size_t)(s.end - s.at);
}

static void read_metadata(ls_event_reader *r, lsi_span value, lsi_span *content, bool *damaged)
{
    lsi_span metadata, plugin, name;
    if (!find_bytes(value, LSI_VALUE_METADATA, &metadata, damaged) ||
        !find_bytes(metadata, LSI_METADATA_PLUGIN, &plugin, damaged))
        return;
    if (find_bytes(plugin, LSI_PLUGIN_NAME, &name, damaged)) copy_name(r->plugin, name, damaged);
    find_bytes(plugin, LSI_PLUGIN_CONTENT, content, damaged);
}

static void read_tensor(ls_event *e, lsi_span tensor, bool *damaged)
{
    lsi_span text;
    if (find_int(tensor, LSI_TENSOR_DTYPE, damaged) != LSI_DT_STRING) return;
    if (!find_bytes(tensor, LSI_TENSOR_STRING, &text, damaged)) return;
    e->kind = LS_EVENT_TEXT;
    set_bytes(e, text);
}

static void read_image(ls_event *e, lsi_span image, bool *damaged)
{
    lsi_span encoded;
    e->kind = LS_EVENT_IMAGE;
    e->width = find_int(image, LSI_IMAGE_WIDTH, damaged);
    e->height = find_int(image, LSI_IMAGE_HEIGHT, damaged);
    e->channels = find_int(image, LSI_IMAGE_COLORSPACE, damaged);
    if (find_bytes(image, LSI_IMAGE_ENCODED, &encoded, damaged)) set_bytes(e, encoded);
}

static bool read_value(ls_event_reader *r, lsi_span value, ls_event *e)
{
    bool damaged = false;
    lsi_field f = {0};
    lsi_span tag, part, content = {0};

    r->tag[0] = r->plugin[0] = '\0';
    if (find_bytes(value, LSI_VALUE_TAG, &tag, &damaged)) copy_name(r->tag, tag, &damaged);
    read_metadata(r, value, &content, &damaged);
    if (find_field(value, LSI_VALUE_SIMPLE, LSI_WIRE_32, &f, &damaged)) {
        float x;
        uint32_t bits = (uint32_t)f.bits;
        memcpy(&x, &bits, sizeof x);
        e->kind = LS_EVENT_SCALAR;
        e->value = (double)x;
    } else if (find_bytes(value, LSI_VALUE_IMAGE, &part, &damaged)) {
        read_image(e, part, &damaged);
    } else if (find_bytes(value, LSI_VALUE_TENSOR, &part, &damaged)) {
        read_tensor(e, part, &damaged);
    } else if (content.at) {
        e->kind = LS_EVENT_PLUGIN;
        set_bytes(e, content);
    }
    return !damaged;
}

/* --- records --- */

/* Takes the next whole record; *more is false at the end of the file or at a torn tail. */
static ls_status next_record(ls_event_reader *r, lsi_span *out, bool *more, ls_err *err)
{
    size_t left = r->n - r->at;
    const uint8_t *head = r->data + r->at;

    r->record = r->at;
    *more = false;
    r->torn = left;
    if (left < LSI_RECORD_HEAD) return LS_OK;
    uint64_t n = lsi_wire_load64(head);
    if (ls_crc32c_masked(head, 8) != lsi_wire_load32(head + 8)) return bad(r, err, "the length is damaged");
    if (left - LSI_RECORD_HEAD < LSI_RECORD_TAIL || n > left - LSI_RECORD_HEAD - LSI_RECORD_TAIL)
        return LS_OK;
    const uint8_t *body = head + LSI_RECORD_HEAD;
    if (ls_crc32c_masked(body, (size_t)n) != lsi_wire_load32(body + n)) {
        return bad(r, err, "the checksum does not fit the content");
    }
    *out = (lsi_span){body, body + n};
    r->at += LSI_RECORD_HEAD + (size_t)n + LSI_RECORD_TAIL;
    r->torn = 0;
    *more = true;
    return LS_OK;
}

/* Reads what an Event says itself; its Summary is left in r->values. */
static bool read_event(ls_event_reader *r, lsi_span event)
{
    bool damaged = false;
    lsi_field f = {0};
    lsi_span part;

    r->current = (ls_event){.kind = LS_EVENT_OTHER};
    if (find_field(event, LSI_EVENT_WALL_TIME, LSI_WIRE_64, &f, &damaged)) {
        memcpy(&r->current.wall_time, &f.bits, sizeof r->current.wall_time);
    }
    r->current.step = find_int(event, LSI_EVENT_STEP, &damaged);
    if (find_bytes(event, LSI_EVENT_FILE_VERSION, &part, &damaged)) {
        r->current.kind = LS_EVENT_VERSION;
        set_bytes(&r->current, part);
    } else if (find_bytes(event, LSI_EVENT_SESSION_LOG, &part, &damaged)) {
        if (find_int(part, LSI_SESSION_LOG_STATUS, &damaged) == LSI_SESSION_LOG_START) {
            r->current.kind = LS_EVENT_RESTART;
        }
    } else {
        find_bytes(event, LSI_EVENT_SUMMARY, &r->values, &damaged);
    }
    return !damaged;
}

/* Takes the next Value off the current Summary; LSI_WIRE_DONE when there is none left. */
static lsi_wire_result next_value(ls_event_reader *r, lsi_span *out)
{
    lsi_field f = {0};
    lsi_wire_result result;
    while ((result = lsi_wire_next(&r->values, &f)) == LSI_WIRE_FIELD) {
        if (f.number == LSI_SUMMARY_VALUE && f.type == LSI_WIRE_BYTES) {
            *out = f.bytes;
            break;
        }
    }
    return result;
}

/* The next value or value-less event into `out`, whose texts are still missing. */
static ls_status advance(ls_event_reader *r, ls_event *out, bool *more, ls_err *err)
{
    for (;;) {
        lsi_span span = {0};
        lsi_wire_result result = next_value(r, &span);
        *out = r->current;
        if (result == LSI_WIRE_FIELD) {
            *more = read_value(r, span, out);
            return *more ? LS_OK : bad(r, err, "a value is damaged");
        }
        if (result == LSI_WIRE_BAD) return bad(r, err, "the summary is damaged");

        ls_status st = next_record(r, &span, more, err);
        if (st != LS_OK || !*more) return st;
        *more = false;
        r->tag[0] = r->plugin[0] = '\0';
        if (!read_event(r, span)) return bad(r, err, "the event is damaged");
        if (r->values.at == r->values.end) {
            *out = r->current;
            *more = true;
            return LS_OK;
        }
    }
}

ls_status ls_event_reader_next(ls_event_reader *r, ls_event *out, bool *more, ls_err *err)
{
    *more = false;
    ls_status st = r->damage ? bad(r, err, r->damage) : advance(r, out, more, err);
    if (*more) {
        out->tag = r->tag;
        out->plugin = r->plugin;
    } else {
        *out = (ls_event){0};
    }
    return st;
}

const char *ls_event_kind_name(ls_event_kind kind)
{
    switch (kind) {
    case LS_EVENT_VERSION: return "version";
    case LS_EVENT_SCALAR: return "scalar";
    case LS_EVENT_TEXT: return "text";
    case LS_EVENT_IMAGE: return "image";
    case LS_EVENT_PLUGIN: return "plugin";
    case LS_EVENT_RESTART: return "restart";
    case LS_EVENT_OTHER: break;
    }
    return "other";
}
