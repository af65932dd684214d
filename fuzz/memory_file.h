/* memory_file.h: bytes as a file that has a path, without a disk. */
#ifndef LS_FUZZ_MEMORY_FILE_H
#define LS_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/data.h"

typedef struct memory_file {
    int fd;
    char path[64];
} memory_file;

static inline memory_file memory_file_open(const uint8_t *data, size_t size)
{
    memory_file f = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};

    if (f.fd < 0 || write(f.fd, data, size) != (ssize_t)size) abort();
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    return f;
}

/* Opens the set and reads its first and last samples. */
static inline void memory_file_read(const ls_data_source *src)
{
    ls_dataset *d;
    ls_err err = {0};
    void *fields[16] = {0};

    if (ls_dataset_open(&d, src, &err) != LS_OK) {
        if (err.status == LS_OK || !err.text[0]) abort(); /* a failure without words */
        return;
    }
    const ls_field *list;
    int n = ls_dataset_fields(d, &list);
    for (int i = 0; i < n; i++) fields[i] = malloc(ls_dataset_field_bytes(d, i));
    for (int64_t i = 0; i < ls_dataset_count(d) && i < 8; i++) {
        if (ls_dataset_read(d, i, NULL, fields, NULL) != LS_OK) continue;
        if (ls_dataset_read(d, ls_dataset_count(d) - 1 - i, NULL, fields, NULL) != LS_OK) continue;
    }
    for (int i = 0; i < n; i++) free(fields[i]);
    ls_dataset_close(d);
}

#endif
