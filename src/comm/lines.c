/* lines.c: messages on connections that are there (lines_open.c makes them).
 *
 * On the wire a message is its tag, length and weight, then its bytes.  A parcel is a message that is on its
 * way: it stands in the queue of what a line sends, among what is awaited from it, or among what has come and
 * nobody awaits. */
#include "comm/lines.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/stock.h"

enum { SEND_AT_ONCE = 8 }; /* parcels in one call */

/* Where the system takes nothing more it is tried again when it says so, which it does when a third of its
 * room is free, or after so long: a rank that will compute next fills the room. */
#define FULL_NS UINT64_C(200000)

/* A peer that is gone is first of all the launcher's matter, who knows more of it. */
#define GRACE_NS UINT64_C(5000000000)

/* A machine answers for ranks that compute, too.  After so many seconds without a word of it, it is gone
 * (LOCKSTEP_HEARTBEAT; that launchers of ours find out sooner, and not all runs have one). */
enum { SILENCE_S = 60, LONGEST_SILENCE_S = 86400 };
#define LOOK_NS UINT64_C(1000000000) /* how often that is asked while nothing comes */

/* Its form is LSI_LINES_FORM. */
typedef struct heading {
    int32_t tag;
    uint32_t bytes;
    float weight;
} heading;

typedef struct parcel {
    struct parcel *next, *made_before;
    struct line *line;
    heading head;
    char *data;
    uint64_t turn; /* of what is sent */
    size_t at;     /* bytes that have moved; of what is sent, with its heading */
    bool done;
    bool held;  /* somebody awaits it, and reads it in its room */
    char *kept; /* the room; NULL: it has a place of its own */
} parcel;

typedef struct queue {
    parcel *first, **end;
} queue;

typedef struct line {
    int fd, peer;
    queue out, awaited, unasked;
    heading head; /* of the message that is coming in */
    size_t head_at;
    parcel *in;       /* where it goes; NULL: its heading is not complete */
    uint64_t full_ns; /* when the system took nothing more; 0: it may take something */
    uint64_t lost_ns; /* when the connection ended; 0: it stands */
    bool silent;      /* because the peer's machine does not answer any more */
} line;

struct lsi_lines {
    int size, n;
    line **of;             /* by rank and lane; NULL: none */
    line **list;           /* the n that are there */
    struct pollfd *polled; /* as many: what the system says of them */
    bool told;             /* that since the last turn */
    parcel *made;          /* all of them, the last one first */
    queue spare;
    lsi_stock rooms; /* for messages without a place */
    int silence_s;
    uint64_t looked_ns;
};

/* -- queues -------------------------------------------------------------------------------------------------
 */

static void append(queue *q, parcel *p)
{
    p->next = NULL;
    *q->end = p;
    q->end = &p->next;
}

static parcel *take_at(queue *q, parcel **at)
{
    parcel *p = *at;

    *at = p->next;
    if (*at == NULL) q->end = at;
    return p;
}

/* The first with that tag; NULL: none. */
static parcel *take_tag(queue *q, int tag)
{
    for (parcel **at = &q->first; *at != NULL; at = &(*at)->next)
        if ((*at)->head.tag == tag) return take_at(q, at);
    return NULL;
}

/* Parcels and rooms are used again: after the first steps nothing is allocated. */
static void give_back(lsi_lines *l, parcel *p)
{
    lsi_stock_give(&l->rooms, p->kept);
    p->kept = NULL;
    append(&l->spare, p);
}

static parcel *make_parcel(lsi_lines *l)
{
    parcel *p = ls_alloc(LS_MEM_COMM, sizeof *p);

    if (p == NULL) return NULL;
    p->made_before = l->made;
    return l->made = p;
}

static parcel *new_parcel(lsi_lines *l, line *of, heading head, void *data)
{
    parcel *p = l->spare.first != NULL ? take_at(&l->spare, &l->spare.first) : make_parcel(l);

    if (p == NULL) return NULL;
    p->line = of;
    p->head = head;
    p->data = data;
    p->at = 0;
    p->done = p->held = false;
    return p;
}

/* Its message comes to a room. */
static bool give_room(lsi_lines *l, parcel *p)
{
    p->data = p->kept = lsi_stock_take(&l->rooms, p->head.bytes);
    return p->kept != NULL;
}

static line **line_of(const lsi_lines *l, int peer, lsi_lane lane)
{
    return &l->of[peer * LSI_LANES + (int)lane];
}

/* -- making -------------------------------------------------------------------------------------------------
 */

static int silence_limit(void)
{
    const char *text = getenv("LOCKSTEP_HEARTBEAT");
    const double given = text != NULL ? atof(text) : 0;

    if (!(given >= 1.5)) return SILENCE_S;
    return given < LONGEST_SILENCE_S ? (int)(given + 0.5) : LONGEST_SILENCE_S;
}

/* While nothing travels, the system asks the peer's now and then.  (TCP_USER_TIMEOUT would also end a
 * connection to a rank that lives and does not read for long.) */
static void keep_alive(int fd, int silence_s)
{
    const int on = 1, idle = silence_s > 3 ? silence_s / 3 : 1, between = silence_s > 6 ? silence_s / 6 : 1,
              times = silence_s > idle + between ? (silence_s - idle) / between : 1;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

ls_status lsi_lines_make(lsi_lines **out, int size, ls_err *err)
{
    const size_t most = (size_t)size * LSI_LANES;
    lsi_lines *l = *out = ls_alloc(LS_MEM_COMM, sizeof *l);

    if (l == NULL) return ls_fail(err, LS_NOMEM, "no memory for connections");
    l->size = size;
    l->silence_s = silence_limit();
    l->spare.end = &l->spare.first;
    l->of = ls_alloc(LS_MEM_COMM, most * sizeof(line *));
    l->list = ls_alloc(LS_MEM_COMM, most * sizeof(line *));
    l->polled = ls_alloc(LS_MEM_COMM, most * sizeof *l->polled);
    if (l->of != NULL && l->list != NULL && l->polled != NULL) return LS_OK;
    lsi_lines_close(l);
    *out = NULL;
    return ls_fail(err, LS_NOMEM, "no memory for connections");
}

ls_status lsi_lines_connect_take(lsi_lines *l, int peer, lsi_lane lane, int fd, ls_err *err)
{
    line *x = ls_alloc(LS_MEM_COMM, sizeof *x);

    if (x == NULL || *line_of(l, peer, lane) != NULL) {
        close(fd);
        ls_free(x);
        return ls_fail(err, x == NULL ? LS_NOMEM : LS_LOST, "rank %d cannot be connected", peer);
    }
    keep_alive(fd, l->silence_s);
    x->fd = fd;
    x->peer = peer;
    x->out.end = &x->out.first;
    x->awaited.end = &x->awaited.first;
    x->unasked.end = &x->unasked.first;
    *line_of(l, peer, lane) = l->list[l->n++] = x;
    return LS_OK;
}

void lsi_lines_close(lsi_lines *l)
{
    if (l == NULL) return;
    for (int i = 0; i < l->n; i++) {
        line *x = l->list[i];
        close(x->fd);
        ls_free(x);
    }
    for (parcel *p = l->made, *before; p != NULL; p = before) {
        before = p->made_before;
        lsi_stock_give(&l->rooms, p->kept);
        ls_free(p);
    }
    lsi_stock_release(&l->rooms);
    ls_free(l->polled);
    ls_free(l->list);
    ls_free(l->of);
    ls_free(l);
}

/* -- sending ------------------------------------------------------------------------------------------------
 */

static void lose(line *x, int why)
{
    if (x->lost_ns == 0) x->lost_ns = ls_clock_ns();
    if (why == ETIMEDOUT) x->silent = true;
}

/* What is left of the first parcels, as pieces of memory. */
static int list_pieces(const line *x, struct iovec *v)
{
    int n = 0, parcels = 0;

    for (parcel *p = x->out.first; p != NULL && parcels < SEND_AT_ONCE; p = p->next, parcels++) {
        const size_t head = p->at < sizeof p->head ? p->at : sizeof p->head, body = p->at - head;
        if (head < sizeof p->head) v[n++] = (struct iovec){(char *)&p->head + head, sizeof p->head - head};
        if (body < p->head.bytes) v[n++] = (struct iovec){p->data + body, p->head.bytes - body};
    }
    return n;
}

/* So many bytes have left. */
static void note_sent(line *x, size_t sent)
{
    while (sent > 0) {
        parcel *p = x->out.first;
        const size_t left = sizeof p->head + p->head.bytes - p->at, now = sent < left ? sent : left;
        p->at += now;
        sent -= now;
        if (now < left) return;
        take_at(&x->out, &x->out.first)->done = true;
    }
}

static size_t bytes_of(const struct msghdr *m)
{
    size_t sum = 0;

    for (size_t i = 0; i < m->msg_iovlen; i++) sum += m->msg_iov[i].iov_len;
    return sum;
}

/* Until nothing is left or the system has no room. */
static bool flush(line *x)
{
    struct iovec pieces[2 * SEND_AT_ONCE];
    bool moved = false;

    x->full_ns = 0;
    while (x->out.first != NULL && x->lost_ns == 0 && x->full_ns == 0) {
        struct msghdr m = {.msg_iov = pieces, .msg_iovlen = (size_t)list_pieces(x, pieces)};
        const size_t all = bytes_of(&m);
        const ssize_t sent = sendmsg(x->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) lose(x, errno);
        if (sent < (ssize_t)all) x->full_ns = ls_clock_ns();
        if (sent <= 0) break;
        note_sent(x, (size_t)sent);
        moved = true;
    }
    return moved;
}

/* Each call for nothing is taken from what the rank computes. */
static bool may_flush(const line *x)
{
    return x->out.first != NULL && (x->full_ns == 0 || ls_clock_ns() - x->full_ns >= FULL_NS);
}

/* Behind all that go first; what has begun to leave goes on. */
static void queue_up(queue *q, parcel *p)
{
    parcel **at = &q->first;

    while (*at != NULL && ((*at)->turn <= p->turn || (*at)->at > 0)) at = &(*at)->next;
    p->next = *at;
    *at = p;
    if (p->next == NULL) q->end = &p->next;
}

ls_status lsi_lines_send(lsi_lines *l, const void *data, size_t bytes, int to, lsi_lane lane, int tag,
                         uint64_t turn, float weight, ls_transport_request *out, ls_err *err)
{
    line *x = *line_of(l, to, lane);
    parcel *p;

    LS_BUG_IF(x == NULL || bytes > UINT32_MAX);
    p = new_parcel(l, x, (heading){tag, (uint32_t)bytes, weight}, (void *)(uintptr_t)data); /* is only read */
    if (p == NULL) return ls_fail(err, LS_NOMEM, "no memory for a message");
    p->turn = turn;
    out->word[0] = (uint64_t)(uintptr_t)p;
    queue_up(&x->out, p);
    if (may_flush(x)) flush(x);
    return LS_OK;
}

/* -- receiving ----------------------------------------------------------------------------------------------
 */

/* This rank alone knows it, and the run cannot go on: to the others it is a rank that is lost, not one of
 * those that all have found to disagree. */
static ls_status misfit(const line *x, int tag, size_t came, size_t awaited, ls_err *err)
{
    return ls_fail(err, LS_LOST, "rank %d sent %zu bytes as message %d, and %zu were awaited", x->peer, came,
                   tag, awaited);
}

/* Whether it comes to a room, and nobody has asked for it. */
static bool is_unasked(const parcel *p)
{
    return p->kept != NULL && p->data == p->kept && !p->held;
}

/* Somebody has asked, and reads it in its room. */
static ls_status hold(parcel *p, ls_transport_request *out)
{
    p->held = true;
    out->word[0] = (uint64_t)(uintptr_t)p;
    return LS_OK;
}

ls_status lsi_lines_receive(lsi_lines *l, void *data, size_t bytes, int from, lsi_lane lane, int tag,
                            ls_transport_request *out, ls_err *err)
{
    line *x = *line_of(l, from, lane);
    parcel *p;

    LS_BUG_IF(x == NULL);
    out->word[0] = 0;
    if ((p = take_tag(&x->unasked, tag)) != NULL) {
        const size_t came = p->head.bytes;
        if (came == bytes && data == NULL) return hold(p, out);
        if (came == bytes) memcpy(data, p->data, bytes);
        give_back(l, p);
        return came == bytes ? LS_OK : misfit(x, tag, came, bytes, err);
    }
    if (x->in != NULL && is_unasked(x->in) && x->in->head.tag == tag) { /* it is just coming */
        if (x->in->head.bytes != bytes) return misfit(x, tag, x->in->head.bytes, bytes, err);
        if (data == NULL) return hold(x->in, out);
        memcpy(data, x->in->data, x->in->at);
        x->in->data = data;
        out->word[0] = (uint64_t)(uintptr_t)x->in;
        return LS_OK;
    }
    p = new_parcel(l, x, (heading){tag, (uint32_t)bytes, 1}, data);
    if (p == NULL) return ls_fail(err, LS_NOMEM, "no memory for a message");
    append(&x->awaited, p);
    if (data == NULL) return hold(p, out);
    out->word[0] = (uint64_t)(uintptr_t)p;
    return LS_OK;
}

const void *lsi_lines_held(const ls_transport_request *r, float *weight)
{
    const parcel *p = (const parcel *)(uintptr_t)r->word[0];

    LS_BUG_IF(p == NULL || !p->held || !p->done);
    *weight = p->head.weight;
    return p->data;
}

void lsi_lines_let_go(lsi_lines *l, ls_transport_request *r)
{
    give_back(l, (parcel *)(uintptr_t)r->word[0]);
    r->word[0] = 0;
}

/* A heading has come: where its message goes. */
static ls_status find_place(lsi_lines *l, line *x, ls_err *err)
{
    parcel *p = take_tag(&x->awaited, x->head.tag);

    x->head_at = 0;
    if (p != NULL && p->head.bytes != x->head.bytes) {
        append(&x->awaited, p);
        lose(x, 0); /* its bytes are next, and would be taken for headings */
        return misfit(x, x->head.tag, x->head.bytes, p->head.bytes, err);
    }
    if (p == NULL) p = new_parcel(l, x, x->head, NULL);
    if (p == NULL || (p->data == NULL && !give_room(l, p)))
        return ls_fail(err, LS_NOMEM, "no memory for a message of %u bytes", x->head.bytes);
    p->head = x->head;
    x->in = p;
    return LS_OK;
}

/* The message that was coming is there. */
static void arrive(line *x)
{
    parcel *p = x->in;

    x->in = NULL;
    p->done = true;
    if (is_unasked(p)) append(&x->unasked, p);
}

/* One call: what is left of the message, and the heading of the next.  False: there is nothing now.  `all`:
 * there may be more. */
static bool read_some(line *x, bool *all)
{
    struct iovec pieces[2];
    struct msghdr m = {.msg_iov = pieces};
    ssize_t got;
    size_t body = 0;

    if (x->in != NULL) {
        body = x->in->head.bytes - x->in->at;
        pieces[m.msg_iovlen++] = (struct iovec){x->in->data + x->in->at, body};
    }
    pieces[m.msg_iovlen++] = (struct iovec){(char *)&x->head + x->head_at, sizeof x->head - x->head_at};
    do got = recvmsg(x->fd, &m, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) lose(x, got == 0 ? 0 : errno);
    if (got <= 0) return false;
    *all = (size_t)got == bytes_of(&m);
    if (body > (size_t)got) body = (size_t)got;
    if (x->in != NULL) x->in->at += body;
    x->head_at += (size_t)got - body;
    return true;
}

/* Up to the end of a message. */
static ls_status read_line(lsi_lines *l, line *x, bool *moved, ls_err *err)
{
    bool all = true;
    ls_status st = LS_OK;

    while (x->lost_ns == 0 && all && read_some(x, &all)) {
        const bool whole = x->in != NULL && x->in->at == x->in->head.bytes;
        *moved = true;
        if (whole) arrive(x);
        if (x->in == NULL && x->head_at == sizeof x->head) LS_TRY(find_place(l, x, err));
        if (x->in != NULL && x->in->head.bytes == 0) arrive(x);
        if (whole) break;
    }
out:
    return st;
}

/* -- asking -------------------------------------------------------------------------------------------------
 */

/* Whether what was sent, or asked, has been answered by nobody for too long, and nothing else has come: the
 * system itself would go on for a quarter of an hour. */
static bool is_silent(const lsi_lines *l, const line *x)
{
    const uint32_t limit_ms = (uint32_t)l->silence_s * 1000;
    struct tcp_info now = {0};
    socklen_t bytes = sizeof now;

    if (getsockopt(x->fd, IPPROTO_TCP, TCP_INFO, &now, &bytes) != 0) return false;
    return now.tcpi_last_ack_recv >= limit_ms && now.tcpi_last_data_recv >= limit_ms &&
           (now.tcpi_unacked > 0 || now.tcpi_probes > 1);
}

static void look_for_silence(lsi_lines *l)
{
    const uint64_t now = ls_clock_ns();

    if (now - l->looked_ns < LOOK_NS) return;
    l->looked_ns = now;
    for (int i = 0; i < l->n; i++)
        if (l->list[i]->lost_ns == 0 && is_silent(l, l->list[i])) lose(l->list[i], ETIMEDOUT);
}

/* What can be read and sent, within so long.  One call for all lines, of which most have nothing: two for
 * each were a third of the processor's time with eight machines and several vectors under way.  Where the
 * system does not say, all are tried. */
static void ask_system(lsi_lines *l, int64_t ns)
{
    const struct timespec most = {.tv_nsec = (long)ns};

    for (int i = 0; i < l->n; i++) {
        const line *x = l->list[i];
        l->polled[i] = (struct pollfd){.fd = x->lost_ns == 0 ? x->fd : -1,
                                       .events = (short)(x->out.first != NULL ? POLLIN | POLLOUT : POLLIN)};
    }
    if (ppoll(l->polled, (nfds_t)l->n, &most, NULL) < 0)
        for (int i = 0; i < l->n; i++) l->polled[i].revents = POLLIN | POLLOUT;
    l->told = true;
}

ls_status lsi_lines_turn(lsi_lines *l, bool *moved, ls_err *err)
{
    ls_status st = LS_OK;

    *moved = false;
    if (!l->told) ask_system(l, 0);
    for (int i = 0; i < l->n; i++) {
        const short can = l->polled[i].revents;
        if (((can & POLLOUT) || may_flush(l->list[i])) && flush(l->list[i])) *moved = true;
        if (can & ~POLLOUT) LS_TRY(read_line(l, l->list[i], moved, err));
    }
    if (!*moved) look_for_silence(l);
out:
    l->told = false;
    return st;
}

void lsi_lines_rest(lsi_lines *l, int64_t ns)
{
    ask_system(l, ns);
}

ls_status lsi_lines_test(lsi_lines *l, ls_transport_request *requests, int n, bool *finished, ls_err *err)
{
    *finished = true;
    for (int i = 0; i < n; i++) {
        parcel *p = (parcel *)(uintptr_t)requests[i].word[0];
        if (p == NULL) continue;
        if (p->done && p->held) continue;
        if (p->done) {
            give_back(l, p);
            requests[i].word[0] = 0;
            continue;
        }
        *finished = false;
        if (p->line->silent)
            return ls_fail(err, LS_LOST, "the machine of rank %d has not answered for %d s", p->line->peer,
                           l->silence_s);
        if (p->line->lost_ns != 0 && ls_clock_ns() - p->line->lost_ns > GRACE_NS)
            return ls_fail(err, LS_LOST, "the connection to rank %d has ended", p->line->peer);
    }
    return LS_OK;
}
