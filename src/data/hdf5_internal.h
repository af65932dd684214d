/* hdf5_internal.h: arrays in HDF5 files: where their bytes lie, and reading them without the HDF5 library.
 *
 * The library is used once per array, to find out where it lies, and in a process of its own: damaged files
 * can make it crash, loop or ask for any amount of memory, and none of that may reach the program.  What that
 * process finds is checked against the size of the file.  Reading afterwards is pread, and our own undoing of
 * filters, so that any number of threads may read at once. */
#ifndef LS_DATA_HDF5_INTERNAL_H
#define LS_DATA_HDF5_INTERNAL_H

#include "data_internal.h"

typedef enum lsi_h5_element {
    H5_U1,
    H5_U2,
    H5_U4,
    H5_U8,
    H5_I1,
    H5_I2,
    H5_I4,
    H5_I8,
    H5_F2,
    H5_F4,
    H5_F8,
    H5_ELEMENTS
} lsi_h5_element;

typedef enum lsi_h5_filter { H5_DEFLATE, H5_SHUFFLE, H5_FLETCHER32 } lsi_h5_filter;

enum { LSI_H5_MAX_FILTERS = 8 };

/* A file that is open for reading. */
typedef struct lsi_h5_file {
    const char *path; /* as in messages; the arena's */
    int fd;           /* -1: not open */
    int64_t size;
} lsi_h5_file;

typedef struct lsi_h5_chunk {
    int64_t offset;
    uint32_t bytes;   /* as stored */
    uint32_t skipped; /* bit i: filter i was not applied */
} lsi_h5_chunk;

/* Where an array lies.  Chunks are in row-major order of their places. */
typedef struct lsi_h5_layout {
    ls_shape shape;
    lsi_h5_element element;
    bool big_endian, chunked;
    int64_t offset;             /* of an array in one piece */
    int64_t chunk[LS_MAX_RANK]; /* elements of a chunk along each dimension */
    int64_t n_chunks;
    int n_filters; /* in the order in which they were applied */
    lsi_h5_filter filter[LSI_H5_MAX_FILTERS];
} lsi_h5_layout;

typedef struct lsi_h5_cache lsi_h5_cache;

typedef struct lsi_h5_array {
    const lsi_h5_file *file;
    char *name; /* of the array in the file; the arena's */
    lsi_h5_layout layout;
    lsi_h5_chunk *chunks;
    lsi_h5_cache *cache; /* of unpacked chunks */
} lsi_h5_array;

/* Opens `name` in `folder` (as lsi_file_open; no gzip). */
ls_status lsi_h5_open(lsi_h5_file *f, ls_arena *arena, const char *folder, const char *name,
                      ls_err *err) LS_MUST_CHECK;
void lsi_h5_close(lsi_h5_file *f);

/* Finds the array `name` in the file.  With `found`, an array that is not there is no failure. */
ls_status lsi_h5_find(lsi_h5_array *a, const lsi_h5_file *f, ls_arena *arena, const char *name, bool *found,
                      ls_err *err) LS_MUST_CHECK;
void lsi_h5_release(lsi_h5_array *a); /* accepts {0} */

/* Writes the bytes of sample `index` (the array's first dimension), as stored; any thread. */
ls_status lsi_h5_read(const lsi_h5_array *a, int64_t index, uint8_t *out, ls_err *err) LS_MUST_CHECK;

size_t lsi_h5_element_size(lsi_h5_element e);
/* Elements and stored bytes of one sample. */
int64_t lsi_h5_sample_elements(const lsi_h5_layout *l);
/* Bytes of a chunk once its filters are undone. */
int64_t lsi_h5_chunk_bytes(const lsi_h5_layout *l);

/* -- hdf5_map.c: the library, in a process of its own
 * -----------------------------------------------------------
 */

/* Fills layout and chunks (from ls_alloc); what comes back fits the file's size.  `found` as above. */
ls_status lsi_h5_map(const lsi_h5_file *f, const char *name, lsi_h5_layout *layout, lsi_h5_chunk **chunks,
                     bool *found, ls_err *err) LS_MUST_CHECK;

/* -- hdf5_chunks.c
 * ----------------------------------------------------------------------------------------------
 */

/* Undoes the filters of one stored chunk.  `in` (of `bytes`) and `spare` hold lsi_h5_chunk_room bytes each
 * and are overwritten; *out receives which of the two holds the result. */
ls_status lsi_h5_unpack(const lsi_h5_layout *l, const lsi_h5_chunk *c, uint8_t *in, uint8_t *spare,
                        uint8_t **out, ls_err *err) LS_MUST_CHECK;
/* Bytes of a buffer in which any stage of any chunk fits. */
size_t lsi_h5_chunk_room(const lsi_h5_layout *l);
/* Checksum of the filter fletcher32. */
uint32_t lsi_h5_fletcher32(const uint8_t *data, size_t n);

ls_status lsi_h5_cache_create(lsi_h5_cache **out, const lsi_h5_array *a, ls_err *err) LS_MUST_CHECK;
void lsi_h5_cache_destroy(lsi_h5_cache *c); /* accepts NULL */
/* The bytes of chunk `k`, which stay until lsi_h5_cache_give. */
ls_status lsi_h5_cache_take(lsi_h5_cache *c, int64_t k, const uint8_t **out, int *slot,
                            ls_err *err) LS_MUST_CHECK;
void lsi_h5_cache_give(lsi_h5_cache *c, int slot);

/* -- hdf5_write.c
 * -----------------------------------------------------------------------------------------------
 */

/* An array to be written. */
typedef struct lsi_h5_content {
    const char *name;
    lsi_h5_element element;
    bool big_endian;
    ls_shape shape;
    const int64_t *chunk; /* NULL: in one piece, without filters */
    bool shuffle, fletcher32;
    int deflate; /* 1 to 9; 0: not packed */
    /* The bytes of sample i, as they are stored. */
    void (*sample)(void *arg, int64_t i, void *out);
    void *arg;
} lsi_h5_content;

/* Writes a new file with these arrays; LS_INVALID when it is already there. */
ls_status lsi_h5_write(const char *path, const lsi_h5_content *contents, int n, ls_err *err) LS_MUST_CHECK;

#endif
