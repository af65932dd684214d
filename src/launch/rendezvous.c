/* rendezvous.c: the rendezvous of machines. */
#include "launch/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "launch/launch_internal.h"
#include "launch/names.h"

#define GUESTS_MAX 64  /* connections that have not said who they are; more than that: the oldest goes */
#define GUEST_S    3.0 /* how long such a connection may take */
#define RETRY_S    0.2

typedef struct guest {
    lsi_link *link;
    double since;
} guest;

typedef struct rendezvous {
    lsi_party *p;
    const ls_start *start;
    lsi_key key;
    bool is_secret;
    double timeout, until;
    lsi_address master;
    int listener;
    guest guests[GUESTS_MAX];
    int n_guests, n_here, n_strangers;
    char (*names)[LSI_HOST_NAME];
    ls_err refusal; /* why machine 0 gives up */
} rendezvous;

static void own_host(char *buf, size_t size)
{
    if (gethostname(buf, size - 1) != 0) snprintf(buf, size, "unknown");
    buf[size - 1] = '\0';
}

/* -- machine 0 --------------------------------------------------------------------------------------------
 */

static void drop_guest(rendezvous *m, int i)
{
    lsi_link_destroy(m->guests[i].link);
    m->guests[i] = m->guests[--m->n_guests];
}

/* Strangers are told of once: a port scanner must not fill the terminal. */
static void note_stranger(rendezvous *m, const char *text)
{
    if (m->n_strangers++ == 0) ls_log(LS_LOG_WARN, "%s; it is ignored, as are others like it", text);
}

static void accept_guests(rendezvous *m)
{
    struct sockaddr_storage sa;
    socklen_t n = sizeof sa;
    int fd;

    while ((fd = accept4(m->listener, (struct sockaddr *)&sa, &n, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        char text[INET6_ADDRSTRLEN];
        lsi_net_text(&sa, text, sizeof text);
        lsi_net_tune(fd);
        /* Whoever opens many connections and says nothing must not keep the machines of the run out. */
        if (m->n_guests == GUESTS_MAX) {
            int oldest = 0;
            for (int i = 1; i < m->n_guests; i++)
                if (m->guests[i].since < m->guests[oldest].since) oldest = i;
            drop_guest(m, oldest);
        }
        guest *g = &m->guests[m->n_guests];
        if (lsi_link_create_take(&g->link, fd, true, &m->key, text, NULL) != LS_OK) continue;
        g->since = ls_clock_seconds();
        m->n_guests++;
    }
}

static void refuse(const rendezvous *m, lsi_link *link)
{
    lsi_message no = {.kind = LSI_MSG_REFUSE, .code = (uint32_t)ls_launch_exit_code(m->refusal.status)};

    snprintf(no.text, sizeof no.text, "%.1000s", m->refusal.text);
    if (lsi_link_send(link, &no, NULL) == LS_OK) lsi_link_flush(link, 1.0);
}

/* Whether what a machine was told fits what machine 0 was told. */
static ls_status check_join(const rendezvous *m, const lsi_message *j, const lsi_link *link, ls_err *err)
{
    const lsi_party *p = m->p;

    if (strcmp(j->version, LS_VERSION) != 0)
        return ls_fail(err, LS_INVALID,
                       "machine %u (%s, %s) runs Lockstep %s, machine 0 runs %s: install the same", j->node,
                       j->host, lsi_link_peer(link), j->version, LS_VERSION);
    if (j->nodes != (uint32_t)p->nodes || j->ranks != (uint32_t)p->ranks)
        return ls_fail(
            err, LS_INVALID,
            "machine %u (%s, %s) was started for %u machines with %u ranks each, machine 0 for %d with %d: "
            "give all the same WORLD_SIZE, --nodes and -n",
            j->node, j->host, lsi_link_peer(link), j->nodes, j->ranks, p->nodes, p->ranks);
    if (j->node == 0 || j->node >= (uint32_t)p->nodes)
        return ls_fail(err, LS_INVALID,
                       "machine %s (%s) says it is number %u: NODE_RANK must be 1 to %d there", j->host,
                       lsi_link_peer(link), j->node, p->nodes - 1);
    if (p->links[j->node] != NULL)
        return ls_fail(
            err, LS_INVALID,
            "%s (%s) and %s (%s) both say they are machine %u: every machine needs its own NODE_RANK",
            m->names[j->node], lsi_link_peer(p->links[j->node]), j->host, lsi_link_peer(link), j->node);
    return LS_OK;
}

static void join(rendezvous *m, int i, const lsi_message *j)
{
    lsi_link *link = m->guests[i].link;

    if (check_join(m, j, link, &m->refusal) != LS_OK) {
        refuse(m, link);
        drop_guest(m, i);
        return;
    }
    m->p->links[j->node] = link;
    snprintf(m->names[j->node], LSI_HOST_NAME, "%s", j->host);
    m->n_here++;
    m->guests[i] = m->guests[--m->n_guests];
    ls_log(LS_LOG_INFO, "machine %u (%s, %s) has joined", j->node, j->host, lsi_link_peer(link));
}

static void hear_guest(rendezvous *m, int i)
{
    guest *g = &m->guests[i];
    lsi_message message;
    ls_err err = {0};
    bool got;
    const ls_status st = lsi_link_pump(g->link, &got, &message, &err);

    if (st == LS_OK && got && message.kind == LSI_MSG_JOIN) {
        join(m, i, &message);
    } else if (st != LS_OK || got) {
        /* A connection that closes again without a word is a port scan or a retry, nothing to speak of. */
        if (st == LS_FORMAT) note_stranger(m, err.text);
        drop_guest(m, i);
    } else if (ls_clock_seconds() - g->since > GUEST_S) {
        char text[160];
        snprintf(text, sizeof text, "%s connected, but said nothing", lsi_link_peer(g->link));
        note_stranger(m, text);
        drop_guest(m, i);
    }
}

/* Machines that have joined and are gone again. */
static void hear_members(rendezvous *m)
{
    for (int i = 1; i < m->p->nodes; i++) {
        lsi_message message;
        ls_err err = {0};
        bool got;
        if (m->p->links[i] == NULL || lsi_link_pump(m->p->links[i], &got, &message, &err) == LS_OK) continue;
        ls_fail(&m->refusal, LS_LOST, "machine %d (%s) joined and left again: %s", i, m->names[i], err.text);
    }
}

static void list_missing(const rendezvous *m, ls_text *t)
{
    for (int i = 1; i < m->p->nodes; i++)
        if (m->p->links[i] == NULL) ls_text_add(t, "%s%d", t->length > 0 ? ", " : "", i);
}

static ls_status explain_missing(const rendezvous *m, ls_err *err)
{
    ls_text missing = {0}, here = {0};
    ls_status st;

    list_missing(m, &missing);
    for (int i = 1; i < m->p->nodes; i++)
        if (m->p->links[i] != NULL) ls_text_add(&here, ", machine %d (%s) has joined", i, m->names[i]);
    st = ls_fail(
        err, LS_TIMEOUT,
        "machine 0 waited %.0f s at %s port %d for machine %s of %d%s%s: start the same command there with "
        "its NODE_RANK, see that it reaches this address, or wait longer (--join-timeout)",
        m->timeout, m->master.text, m->start->port, missing.data != NULL ? missing.data : "", m->p->nodes,
        here.data != NULL ? here.data : ", none has joined",
        m->n_strangers > 0 ? " (strangers did call)" : "");
    ls_text_release(&missing);
    ls_text_release(&here);
    return st;
}

/* Somebody has asked this machine to stop. */
static ls_status refuse_to_wait(ls_err *err)
{
    return ls_fail(err, LS_CANCELLED, "asked to stop before the machines had met");
}

/* One round of waiting. */
static void receive(rendezvous *m)
{
    struct pollfd fds[1 + GUESTS_MAX];
    int n = 0;

    fds[n++] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    for (int i = 0; i < m->n_guests; i++)
        fds[n++] = (struct pollfd){.fd = lsi_link_fd(m->guests[i].link),
                                   .events = lsi_link_events(m->guests[i].link)};
    /* Not longer: a signal that comes between the look at it and this call would not end the wait. */
    (void)poll(fds, (nfds_t)n, 100);
    /* From the back: a guest that goes is replaced by the last one, which has then been heard.  All of them,
     * whatever poll found: reading does not block, and the time of the silent ones runs, too. */
    for (int i = m->n_guests - 1; i >= 0; i--) hear_guest(m, i);
    hear_members(m);
    accept_guests(m);
}

static void name_run(lsi_party *p)
{
    uint32_t id[2];

    lsi_auth_random(id, sizeof id);
    snprintf(p->name, sizeof p->name, "lockstep-%08x%08x", id[0], id[1]);
}

static ls_status welcome_all(rendezvous *m, ls_err *err)
{
    lsi_party *p = m->p;
    lsi_message yes = {.kind = LSI_MSG_WELCOME};
    ls_status st = LS_OK;

    LS_TRY(lsi_host_names(&p->hosts, m->names, p->nodes, err));
    name_run(p);
    snprintf(yes.name, sizeof yes.name, "%s", p->name);
    yes.data = (const uint8_t *)p->hosts;
    yes.n_data = strlen(p->hosts);
    for (int i = 1; i < p->nodes; i++) LS_TRY(lsi_link_send(p->links[i], &yes, err));
    for (int i = 1; i < p->nodes; i++) lsi_link_flush(p->links[i], 1.0);
out:
    return st;
}

static ls_status host(rendezvous *m, ls_err *err)
{
    lsi_party *p = m->p;
    ls_status st = LS_OK;

    LS_TRY(lsi_net_listen(&m->listener, &m->master, m->start->master, m->start->port, err));
    if (!m->is_secret && !lsi_net_is_loopback(&m->master))
        ls_log(LS_LOG_WARN, "--insecure: any program that reaches %s port %d can join this run",
               m->master.text, m->start->port);
    while (m->n_here < p->nodes - 1 && m->refusal.status == LS_OK) {
        if (lsi_stop_number() != 0)
            refuse_to_wait(&m->refusal);
        else if (ls_clock_seconds() > m->until)
            explain_missing(m, &m->refusal);
        else
            receive(m);
    }
    if (m->refusal.status != LS_OK) {
        for (int i = 1; i < p->nodes; i++)
            if (p->links[i] != NULL) refuse(m, p->links[i]);
        *err = m->refusal;
        st = err->status;
        goto out;
    }
    LS_TRY(welcome_all(m, err));
out:
    return st;
}

/* -- the others -------------------------------------------------------------------------------------------
 */

/* A connection to machine 0, tried again until it is there: machines are not started at the same moment. */
static ls_status reach_master(rendezvous *m, int *out, ls_err *err)
{
    int number = 0, tries = 0;

    while (ls_clock_seconds() < m->until) {
        if (lsi_stop_number() != 0) return refuse_to_wait(err);
        const int fd = lsi_net_connect(&m->master);
        const double left = m->until - ls_clock_seconds();
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t n = sizeof number;
        tries++;
        if (fd < 0) {
            number = errno;
        } else {
            const int ready = poll(&p, 1, (int)((left < 3.0 ? left : 3.0) * 1e3) + 1);
            number = ETIMEDOUT;
            if (ready > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &n) == 0 && number == 0) {
                lsi_net_tune(fd);
                *out = fd;
                return LS_OK;
            }
            close(fd);
        }
        /* These answers come at once; others have taken their time. */
        if (number == ECONNREFUSED || number == EHOSTUNREACH || number == ENETUNREACH)
            (void)poll(NULL, 0, (int)(RETRY_S * 1e3));
    }
    return ls_fail(
        err, LS_TIMEOUT,
        "machine 0 does not answer at %s (%s) port %d: %s, in %d tries over %.0f s from %s (%s): is it "
        "started, is MASTER_ADDR its address, does a firewall close the port?  --join-timeout waits longer",
        m->start->master, m->master.text, m->start->port, strerror(number), tries, m->timeout,
        m->p->interface.address[0] != '\0' ? m->p->interface.address : "no address",
        m->p->interface.name[0] != '\0' ? m->p->interface.name : "no route");
}

static ls_status take_welcome(rendezvous *m, const lsi_message *message, ls_err *err)
{
    lsi_party *p = m->p;

    if (message->kind == LSI_MSG_REFUSE)
        return ls_fail(err, message->code == LS_EXIT_INVALID ? LS_INVALID : LS_TIMEOUT, "machine 0 says: %s",
                       message->text);
    if (message->kind != LSI_MSG_WELCOME || memchr(message->data, '\0', message->n_data) != NULL)
        return ls_fail(err, LS_FORMAT, "machine 0 (%s) says something unexpected", m->master.text);
    snprintf(p->name, sizeof p->name, "%s", message->name);
    p->hosts = ls_alloc(LS_MEM_CLI, message->n_data + 1);
    if (p->hosts == NULL) return ls_fail(err, LS_NOMEM, "no memory for the names of machines");
    memcpy(p->hosts, message->data, message->n_data);
    return LS_OK;
}

/* Before a run has begun nothing is lost yet: the status becomes that of a connection. */
static ls_status explain_end(const rendezvous *m, bool was_open, const ls_err *why, ls_err *err)
{
    if (why->status != LS_LOST || was_open)
        return ls_fail(err, why->status == LS_LOST ? LS_IO : why->status,
                       "joining machine 0 at %s port %d: %s", m->master.text, m->start->port, why->text);
    return ls_fail(
        err, LS_IO,
        "joining machine 0 at %s port %d: %s; it has another secret (LOCKSTEP_SECRET must be the same on "
        "all machines), or another program listens there",
        m->master.text, m->start->port, why->text);
}

/* From a connection to a welcome.  *again: it broke before either side had proved anything. */
static ls_status ask_to_join(rendezvous *m, bool *again, ls_err *err)
{
    lsi_party *p = m->p;
    lsi_message message, me = {.kind = LSI_MSG_JOIN,
                               .node = (uint32_t)p->node,
                               .nodes = (uint32_t)p->nodes,
                               .ranks = (uint32_t)p->ranks};
    /* Machine 0 ends the waiting for the others; the limit here is for a machine 0 that says nothing more. */
    const double shaken = ls_clock_seconds() + GUEST_S, until = m->until + GUEST_S;
    bool told = false, got = false;
    ls_err why = {0};
    ls_status st = LS_OK;

    *again = false;
    snprintf(me.version, sizeof me.version, "%s", LS_VERSION);
    own_host(me.host, sizeof me.host);
    while (!got) {
        struct pollfd fds = {.fd = lsi_link_fd(p->links[0]), .events = lsi_link_events(p->links[0])};
        const double now = ls_clock_seconds();
        const bool was_open = lsi_link_is_open(p->links[0]);
        if (lsi_stop_number() != 0) return refuse_to_wait(err);
        if (now > until || (!was_open && now > shaken))
            return ls_fail(err, LS_TIMEOUT, "%s port %d answers, but not as machine 0 of a run does",
                           m->master.text, m->start->port);
        (void)poll(&fds, 1, 100);
        if (lsi_link_pump(p->links[0], &got, &message, &why) != LS_OK) {
            *again = why.status == LS_LOST && !was_open;
            return explain_end(m, was_open, &why, err);
        }
        if (lsi_link_is_open(p->links[0]) && !told) {
            LS_TRY(lsi_link_send(p->links[0], &me, err));
            told = true;
        }
    }
    LS_TRY(take_welcome(m, &message, err));
out:
    return st;
}

#define TRIES_MAX 8

/* A machine 0 that many strangers call may drop a connection before it has spoken; one with another secret
 * always does. */
static ls_status attend(rendezvous *m, ls_err *err)
{
    lsi_party *p = m->p;
    ls_status st = LS_OK;
    bool again = true;

    for (int i = 0; again; i++) {
        ls_err why = {0};
        int fd = -1;
        LS_TRY(reach_master(m, &fd, err));
        LS_TRY(lsi_link_create_take(&p->links[0], fd, false, &m->key, m->master.text, err));
        st = ask_to_join(m, &again, &why);
        again = again && i + 1 < TRIES_MAX && ls_clock_seconds() < m->until;
        if (again) {
            lsi_link_destroy(p->links[0]);
            p->links[0] = NULL;
            (void)poll(NULL, 0, (int)(RETRY_S * 1e3));
        } else if (st != LS_OK) {
            *err = why;
        }
    }
out:
    return st;
}

/* -- both -------------------------------------------------------------------------------------------------
 */

/* The node-th name of the list. */
static void find_own_name(lsi_party *p)
{
    const char *at = p->hosts;

    for (int i = 0; i < p->node && at != NULL; i++) {
        at = strchr(at, ',');
        if (at != NULL) at++;
    }
    snprintf(p->host, sizeof p->host, "%.*s", at != NULL ? (int)strcspn(at, ",") : 0, at != NULL ? at : "");
}

/* Without a secret everybody who reaches the port would be a rank, and be given the experiment's data and the
 * right to end it. */
static ls_status check_secret(const rendezvous *m, const ls_launch_options *o, ls_err *err)
{
    if (m->is_secret || o->insecure || lsi_net_is_loopback(&m->master)) return LS_OK;
    return ls_fail(
        err, LS_INVALID,
        "no secret: any program that reaches %s port %d could join this run; make one (`lockstep secret new "
        "FILE`), copy it to all machines and set LOCKSTEP_SECRET_FILE=FILE there, or LOCKSTEP_SECRET to its "
        "text%s; in a network of your own, --insecure does without",
        m->master.text, m->start->port,
        strcmp(m->start->place.how, "srun") == 0
            ? " (before srun: export LOCKSTEP_SECRET=$(lockstep secret new))"
            : "");
}

static ls_status prepare(rendezvous *m, const ls_launch_options *o, ls_err *err)
{
    lsi_party *p = m->p;
    ls_status st = LS_OK;

    LS_TRY(lsi_auth_usable(err));
    LS_TRY(lsi_auth_run_key(&m->key, &m->is_secret, err));
    /* Half of the time: the rest is for the connection, and for the message about what kept it away. */
    LS_TRY(lsi_net_resolve(&m->master, m->start->master, m->start->port, m->timeout / 2, err));
    LS_TRY(check_secret(m, o, err));
    p->links = ls_alloc(LS_MEM_CLI, sizeof(lsi_link *) * (size_t)p->nodes);
    m->names = ls_alloc(LS_MEM_CLI, sizeof *m->names * (size_t)p->nodes);
    if (p->links == NULL || m->names == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for %d machines", p->nodes);
        goto out;
    }
    own_host(m->names[p->node], LSI_HOST_NAME);
    (void)lsi_net_route(&p->interface, &m->master);
    if (!o->silent) {
        printf("machines      %d of %d here, machine 0 at %s port %d, by %s (%s)\n", p->node, p->nodes,
               m->master.text, m->start->port, p->interface.name[0] != '\0' ? p->interface.name : "no route",
               p->interface.address);
        ls_output_flush();
    }
out:
    return st;
}

ls_status lsi_rendezvous(lsi_party *p, const ls_start *start, const ls_launch_options *o, ls_err *err)
{
    const double timeout = o->join_timeout_s > 0 ? o->join_timeout_s : LS_JOIN_TIMEOUT_S;
    rendezvous m = {
        .p = p, .start = start, .timeout = timeout, .until = ls_clock_seconds() + timeout, .listener = -1};
    ls_status st = LS_OK;

    *p =
        (lsi_party){.node = start->place.node, .nodes = start->place.nodes, .ranks = start->place.local_size};
    LS_TRY(prepare(&m, o, err));
    LS_TRY(p->node == 0 ? host(&m, err) : attend(&m, err));
    find_own_name(p);
out:
    while (m.n_guests > 0) drop_guest(&m, 0);
    if (m.listener >= 0) close(m.listener);
    ls_free(m.names);
    return st;
}

void lsi_party_release(lsi_party *p)
{
    for (int i = 0; p->links != NULL && i < p->nodes; i++) lsi_link_destroy(p->links[i]);
    ls_free(p->links);
    ls_free(p->hosts);
    *p = (lsi_party){0};
}
