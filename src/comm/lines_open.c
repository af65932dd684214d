/* lines_open.c: how connections between ranks of different machines are made.
 *
 * Every rank listens, and tells all others where, by what MPI has for the beginning.  Then it connects to the
 * lower ones among its peers, once for each lane, accepts the higher ones, and reads the lower ones' answers.
 * Nobody waits in a circle: a connection and the first bytes on it need the other's system alone.  Both sides
 * prove with the other's number that they are in this run.  If one connection cannot be made, all ranks use
 * MPI. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/machine.h"
#include "comm/comm_internal.h"
#include "comm/lines.h"

enum { ADDRESSES = 4 };
/* All peers together have so long to come, and an address of one to answer: others may be the ones that do. A
 * first word that is lost is repeated by the system after a second. */
#define MEET_NS    UINT64_C(9000000000)
#define CONNECT_NS UINT64_C(1300000000)
/* Peers speak as soon as they are connected; whoever does not is a stranger. */
#define HELLO_NS UINT64_C(1000000000)

/* What the system should hold for us: of what comes much, and of what goes some milliseconds at 2.5 Gbit/s.
 * What it has can no longer be overtaken by what is wanted sooner. */
enum { RECEIVED_BYTES = 4 << 20, SENT_BYTES = 1 << 20 };

/* What a rank tells all others. */
typedef struct card {
    uint64_t form; /* LSI_LINES_FORM: first in every build */
    uint64_t nonce;
    int32_t willing, machine, port, n;
    uint32_t address[ADDRESSES], mask[ADDRESSES]; /* as on the wire */
} card;

/* The first words on a connection, and the answer. */
typedef struct hello {
    uint64_t nonce; /* of the one that is spoken to */
    int32_t from, to, lane, unused;
} hello;

/* -- what is wanted -----------------------------------------------------------------------------------------
 */

/* Networks on which MPI does not use TCP. */
static bool has_fast_network(void)
{
    glob_t found = {0};
    bool any = glob("/sys/class/infiniband/*", 0, NULL, &found) == 0;

    globfree(&found);
    if (any) return true;
    any = glob("/sys/class/cxi/*", 0, NULL, &found) == 0;
    globfree(&found);
    return any;
}

/* NULL: lines are wanted; else why not. */
static const char *unwanted(void)
{
    const char *text = getenv("LOCKSTEP_LINES"), *pml = getenv("OMPI_MCA_pml");

    if (text != NULL && strcmp(text, "off") == 0) return "LOCKSTEP_LINES=off";
    if (text != NULL && strcmp(text, "on") == 0) return NULL;
    if (getenv("OMPI_MCA_btl") != NULL || getenv("OMPI_MCA_mtl") != NULL ||
        getenv("OMPI_MCA_btl_tcp_if_exclude") != NULL || (pml != NULL && strcmp(pml, "ob1") != 0))
        return "MPI was told what to use";
    return has_fast_network() ? "there is a network that MPI knows better" : NULL;
}

/* -- addresses ----------------------------------------------------------------------------------------------
 */

static uint32_t four(const struct sockaddr *a)
{
    return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr;
}

/* Whether one of the networks ("10.1.0.0/24") or interfaces that MPI may use is it. */
static bool is_listed(const char *list, const struct ifaddrs *i)
{
    char word[64];
    int bits;
    struct in_addr net;

    for (size_t n; *list != '\0'; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, list);
        if (strcmp(word, i->ifa_name) == 0) return true;
        char *slash = strchr(word, '/');
        if (slash == NULL) continue;
        *slash = '\0';
        bits = atoi(slash + 1);
        if (inet_pton(AF_INET, word, &net) != 1 || bits < 1 || bits > 32) continue;
        if (((four(i->ifa_addr) ^ net.s_addr) & htonl(~UINT32_C(0) << (32 - bits))) == 0) return true;
    }
    return false;
}

static void list_addresses(card *out)
{
    const char *only = getenv("OMPI_MCA_btl_tcp_if_include");
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) != 0) return;
    for (const struct ifaddrs *i = list; i != NULL && out->n < ADDRESSES; i = i->ifa_next) {
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET || i->ifa_netmask == NULL) continue;
        if ((i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP)) continue;
        if (only != NULL && !is_listed(only, i)) continue;
        out->address[out->n] = four(i->ifa_addr);
        out->mask[out->n++] = four(i->ifa_netmask);
    }
    freeifaddrs(list);
}

/* -- sockets ------------------------------------------------------------------------------------------------
 */

/* What a user may ask for, in bytes. */
static long allowed(const char *file)
{
    char text[32] = "";
    FILE *f = fopen(file, "re");

    if (f == NULL) return 0;
    if (fgets(text, sizeof text, f) == NULL) text[0] = '\0';
    fclose(f);
    return strtol(text, NULL, 10);
}

static void send_at_once(int fd)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* BBR sends at a rate that it has estimated.  A step sends for some hundred milliseconds and then rests, and
 * BBR begins the next one with half of what the wire can carry, or all of it, as it happens; and where
 * several send to one machine, each finds its share anew.  On ways where nothing is lost, up to 20 ms there
 * and back, those that keep a window instead go on where they were, and took 12 % less time with 4 and 8
 * machines. It is not used from the beginning, as the system goes on to pace what a connection sends that
 * once had it. */
enum { CONTROL_NAME = 16 };

/* Into `name` what paces; false: it keeps a window. */
static bool is_paced(int fd, char name[CONTROL_NAME])
{
    socklen_t n = CONTROL_NAME - 1;

    memset(name, 0, CONTROL_NAME);
    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) == 0 && strncmp(name, "bbr", 3) == 0;
}

static void keep_window(int fd)
{
    static const char *const better[] = {"cubic", "reno"};
    char now[CONTROL_NAME];

    if (!is_paced(fd, now)) return;
    for (size_t i = 0; i < sizeof better / sizeof better[0]; i++)
        if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, better[i], (socklen_t)strlen(better[i])) == 0) return;
}

/* A way that is no longer than this, there and back, is within a building or a region. */
enum { SHORT_WAY_US = 10000 };

/* On a longer one something may be lost at any time, and the system's own choice is the better one. */
static void heed_way(int fd)
{
    struct tcp_info way = {0};
    socklen_t bytes = sizeof way;
    char usual[CONTROL_NAME];
    int fresh;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &way, &bytes) != 0 || way.tcpi_rtt <= SHORT_WAY_US) return;
    fresh = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fresh < 0) return;
    if (is_paced(fresh, usual))
        (void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, usual, (socklen_t)strlen(usual));
    close(fresh);
}

/* The system makes buffers as long as connections that never rest need, which ours do: while ranks compute,
 * and a rank that computes does not refill them.  Where a user may not ask for enough, the system's own
 * choice is the better one. The receiver's comes before the connection: it says what can be announced. */
static void tune(int fd)
{
    const int sent = SENT_BYTES, received = RECEIVED_BYTES;

    send_at_once(fd);
    keep_window(fd);
    if (allowed("/proc/sys/net/core/wmem_max") >= sent)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sent, sizeof sent);
    if (allowed("/proc/sys/net/core/rmem_max") >= received)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &received, sizeof received);
}

/* -1: cannot. */
static int listen_somewhere(int peers, int32_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) return -1;
    tune(fd); /* what it accepts has its buffers */
    if (bind(fd, (const struct sockaddr *)&at, n) != 0 || listen(fd, peers) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(at.sin_port);
    return fd;
}

/* Until it is readable or writable, or the time is over. */
static bool ready(int fd, short events, uint64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    int got;

    do {
        const uint64_t now = ls_clock_ns();
        got = poll(&p, 1, now < until_ns ? (int)((until_ns - now) / 1000000) + 1 : 0);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

static bool read_all(int fd, void *to, size_t bytes, uint64_t until_ns)
{
    for (size_t at = 0; at < bytes;) {
        if (!ready(fd, POLLIN, until_ns)) return false;
        const ssize_t got = recv(fd, (char *)to + at, bytes - at, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return false;
        at += (size_t)got;
    }
    return true;
}

/* A few bytes, which a new connection has room for. */
static bool write_all(int fd, const void *from, size_t bytes)
{
    return send(fd, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* -1: nobody answers. */
static int connect_to(uint32_t address, int32_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = address};
    int problem = 0, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t n = sizeof problem;

    if (fd < 0) return -1;
    tune(fd);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) return fd;
    if (errno == EINPROGRESS && ready(fd, POLLOUT, ls_clock_ns() + CONNECT_NS) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &n) == 0 && problem == 0)
        return fd;
    close(fd);
    return -1;
}

/* -- meeting ------------------------------------------------------------------------------------------------
 */

static int common_divisor(int a, int b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Whether two ranks ever own the same slice (exchange_remote.c, owner_of). */
static bool are_peers(const ls_comm *c, int a, int b)
{
    const lsi_remote *f = c->remote;
    const int divisor = common_divisor(f->host_size[f->host_of[a]], f->host_size[f->host_of[b]]);

    return f->host_of[a] != f->host_of[b] && f->local_of[a] % divisor == f->local_of[b] % divisor;
}

/* Where another connection has found somebody; 0: nowhere. */
static uint32_t address_of(int fd)
{
    struct sockaddr_in at = {0};
    socklen_t n = sizeof at;

    if (fd < 0 || getpeername(fd, (struct sockaddr *)&at, &n) != 0) return 0;
    return at.sin_addr.s_addr;
}

/* The addresses of a peer: that of a connection to it (`other`, or -1), then those that are on one of our
 * networks. */
static int reach(const card *mine, const card *peer, int other)
{
    const uint32_t known = address_of(other);
    int fd = known != 0 ? connect_to(known, peer->port) : -1;

    if (fd >= 0) return fd;
    if (mine->machine == peer->machine) fd = connect_to(htonl(INADDR_LOOPBACK), peer->port);
    for (int near = 1; near >= 0 && fd < 0; near--)
        for (int i = 0; i < peer->n && fd < 0; i++) {
            bool shared = false;
            for (int k = 0; k < mine->n; k++)
                if (((mine->address[k] ^ peer->address[i]) & mine->mask[k]) == 0) shared = true;
            if (shared == (near == 1)) fd = connect_to(peer->address[i], peer->port);
        }
    return fd;
}

static ls_status connect_lower(const ls_comm *c, const card *all, int *fds, ls_err *err)
{
    for (int i = 0; i < c->rank * LSI_LANES; i++) {
        const int r = i / LSI_LANES;
        const hello first = {.nonce = all[r].nonce, .from = c->rank, .to = r, .lane = i % LSI_LANES};
        if (!are_peers(c, c->rank, r)) continue;
        fds[i] = reach(&all[c->rank], &all[r], first.lane > 0 ? fds[i - 1] : -1);
        if (fds[i] < 0 || !write_all(fds[i], &first, sizeof first))
            return ls_fail(err, LS_LOST, "rank %d cannot connect to rank %d", c->rank, r);
    }
    return LS_OK;
}

/* Strangers are turned away. */
static ls_status accept_higher(lsi_lines *l, const ls_comm *c, const card *all, int listener, ls_err *err)
{
    const uint64_t until = ls_clock_ns() + MEET_NS;
    int left = 0;

    for (int r = c->rank + 1; r < c->size; r++) left += are_peers(c, c->rank, r) ? LSI_LANES : 0;
    while (left > 0) {
        hello first, answer;
        int fd;
        if (ls_clock_ns() >= until || !ready(listener, POLLIN, until))
            return ls_fail(err, LS_LOST, "rank %d waits for %d connections in vain", c->rank, left);
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EINTR || errno == EAGAIN || errno == ECONNABORTED)) continue;
        if (fd < 0) return ls_fail(err, LS_LOST, "rank %d cannot accept: %s", c->rank, strerror(errno));
        send_at_once(fd);
        if (!read_all(fd, &first, sizeof first, ls_clock_ns() + HELLO_NS) ||
            first.nonce != all[c->rank].nonce || first.to != c->rank || first.from <= c->rank ||
            first.from >= c->size || !are_peers(c, c->rank, first.from) || first.lane < 0 ||
            first.lane >= LSI_LANES) {
            close(fd);
            continue;
        }
        answer =
            (hello){.nonce = all[first.from].nonce, .from = c->rank, .to = first.from, .lane = first.lane};
        if (!write_all(fd, &answer, sizeof answer)) {
            close(fd);
            continue;
        }
        heed_way(fd);
        const ls_status st = lsi_lines_connect_take(l, first.from, (lsi_lane)first.lane, fd, err);
        if (st != LS_OK) return st;
        left--;
    }
    return LS_OK;
}

static ls_status hear_lower(lsi_lines *l, const ls_comm *c, const card *all, int *fds, ls_err *err)
{
    const uint64_t until = ls_clock_ns() + MEET_NS;
    ls_status st = LS_OK;

    for (int i = 0; i < c->rank * LSI_LANES; i++) {
        const int r = i / LSI_LANES, lane = i % LSI_LANES, fd = fds[i];
        hello answer;
        if (fd < 0) continue;
        if (!read_all(fd, &answer, sizeof answer, until) || answer.nonce != all[c->rank].nonce ||
            answer.from != r || answer.lane != lane)
            return ls_fail(err, LS_LOST, "what answers rank %d is not rank %d", c->rank, r);
        fds[i] = -1;
        heed_way(fd);
        LS_TRY(lsi_lines_connect_take(l, r, (lsi_lane)lane, fd, err));
    }
out:
    return st;
}

static ls_status meet(lsi_lines *l, const ls_comm *c, const card *all, int listener, ls_err *err)
{
    const int n = c->size * LSI_LANES;
    int *fds = ls_alloc(LS_MEM_COMM, (size_t)n * sizeof *fds); /* by rank and lane */
    ls_status st = LS_OK;

    if (fds == NULL) return ls_fail(err, LS_NOMEM, "no memory for connections");
    for (int i = 0; i < n; i++) fds[i] = -1;
    LS_TRY(connect_lower(c, all, fds, err));
    LS_TRY(accept_higher(l, c, all, listener, err));
    LS_TRY(hear_lower(l, c, all, fds, err));
out:
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0) close(fds[i]);
    ls_free(fds);
    return st;
}

/* Ranks of another build may await other messages, through MPI as well: they would wait for ever. */
static ls_status check_forms(const card *all, int size, ls_err *err)
{
    for (int r = 1; r < size; r++)
        if (all[r].form != all[0].form)
            return ls_fail(
                err, LS_UNSUPPORTED,
                "ranks 0 and %d exchange vectors in different ways (%llu and %llu): their machines "
                "have different builds of Lockstep, and need the same",
                r, (unsigned long long)all[0].form, (unsigned long long)all[r].form);
    return LS_OK;
}

/* The first rank that is not willing; -1: all are. */
static int first_unwilling(const card *all, int size)
{
    for (int r = 0; r < size; r++)
        if (!all[r].willing) return r;
    return -1;
}

ls_status lsi_lines_open(lsi_lines **out, ls_comm *c, ls_err *err)
{
    const char *why = unwanted();
    card mine = {.form = LSI_LINES_FORM, .machine = c->place.machine, .willing = why == NULL}, *all = NULL;
    ls_err problem = {0};
    lsi_lines *l = NULL;
    int listener = -1;
    ls_status st = LS_OK;

    *out = NULL;
    all = ls_alloc(LS_MEM_COMM, (size_t)c->size * sizeof *all);
    if (mine.willing) {
        ls_machine_allow_descriptors(c->size * (LSI_LANES + 2) + 256); /* MPI has its own, too */
        listener = listen_somewhere(c->size * LSI_LANES, &mine.port);
    }
    if (listener < 0 || all == NULL || getrandom(&mine.nonce, sizeof mine.nonce, 0) < 0 ||
        lsi_lines_make(&l, c->size, &problem) != LS_OK)
        mine.willing = 0;
    list_addresses(&mine);
    /* From here on everybody does the same: all have gathered, or nobody goes on. */
    if (all == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for connections");
        goto out;
    }
    LS_TRY(c->transport->gather(&mine, sizeof mine, all, err));
    LS_TRY(check_forms(all, c->size, err));
    if (first_unwilling(all, c->size) >= 0) {
        if (c->rank == 0)
            ls_log(LS_LOG_INFO, "vectors go through MPI: %s", why != NULL ? why : "a rank cannot otherwise");
        goto out;
    }
    mine.willing = meet(l, c, all, listener, &problem) == LS_OK;
    if (!mine.willing) ls_log(LS_LOG_INFO, "vectors go through MPI: %s", problem.text);
    LS_TRY(c->transport->gather(&mine, sizeof mine, all, err));
    if (first_unwilling(all, c->size) < 0) {
        *out = l;
        l = NULL;
        if (c->rank == 0) ls_log(LS_LOG_INFO, "vectors go over connections between ranks");
    }
out:
    if (listener >= 0) close(listener);
    lsi_lines_close(l);
    ls_free(all);
    return st;
}
