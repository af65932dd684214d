/* images_impls.c: does the loader decode JPEG files as fast as libjpeg-turbo alone?
 *
 * Usage: bench_images FOLDER [seconds].  FOLDER is a set of kind images with JPEG files of one size
 * (`lockstep data make kind=images shape=3x256x256 path=FOLDER` writes one).  In turns, two threads decode
 * TURN files: once in a bare loop (read the file, decode, bytes to floats by channel), once as two workers of
 * the loader, whose first batches are taken before the clock starts.  `ratio` is the loader's rate over
 * the bare one's, the median over the rounds. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "base/clock.h"
#include "base/stats.h"
#include "data/loader.h"

enum { THREADS = 2, BATCH = 4, DEPTH = 2, TURN = 96, MAX_ROUNDS = 400, MAX_FILES = 1 << 16 };

typedef struct spent {
    double wall, cpu; /* seconds; of all threads of the process */
} spent;

static spent now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (spent){ls_clock_seconds(), (double)t.tv_sec + (double)t.tv_nsec * 1e-9};
}

static spent since(spent start)
{
    spent end = now();
    return (spent){end.wall - start.wall, end.cpu - start.cpu};
}

/* -- the bare loop ----------------------------------------------------------------------------------------
 */

typedef struct bare {
    char **files;
    int n_files;
    atomic_int next, end, threads;
    float table[256];
} bare;

static void decode(const bare *b, const char *path, unsigned char *bytes, size_t room, unsigned char *pixels,
                   float *out)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    FILE *f = fopen(path, "rb");
    size_t size = f ? fread(bytes, 1, room, f) : 0;

    if (f) fclose(f);
    d.err = jpeg_std_error(&errors); /* ends the program */
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, bytes, (unsigned long)size);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d);
    const size_t width = d.output_width, height = d.output_height;
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = pixels + d.output_scanline * width * 3;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < width * height; i++) out[c * width * height + i] = b->table[pixels[3 * i + c]];
}

static void *work(void *arg)
{
    enum { ROOM = 16 << 20 };
    static unsigned char bytes[THREADS][ROOM], pixels[THREADS][ROOM];
    static float out[THREADS][ROOM];
    bare *b = arg;
    int k = atomic_fetch_add(&b->threads, 1) % THREADS;

    for (int i = atomic_fetch_add(&b->next, 1); i < b->end; i = atomic_fetch_add(&b->next, 1))
        decode(b, b->files[i % b->n_files], bytes[k], ROOM, pixels[k], out[k]);
    return NULL;
}

static spent bare_turn(bare *b)
{
    pthread_t threads[THREADS];
    spent start = now();
    int first = b->end;

    b->next = first;
    b->end = first + TURN;
    for (int k = 0; k < THREADS; k++)
        if (pthread_create(&threads[k], NULL, work, b) != 0) abort();
    for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
    return since(start);
}

/* -- the loader -------------------------------------------------------------------------------------------
 */

/* The loader ends with the turn: workers that fill its ring again would disturb the bare loop. */
static ls_status loader_turn(const ls_dataset *d, int64_t first, spent *out, ls_err *err)
{
    ls_status st = LS_OK;
    ls_loader *l = NULL;
    ls_batch b;
    spent start;

    LS_TRY(ls_loader_create(&l, d,
                            &(ls_loader_options){.batch = BATCH,
                                                 .n_workers = THREADS,
                                                 .depth = DEPTH,
                                                 .shuffle = true,
                                                 .augment = true,
                                                 .first = first},
                            err));
    for (int i = 0; i < DEPTH + 1; i++) LS_TRY(ls_loader_next(l, &b, err));
    start = now();
    for (int i = 0; i < TURN / BATCH; i++) LS_TRY(ls_loader_next(l, &b, err));
    *out = since(start);
out:
    ls_loader_destroy(l);
    return st;
}

static int list(const char *folder, bare *b)
{
    char command[4200], line[4200];
    FILE *f;

    snprintf(command, sizeof command, "find '%s/train' -type f | sort", folder);
    f = popen(command, "r");
    while (f && b->n_files < MAX_FILES && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        b->files[b->n_files++] = strdup(line);
    }
    return f ? pclose(f) : 1;
}

int main(int argc, char **argv)
{
    static double ratio[MAX_ROUNDS], rate[MAX_ROUNDS], cpu[MAX_ROUNDS];
    ls_status st = LS_OK;
    ls_err err = {0};
    ls_dataset *d = NULL;
    bare b = {.files = calloc(MAX_FILES, sizeof(char *))};
    double seconds = argc > 2 ? atof(argv[2]) : 10, start;
    spent loaded;
    size_t n = 0;

    if (argc < 2 || !b.files || list(argv[1], &b) != 0 || b.n_files == 0) {
        fprintf(stderr, "usage: bench_images FOLDER [seconds]\n");
        return 2;
    }
    for (int i = 0; i < 256; i++) b.table[i] = (float)i / 255.0f;
    LS_TRY(ls_dataset_open(&d, &(ls_data_source){.kind = "images", .path = argv[1]}, &err));
    bare_turn(&b);
    start = ls_clock_seconds();
    while (n < MAX_ROUNDS && ls_clock_seconds() - start < seconds) {
        spent alone = bare_turn(&b);
        LS_TRY(loader_turn(d, (int64_t)n * TURN, &loaded, &err));
        rate[n] = TURN / loaded.wall;
        cpu[n] = alone.cpu / loaded.cpu;
        ratio[n++] = alone.wall / loaded.wall;
    }
    ls_spread r = ls_spread_of(ratio, n), s = ls_spread_of(rate, n), c = ls_spread_of(cpu, n);
    printf("loader    %d workers  %8.0f images/s, %zu rounds; of libjpeg-turbo alone:\n"
           "          rate      %.3f (%.3f to %.3f)\n"
           "          per second of processor time  %.3f (%.3f to %.3f)\n",
           THREADS, s.p50, n, r.p50, r.p16, r.p84, c.p50, c.p16, c.p84);
out:
    if (st != LS_OK) fprintf(stderr, "bench_images: %s\n", err.text);
    ls_dataset_close(d);
    for (int i = 0; i < b.n_files; i++) free(b.files[i]);
    free(b.files);
    return st != LS_OK;
}
