/* fuzz_events.c: arbitrary bytes as an event file, and as the one message of a record whose checksums fit:
 * chance alone would hardly ever pass those. */
#include <stdlib.h>
#include <string.h>

#include "events/crc32c.h"
#include "events/event_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *data, size_t size)
{
    ls_event_reader *r;
    ls_event e;
    ls_err err = {0};
    ls_status st;
    bool more;
    volatile char sum = 0; /* every byte handed out must be readable */

    if (ls_event_reader_memory(&r, data, size, &err) != LS_OK) abort();
    while ((st = ls_event_reader_next(r, &e, &more, &err)) == LS_OK && more) {
        for (size_t i = 0; i < e.n_bytes; i++) sum = (char)(sum ^ e.bytes[i]);
        sum = (char)(sum ^ (char)strlen(e.tag) ^ (char)strlen(e.plugin));
    }
    if (st != LS_OK && err.text[0] == '\0') abort(); /* a refusal says why */
    if (st == LS_OK && ls_event_reader_torn(r) > size) abort();
    ls_event_reader_close(r);
}

static void put_le(uint8_t *out, uint64_t value, int n)
{
    for (int i = 0; i < n; i++) out[i] = (uint8_t)(value >> (8 * i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size);

    uint8_t *record = malloc(size + 16);
    if (record == NULL) abort();
    put_le(record, size, 8);
    put_le(record + 8, ls_crc32c_masked(record, 8), 4);
    if (size > 0) memcpy(record + 12, data, size);
    put_le(record + 12 + size, ls_crc32c_masked(record + 12, size), 4);
    read_all(record, size + 16);
    free(record);
    return 0;
}
