/* net.h: addresses of this machine and of machine 0. */
#ifndef LS_LAUNCH_NET_H
#define LS_LAUNCH_NET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "lockstep/status.h"

typedef struct lsi_address {
    struct sockaddr_storage sa;
    socklen_t n;
    char text[INET6_ADDRSTRLEN + 8]; /* without the port */
} lsi_address;

/* The address of a host, within `seconds`: names may be asked of servers that do not answer. */
ls_status lsi_net_resolve(lsi_address *out, const char *host, int port, double seconds,
                          ls_err *err) LS_MUST_CHECK;
/* The text of a peer's address. */
void lsi_net_text(const struct sockaddr_storage *sa, char *buf, size_t size);

/* Whether only this machine itself reaches it. */
bool lsi_net_is_loopback(const lsi_address *a);

/* One of this machine's own addresses. */
typedef struct lsi_interface {
    char name[32], address[INET6_ADDRSTRLEN];
    char network[INET6_ADDRSTRLEN + 8]; /* "10.1.0.0/24" */
} lsi_interface;

/* The interface by which packets to `to` leave; false: there is no route. */
bool lsi_net_route(lsi_interface *out, const lsi_address *to);
/* "10.1.0.5 (eth0), 192.168.1.2 (wlan0)": the addresses of this machine, without the loopback. */
void lsi_net_own(char *buf, size_t size);

/* A listening socket, which accepts without blocking. */
ls_status lsi_net_listen(int *out, const lsi_address *at, const char *host, int port,
                         ls_err *err) LS_MUST_CHECK;
/* A connection that is being made: a socket that becomes writable when it is there or has failed; -1 with
 * errno when it cannot even begin. */
int lsi_net_connect(const lsi_address *to);
/* Small messages at once, and a connection whose peer is cut off is noticed. */
void lsi_net_tune(int fd);

#endif
