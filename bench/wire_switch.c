/* wire_switch.c: a switch in user space whose links have a rate and a delay, for machines that are network
 * namespaces, where the kernel cannot delay what it sends (no netem).
 *
 * usage: wire_switch [-s] MBIT_PER_S DELAY_US NAMESPACE...
 *
 * Makes the device eth0 (a TAP) in each namespace, says "ready", and forwards frames until it is killed, when
 * the devices vanish.  Towards a machine its link has that rate, and a frame reaches it DELAY_US after its
 * last byte has left the switch; what several send to one machine queues up to 100 ms, and is dropped beyond.
 * The other direction is the sender's: its device wants a shaper of the kernel's (tbf) of the same rate,
 * which holds back what a connection sends as a network card does; a TAP alone would queue all of it.  Where
 * nobody else sends to a machine, a frame waits for the rate once and not twice.
 *
 * Large segments cross as one (virtio's header, as between virtual machines), so that the switch keeps up. It
 * has two threads for each machine and should have cores of its own: the times of frames are those of its
 * clock, and threads that have something to send soon spin.  With -s it is sparing, for machines whose cores
 * it has to share: one thread that sleeps and does all that is due at once, a frame with one that is due up
 * to 250 us before it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS = 64,
    HEADER = 10,          /* virtio's, before every frame */
    FRAME = 65536 + 64,   /* a large segment with its headers */
    SEGMENT = 1514,       /* of a large segment, on the wire */
    HEADERS = 66,         /* of each segment but the first, which has its own */
    QUEUE_NS = 100000000, /* that frames wait for a machine's link at most */
};

typedef struct frame {
    struct frame *next;
    int64_t due_ns;
    size_t bytes;
    uint8_t data[];
} frame;

typedef struct port {
    int fd;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t some;
    frame *head, **tail;
    int64_t busy_ns; /* until when its link is taken, towards the machine */
    uint64_t dropped;
} port;

static port ports[PORTS];
static int n_ports;
static double ns_per_byte;
static int64_t delay_ns;
static int64_t spin_ns = 60000; /* before a frame is due its thread stops sleeping */
static int64_t early_ns = 0;    /* that a frame may go before it is due */
static bool blocks = true;      /* reading a device that has nothing waits */

/* Which machine has an address: learnt from what it sends.  A machine has one, and never another, so a torn
 * or late look at most sends a frame to all. */
static _Atomic uint64_t address[PORTS];

static void die(const char *what, const char *which)
{
    fprintf(stderr, "wire_switch: %s %s: %s\n", what, which, strerror(errno));
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void wait_until(int64_t ns)
{
    const int64_t sleep_to = ns - spin_ns;
    const struct timespec t = {.tv_sec = sleep_to / 1000000000, .tv_nsec = sleep_to % 1000000000};

    if (now() < sleep_to) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    while (now() < ns) continue;
}

static uint64_t address_at(const uint8_t *p)
{
    uint64_t a = 0;

    memcpy(&a, p, 6);
    return a;
}

/* What a frame takes of a link, as the kernel's shapers count: a large segment is cut into packets with
 * headers of their own. */
static int64_t wire_ns(size_t bytes)
{
    const size_t packets = (bytes + SEGMENT - 1) / SEGMENT;

    return (int64_t)((double)(bytes + (packets - 1) * (size_t)HEADERS) * ns_per_byte);
}

/* A frame that is full when it is read; the next read takes the same one where it went nowhere. */
static frame *new_frame(void)
{
    frame *f = malloc(sizeof *f + HEADER + FRAME);

    if (f == NULL) die("memory", "for a frame");
    return f;
}

static frame *copy_of(const frame *f)
{
    frame *other = malloc(sizeof *f + f->bytes);

    if (other == NULL) die("memory", "for a frame");
    memcpy(other, f, sizeof *f + f->bytes);
    return other;
}

/* Takes the frame. */
static void deliver(port *to, frame *f, int64_t left_ns, int64_t takes_ns)
{
    int64_t done;

    pthread_mutex_lock(&to->lock);
    done = to->busy_ns + takes_ns > left_ns ? to->busy_ns + takes_ns : left_ns;
    if (done - left_ns > QUEUE_NS) {
        to->dropped++;
        free(f);
    } else {
        to->busy_ns = done;
        f->next = NULL;
        f->due_ns = done + delay_ns;
        *to->tail = f;
        to->tail = &f->next;
        if (blocks) pthread_cond_signal(&to->some);
    }
    pthread_mutex_unlock(&to->lock);
}

static frame *take_first(port *to)
{
    frame *f = to->head;

    to->head = f->next;
    if (to->head == NULL) to->tail = &to->head;
    return f;
}

/* What the machine has sent goes to the one it is for, or to all others.  False: there was nothing. */
static bool forward(port *from, frame **room)
{
    const int me = (int)(from - ports);
    frame *f = *room;
    const ssize_t got = read(from->fd, f->data, HEADER + FRAME);
    int64_t takes, at;
    uint64_t to;
    int only = -1;

    if (got < HEADER + 14) {
        if (got < 0 && errno != EINTR && errno != EAGAIN) die("read", "eth0");
        return false;
    }
    f->bytes = (size_t)got;
    address[me] = address_at(f->data + HEADER + 6);
    to = address_at(f->data + HEADER);
    takes = wire_ns(f->bytes - HEADER);
    at = now();
    for (int i = 0; i < n_ports; i++)
        if (address[i] == to) only = i;
    for (int i = 0; i < n_ports && only < 0; i++)
        if (i != me) deliver(&ports[i], copy_of(f), at, takes);
    if (only < 0 || only == me) return true;
    *room = new_frame();
    deliver(&ports[only], f, at, takes);
    return true;
}

static void hand_over(port *to, frame *f)
{
    if (write(to->fd, f->data, f->bytes) < 0 && errno != EIO) die("write", "eth0"); /* EIO: it is down */
    free(f);
}

/* -- two threads for each machine: into the switch, and out of it when it is time ---------------------------
 */

static void *hear(void *arg)
{
    port *from = arg;
    frame *room = new_frame();

    for (;;) forward(from, &room);
    return NULL;
}

static void *speak(void *arg)
{
    port *to = arg;

    for (;;) {
        frame *f;

        pthread_mutex_lock(&to->lock);
        while (to->head == NULL) pthread_cond_wait(&to->some, &to->lock);
        f = take_first(to);
        pthread_mutex_unlock(&to->lock);
        if (f->due_ns - now() > early_ns) wait_until(f->due_ns);
        hand_over(to, f);
    }
    return NULL;
}

/* -- one thread for all -------------------------------------------------------------------------------------
 */

/* Returns when there is more to do without a machine sending something. */
static int64_t do_what_is_due(frame **room)
{
    int64_t next = INT64_MAX;

    for (int i = 0; i < n_ports; i++)
        while (forward(&ports[i], room)) continue;
    for (int i = 0; i < n_ports; i++) {
        port *p = &ports[i];
        while (p->head != NULL && p->head->due_ns - now() <= early_ns) hand_over(p, take_first(p));
        if (p->head != NULL && p->head->due_ns < next) next = p->head->due_ns;
    }
    return next;
}

static void serve(void)
{
    frame *room = new_frame();
    struct pollfd wait[PORTS];

    for (int i = 0; i < n_ports; i++) wait[i] = (struct pollfd){.fd = ports[i].fd, .events = POLLIN};
    for (;;) {
        const int64_t next = do_what_is_due(&room), left = next - now();
        const struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        if (left > 0) ppoll(wait, (nfds_t)n_ports, next == INT64_MAX ? NULL : &t, NULL);
    }
}

/* The device belongs to the namespace that its maker is in. */
static int open_tap(const char *namespace)
{
    struct ifreq r = {.ifr_name = "eth0"};
    char path[512];
    int fd, space;

    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) die("namespace", path);
    close(space);
    fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | (blocks ? 0 : O_NONBLOCK));
    if (fd < 0) die("open", "/dev/net/tun");
    r.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    if (ioctl(fd, TUNSETIFF, &r) != 0) die("TUNSETIFF", namespace);
    if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) die("TUNSETOFFLOAD", namespace);
    return fd;
}

int main(int argc, char **argv)
{
    const bool sleeps = argc > 1 && strcmp(argv[1], "-s") == 0;
    double mbit, delay_us;
    pthread_t t;

    if (sleeps) {
        blocks = false;
        early_ns = 250000;
        argc--;
        argv++;
    }
    mbit = argc > 3 ? atof(argv[1]) : 0;
    delay_us = argc > 3 ? atof(argv[2]) : -1;
    if (!(mbit > 0) || !(delay_us >= 0) || argc - 3 > PORTS) {
        fprintf(stderr, "usage: wire_switch [-s] MBIT_PER_S DELAY_US NAMESPACE... (at most %d)\n", PORTS);
        return 2;
    }
    ns_per_byte = 8e3 / mbit;
    delay_ns = (int64_t)(1e3 * delay_us);
    n_ports = argc - 3;
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* sleeps end when they should; threads inherit it */
    for (int i = 0; i < n_ports; i++) {
        ports[i] = (port){.fd = open_tap(argv[3 + i]), .tail = &ports[i].head};
        pthread_mutex_init(&ports[i].lock, NULL);
        pthread_cond_init(&ports[i].some, NULL);
    }
    for (int i = 0; i < n_ports && !sleeps; i++)
        if (pthread_create(&t, NULL, hear, &ports[i]) != 0 || pthread_create(&t, NULL, speak, &ports[i]) != 0)
            die("pthread_create", "");
    puts("ready");
    fflush(stdout);
    if (sleeps) serve();
    for (;;) pause();
}
