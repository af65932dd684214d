/* wire.c: messages to bytes and back. */
#include "launch/wire.h"

#include <string.h>

#include "base/printable.h"

/* Byte by byte, the highest first: machines of one run need not agree on their order, and `at` need not be
 * aligned. */
void lsi_wire_put_u32(uint8_t *at, uint32_t x)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(x >> (24 - 8 * i));
}

uint32_t lsi_wire_get_u32(const uint8_t *at)
{
    uint32_t x = 0;

    for (int i = 0; i < 4; i++) x = x << 8 | at[i];
    return x;
}

void lsi_wire_put_u64(uint8_t *at, uint64_t x)
{
    lsi_wire_put_u32(at, (uint32_t)(x >> 32));
    lsi_wire_put_u32(at + 4, (uint32_t)x);
}

uint64_t lsi_wire_get_u64(const uint8_t *at)
{
    return (uint64_t)lsi_wire_get_u32(at) << 32 | lsi_wire_get_u32(at + 4);
}

/* -- fields -----------------------------------------------------------------------------------------------
 * A cursor over bytes that writes or reads: one description of each message serves both. */

typedef struct cursor {
    uint8_t *write;
    const uint8_t *read;
    size_t at, size;
    bool bad;
} cursor;

/* `at` never passes `size`, so the difference cannot wrap, whatever length a stranger writes; the first field
 * that does not fit spoils all that follow. */
static bool take(cursor *c, size_t n)
{
    if (c->bad || n > c->size - c->at) {
        c->bad = true;
        return false;
    }
    return true;
}

static void number(cursor *c, uint32_t *x)
{
    if (!take(c, 4)) return;
    if (c->write != NULL)
        lsi_wire_put_u32(c->write + c->at, *x);
    else
        *x = lsi_wire_get_u32(c->read + c->at);
    c->at += 4;
}

/* A text of less than `size` bytes. */
static void text(cursor *c, char *s, size_t size)
{
    uint32_t n = (uint32_t)(c->write != NULL ? strlen(s) : 0);

    number(c, &n);
    if (c->bad || n >= size || !take(c, n)) {
        c->bad = true;
        return;
    }
    if (c->write != NULL) {
        memcpy(c->write + c->at, s, n);
    } else {
        memcpy(s, c->read + c->at, n);
        s[n] = '\0';
        /* Two different messages must not read the same. */
        if (memchr(s, '\0', n) != NULL) c->bad = true;
        ls_printable_in_place(s); /* it may end on a terminal */
    }
    c->at += n;
}

static void fields(cursor *c, lsi_message *m)
{
    switch (m->kind) {
    case LSI_MSG_JOIN:
        number(c, &m->node);
        number(c, &m->nodes);
        number(c, &m->ranks);
        text(c, m->version, sizeof m->version);
        text(c, m->host, sizeof m->host);
        break;
    case LSI_MSG_WELCOME: text(c, m->name, sizeof m->name); break;
    case LSI_MSG_REFUSE:
        number(c, &m->code);
        text(c, m->text, sizeof m->text);
        break;
    case LSI_MSG_FAILED:
        number(c, &m->rank);
        number(c, &m->code);
        text(c, m->text, sizeof m->text);
        break;
    case LSI_MSG_STOP:
        number(c, &m->number);
        number(c, &m->code);
        break;
    case LSI_MSG_DONE: number(c, &m->code); break;
    case LSI_MSG_BEAT: number(c, &m->number); break;
    case LSI_MSG_FENCE:
    case LSI_MSG_KINDS: break;
    }
}

static bool has_data(lsi_message_kind kind)
{
    return kind == LSI_MSG_FENCE || kind == LSI_MSG_WELCOME;
}

size_t lsi_wire_write(const lsi_message *m, uint8_t buf[LSI_WIRE_FIXED_MAX])
{
    cursor c = {.write = buf, .size = LSI_WIRE_FIXED_MAX};

    /* A cursor that writes changes nothing of the message. */
    fields(&c, (lsi_message *)m);
    LS_BUG_IF(c.bad);
    return c.at;
}

ls_status lsi_wire_read(lsi_message *m, uint32_t kind, const uint8_t *body, size_t n, ls_err *err)
{
    cursor c = {.read = body, .size = n};

    memset(m, 0, sizeof *m);
    if (kind < LSI_MSG_JOIN || kind >= LSI_MSG_KINDS)
        return ls_fail(err, LS_FORMAT, "a message of unknown kind %u", kind);
    m->kind = (lsi_message_kind)kind;
    fields(&c, m);
    if (!c.bad && has_data(m->kind)) {
        m->data = body + c.at;
        m->n_data = n - c.at;
    } else if (c.bad || c.at != n) {
        return ls_fail(err, LS_FORMAT, "a message of kind %u with %zu bytes makes no sense", kind, n);
    }
    return LS_OK;
}
