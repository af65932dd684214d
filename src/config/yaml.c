/* yaml.c: a YAML text as a list of dotted keys with their values and places.
 *
 * libyaml's events are read one at a time, so that nesting, length and number are refused when they are
 * seen and not after they have been stored.  Aliases and tags are refused: an alias can make a small file
 * stand for a huge one, and references do the same job. */
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "config/config_internal.h"

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    lsi_document *doc;
    ls_arena *arena;
    const char *source;
    bool is_override; /* no line and column in places */
    char key[LSI_KEY_MAX];
    ls_err *err;
} reader;

/* -- characters -------------------------------------------------------------------------------------------
 */

/* The code point at `s` and its length in bytes; length 0: not UTF-8. */
static uint32_t decode(const unsigned char *s, size_t n, size_t *length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = s[0];
    size_t k = code < 0x80 ? 1 : code >> 5 == 6 ? 2 : code >> 4 == 14 ? 3 : code >> 3 == 30 ? 4 : 0;

    *length = 0;
    if (k == 0 || k > n) return 0;
    if (k > 1) code &= 0x7fu >> k;
    for (size_t i = 1; i < k; i++) {
        if (s[i] >> 6 != 2) return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code >= least[k]) *length = k;
    return code;
}

bool lsi_is_printable(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;

    for (size_t length; n > 0; s += length, n -= length) {
        uint32_t c = decode(s, n, &length);
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
        bool none = (c >= 0xd800 && c < 0xe000) || c == 0xfeff || c == 0xfffe || c == 0xffff || c > 0x10ffff;
        if (length == 0 || control || none) return false;
    }
    return true;
}

/* -- braces of references ---------------------------------------------------------------------------------
 * In {a: ${b}} YAML would take the inner braces for its own.  They are replaced by two characters of the
 * private-use area, one for one so that columns stay right, and back when a scalar has been read. */

#define OPEN_BRACE  "\xee\x9f\xab" /* U+E7EB */
#define CLOSE_BRACE "\xee\x9f\xad" /* U+E7ED */

/* A copy with other characters for the braces of references, each of which is within one line. */
static char *hide_braces(const char *text, size_t n, size_t *n_out, ls_arena *arena)
{
    const size_t width = strlen(OPEN_BRACE);
    const char *end = text + n, *stop = text; /* the next closing brace or end of line */
    bool inside = false;
    size_t hidden = 0;
    char *out, *to;

    for (size_t i = 0; i + 1 < n; i++) hidden += text[i] == '$' && text[i + 1] == '{';
    out = to = ls_arena_alloc(arena, n + 2 * hidden * (width - 1) + 1);
    for (const char *at = text; out != NULL && at < end; at++) {
        if (stop <= at && !inside)
            for (stop = at; stop < end && *stop != '}' && *stop != '\n'; stop++) continue;
        if (!inside && end - at > 2 && at[0] == '$' && at[1] == '{' && stop < end && *stop == '}') {
            *to++ = *at++;
            to = (char *)memcpy(to, OPEN_BRACE, width) + width;
            inside = true;
        } else if (inside && at == stop) {
            to = (char *)memcpy(to, CLOSE_BRACE, width) + width;
            inside = false;
        } else {
            *to++ = *at;
        }
    }
    *n_out = (size_t)(to - out);
    return out;
}

/* In place; returns the new length. */
static size_t show_braces(char *text, size_t n)
{
    size_t to = 0;

    for (size_t at = 0; at < n; to++) {
        bool open = n - at >= 3 && memcmp(text + at, OPEN_BRACE, 3) == 0;
        bool close = n - at >= 3 && memcmp(text + at, CLOSE_BRACE, 3) == 0;
        text[to] = open ? '{' : close ? '}' : text[at];
        at += open || close ? 3 : 1;
    }
    text[to] = '\0';
    return to;
}

/* -- places and errors ------------------------------------------------------------------------------------
 */

static void place_text(const lsi_place *at, char *buf, size_t size)
{
    if (at->line > 0)
        snprintf(buf, size, "%.400s:%d:%d", at->source, at->line, at->column);
    else
        snprintf(buf, size, "%.400s", at->source);
}

ls_status lsi_fail_at(ls_err *err, const lsi_place *at, const char *fmt, ...)
{
    char place[512], text[LS_ERR_TEXT_MAX / 2];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    place_text(at, place, sizeof place);
    return ls_fail(err, LS_INVALID, "%s: %s", place, text);
}

ls_status lsi_fail_in_at(ls_err *err, ls_status st, const lsi_place *at)
{
    char place[512];

    place_text(at, place, sizeof place);
    return ls_fail_in(err, st, "%s", place);
}

static lsi_place place_of(const reader *r, yaml_mark_t mark)
{
    if (r->is_override) return (lsi_place){r->source, 0, 0};
    return (lsi_place){r->source, (int)mark.line + 1, (int)mark.column + 1};
}

static lsi_place here(const reader *r)
{
    return place_of(r, r->event.start_mark);
}

/* -- events -----------------------------------------------------------------------------------------------
 */

static ls_status parser_error(reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *what = p->problem != NULL ? p->problem : "cannot be read";
    lsi_place at = place_of(r, p->problem_mark);

    if (p->error == YAML_MEMORY_ERROR) return ls_fail(r->err, LS_NOMEM, "%s: no memory", r->source);
    if (p->error == YAML_READER_ERROR) {
        at.line = 0;
        return lsi_fail_at(r->err, &at, "byte %zu: %s", p->problem_offset, what);
    }
    if (p->context != NULL) return lsi_fail_at(r->err, &at, "not YAML: %s %s", what, p->context);
    return lsi_fail_at(r->err, &at, "not YAML: %s", what);
}

static ls_status next(reader *r)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    lsi_place at;

    if (r->has_event) yaml_event_delete(&r->event);
    r->has_event = yaml_parser_parse(&r->parser, &r->event) != 0;
    if (!r->has_event) return parser_error(r);
    switch (r->event.type) {
    case YAML_ALIAS_EVENT: anchor = r->event.data.alias.anchor; break;
    case YAML_SCALAR_EVENT: tag = r->event.data.scalar.tag; break;
    case YAML_MAPPING_START_EVENT: tag = r->event.data.mapping_start.tag; break;
    case YAML_SEQUENCE_START_EVENT: tag = r->event.data.sequence_start.tag; break;
    default: break;
    }
    at = here(r);
    if (anchor != NULL)
        return lsi_fail_at(r->err, &at, "\"*%.100s\": aliases are not read; refer to a key with ${a.b}",
                           (const char *)anchor);
    if (tag != NULL)
        return lsi_fail_at(r->err, &at,
                           "\"%.100s\": tags are not read; the key says what kind of value it has",
                           (const char *)tag);
    return LS_OK;
}

/* The present scalar's text in the arena. */
static ls_status scalar(reader *r, const char *what, size_t limit, const char **out)
{
    char *text = (char *)r->event.data.scalar.value;
    size_t n = show_braces(text, r->event.data.scalar.length);
    lsi_place at = here(r);

    if (n >= limit)
        return lsi_fail_at(r->err, &at, "%s of %zu bytes; at most %zu make sense", what, n, limit - 1);
    if (!lsi_is_printable(text, n))
        return lsi_fail_at(r->err, &at, "%s with a control character or line end", what);
    *out = ls_arena_strdup(r->arena, text);
    if (*out == NULL) return ls_fail(r->err, LS_NOMEM, "%s: no memory", r->source);
    return LS_OK;
}

/* -- values -----------------------------------------------------------------------------------------------
 */

ls_status lsi_entries_create(lsi_entries *out, ls_arena *arena, ls_err *err)
{
    *out = (lsi_entries){.arena = arena};
    out->items = ls_arena_alloc(arena, sizeof *out->items * LSI_ENTRIES_MAX);
    if (out->items == NULL) return ls_fail(err, LS_NOMEM, "experiment: no memory");
    return LS_OK;
}

static ls_status add_entry(reader *r, lsi_entry_kind kind, const char *value, lsi_place key_at)
{
    lsi_entries *list = &r->doc->entries;
    char *key;

    if (list->n == LSI_ENTRIES_MAX) return lsi_fail_at(r->err, &key_at, "more than %d keys", LSI_ENTRIES_MAX);
    key = ls_arena_strdup(r->arena, r->key);
    if (key == NULL) return ls_fail(r->err, LS_NOMEM, "%s: no memory", r->source);
    list->items[list->n++] = (lsi_entry){
        .key = key, .written = key, .value = value, .kind = kind, .at = key_at, .value_at = here(r)};
    return LS_OK;
}

static bool is_null(const yaml_event_t *e)
{
    static const char *const names[] = {"", "~", "null", "Null", "NULL"};

    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp((const char *)e->data.scalar.value, names[i]) == 0) return true;
    return false;
}

static ls_status read_scalar(reader *r, lsi_place key_at)
{
    ls_status st = LS_OK;
    const char *value;

    if (is_null(&r->event)) return add_entry(r, LSI_NULL, "", key_at);
    LS_TRY(scalar(r, "a value", LSI_VALUE_MAX, &value));
    LS_TRY(add_entry(r, LSI_VALUE, value, key_at));
out:
    return st;
}

/* The list after `defaults:`; one name needs no list. */
static ls_status read_bases(reader *r)
{
    ls_status st = LS_OK;
    lsi_document *doc = r->doc;
    bool list = r->event.type == YAML_SEQUENCE_START_EVENT;
    lsi_place at = here(r);

    if (doc->n_bases > 0) {
        st = lsi_fail_at(r->err, &at, "\"defaults\" stands here for the second time");
        goto out;
    }
    if (list) LS_TRY(next(r));
    while (!list || r->event.type != YAML_SEQUENCE_END_EVENT) {
        at = here(r);
        if (r->event.type != YAML_SCALAR_EVENT) {
            st = lsi_fail_at(r->err, &at, "\"defaults\" is a list of names of files");
            goto out;
        }
        if (doc->n_bases == LSI_BASES_MAX) {
            st = lsi_fail_at(r->err, &at, "more than %d names in \"defaults\"", LSI_BASES_MAX);
            goto out;
        }
        LS_TRY(scalar(r, "a name", LSI_VALUE_MAX, &doc->bases[doc->n_bases]));
        doc->bases_at[doc->n_bases++] = at;
        if (!list) break;
        LS_TRY(next(r));
    }
out:
    return st;
}

static ls_status read_mapping(reader *r, int depth, lsi_place key_at);

/* The value whose first event is at hand; afterwards its last one is. */
static ls_status read_value(reader *r, int depth, lsi_place key_at)
{
    lsi_place at = here(r);

    if (strcmp(r->key, "defaults") == 0 && !r->is_override) return read_bases(r);
    switch (r->event.type) {
    case YAML_SCALAR_EVENT: return read_scalar(r, key_at);
    case YAML_MAPPING_START_EVENT: return read_mapping(r, depth + 1, key_at);
    default: return lsi_fail_at(r->err, &at, "\"%s\": a list where one value is expected", r->key);
    }
}

static ls_status read_mapping(reader *r, int depth, lsi_place key_at)
{
    ls_status st = LS_OK;
    size_t length = strlen(r->key);
    const char *part = "";
    lsi_place at = here(r);
    bool empty = true;

    if (depth > LSI_NESTING_MAX) {
        st = lsi_fail_at(r->err, &at, "nested more than %d deep", LSI_NESTING_MAX);
        goto out;
    }
    for (;; empty = false) {
        LS_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) break;
        at = here(r);
        if (r->event.type != YAML_SCALAR_EVENT) {
            st = lsi_fail_at(r->err, &at, "a key must be a name");
            goto out;
        }
        LS_TRY(scalar(r, "a key", LSI_KEY_MAX, &part));
        if (length + 1 + strlen(part) >= LSI_KEY_MAX) {
            st = lsi_fail_at(r->err, &at, "key \"%s.%s\" is too long", r->key, part);
            goto out;
        }
        snprintf(r->key + length, sizeof r->key - length, "%s%s", length > 0 ? "." : "", part);
        LS_TRY(next(r));
        LS_TRY(read_value(r, depth, at));
        r->key[length] = '\0';
    }
    if (empty && length > 0) LS_TRY(add_entry(r, LSI_EMPTY_GROUP, "", key_at));
out:
    return st;
}

/* -- a whole text -----------------------------------------------------------------------------------------
 */

/* From the start of the stream to the first event of the document's value. */
static ls_status begin(reader *r)
{
    ls_status st = LS_OK;

    LS_TRY(next(r)); /* stream start */
    LS_TRY(next(r));
    if (r->event.type == YAML_DOCUMENT_START_EVENT) LS_TRY(next(r));
out:
    return st;
}

static ls_status read_document(reader *r)
{
    ls_status st = LS_OK;
    lsi_place at;

    LS_TRY(begin(r));
    at = here(r);
    if (r->event.type == YAML_STREAM_END_EVENT) {
        if (r->is_override) LS_TRY(add_entry(r, LSI_BLANK, "", at));
        goto out;
    }
    if (!r->is_override && r->event.type != YAML_MAPPING_START_EVENT) {
        st = lsi_fail_at(r->err, &at, "an experiment is a list of \"key: value\"");
        goto out;
    }
    if (r->is_override)
        LS_TRY(read_value(r, 0, at));
    else
        LS_TRY(read_mapping(r, 1, at));
    LS_TRY(next(r)); /* document end */
    LS_TRY(next(r));
    at = here(r);
    if (r->event.type != YAML_STREAM_END_EVENT)
        st = lsi_fail_at(r->err, &at, "a second document; one is read");
out:
    return st;
}

ls_status lsi_yaml_parse(lsi_document *doc, const char *text, size_t n, const char *source,
                         const char *prefix, ls_err *err)
{
    reader r = {.doc = doc, .source = source, .is_override = prefix[0] != '\0', .err = err};
    ls_arena *arena = doc->entries.arena;
    ls_status st;

    r.arena = arena;
    doc->entries.n = doc->n_bases = 0;
    if (strlen(prefix) >= LSI_KEY_MAX)
        return ls_fail(err, LS_INVALID, "\"%.100s...\": the key is too long", prefix);
    snprintf(r.key, sizeof r.key, "%s", prefix);
    text = hide_braces(text, n, &n, arena);
    if (text == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", source);
    if (!yaml_parser_initialize(&r.parser)) return ls_fail(err, LS_NOMEM, "%s: no memory", source);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
    st = read_document(&r);
    if (r.has_event) yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return st;
}
