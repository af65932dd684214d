/* wire.c: protocol buffers, written and read field by field. */
#include "events/wire.h"

#include <string.h>

#include "base/grow.h"

#define VARINT_MAX 10 /* bytes of the longest 64-bit varint */
#define FIELD_MAX  0x1FFFFFFF

/* --- writing --- */

static bool reserve(lsi_wire *w, size_t more)
{
    if (w->failed) return false;
    w->failed = !LS_GROW(LS_MEM_CLI, w->data, w->length + more, w->capacity);
    return !w->failed;
}

void lsi_wire_raw(lsi_wire *w, const void *data, size_t n)
{
    if (n == 0 || !reserve(w, n)) return;
    memcpy(w->data + w->length, data, n);
    w->length += n;
}

static void little_endian(lsi_wire *w, uint64_t value, size_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> (8 * i));
    lsi_wire_raw(w, bytes, n);
}

void lsi_wire_fixed32(lsi_wire *w, uint32_t value)
{
    little_endian(w, value, 4);
}

void lsi_wire_fixed64(lsi_wire *w, uint64_t value)
{
    little_endian(w, value, 8);
}

static size_t pack_varint(uint8_t out[VARINT_MAX], uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

static void put_varint(lsi_wire *w, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    lsi_wire_raw(w, bytes, pack_varint(bytes, value));
}

static void put_key(lsi_wire *w, int field, int type)
{
    put_varint(w, (uint64_t)field << 3 | (uint64_t)type);
}

void lsi_wire_varint(lsi_wire *w, int field, uint64_t value)
{
    put_key(w, field, LSI_WIRE_VARINT);
    put_varint(w, value);
}

void lsi_wire_float(lsi_wire *w, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(w, field, LSI_WIRE_32);
    lsi_wire_fixed32(w, bits);
}

void lsi_wire_double(lsi_wire *w, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(w, field, LSI_WIRE_64);
    lsi_wire_fixed64(w, bits);
}

void lsi_wire_bytes(lsi_wire *w, int field, const void *data, size_t n)
{
    put_key(w, field, LSI_WIRE_BYTES);
    put_varint(w, n);
    lsi_wire_raw(w, data, n);
}

void lsi_wire_string(lsi_wire *w, int field, const char *text)
{
    lsi_wire_bytes(w, field, text, strlen(text));
}

size_t lsi_wire_begin(lsi_wire *w, int field)
{
    put_key(w, field, LSI_WIRE_BYTES);
    return w->length;
}

void lsi_wire_end(lsi_wire *w, size_t mark)
{
    /* The length comes first but is known last, and takes as many bytes as it needs: make room for it. */
    if (w->failed) return;
    uint8_t prefix[VARINT_MAX];
    size_t length = w->length - mark, n = pack_varint(prefix, length);
    if (!reserve(w, n)) return;
    memmove(w->data + mark + n, w->data + mark, length);
    memcpy(w->data + mark, prefix, n);
    w->length += n;
}

void lsi_wire_clear(lsi_wire *w)
{
    w->length = 0;
    w->failed = false;
}

void lsi_wire_release(lsi_wire *w)
{
    ls_free(w->data);
    *w = (lsi_wire){0};
}

/* --- reading --- */

static uint64_t load(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) value |= (uint64_t)p[i] << (8 * i);
    return value;
}

uint32_t lsi_wire_load32(const uint8_t *p)
{
    return (uint32_t)load(p, 4);
}

uint64_t lsi_wire_load64(const uint8_t *p)
{
    return load(p, 8);
}

static bool take_varint(lsi_span *s, uint64_t *out)
{
    uint64_t value = 0;
    for (int i = 0; i < VARINT_MAX && s->at < s->end; i++) {
        uint8_t byte = *s->at++;
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool take_fixed(lsi_span *s, size_t n, uint64_t *out)
{
    if ((size_t)(s->end - s->at) < n) return false;
    *out = load(s->at, n);
    s->at += n;
    return true;
}

static bool take_bytes(lsi_span *s, lsi_span *out)
{
    uint64_t n;
    if (!take_varint(s, &n) || n > (uint64_t)(s->end - s->at)) return false;
    *out = (lsi_span){s->at, s->at + n};
    s->at += n;
    return true;
}

lsi_wire_result lsi_wire_next(lsi_span *s, lsi_field *out)
{
    if (s->at == s->end) return LSI_WIRE_DONE;
    uint64_t key;
    if (!take_varint(s, &key) || key >> 3 == 0 || key >> 3 > FIELD_MAX) return LSI_WIRE_BAD;
    *out = (lsi_field){.number = (int)(key >> 3), .type = (int)(key & 7)};
    bool ok = false;
    switch (out->type) {
    case LSI_WIRE_VARINT: ok = take_varint(s, &out->bits); break;
    case LSI_WIRE_64: ok = take_fixed(s, 8, &out->bits); break;
    case LSI_WIRE_BYTES: ok = take_bytes(s, &out->bytes); break;
    case LSI_WIRE_32: ok = take_fixed(s, 4, &out->bits); break;
    default: break; /* groups are older than event files */
    }
    return ok ? LSI_WIRE_FIELD : LSI_WIRE_BAD;
}
