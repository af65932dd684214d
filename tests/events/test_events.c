/* test_events.c: event files are written, read back, torn, damaged, and meet a full disk. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "check.h"
#include "event_files.h"
#include "events/event_reader.h"
#include "events/events.h"
#include "faults.h"

#define N_VALUES 11 /* what write_sample writes, with the header */

static const char png[] = "\x89PNG\r\n\x1a\n and so on";

static void write_sample(ls_events *ev)
{
    const ls_hparam params[] = {{"optimizer.name", "sgd", 0}, {"optimizer.lr", NULL, 0.01}};
    ls_events_hparams(ev, params, 2);
    ls_events_scalar(ev, "train/loss_step", 49, 2.302585);
    ls_events_scalar(ev, "train/acc_step", INT64_C(1) << 40, 0.125);
    ls_events_scalar(ev, "epoch", 781, NAN);
    ls_events_scalar(ev, "epoch", 782, -INFINITY);
    ls_events_text(ev, "config", 3, "lr: 0.01\nname: \xC3\xA9\n");
    ls_events_image(ev, "sample", 5, 28, 300, 1, png, sizeof png - 1);
    ls_events_restart(ev, 400);
}

/* Writes a sample file into a fresh folder and gives back its bytes. */
static char *sample_bytes(size_t *n)
{
    ls_err err = {0};
    ls_events *ev;
    char folder[FOLDER_MAX];
    make_folder(folder);
    REQUIRE_OK(ls_events_open(&ev, folder, &err), &err);
    write_sample(ev);
    CHECK_EQ_INT(ls_events_missing(ev), 0);
    char *data = read_bytes(ls_events_path(ev), n); /* before close: everything is with the kernel already */
    ls_events_close(ev);
    remove_folder(folder);
    return data;
}

static ls_event next(ls_event_reader *r)
{
    ls_err err = {0};
    ls_event e;
    bool more;
    REQUIRE_OK(ls_event_reader_next(r, &e, &more, &err), &err);
    REQUIRE(more);
    return e;
}

static void check_scalar(ls_event_reader *r, const char *tag, int64_t step, double value)
{
    ls_event e = next(r);
    CHECK_EQ_STR(ls_event_kind_name(e.kind), "scalar");
    CHECK_EQ_STR(e.tag, tag);
    CHECK_EQ_INT(e.step, step);
    CHECK(e.value == value || (isnan(e.value) && isnan(value)));
}

static bool bytes_are(const ls_event *e, const char *text)
{
    return e->n_bytes == strlen(text) && memcmp(e->bytes, text, e->n_bytes) == 0;
}

static void check_sample(ls_event_reader *r, double before, double after)
{
    ls_err err = {0};
    bool more;
    ls_event e = next(r);
    CHECK(e.kind == LS_EVENT_VERSION && bytes_are(&e, "brain.Event:2"));
    CHECK(e.wall_time >= before && e.wall_time <= after);
    const char *const tags[] = {"_hparams_/experiment", "_hparams_/session_start_info"};
    for (int i = 0; i < 2; i++) {
        e = next(r);
        CHECK_EQ_STR(ls_event_kind_name(e.kind), "plugin");
        CHECK_EQ_STR(e.tag, tags[i]);
        CHECK_EQ_STR(e.plugin, "hparams");
        CHECK(memmem(e.bytes, e.n_bytes, "optimizer.lr", 12) != NULL);
    }
    check_scalar(r, "hp_metric", 0, -1);
    check_scalar(r, "train/loss_step", 49, (double)2.302585f);
    check_scalar(r, "train/acc_step", INT64_C(1) << 40, 0.125);
    check_scalar(r, "epoch", 781, NAN);
    check_scalar(r, "epoch", 782, -INFINITY);
    e = next(r);
    CHECK_EQ_STR(ls_event_kind_name(e.kind), "text");
    CHECK_EQ_STR(e.plugin, "text");
    CHECK_EQ_INT(e.step, 3);
    CHECK(bytes_are(&e, "lr: 0.01\nname: \xC3\xA9\n"));
    e = next(r);
    CHECK_EQ_STR(ls_event_kind_name(e.kind), "image");
    CHECK_EQ_INT(e.width, 28);
    CHECK_EQ_INT(e.height, 300);
    CHECK_EQ_INT(e.channels, 1);
    CHECK(bytes_are(&e, png));
    e = next(r);
    CHECK_EQ_STR(ls_event_kind_name(e.kind), "restart");
    CHECK_EQ_INT(e.step, 400);
    REQUIRE_OK(ls_event_reader_next(r, &e, &more, &err), &err);
    CHECK(!more);
    CHECK_EQ_INT(ls_event_reader_torn(r), 0);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void written_and_read(void)
{
    ls_err err = {0};
    ls_events *ev, *second;
    ls_event_reader *r;
    char folder[FOLDER_MAX], path[1024], pid[32];
    double before = seconds_now();

    make_folder(folder);
    REQUIRE_OK(ls_events_open(&ev, folder, &err), &err);
    REQUIRE_OK(ls_events_open(&second, folder, &err), &err);       /* another name, in the same second */
    CHECK(strcmp(ls_events_path(ev), ls_events_path(second)) < 0); /* and after it, in the order of names */
    CHECK_CONTAINS(ls_events_path(ev), "/events.out.tfevents.");
    snprintf(pid, sizeof pid, ".%ld.0", (long)getpid());
    CHECK_CONTAINS(ls_events_path(ev), pid);
    ls_events_close(second);

    write_sample(ev);
    snprintf(path, sizeof path, "%s", ls_events_path(ev));
    ls_events_flush(ev);
    CHECK_EQ_INT(ls_events_missing(ev), 0);
    ls_events_close(ev);
    REQUIRE_OK(ls_event_reader_open(&r, path, &err), &err);
    check_sample(r, before, seconds_now());
    ls_event_reader_close(r);
    remove_folder(folder);
}

static void no_writer(void)
{
    write_sample(NULL);
    ls_events_flush(NULL);
    ls_events_close(NULL);
    CHECK_EQ_INT(ls_events_missing(NULL), 0);
    CHECK_EQ_STR(ls_events_path(NULL), "");
}

static void no_folder(void)
{
    ls_err err = {0};
    ls_events *ev;
    ls_event_reader *r;
    CHECK_STATUS(ls_events_open(&ev, "/nonexistent/folder", &err), LS_IO, &err);
    CHECK_CONTAINS(err.text, "/nonexistent/folder/events.out.tfevents.");
    CHECK_CONTAINS(err.text, "No such file");
    CHECK(ev == NULL);
    err = (ls_err){0};
    CHECK_STATUS(ls_event_reader_open(&r, "/nonexistent/file", &err), LS_DATA, &err);
    CHECK(r == NULL);
}

/* Values that can be read from the first `n` bytes; *torn the bytes that were left. */
static int count_values(const char *data, size_t n, size_t *torn, ls_status *status)
{
    ls_err err = {0};
    ls_event_reader *r;
    ls_event e;
    bool more;
    int count = 0;
    REQUIRE_OK(ls_event_reader_memory(&r, data, n, &err), &err);
    while ((*status = ls_event_reader_next(r, &e, &more, &err)) == LS_OK && more) count++;
    if (*status != LS_OK) { /* it stays so */
        CHECK_STATUS(ls_event_reader_next(r, &e, &more, NULL), LS_FORMAT, NULL);
        CHECK(err.text[0] != '\0');
    }
    *torn = ls_event_reader_torn(r);
    ls_event_reader_close(r);
    return count;
}

static void torn_at_every_length(void)
{
    size_t n, torn, whole = 0;
    ls_status status;
    char *data = sample_bytes(&n);
    int last = 0;
    CHECK_EQ_INT(count_values(data, 0, &torn, &status), 0);
    for (size_t cut = 1; cut <= n; cut++) {
        int count = count_values(data, cut, &torn, &status);
        if (count > last) whole = cut;
        if (!CHECK_EQ_INT(status, LS_OK) || !CHECK(count == last || count == last + 1) ||
            !CHECK_EQ_INT(torn, cut - whole))
            break;
        last = count;
    }
    CHECK_EQ_INT(last, N_VALUES);
    CHECK_EQ_INT(whole, n);
    free(data);
}

/* Any changed bit is seen: as damage, or, when it makes the last length reach beyond the end, as a tear
 * (which the length's own checksum forbids). */
static void every_bit_is_checked(void)
{
    size_t n, torn;
    ls_status status;
    char *data = sample_bytes(&n);
    for (size_t bit = 0; bit < 8 * n; bit += check_is_slow_build() ? 13 : 1) {
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
        count_values(data, n, &torn, &status);
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
        if (!CHECK_EQ_INT(status, LS_FORMAT)) break;
    }
    free(data);
}

/* A limit on the size of files fails as a full disk does: a short write, then none. */
static void full_disk(void)
{
    ls_err err = {0};
    ls_events *ev;
    char folder[FOLDER_MAX], path[1024];
    struct rlimit was, limit;
    size_t n, torn;
    ls_status status;

    make_folder(folder);
    REQUIRE_OK(ls_events_open(&ev, folder, &err), &err);
    snprintf(path, sizeof path, "%s", ls_events_path(ev));
    ls_events_scalar(ev, "loss", 1, 1);
    free(read_bytes(path, &n));
    getrlimit(RLIMIT_FSIZE, &was);
    limit = (struct rlimit){.rlim_cur = n + 7, .rlim_max = was.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int i = 0; i < 5; i++) ls_events_scalar(ev, "loss", 2 + i, 1);
    setrlimit(RLIMIT_FSIZE, &was);
    CHECK_EQ_INT(ls_events_missing(ev), 5);
    ls_events_flush(ev); /* there is room again */
    CHECK_EQ_INT(ls_events_missing(ev), 0);
    ls_events_scalar(ev, "loss", 9, 1);
    ls_events_close(ev);
    char *data = read_bytes(path, &n);
    CHECK_EQ_INT(count_values(data, n, &torn, &status), 2 + 6);
    CHECK_EQ_INT(torn, 0);
    CHECK_EQ_INT(status, LS_OK);
    free(data);
    remove_folder(folder);
}

/* A process that is killed loses nothing of what it has reported. */
static void killed(void)
{
    ls_err err = {0};
    ls_events *ev;
    char folder[FOLDER_MAX], path[1024], said[20];
    int fds[2];
    size_t n, torn;
    ls_status status;

    make_folder(folder);
    REQUIRE(pipe(fds) == 0);
    REQUIRE_OK(ls_events_open(&ev, folder, &err), &err);
    snprintf(path, sizeof path, "%s", ls_events_path(ev));
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (int64_t step = 1;; step++) {
            ls_events_scalar(ev, "loss", step, 1);
            if (step % 100 == 0 && write(fds[1], "x", 1) != 1) _exit(1);
        }
    }
    for (size_t got = 0; got < sizeof said;) { /* it has reported 2000 times */
        ssize_t more = read(fds[0], said + got, sizeof said - got);
        REQUIRE(more > 0);
        got += (size_t)more;
    }
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE(waitpid(child, NULL, 0) == child);
    char *data = read_bytes(path, &n);
    CHECK(count_values(data, n, &torn, &status) >= 2001);
    CHECK_EQ_INT(status, LS_OK);
    CHECK(torn < n / 1000); /* less than a record */
    free(data);
    close(fds[0]);
    close(fds[1]);
    ls_events_close(ev);
    remove_folder(folder);
}

/* Reports come between steps, which allocate nothing. */
static void no_allocation(void)
{
    ls_err err = {0};
    ls_events *ev;
    char folder[FOLDER_MAX];
    make_folder(folder);
    REQUIRE_OK(ls_events_open(&ev, folder, &err), &err);
    ls_events_scalar(ev, "train/loss", 1, 1);
    uint64_t before = ls_mem_stats_now().n_allocs;
    for (int i = 0; i < 100; i++) ls_events_scalar(ev, "train/loss", INT64_C(1) << (i % 62), 1);
    CHECK_EQ_INT(ls_mem_stats_now().n_allocs, before);
    ls_events_close(ev);
    remove_folder(folder);
}

static ls_status open_and_close(void *arg, ls_err *err)
{
    ls_events *ev;
    ls_status st = ls_events_open(&ev, arg, err);
    ls_events_close(ev);
    return st;
}

static void out_of_memory(void)
{
    char folder[FOLDER_MAX];
    make_folder(folder);
    check_faults("open", open_and_close, folder);
    remove_folder(folder);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    ls_log_set_level(LS_LOG_ERROR);
    CHECK_RUN(written_and_read);
    CHECK_RUN(no_writer);
    CHECK_RUN(no_folder);
    CHECK_RUN(torn_at_every_length);
    CHECK_RUN(every_bit_is_checked);
    CHECK_RUN(full_disk);
    CHECK_RUN(killed);
    CHECK_RUN(no_allocation);
    CHECK_RUN(out_of_memory);
    return CHECK_DONE();
}
