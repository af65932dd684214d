/* wire.h: the wire format of protocol buffers, as far as event files need it.
 *
 * A message is a row of fields; each is a key (number and wire type) and a value: a varint, four or eight
 * bytes, or a length with that many bytes.  The writer appends to a growing buffer whose failure to grow is
 * remembered; the reader walks over bytes it does not trust.  Nothing here knows a particular message. */
#ifndef LS_EVENTS_WIRE_H
#define LS_EVENTS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LSI_WIRE_VARINT = 0, LSI_WIRE_64 = 1, LSI_WIRE_BYTES = 2, LSI_WIRE_32 = 5 };

/* Starts as {0}.  When memory runs out, `failed` is set and further appends do nothing. */
typedef struct lsi_wire {
    uint8_t *data;
    size_t length, capacity;
    bool failed;
} lsi_wire;

void lsi_wire_raw(lsi_wire *w, const void *data, size_t n);
void lsi_wire_fixed32(lsi_wire *w, uint32_t value); /* little-endian, without a key */
void lsi_wire_fixed64(lsi_wire *w, uint64_t value);
void lsi_wire_varint(lsi_wire *w, int field, uint64_t value);
void lsi_wire_float(lsi_wire *w, int field, float value);
void lsi_wire_double(lsi_wire *w, int field, double value);
void lsi_wire_bytes(lsi_wire *w, int field, const void *data, size_t n);
void lsi_wire_string(lsi_wire *w, int field, const char *text);
/* A message inside a message: what is appended between the two calls is the value of `field`.  `begin`
 * returns the mark that its `end` takes. */
size_t lsi_wire_begin(lsi_wire *w, int field);
void lsi_wire_end(lsi_wire *w, size_t mark);
void lsi_wire_clear(lsi_wire *w);   /* ready again, memory kept */
void lsi_wire_release(lsi_wire *w); /* frees and zeroes */

uint32_t lsi_wire_load32(const uint8_t *p); /* little-endian, from any address */
uint64_t lsi_wire_load64(const uint8_t *p);

/* Bytes to be read: [at, end). */
typedef struct lsi_span {
    const uint8_t *at, *end;
} lsi_span;

typedef struct lsi_field {
    int number, type;
    uint64_t bits;  /* LSI_WIRE_VARINT, _64 and _32 */
    lsi_span bytes; /* LSI_WIRE_BYTES */
} lsi_field;

typedef enum lsi_wire_result { LSI_WIRE_FIELD, LSI_WIRE_DONE, LSI_WIRE_BAD } lsi_wire_result;

/* Takes the next field off `s`. */
lsi_wire_result lsi_wire_next(lsi_span *s, lsi_field *out);

#endif
