/* lines.h: messages between ranks of different machines over connections of our own.
 *
 * MPI starts ranks, says who is where, and carries what they agree upon.  Long vectors go over lines where
 * these can be made: two TCP connections between each two ranks that exchange slices.  A message is read from
 * the network to where it is wanted, without a copy in between; what has come is a flag, after one call that
 * asks for all lines; and the system has room for several milliseconds of the wire in both directions, in
 * which a rank computes and does not look.
 *
 * What is in that room cannot be overtaken any more, and on a slow wire it takes long: 1 MiB behind 250
 * Mbit/s 34 ms.  So what is short and soon waited for has a line of its own, on which nothing long is ever
 * sent.
 *
 * A message that nobody awaits yet is kept until somebody does.  Messages of a line with equal tags arrive in
 * order.
 * All functions belong to the communicator's thread. */
#ifndef LS_COMM_LINES_H
#define LS_COMM_LINES_H

#include "comm/transport.h"

typedef struct ls_comm ls_comm;
typedef struct lsi_lines lsi_lines;

/* Which of the two connections: both sides must mean the same. */
typedef enum lsi_lane { LSI_LONG, LSI_SHORT, LSI_LANES } lsi_lane;

/* Collective.  *out is NULL on all ranks where lines are not wanted (LOCKSTEP_LINES=off, a network faster
 * than TCP, an MPI that was told what to use) or one of them could not be made; the log says why. */
ls_status lsi_lines_open(lsi_lines **out, ls_comm *c, ls_err *err) LS_MUST_CHECK;
void lsi_lines_close(lsi_lines *l); /* not collective; accepts NULL */

/* Like those of a transport.  `data` stays as it is until the request is finished.  Of what waits to be sent,
 * that of the lowest `turn` goes first, and of equals the first.  `weight` travels along: by it the receiver
 * multiplies, if he does. */
ls_status lsi_lines_send(lsi_lines *l, const void *data, size_t bytes, int to, lsi_lane lane, int tag,
                         uint64_t turn, float weight, ls_transport_request *out, ls_err *err) LS_MUST_CHECK;
/* LS_LOST where a message of another length comes.  Of `data` NULL the message stays with the lines, in one
 * of a few places that are used in turn and so are in the cache: when it is finished, lsi_lines_held is where
 * it is, until it is let go. */
ls_status lsi_lines_receive(lsi_lines *l, void *data, size_t bytes, int from, lsi_lane lane, int tag,
                            ls_transport_request *out, ls_err *err) LS_MUST_CHECK;
const void *lsi_lines_held(const ls_transport_request *r, float *weight);
void lsi_lines_let_go(lsi_lines *l, ls_transport_request *r);
/* Looks at what is known; moves nothing. */
ls_status lsi_lines_test(lsi_lines *l, ls_transport_request *requests, int n, bool *finished,
                         ls_err *err) LS_MUST_CHECK;
/* Moves what can be moved at once, of what comes at most one message of every line: whoever awaits it may use
 * it while it is in the cache.  `moved`: there was something. */
ls_status lsi_lines_turn(lsi_lines *l, bool *moved, ls_err *err) LS_MUST_CHECK;
/* Sleeps until a turn would move something, so long at most. */
void lsi_lines_rest(lsi_lines *l, int64_t ns);

/* -- between lines.c and lines_open.c -----------------------------------------------------------------------
 */

/* How messages look on the wire (lines.c, heading), and which there are (exchange_remote.c), through MPI too:
 * ranks that differ in it cannot exchange anything, and are refused when they meet (lines_open.c).  Every
 * change of either is another form. */
#define LSI_LINES_FORM UINT64_C(4)

/* Lines of a rank to `size` ranks, none of which is connected. */
ls_status lsi_lines_make(lsi_lines **out, int size, ls_err *err) LS_MUST_CHECK;
/* From now on messages of that rank and lane travel over the socket, which is taken over. */
ls_status lsi_lines_connect_take(lsi_lines *l, int peer, lsi_lane lane, int fd, ls_err *err) LS_MUST_CHECK;

#endif
