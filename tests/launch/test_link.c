/* Connections between launchers: those who know the secret are understood, nobody else is, whatever they
 * send. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"
#include "launch/link.h"

static lsi_key key_of(const char *secret)
{
    lsi_key key;
    bool is_secret;
    ls_err err = {0};

    setenv("LOCKSTEP_SECRET", secret, 1);
    REQUIRE_OK(lsi_auth_run_key(&key, &is_secret, &err), &err);
    CHECK(is_secret == (secret[0] != '\0'));
    return key;
}

typedef struct pair {
    lsi_link *server, *client;
} pair;

static pair open_pair(const char *server_secret, const char *client_secret)
{
    const lsi_key a = key_of(server_secret), b = key_of(client_secret);
    ls_err err = {0};
    pair p;
    int ends[2];

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    REQUIRE_OK(lsi_link_create_take(&p.server, ends[0], true, &a, "the client", &err), &err);
    REQUIRE_OK(lsi_link_create_take(&p.client, ends[1], false, &b, "the server", &err), &err);
    return p;
}

static void close_pair(pair p)
{
    lsi_link_destroy(p.server);
    lsi_link_destroy(p.client);
}

/* Both sides in turn, until one fails or the round is over; the status of the first that failed. */
static ls_status shake(pair p, ls_err *err)
{
    lsi_message m;
    bool got;

    for (int i = 0; i < 4; i++) {
        ls_status st = lsi_link_pump(p.server, &got, &m, err);
        if (st == LS_OK) st = lsi_link_pump(p.client, &got, &m, err);
        if (st != LS_OK) return st;
    }
    return LS_OK;
}

static void messages_arrive(void)
{
    pair p = open_pair("open sesame, open sesame", "open sesame, open sesame");
    lsi_message join = {.kind = LSI_MSG_JOIN, .node = 1, .nodes = 2, .ranks = 4}, m;
    static uint8_t blob[300000];
    lsi_message fence = {.kind = LSI_MSG_FENCE, .data = blob, .n_data = sizeof blob};
    ls_err err = {0};
    bool got = false;

    for (size_t i = 0; i < sizeof blob; i++) blob[i] = (uint8_t)(i * 7);
    snprintf(join.version, sizeof join.version, "1.2");
    snprintf(join.host, sizeof join.host, "th\x1b[2Jere"); /* which clears a terminal that shows it */
    CHECK_OK(shake(p, &err), &err);
    REQUIRE(lsi_link_is_open(p.server) && lsi_link_is_open(p.client));
    CHECK_OK(lsi_link_send(p.client, &join, &err), &err);
    CHECK_OK(lsi_link_send(p.client, &fence, &err), &err);
    CHECK_OK(lsi_link_send(p.server, &(lsi_message){.kind = LSI_MSG_BEAT}, &err), &err);
    for (int i = 0; i < 100 && !got; i++) {
        lsi_message other;
        bool beat;
        CHECK_OK(lsi_link_pump(p.client, &beat, &other, &err), &err);
        CHECK_OK(lsi_link_pump(p.server, &got, &m, &err), &err);
    }
    REQUIRE(got);
    CHECK_EQ_INT(m.kind, LSI_MSG_JOIN);
    CHECK_EQ_INT(m.ranks, 4);
    CHECK_EQ_STR(m.version, "1.2");
    CHECK_EQ_STR(m.host, "th?[2Jere");
    got = false;
    for (int i = 0; i < 1000 && !got; i++) { /* larger than the socket's buffer */
        lsi_message other;
        bool beat;
        CHECK_OK(lsi_link_pump(p.client, &beat, &other, &err), &err);
        CHECK_OK(lsi_link_pump(p.server, &got, &m, &err), &err);
    }
    REQUIRE(got);
    CHECK_EQ_INT(m.kind, LSI_MSG_FENCE);
    CHECK_EQ_INT(m.n_data, sizeof blob);
    CHECK_EQ_MEM(m.data, blob, sizeof blob);
    close_pair(p);
}

#define LONG "as long as a secret must be: "

static void another_secret_is_refused(void)
{
    static const char *const secrets[][2] = {
        {LONG "a", LONG "b"}, {LONG "a", ""}, {"", LONG "a"}, {LONG "aa", LONG "a"}};

    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        pair p = open_pair(secrets[i][0], secrets[i][1]);
        ls_err err = {0};
        CHECK_STATUS(shake(p, &err), LS_FORMAT, &err);
        CHECK_CONTAINS(err.text, "does not know the secret");
        CHECK(!lsi_link_is_open(p.server) && !lsi_link_is_open(p.client));
        close_pair(p);
    }
}

/* A server and the bare end of a stranger. */
static lsi_link *open_server(int *stranger)
{
    const lsi_key key = key_of("open sesame, open sesame");
    ls_err err = {0};
    lsi_link *server;
    int ends[2];

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    REQUIRE_OK(lsi_link_create_take(&server, ends[0], true, &key, "a stranger", &err), &err);
    *stranger = ends[1];
    return server;
}

static void strangers_are_refused(void)
{
    static const char *const words[] = {
        "GET / HTTP/1.1\r\nHost: 10.0.0.1:29500\r\nUser-Agent: scanner\r\nAccept: "
        "*/*\r\n\r\n..................",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello, with more after it than the first answer "
        "has bytes",
        "LOCKSTP1 a stranger who knows how it begins but not how it goes on, with some more words",
        "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and more and more and more and more and more and more",
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        lsi_message m;
        ls_err err = {0};
        bool got;
        int fd;
        lsi_link *server = open_server(&fd);
        CHECK(write(fd, words[i], strlen(words[i])) == (ssize_t)strlen(words[i]));
        CHECK_STATUS(lsi_link_pump(server, &got, &m, &err), LS_FORMAT, &err);
        CHECK(!got && !lsi_link_is_open(server));
        close(fd);
        lsi_link_destroy(server);
    }
}

/* All that a client with the right secret says, recorded; returns how many bytes. */
static size_t record(uint8_t *bytes, size_t size)
{
    const lsi_key key = key_of("open sesame, open sesame");
    lsi_message m;
    ls_err err = {0};
    bool got;
    size_t n = 0;
    ssize_t k;
    int a[2], b[2];
    lsi_link *server, *client;

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
    REQUIRE_OK(lsi_link_create_take(&server, a[0], true, &key, "client", &err), &err);
    REQUIRE_OK(lsi_link_create_take(&client, b[0], false, &key, "server", &err), &err);
    for (int round = 0; round < 6; round++) {
        uint8_t buf[4096];
        REQUIRE_OK(lsi_link_pump(server, &got, &m, &err), &err);
        while ((k = recv(a[1], buf, sizeof buf, MSG_DONTWAIT)) > 0) REQUIRE(write(b[1], buf, (size_t)k) == k);
        REQUIRE_OK(lsi_link_pump(client, &got, &m, &err), &err);
        if (round == 2)
            REQUIRE_OK(lsi_link_send(client, &(lsi_message){.kind = LSI_MSG_DONE, .code = 7}, &err), &err);
        while ((k = recv(b[1], buf, sizeof buf, MSG_DONTWAIT)) > 0) {
            REQUIRE(n + (size_t)k <= size && write(a[1], buf, (size_t)k) == k);
            memcpy(bytes + n, buf, (size_t)k);
            n += (size_t)k;
        }
        if (round == 5) REQUIRE_OK(lsi_link_pump(server, &got, &m, &err), &err);
    }
    lsi_link_destroy(server);
    lsi_link_destroy(client);
    close(a[1]);
    close(b[1]);
    return n;
}

static void a_recording_cannot_be_replayed(void)
{
    uint8_t bytes[4096];
    const size_t n = record(bytes, sizeof bytes);
    lsi_message m;
    ls_err err = {0};
    bool got;
    int fd;
    lsi_link *server = open_server(&fd);

    CHECK(n > 100);
    CHECK(write(fd, bytes, n) == (ssize_t)n);
    CHECK_STATUS(lsi_link_pump(server, &got, &m, &err), LS_FORMAT, &err);
    CHECK_CONTAINS(err.text, "does not know the secret");
    close(fd);
    lsi_link_destroy(server);
}

/* A man in the middle who changes one byte of an open connection is found out, whichever byte it is. */
static void a_changed_byte_is_noticed(void)
{
    int refused = 0, tried = 0;

    for (size_t at = 0; at < 84; at++) {
        const lsi_key key = key_of("open sesame, open sesame");
        lsi_message m, done = {.kind = LSI_MSG_DONE, .code = 7};
        ls_err err = {0};
        bool got = false;
        uint8_t buf[4096];
        ssize_t k;
        int a[2], b[2];
        lsi_link *server, *client;
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
        REQUIRE_OK(lsi_link_create_take(&server, a[0], true, &key, "client", &err), &err);
        REQUIRE_OK(lsi_link_create_take(&client, b[0], false, &key, "server", &err), &err);
        for (int round = 0; round < 3; round++) {
            REQUIRE_OK(lsi_link_pump(server, &got, &m, &err), &err);
            while ((k = recv(a[1], buf, sizeof buf, MSG_DONTWAIT)) > 0)
                REQUIRE(write(b[1], buf, (size_t)k) == k);
            REQUIRE_OK(lsi_link_pump(client, &got, &m, &err), &err);
            while ((k = recv(b[1], buf, sizeof buf, MSG_DONTWAIT)) > 0)
                REQUIRE(write(a[1], buf, (size_t)k) == k);
        }
        REQUIRE_OK(lsi_link_send(client, &done, &err), &err);
        REQUIRE_OK(lsi_link_pump(client, &got, &m, &err), &err);
        k = recv(b[1], buf, sizeof buf, MSG_DONTWAIT);
        REQUIRE(k == 84); /* 80 of the header, 4 of the body */
        buf[at] ^= 1;
        REQUIRE(write(a[1], buf, (size_t)k) == k);
        tried++;
        refused += lsi_link_pump(server, &got, &m, &err) == LS_FORMAT && !got;
        lsi_link_destroy(server);
        lsi_link_destroy(client);
        close(a[1]);
        close(b[1]);
    }
    CHECK_EQ_INT(refused, tried);
}

static void a_closed_connection_is_lost(void)
{
    lsi_message m;
    ls_err err = {0};
    bool got;
    int fd;
    lsi_link *server = open_server(&fd);

    close(fd);
    CHECK_STATUS(lsi_link_pump(server, &got, &m, &err), LS_LOST, &err);
    lsi_link_destroy(server);
}

/* Bodies of messages: what was written is read; every shorter or longer one is refused. */
static void bodies_are_read_exactly(void)
{
    for (int kind = 0; kind <= LSI_MSG_KINDS; kind++) {
        lsi_message m = {.kind = (lsi_message_kind)kind, .node = 3, .code = 9}, back;
        uint8_t body[LSI_WIRE_FIXED_MAX + 1] = {0};
        ls_err err = {0};
        size_t n;
        if (kind == 0 || kind == LSI_MSG_KINDS) {
            CHECK_STATUS(lsi_wire_read(&back, (uint32_t)kind, body, 0, &err), LS_FORMAT, &err);
            continue;
        }
        snprintf(m.text, sizeof m.text, "a text");
        n = lsi_wire_write(&m, body);
        CHECK_OK(lsi_wire_read(&back, (uint32_t)kind, body, n, &err), &err);
        if (kind == LSI_MSG_FENCE || kind == LSI_MSG_WELCOME) {
            CHECK_EQ_INT(back.n_data, 0);
            continue; /* whatever follows is data */
        }
        for (size_t cut = 0; cut < n; cut++) {
            ls_err shorter = {0};
            CHECK_STATUS(lsi_wire_read(&back, (uint32_t)kind, body, cut, &shorter), LS_FORMAT, &shorter);
        }
        CHECK_STATUS(lsi_wire_read(&back, (uint32_t)kind, body, n + 1, &err), LS_FORMAT, &err);
    }
}

static void secrets_come_from_private_files(void)
{
    char path[] = "/tmp/lockstep-test-secret-XXXXXX";
    const int fd = mkstemp(path);
    lsi_key from_file, from_text;
    bool is_secret;
    ls_err err = {0};

    REQUIRE(fd >= 0 && write(fd, "open sesame, open sesame\n", 25) == 25);
    close(fd);
    from_text = key_of("open sesame, open sesame");
    unsetenv("LOCKSTEP_SECRET");
    setenv("LOCKSTEP_SECRET_FILE", path, 1);
    CHECK_OK(lsi_auth_run_key(&from_file, &is_secret, &err), &err);
    CHECK(is_secret && lsi_auth_equal(&from_file, &from_text));
    /* Any bytes are a secret, also a zero at its beginning: by length. */
    lsi_key zeros[2];
    for (int i = 0; i < 2; i++) {
        char bytes[24] = {0};
        bytes[23] = (char)('a' + i);
        const int again = open(path, O_WRONLY | O_TRUNC);
        REQUIRE(again >= 0 && write(again, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
        close(again);
        CHECK_OK(lsi_auth_run_key(&zeros[i], &is_secret, &err), &err);
        CHECK(is_secret);
    }
    CHECK(!lsi_auth_equal(&zeros[0], &zeros[1]));
    /* One that can be guessed is none. */
    REQUIRE(truncate(path, 15) == 0);
    CHECK_STATUS(lsi_auth_run_key(&from_file, &is_secret, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "has 15 bytes");
    err = (ls_err){0};
    REQUIRE(chmod(path, 0640) == 0);
    CHECK_STATUS(lsi_auth_run_key(&from_file, &is_secret, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "chmod 600");
    unlink(path);
    err = (ls_err){0};
    CHECK_STATUS(lsi_auth_run_key(&from_file, &is_secret, &err), LS_INVALID, &err);
    unsetenv("LOCKSTEP_SECRET_FILE");
}

int main(void)
{
    ls_err err = {0};

    if (lsi_auth_usable(&err) != LS_OK) CHECK_SKIP(err.text);
    CHECK_RUN(messages_arrive);
    CHECK_RUN(another_secret_is_refused);
    CHECK_RUN(strangers_are_refused);
    CHECK_RUN(a_recording_cannot_be_replayed);
    CHECK_RUN(a_changed_byte_is_noticed);
    CHECK_RUN(a_closed_connection_is_lost);
    CHECK_RUN(bodies_are_read_exactly);
    CHECK_RUN(secrets_come_from_private_files);
    return CHECK_DONE();
}
