/* link.h: an authenticated connection between two launchers.
 *
 *     server: "LOCKSTP1" nonce                both know the run's key K
 *     client: "LOCKSTP1" nonce proof          proof  = hash(K, "client", both nonces)
 *     server: proof                           proof  = hash(K, "server", both nonces)
 * Then frames, either way, under a key made of K and both nonces:
 *     kind, length, counter, hash(body), hash(all this); body
 * Every read before the last hash of a header has been checked is of a fixed size: no length field of a
 * stranger is believed, and an old connection cannot be replayed.  Nothing is encrypted: no secrets travel
 * here.
 *
 * Links do not block.  They belong to one thread. */
#ifndef LS_LAUNCH_LINK_H
#define LS_LAUNCH_LINK_H

#include <poll.h>

#include "launch/auth.h"
#include "launch/wire.h"

typedef struct lsi_link lsi_link;

/* Takes over `fd`, a connected (or connecting) stream. */
ls_status lsi_link_create_take(lsi_link **out, int fd, bool is_server, const lsi_key *key, const char *peer,
                               ls_err *err) LS_MUST_CHECK;
void lsi_link_destroy(lsi_link *l); /* accepts NULL */

int lsi_link_fd(const lsi_link *l);
const char *lsi_link_peer(const lsi_link *l); /* its address */
bool lsi_link_is_open(const lsi_link *l);     /* the peer has proved that it knows the key */
double lsi_link_heard(const lsi_link *l);     /* when the last bytes came */
short lsi_link_events(const lsi_link *l);     /* what to poll for */

/* Queues a message; it leaves as the connection takes it. */
ls_status lsi_link_send(lsi_link *l, const lsi_message *m, ls_err *err) LS_MUST_CHECK;
/* Sends what waits, reads what is there.  When a whole message has come, *got is true and *m is valid until
 * the next call; call again until it is false.  LS_LOST: the peer has closed the connection or it broke;
 * LS_FORMAT: it does not know the key or does not speak this language. */
ls_status lsi_link_pump(lsi_link *l, bool *got, lsi_message *m, ls_err *err) LS_MUST_CHECK;
/* Waits up to `seconds` until all that was queued has left. */
void lsi_link_flush(lsi_link *l, double seconds);

#endif
