/* net.c: names, interfaces and sockets. */
#include "launch/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void lsi_net_text(const struct sockaddr_storage *sa, char *buf, size_t size)
{
    const void *at = sa->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)sa)->sin6_addr
                                               : (const void *)&((const struct sockaddr_in *)sa)->sin_addr;

    if (inet_ntop(sa->ss_family, at, buf, (socklen_t)size) == NULL) snprintf(buf, size, "?");
}

bool lsi_net_is_loopback(const lsi_address *a)
{
    if (a->sa.ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&a->sa;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (a->sa.ss_family != AF_INET6) return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&a->sa)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

/* -- names ------------------------------------------------------------------------------------------------
 */

typedef struct answer {
    int problem; /* of getaddrinfo */
    lsi_address address;
} answer;

static void look_up(const char *host, int port, answer *a)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    char service[16];

    snprintf(service, sizeof service, "%d", port);
    a->problem = getaddrinfo(host, service, &hints, &list);
    if (a->problem != 0) return;
    /* The older protocol first where a name has both: MPI libraries are often built without the newer. */
    const struct addrinfo *best = list;
    for (const struct addrinfo *i = list; i != NULL && best->ai_family != AF_INET; i = i->ai_next)
        if (i->ai_family == AF_INET) best = i;
    memcpy(&a->address.sa, best->ai_addr, best->ai_addrlen);
    a->address.n = best->ai_addrlen;
    lsi_net_text(&a->address.sa, a->address.text, sizeof a->address.text);
    freeaddrinfo(list);
}

/* In a child, since getaddrinfo knows no time limit and may wait for half a minute. */
ls_status lsi_net_resolve(lsi_address *out, const char *host, int port, double seconds, ls_err *err)
{
    struct pollfd p;
    answer a = {.problem = EAI_AGAIN};
    ssize_t n = 0;
    pid_t pid;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) return ls_fail(err, LS_IO, "looking up %s: %s", host, strerror(errno));
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        look_up(host, port, &a);
        n = write(ends[1], &a, sizeof a);
        _exit(n == (ssize_t)sizeof a ? 0 : 1);
    }
    close(ends[1]);
    p = (struct pollfd){.fd = ends[0], .events = POLLIN};
    if (pid > 0 && poll(&p, 1, (int)(seconds * 1e3)) > 0) n = read(ends[0], &a, sizeof a);
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (n != (ssize_t)sizeof a || a.problem != 0)
        return ls_fail(
            err, LS_INVALID,
            "the host \"%s\" of MASTER_ADDR (or --master) cannot be found: %s; use an address, or a name "
            "that /etc/hosts or the name server knows",
            host, n == (ssize_t)sizeof a ? gai_strerror(a.problem) : "no answer from the name server");
    *out = a.address;
    return LS_OK;
}

/* -- interfaces -------------------------------------------------------------------------------------------
 */

static bool same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
    char x[INET6_ADDRSTRLEN], y[INET6_ADDRSTRLEN];
    struct sockaddr_storage copy = {0};

    if (a == NULL || a->sa_family != b->ss_family) return false;
    memcpy(&copy, a, a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    lsi_net_text(&copy, x, sizeof x);
    lsi_net_text(b, y, sizeof y);
    return strcmp(x, y) == 0;
}

/* "10.1.0.0/24"; of IPv6 the address alone with its length. */
static void network_text(const struct ifaddrs *i, char *buf, size_t size)
{
    uint8_t bytes[16];
    char text[INET6_ADDRSTRLEN];
    const bool six = i->ifa_addr->sa_family == AF_INET6;
    const uint8_t *at =
        six ? ((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr.s6_addr
            : (const uint8_t *)&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
    const uint8_t *mask =
        six ? ((const struct sockaddr_in6 *)(const void *)i->ifa_netmask)->sin6_addr.s6_addr
            : (const uint8_t *)&((const struct sockaddr_in *)(const void *)i->ifa_netmask)->sin_addr;
    int bits = 0;

    for (int k = 0; k < (six ? 16 : 4); k++) {
        bytes[k] = at[k] & mask[k];
        bits += __builtin_popcount(mask[k]);
    }
    if (inet_ntop(i->ifa_addr->sa_family, bytes, text, sizeof text) == NULL) snprintf(text, sizeof text, "?");
    snprintf(buf, size, "%s/%d", text, bits);
}

bool lsi_net_route(lsi_interface *out, const lsi_address *to)
{
    struct sockaddr_storage mine = {0};
    socklen_t n = sizeof mine;
    struct ifaddrs *list = NULL;
    bool found = false;
    const int fd = socket(to->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *out = (lsi_interface){0};
    if (fd < 0) return false;
    /* Connecting a datagram socket sends nothing: it only asks the routing table. */
    if (connect(fd, (const struct sockaddr *)&to->sa, to->n) == 0 &&
        getsockname(fd, (struct sockaddr *)&mine, &n) == 0 && getifaddrs(&list) == 0) {
        for (const struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
            if (!same_address(i->ifa_addr, &mine) || i->ifa_netmask == NULL) continue;
            snprintf(out->name, sizeof out->name, "%s", i->ifa_name);
            lsi_net_text(&mine, out->address, sizeof out->address);
            network_text(i, out->network, sizeof out->network);
            found = true;
        }
        freeifaddrs(list);
    }
    close(fd);
    return found;
}

void lsi_net_own(char *buf, size_t size)
{
    struct ifaddrs *list = NULL;
    size_t at = 0;

    snprintf(buf, size, "none");
    if (getifaddrs(&list) != 0) return;
    for (const struct ifaddrs *i = list; i != NULL && at + 96 < size; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        struct sockaddr_storage copy = {0};
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET || strcmp(i->ifa_name, "lo") == 0)
            continue;
        memcpy(&copy, i->ifa_addr, sizeof(struct sockaddr_in));
        lsi_net_text(&copy, text, sizeof text);
        at += (size_t)snprintf(buf + at, size - at, "%s%s (%s)", at > 0 ? ", " : "", text, i->ifa_name);
    }
    freeifaddrs(list);
}

/* -- sockets ----------------------------------------------------------------------------------------------
 */

static ls_status explain_listen(int number, const lsi_address *at, const char *host, int port, ls_err *err)
{
    char own[512];

    lsi_net_own(own, sizeof own);
    if (number == EADDRINUSE)
        return ls_fail(
            err, LS_INVALID,
            "port %d of %s is taken, perhaps by another run: choose another MASTER_PORT (or --master "
            "HOST:PORT) on all machines",
            port, at->text);
    if (number == EADDRNOTAVAIL)
        return ls_fail(err, LS_INVALID,
                       "MASTER_ADDR (or --master) is %s, address %s, which is not one of this machine, "
                       "though it is machine 0; it has %s: correct it on all machines, or NODE_RANK here",
                       host, at->text, own);
    return ls_fail(err, LS_INVALID, "machine 0 cannot listen on %s port %d: %s", at->text, port,
                   strerror(number));
}

ls_status lsi_net_listen(int *out, const lsi_address *at, const char *host, int port, ls_err *err)
{
    const int fd = socket(at->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    int number;

    if (fd < 0) return ls_fail(err, LS_IO, "a socket: %s", strerror(errno));
    /* A port that the last run used a moment ago is not taken. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)&at->sa, at->n) == 0 && listen(fd, 1024) == 0) {
        *out = fd;
        return LS_OK;
    }
    number = errno;
    close(fd);
    return explain_listen(number, at, host, port, err);
}

int lsi_net_connect(const lsi_address *to)
{
    const int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) return -1;
    if (connect(fd, (const struct sockaddr *)&to->sa, to->n) == 0 || errno == EINPROGRESS) return fd;
    const int number = errno;
    close(fd);
    errno = number;
    return -1;
}

void lsi_net_tune(int fd)
{
    const int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}
