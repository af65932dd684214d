/* link.c: the handshake and the frames of link.h. */
#include "launch/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"

#define MAGIC       "LOCKSTP1"
#define MAGIC_BYTES 8
#define HELLO_BYTES (MAGIC_BYTES + LSI_KEY_BYTES)
#define PROOF_BYTES (HELLO_BYTES + LSI_KEY_BYTES)
#define HEAD_BYTES  (16 + 2 * LSI_KEY_BYTES)

typedef enum stage { AWAIT_HELLO, AWAIT_ANSWER, AWAIT_PROOF, OPEN } stage;

struct lsi_link {
    int fd;
    bool is_server;
    stage stage;
    char peer[80];
    lsi_key run_key, mine, theirs; /* nonces */
    lsi_key to_peer, from_peer;    /* of frames */
    uint64_t sent, received;       /* frames */
    uint8_t head[HEAD_BYTES];
    size_t n_head;
    bool has_head; /* checked */
    uint8_t *body;
    size_t n_body, body_length;
    uint8_t *out;
    size_t out_at, out_end, out_size;
    double heard;
};

/* -- making -----------------------------------------------------------------------------------------------
 */

/* What waits moves to the front only when there is no room behind it: a byte is moved seldom, not at every
 * message. */
static ls_status queue(lsi_link *l, const void *bytes, size_t n, ls_err *err)
{
    if (l->out_end + n > l->out_size) {
        const size_t waiting = l->out_end - l->out_at;
        memmove(l->out, l->out + l->out_at, waiting);
        l->out_at = 0;
        l->out_end = waiting;
    }
    if (!LS_GROW(LS_MEM_CLI, l->out, l->out_end + n, l->out_size))
        return ls_fail(err, LS_NOMEM, "no memory for a message to %s", l->peer);
    if (n > 0) memcpy(l->out + l->out_end, bytes, n);
    l->out_end += n;
    return LS_OK;
}

ls_status lsi_link_create_take(lsi_link **out, int fd, bool is_server, const lsi_key *key, const char *peer,
                               ls_err *err)
{
    lsi_link *l = ls_alloc(LS_MEM_CLI, sizeof *l);
    ls_status st = LS_OK;

    *out = NULL;
    if (l != NULL) l->out = ls_alloc(LS_MEM_CLI, 1024);
    if (l == NULL || l->out == NULL) {
        close(fd);
        ls_free(l);
        return ls_fail(err, LS_NOMEM, "no memory for a connection");
    }
    l->fd = fd;
    l->out_size = 1024;
    l->is_server = is_server;
    l->stage = is_server ? AWAIT_ANSWER : AWAIT_HELLO;
    l->run_key = *key;
    l->heard = ls_clock_seconds();
    snprintf(l->peer, sizeof l->peer, "%s", peer);
    lsi_auth_random(l->mine.bytes, sizeof l->mine.bytes);
    if (is_server) {
        LS_TRY(queue(l, MAGIC, MAGIC_BYTES, err));
        LS_TRY(queue(l, l->mine.bytes, LSI_KEY_BYTES, err));
    }
    *out = l;
    l = NULL;
out:
    lsi_link_destroy(l);
    return st;
}

void lsi_link_destroy(lsi_link *l)
{
    if (l == NULL) return;
    close(l->fd);
    ls_free(l->body);
    ls_free(l->out);
    ls_free(l);
}

int lsi_link_fd(const lsi_link *l)
{
    return l->fd;
}

const char *lsi_link_peer(const lsi_link *l)
{
    return l->peer;
}

bool lsi_link_is_open(const lsi_link *l)
{
    return l->stage == OPEN;
}

double lsi_link_heard(const lsi_link *l)
{
    return l->heard;
}

short lsi_link_events(const lsi_link *l)
{
    return (short)(l->out_at < l->out_end ? POLLIN | POLLOUT : POLLIN);
}

/* -- handshake --------------------------------------------------------------------------------------------
 */

static const lsi_key *nonce_of(const lsi_link *l, bool server)
{
    return server == l->is_server ? &l->mine : &l->theirs;
}

static void prove(const lsi_link *l, const char *what, lsi_key *proof)
{
    lsi_auth_hash(proof, &l->run_key, what, nonce_of(l, true), LSI_KEY_BYTES, nonce_of(l, false),
                  LSI_KEY_BYTES);
}

/* A key for each direction: a frame that is sent back to where it came from is not taken for the peer's. */
static void open_link(lsi_link *l)
{
    prove(l, "frames from server", l->is_server ? &l->to_peer : &l->from_peer);
    prove(l, "frames from client", l->is_server ? &l->from_peer : &l->to_peer);
    l->stage = OPEN;
}

static ls_status check_proof(const lsi_link *l, const char *what, const uint8_t *bytes, ls_err *err)
{
    lsi_key want, got;

    memcpy(got.bytes, bytes, LSI_KEY_BYTES);
    prove(l, what, &want);
    if (lsi_auth_equal(&want, &got)) return LS_OK;
    return ls_fail(err, LS_FORMAT, "%s does not know the secret of this run", l->peer);
}

/* As far as it has come: somebody who speaks otherwise is not waited for. */
static ls_status check_magic(const lsi_link *l, ls_err *err)
{
    const size_t n = l->n_head < MAGIC_BYTES ? l->n_head : MAGIC_BYTES;

    if ((l->stage != AWAIT_HELLO && l->stage != AWAIT_ANSWER) || memcmp(l->head, MAGIC, n) == 0) return LS_OK;
    return ls_fail(err, LS_FORMAT, "%s does not speak as Lockstep does", l->peer);
}

/* How many bytes the stage waits for. */
static size_t head_bytes(const lsi_link *l)
{
    switch (l->stage) {
    case AWAIT_HELLO: return HELLO_BYTES;
    case AWAIT_ANSWER: return PROOF_BYTES;
    case AWAIT_PROOF: return LSI_KEY_BYTES;
    case OPEN: break;
    }
    return HEAD_BYTES;
}

static ls_status shake(lsi_link *l, ls_err *err)
{
    lsi_key proof;
    ls_status st = LS_OK;

    switch (l->stage) {
    case AWAIT_HELLO:
        memcpy(l->theirs.bytes, l->head + MAGIC_BYTES, LSI_KEY_BYTES);
        prove(l, "client", &proof);
        LS_TRY(queue(l, MAGIC, MAGIC_BYTES, err));
        LS_TRY(queue(l, l->mine.bytes, LSI_KEY_BYTES, err));
        LS_TRY(queue(l, proof.bytes, LSI_KEY_BYTES, err));
        l->stage = AWAIT_PROOF;
        break;
    /* The server proves itself second: who merely connects learns nothing that depends on the key. */
    case AWAIT_ANSWER:
        memcpy(l->theirs.bytes, l->head + MAGIC_BYTES, LSI_KEY_BYTES);
        LS_TRY(check_proof(l, "client", l->head + HELLO_BYTES, err));
        prove(l, "server", &proof);
        LS_TRY(queue(l, proof.bytes, LSI_KEY_BYTES, err));
        open_link(l);
        break;
    case AWAIT_PROOF:
        LS_TRY(check_proof(l, "server", l->head, err));
        open_link(l);
        break;
    case OPEN: break;
    }
out:
    return st;
}

/* -- frames -----------------------------------------------------------------------------------------------
 */

ls_status lsi_link_send(lsi_link *l, const lsi_message *m, ls_err *err)
{
    uint8_t head[HEAD_BYTES], fixed[LSI_WIRE_FIXED_MAX];
    const size_t n = lsi_wire_write(m, fixed);
    lsi_key hash;
    ls_status st = LS_OK;

    LS_BUG_IF(l->stage != OPEN);
    if (n + m->n_data > LSI_WIRE_BODY_MAX)
        return ls_fail(err, LS_INVALID, "a message of %zu bytes is too large", m->n_data);
    lsi_wire_put_u32(head, (uint32_t)m->kind);
    lsi_wire_put_u32(head + 4, (uint32_t)(n + m->n_data));
    lsi_wire_put_u64(head + 8, l->sent++);
    lsi_auth_hash(&hash, &l->to_peer, "body", fixed, n, m->data, m->n_data);
    memcpy(head + 16, hash.bytes, LSI_KEY_BYTES);
    lsi_auth_hash(&hash, &l->to_peer, "head", head, 16 + LSI_KEY_BYTES, NULL, 0);
    memcpy(head + 16 + LSI_KEY_BYTES, hash.bytes, LSI_KEY_BYTES);
    LS_TRY(queue(l, head, sizeof head, err));
    LS_TRY(queue(l, fixed, n, err));
    if (m->n_data > 0) LS_TRY(queue(l, m->data, m->n_data, err));
out:
    return st;
}

/* A header is complete: when its hash is right, its length is believed. */
static ls_status check_head(lsi_link *l, ls_err *err)
{
    lsi_key want, got;

    memcpy(got.bytes, l->head + 16 + LSI_KEY_BYTES, LSI_KEY_BYTES);
    lsi_auth_hash(&want, &l->from_peer, "head", l->head, 16 + LSI_KEY_BYTES, NULL, 0);
    if (!lsi_auth_equal(&want, &got) || lsi_wire_get_u64(l->head + 8) != l->received)
        return ls_fail(err, LS_FORMAT, "a message from %s is not what was sent", l->peer);
    l->received++;
    l->body_length = lsi_wire_get_u32(l->head + 4);
    if (l->body_length > LSI_WIRE_BODY_MAX)
        return ls_fail(err, LS_FORMAT, "a message of %zu bytes from %s is too large", l->body_length,
                       l->peer);
    ls_free(l->body);
    l->body = ls_alloc(LS_MEM_CLI, l->body_length);
    if (l->body == NULL) return ls_fail(err, LS_NOMEM, "no memory for a message from %s", l->peer);
    l->n_body = 0;
    l->has_head = true;
    return LS_OK;
}

static ls_status check_body(lsi_link *l, lsi_message *m, ls_err *err)
{
    const uint32_t kind = lsi_wire_get_u32(l->head);
    lsi_key want, got;
    ls_status st;

    st = lsi_wire_read(m, kind, l->body, l->body_length, err);
    if (st != LS_OK) return ls_fail_in(err, st, "%s", l->peer);
    /* The body was read before it is proved: where its fixed fields end is known only then.  So lsi_wire_read
     * must stand any bytes (fuzz/fuzz_launch.c). */
    /* The sender hashed the two parts of the body as it wrote them. */
    const size_t fixed = l->body_length - m->n_data;
    memcpy(got.bytes, l->head + 16, LSI_KEY_BYTES);
    lsi_auth_hash(&want, &l->from_peer, "body", l->body, fixed, l->body + fixed, m->n_data);
    if (!lsi_auth_equal(&want, &got))
        return ls_fail(err, LS_FORMAT, "a message from %s is not what was sent", l->peer);
    l->has_head = false;
    return LS_OK;
}

/* -- bytes ------------------------------------------------------------------------------------------------
 */

static ls_status lost(const lsi_link *l, int number, ls_err *err)
{
    if (number == 0) return ls_fail(err, LS_LOST, "%s has closed the connection", l->peer);
    return ls_fail(err, LS_LOST, "the connection to %s broke: %s", l->peer, strerror(number));
}

static ls_status push(lsi_link *l, ls_err *err)
{
    while (l->out_at < l->out_end) {
        /* Without MSG_NOSIGNAL a peer that has gone would end the launcher by SIGPIPE.  ENOTCONN: still
         * connecting. */
        const ssize_t n =
            send(l->fd, l->out + l->out_at, l->out_end - l->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) return LS_OK;
        if (n < 0) return lost(l, errno, err);
        l->out_at += (size_t)n;
    }
    return LS_OK;
}

/* Reads up to n bytes; *n_got 0: there are none now. */
static ls_status pull(lsi_link *l, uint8_t *to, size_t n, size_t *n_got, ls_err *err)
{
    ssize_t got;

    *n_got = 0;
    do {
        got = recv(l->fd, to, n, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == ENOTCONN)) return LS_OK;
    if (got <= 0) return lost(l, got < 0 ? errno : 0, err);
    l->heard = ls_clock_seconds();
    *n_got = (size_t)got;
    return LS_OK;
}

ls_status lsi_link_pump(lsi_link *l, bool *got, lsi_message *m, ls_err *err)
{
    ls_status st = LS_OK;
    size_t n;

    *got = false;
    LS_TRY(push(l, err));
    for (;;) {
        if (l->has_head) {
            if (l->n_body < l->body_length) {
                LS_TRY(pull(l, l->body + l->n_body, l->body_length - l->n_body, &n, err));
                l->n_body += n;
                if (n == 0) break;
                continue;
            }
            LS_TRY(check_body(l, m, err));
            *got = true;
            break;
        }
        /* Never more than this stage needs: what follows belongs to another one, under another key. */
        LS_TRY(pull(l, l->head + l->n_head, head_bytes(l) - l->n_head, &n, err));
        l->n_head += n;
        if (n == 0) break;
        LS_TRY(check_magic(l, err));
        if (l->n_head < head_bytes(l)) continue;
        l->n_head = 0;
        if (l->stage == OPEN)
            LS_TRY(check_head(l, err));
        else
            LS_TRY(shake(l, err));
        LS_TRY(push(l, err));
    }
out:
    return st;
}

void lsi_link_flush(lsi_link *l, double seconds)
{
    const double until = ls_clock_seconds() + seconds;

    while (push(l, NULL) == LS_OK && l->out_at < l->out_end) {
        struct pollfd p = {.fd = l->fd, .events = POLLOUT};
        const double left = until - ls_clock_seconds();
        if (left <= 0 || poll(&p, 1, (int)(left * 1e3) + 1) <= 0) return;
    }
}
