/* events_tool.c: writes a sample event file, and prints any event file, for tests in other languages.
 *
 *     events_tool write FOLDER    prints the path of the file it made
 *     events_tool read FILE       one line per value; exit status 1 at damage, 2 at a torn tail
 *
 * A line is: kind, step, tag, then what the kind has; tests/events/read_events.py prints the same. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "events/crc32c.h"
#include "events/event_reader.h"
#include "events/events.h"

static int fail(const ls_err *err)
{
    fprintf(stderr, "events_tool: %s\n", err->text);
    return 1;
}

static int write_sample(const char *folder)
{
    static const char long_text[] =
        "a text that is longer than the 127 bytes whose length fits into one byte of a "
        "varint, so that lengths of two bytes are met as well, at every level above it";
    static const char image[] = "\x89PNG\r\n\x1a\n\0 not an image";
    const ls_hparam params[] = {{"optimizer.name", "sgd", 0}, {"optimizer.lr", NULL, 0.1}, {"seed", NULL, 1}};
    ls_err err = {0};
    ls_events *ev;
    if (ls_events_open(&ev, folder, &err) != LS_OK) return fail(&err);
    ls_events_hparams(ev, params, 3);
    for (int64_t step = 49; step < 400; step += 50) {
        ls_events_scalar(ev, "train/loss_step", step, 1.0 / (double)step);
        ls_events_scalar(ev, "train/acc_step", step, (double)step / 400);
    }
    ls_events_scalar(ev, "val/acc_best", INT64_C(1) << 40, INFINITY);
    ls_events_scalar(ev, "negative", -1, -0.5);
    ls_events_text(ev, "config", 0, long_text);
    ls_events_image(ev, "sample", 300, 28, 14, 3, image, sizeof image - 1);
    ls_events_restart(ev, 200);
    int lost = ls_events_missing(ev) > 0;
    printf("%s\n", ls_events_path(ev));
    ls_events_close(ev);
    return lost;
}

static void print_event(const ls_event *e)
{
    printf("%s %" PRId64 " %s", ls_event_kind_name(e->kind), e->step, e->tag[0] ? e->tag : "-");
    if (e->kind == LS_EVENT_SCALAR) printf(" %.9g", e->value);
    if (e->kind == LS_EVENT_IMAGE)
        printf(" %" PRId64 "x%" PRId64 "x%" PRId64, e->width, e->height, e->channels);
    /* Content by its length and checksum: it may be anything. */
    if (e->n_bytes > 0) printf(" %zu bytes %08" PRIx32, e->n_bytes, ls_crc32c(0, e->bytes, e->n_bytes));
    printf("\n");
}

static int read_file(const char *path)
{
    ls_err err = {0};
    ls_event_reader *r;
    ls_event e;
    ls_status st;
    bool more;
    if (ls_event_reader_open(&r, path, &err) != LS_OK) return fail(&err);
    while ((st = ls_event_reader_next(r, &e, &more, &err)) == LS_OK && more) print_event(&e);
    size_t torn = ls_event_reader_torn(r);
    ls_event_reader_close(r);
    if (st != LS_OK) return fail(&err);
    if (torn > 0) printf("torn %zu\n", torn);
    return torn > 0 ? 2 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0) return write_sample(argv[2]);
    if (argc == 3 && strcmp(argv[1], "read") == 0) return read_file(argv[2]);
    fprintf(stderr, "usage: events_tool write FOLDER | read FILE\n");
    return 1;
}
