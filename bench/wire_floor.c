/* wire_floor.c: what of a core the system alone needs to send and to receive the bytes of a step.
 *
 * Two of these, one on each machine, send each other MB over one connection in every step, while each
 * computes for WORK ms: in registers, or over CACHE KiB, as the blocks of a product do that a core's own
 * cache holds.  Between two pieces of work, LOOK us apart, what the system takes is sent and what has come is
 * read. `hot`: from and to one place that stays in the cache; `cold`: from and to vectors of MB, as gradients
 * are. Nothing is added up.  What a step takes longer than its work alone is a floor for every exchange of so
 * many bytes by a core that computes as well: by the clock, without the time in which it only waits, and as
 * the process is charged for it, which depends less on others that use the machine (interrupts that come
 * while it runs are in it, unless the kernel has IRQ_TIME_ACCOUNTING).  What the core computes more slowly
 * because its cache was used for something else is in both.
 *
 * bench/wire_floor.sh starts two, in namespaces of one core each behind 2.5 Gbit/s, and prints a table. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 128 * 1024, SEND_BUFFER = 1 << 20, RECEIVE_BUFFER = 4 << 20, UNIT_US = 20 };

typedef struct wire {
    int fd;
    size_t bytes, to_send, to_receive; /* of a step, and what is left of it */
    size_t span;                       /* of each vector */
    char *out, *in;
} wire;

static double ms_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double now_ms(void)
{
    return ms_of(CLOCK_MONOTONIC);
}

static void give_up(const char *what)
{
    fprintf(stderr, "wire_floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* -- the wire -----------------------------------------------------------------------------------------------
 */

/* As our lines are (comm/lines_open.c). */
static void tune(int fd)
{
    const int on = 1, sent = SEND_BUFFER, received = RECEIVE_BUFFER;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sent, sizeof sent);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &received, sizeof received);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
}

static int open_line(const char *address, int port, int listens)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    int peer = fd;

    if (fd < 0 || inet_pton(AF_INET, address, &at.sin_addr) != 1) give_up(address);
    tune(fd);
    if (!listens) {
        for (int tries = 0; connect(fd, (struct sockaddr *)&at, sizeof at) != 0; tries++) {
            if (tries == 100) give_up(address);
            usleep(50000);
        }
        return fd;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 1) != 0 ||
        (peer = accept(fd, NULL, NULL)) < 0)
        give_up(address);
    tune(peer);
    close(fd);
    return peer;
}

/* What can be moved at once. */
static void move(wire *w)
{
    ssize_t n = 1;

    while (w->to_send > 0 && n > 0) {
        const size_t at = (w->bytes - w->to_send) % w->span,
                     most = w->to_send < w->span - at ? w->to_send : w->span - at;
        n = send(w->fd, w->out + at, most, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) give_up("send");
        if (n > 0) w->to_send -= (size_t)n;
    }
    for (n = 1; w->to_receive > 0 && n > 0;) {
        const size_t at = (w->bytes - w->to_receive) % w->span;
        size_t most = w->to_receive < w->span - at ? w->to_receive : w->span - at;
        if (most > PIECE) most = PIECE;
        n = recv(w->fd, w->in + at, most, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) give_up("receive");
        if (n > 0) w->to_receive -= (size_t)n;
    }
}

/* Until something can be moved; how long that took. */
static double rest(const wire *w)
{
    const double begun = now_ms();
    struct pollfd p = {w->fd, (short)((w->to_send > 0 ? POLLOUT : 0) | (w->to_receive > 0 ? POLLIN : 0)), 0};

    poll(&p, 1, 1000);
    return now_ms() - begun;
}

/* -- the work -----------------------------------------------------------------------------------------------
 */

static volatile float sink;

/* So many rounds over the floats, or in registers. */
static void compute(const float *x, size_t n, long rounds)
{
    float sum[64] = {0};

    for (long r = 0; r < rounds; r++) {
        const float *at = n > 0 ? x + (size_t)r * 1024 % n : x;
        for (size_t i = 0; i < 1024; i += 64)
            for (size_t k = 0; k < 64; k++) sum[k] = sum[k] * 0.5f + at[i + k];
    }
    for (size_t k = 1; k < 64; k++) sum[0] += sum[k];
    sink = sum[0];
}

typedef struct work {
    float *x;
    size_t n;
    long rounds; /* of a unit */
    int units;   /* of a step */
} work;

/* The fastest of many is a unit that nobody has interrupted. */
static void measure_unit(work *k, double work_ms)
{
    double fastest = 1e9;

    k->rounds = 100;
    for (int i = 0; i < 2000; i++) {
        const double begun = now_ms();
        compute(k->x, k->n, k->rounds);
        if (now_ms() - begun < fastest) fastest = now_ms() - begun;
    }
    k->rounds = (long)((double)k->rounds * UNIT_US * 1e-3 / fastest) + 1;
    k->units = (int)(work_ms * 1e3 / UNIT_US);
}

/* Milliseconds by the clock, without those in which it only waits, and milliseconds that the process is
 * charged for. */
typedef struct spent {
    double clock, charged;
} spent;

/* A step; w NULL: its work alone. */
static spent step(const work *k, wire *w, double look_us)
{
    const double begun = now_ms(), charged = ms_of(CLOCK_PROCESS_CPUTIME_ID);
    double looked = begun, idle = 0;

    for (int u = 0; u < k->units; u++) {
        compute(k->x, k->n, k->rounds);
        if (w == NULL || (now_ms() - looked) * 1e3 < look_us) continue;
        move(w);
        looked = now_ms();
    }
    while (w != NULL && w->to_send + w->to_receive > 0) {
        idle += rest(w);
        move(w);
    }
    return (spent){now_ms() - begun - idle, ms_of(CLOCK_PROCESS_CPUTIME_ID) - charged};
}

/* Both begin together. */
static void meet(const wire *w)
{
    char c = 0;

    if (send(w->fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(w->fd, &c, 1, MSG_WAITALL) != 1) give_up("the other");
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

/* Work alone and with the wire in turns: the former, and what the latter takes longer. */
static void measure(const work *k, wire *w, double look_us, int steps)
{
    double *alone = calloc(3 * (size_t)steps, sizeof *alone), *clock = alone + steps,
           *charged = clock + steps;

    if (alone == NULL) give_up("memory");
    for (int i = 0; i < steps; i++) {
        spent a, b;
        meet(w);
        a = step(k, NULL, look_us);
        meet(w);
        w->to_send = w->to_receive = w->bytes;
        b = step(k, w, look_us);
        alone[i] = a.charged;
        clock[i] = b.clock - a.clock;
        charged[i] = b.charged - a.charged;
    }
    printf("%.1f %.1f %.1f\n", median(alone, steps), median(clock, steps), median(charged, steps));
    free(alone);
}

int main(int argc, char **argv)
{
    work k = {0};
    wire w = {0};

    if (argc != 10) {
        fprintf(stderr, "usage: wire_floor ADDRESS PORT connect|listen MB WORK LOOK CACHE hot|cold STEPS\n");
        return 2;
    }
    w.bytes = (size_t)(atof(argv[4]) * 1e6);
    w.span = strcmp(argv[8], "cold") == 0 ? w.bytes : PIECE;
    k.n = (size_t)atol(argv[7]) * 1024 / sizeof(float);
    k.x = calloc(k.n + 1024, sizeof *k.x);
    w.out = malloc(w.span);
    w.in = malloc(w.span);
    if (k.x == NULL || w.out == NULL || w.in == NULL) give_up("memory");
    memset(w.out, 1, w.span);
    memset(w.in, 1, w.span);
    w.fd = open_line(argv[1], atoi(argv[2]), strcmp(argv[3], "listen") == 0);
    measure_unit(&k, atof(argv[5]));
    measure(&k, &w, atof(argv[6]), atoi(argv[9]));
    close(w.fd);
    free(w.in);
    free(w.out);
    free(k.x);
    return 0;
}
