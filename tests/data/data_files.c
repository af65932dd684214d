/* data_files.c: writes the sets of data_files.h. */
#include "data_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "check.h"

enum { MAX_FILES = 64 };

static struct {
    char folder[512];
    char path[MAX_FILES][768];
    int n;
} state;

const char *data_folder(void)
{
    if (!state.folder[0]) {
        const char *build = getenv("LS_BUILD_DIR");
        snprintf(state.folder, sizeof state.folder, "%s/data-XXXXXX", build ? build : "/tmp");
        REQUIRE(mkdtemp(state.folder) != NULL);
    }
    return state.folder;
}

void data_clean(void)
{
    for (int i = 0; i < state.n; i++) unlink(state.path[i]);
    if (state.folder[0]) CHECK(rmdir(state.folder) == 0);
    state.n = 0;
    state.folder[0] = '\0';
}

static const char *path_of(const char *name)
{
    char path[768];

    snprintf(path, sizeof path, "%s/%s", data_folder(), name);
    for (int i = 0; i < state.n; i++)
        if (strcmp(state.path[i], path) == 0) return state.path[i];
    REQUIRE(state.n < MAX_FILES);
    memcpy(state.path[state.n], path, sizeof path);
    return state.path[state.n++];
}

const char *data_write(const char *name, const void *bytes, size_t size, bool gzip)
{
    const char *path = path_of(name);

    if (gzip) {
        gzFile f = gzopen(path, "wb");
        REQUIRE(f != NULL);
        REQUIRE(size == 0 || gzwrite(f, bytes, (unsigned)size) == (int)size);
        REQUIRE(gzclose(f) == Z_OK);
    } else {
        FILE *f = fopen(path, "wb");
        REQUIRE(f != NULL);
        REQUIRE(fwrite(bytes, 1, size, f) == size);
        REQUIRE(fclose(f) == 0);
    }
    return path;
}

int data_pixel(int sample, int i)
{
    return (sample * 7 + i) % 256;
}

static void put(unsigned char *p, unsigned value)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(value >> (24 - 8 * i));
}

void data_write_idx(const char *name, int count, int rows, int cols, bool gzip)
{
    size_t pixels = (size_t)(rows * cols), n = (size_t)count;
    unsigned char *images = calloc(16 + n * pixels, 1), *labels = calloc(8 + n, 1);
    char file[256];

    REQUIRE(images && labels);
    put(images, 0x803);
    put(images + 4, (unsigned)count);
    put(images + 8, (unsigned)rows);
    put(images + 12, (unsigned)cols);
    put(labels, 0x801);
    put(labels + 4, (unsigned)count);
    for (int s = 0; s < count; s++) {
        labels[8 + s] = (unsigned char)(s % 10);
        for (int i = 0; i < rows * cols; i++)
            images[16 + (size_t)s * pixels + (size_t)i] = (unsigned char)data_pixel(s, i);
    }
    snprintf(file, sizeof file, "%s-images-idx3-ubyte%s", name, gzip ? ".gz" : "");
    data_write(file, images, 16 + n * pixels, gzip);
    snprintf(file, sizeof file, "%s-labels-idx1-ubyte%s", name, gzip ? ".gz" : "");
    data_write(file, labels, 8 + n, gzip);
    free(images);
    free(labels);
}

const char *data_write_npy(const char *name, const char *header, const void *bytes, size_t size)
{
    size_t n = strlen(header);
    unsigned char *all = calloc(10 + n + size, 1);

    REQUIRE(all && n < 256);
    memcpy(all, "\x93NUMPY\x01\x00", 8);
    all[8] = (unsigned char)n;
    memcpy(all + 10, header, n);
    if (size) memcpy(all + 10 + n, bytes, size);
    const char *path = data_write(name, all, 10 + n + size, false);
    free(all);
    return path;
}

void data_check_refused(const ls_data_source *src, ls_status want, const char *part, const char *other)
{
    ls_err err = {0};
    ls_dataset *d = NULL;

    CHECK_STATUS(ls_dataset_open(&d, src, &err), want, &err);
    CHECK(d == NULL);
    if (part) CHECK_CONTAINS(err.text, part);
    if (other) CHECK_CONTAINS(err.text, other);
    ls_dataset_close(d);
}
