/* ckpt_internal.h: what the files of this folder share: tables of tensors, the two file formats, and system
 * calls that a test can make fail one by one. */
#ifndef LS_CKPT_INTERNAL_H
#define LS_CKPT_INTERNAL_H

#include "base/alloc.h"
#include "base/text.h"
#include "ckpt/ckpt.h"
#include "exec/pieces.h"

#define LSI_CKPT_FORMAT   1
#define LSI_CKPT_TENSORS  "model.safetensors"
#define LSI_CKPT_MANIFEST "manifest.json"
#define LSI_CKPT_PARTIAL  ".partial" /* ending of a checkpoint that is not complete */

/* -- tables -----------------------------------------------------------------------------------------------
 */

typedef struct lsi_item {
    const char *name;
    ls_dtype dtype; /* LS_DTYPE_N: a type of the format that Lockstep does not have */
    ls_shape shape;
    ls_var_role role;
    const ls_tensor *tensor; /* its bytes are there; NULL: */
    void *host;              /* in memory of the host's; NULL: */
    const ls_state *vars;    /* in pieces, of which ranks have one each: variable `index`; NULL: */
    int index;
    const ls_ckpt *from; /* in a checkpoint, under its name; all NULL in a table that was read */
    bool stored;         /* the ranks that have it have written it, and its hash is known */
    uint64_t begin;      /* from the start of the data */
    size_t bytes;
    uint64_t xxh3;
} lsi_item;

/* Starts as {0}.  Names of a table that was read belong to its arena. */
typedef struct lsi_table {
    lsi_item *items;
    int n;
    ls_arena *arena;
} lsi_table;

/* Parameters and buffers make the model; the rest is for going on with the training. */
static inline bool lsi_is_model(ls_var_role role)
{
    return role == LS_VAR_PARAM || role == LS_VAR_BUFFER;
}
/* What a step has only in some precisions, or with some settings: a run may go on in another, and begins
 * there with what such variables begin with (load.c). */
bool lsi_is_optional(const char *name);

void lsi_table_release(lsi_table *t);
const lsi_item *lsi_table_find(const lsi_table *t, const char *name);
ls_status lsi_table_of_tensors(lsi_table *t, const ls_tensor *const *tensors, int n, ls_err *err);
ls_status lsi_table_of_state(lsi_table *t, const ls_state *vars, ls_err *err);

/* -- JSON -------------------------------------------------------------------------------------------------
 */

json_t *lsi_shape_json(ls_shape s);
/* False when `list` is no valid shape. */
bool lsi_shape_from_json(const json_t *list, ls_shape *shape);
/* Appends the text of `o`. */
ls_status lsi_json_text(const json_t *o, size_t flags, ls_text *out, ls_err *err);

/* -- safetensors ------------------------------------------------------------------------------------------
 */

/* Sorts the table into the order of the file and sets `begin`; LS_INVALID when a name occurs twice. */
ls_status lsi_st_arrange(lsi_table *t, ls_err *err);
/* The first bytes of the file, length included, up to the data; for an arranged table.  In out->data. */
ls_status lsi_st_header(const lsi_table *t, ls_text *out, ls_err *err);
/* Reads a header (without its 8 bytes of length) of a file with `data_bytes` bytes after it. */
ls_status lsi_st_parse(lsi_table *out, const char *text, size_t length, uint64_t data_bytes, ls_err *err);
/* The length that the first 8 bytes of a file state; LS_DATA when the file is too short for it. */
ls_status lsi_st_header_length(const unsigned char first[8], uint64_t file_bytes, size_t *length,
                               ls_err *err);

/* The table of an open file of so many bytes, and where its data begin. */
/* What to do about a plain file that is damaged. */
#define LSI_FETCH_AGAIN "fetch or write the file again"
/* Adds "; REMEDY" to the text of LS_DATA; other errors stay as they are.  Returns `st`. */
ls_status lsi_advise(ls_status st, ls_err *err, const char *remedy);
ls_status lsi_st_read_header(int fd, const char *file, uint64_t bytes, lsi_table *t, size_t *data_at,
                             ls_err *err);

/* -- manifest ---------------------------------------------------------------------------------------------
 */

typedef struct lsi_manifest {
    json_t *root;
    lsi_table tensors;
    const char *version;
    const json_t *state;
    uint64_t plan_hash, header_xxh3;
    size_t header_bytes; /* of the safetensors file, length included */
    double metric;       /* NaN: none */
} lsi_manifest;

ls_status lsi_manifest_text(const lsi_manifest *m, ls_text *out, ls_err *err);
/* Release *m in any case. */
ls_status lsi_manifest_parse(lsi_manifest *m, const char *text, size_t length, ls_err *err);
void lsi_manifest_release(lsi_manifest *m);

/* -- files ------------------------------------------------------------------------------------------------
 */

/* Called before each system call that changes something; what it returns, when not 0, is the call's errno. */
typedef struct lsi_io {
    int (*before)(void *arg, const char *call);
    void *arg;
} lsi_io;

/* `io` may be NULL.  All but lsi_io_remove fail with LS_IO and the path; errno is kept. */
ls_status lsi_io_create(const lsi_io *io, const char *path, int *fd, ls_err *err);
ls_status lsi_io_write(const lsi_io *io, int fd, const char *path, const void *data, size_t bytes,
                       ls_err *err);
/* So many bytes are there already. */
ls_status lsi_io_skip(int fd, const char *path, size_t bytes, ls_err *err);
/* Syncs and closes. */
ls_status lsi_io_finish(const lsi_io *io, int fd, const char *path, ls_err *err);
ls_status lsi_io_mkdir(const lsi_io *io, const char *path, ls_err *err);
ls_status lsi_io_sync_dir(const lsi_io *io, const char *path, ls_err *err);
/* The directory (or file) `from` takes the name `to`; what had it before is gone afterwards. */
ls_status lsi_io_replace(const lsi_io *io, const char *from, const char *to, ls_err *err);
/* `path` becomes a link to `target`, in one step. */
ls_status lsi_io_link(const lsi_io *io, const char *target, const char *path, ls_err *err);
/* A file, or a directory with the files in it; no matter when there is none. */
void lsi_io_remove(const char *path);
/* The folder that `path` lies in, into buf. */
const char *lsi_io_parent(const char *path, char *buf, size_t size);
/* Free bytes where `path` is; -1 when that cannot be found out. */
int64_t lsi_io_free_bytes(const char *path);
ls_status lsi_io_join(char *buf, size_t size, const char *folder, const char *name, ls_err *err);

/* Opens a file for reading; LS_DATA when it cannot be. */
ls_status lsi_io_open(const char *path, int *fd, uint64_t *bytes, ls_err *err);
/* Exactly `bytes` bytes from `at`; LS_DATA when the file ends before. */
ls_status lsi_io_read(int fd, const char *path, uint64_t at, void *to, size_t bytes, ls_err *err);

/* -- checkpoints ------------------------------------------------------------------------------------------
 */

/* Arranges `t`, fills its hashes, and writes the checkpoint. */
ls_status lsi_ckpt_write(const lsi_io *io, const char *dir, lsi_table *t, uint64_t plan_hash,
                         const json_t *state, double metric, ls_err *err);
/* One safetensors file of an arranged table with its header; syncs it, and sets the hashes of its tensors. */
ls_status lsi_st_write(const lsi_io *io, const char *path, lsi_table *t, const ls_text *header, ls_err *err);

/* Lets ranks write their pieces of variables into the file that begins at `path`, with data from `data_at`
 * on, and marks these as stored; marks none where not all ranks see the file.  Rank 0's, whose partners are
 * in ls_pieces_serve. */
ls_status lsi_store_together(const char *path, lsi_table *t, size_t data_at, ls_err *err);
/* A file that variables are read from. */
typedef struct lsi_source {
    const char *path;
    uint64_t file_bytes, header_bytes, header_xxh3;
    /* Where variable i begins and what hash it must have; false: it is not in pieces, or not wanted. */
    bool (*place)(const void *ctx, int i, uint64_t *at, uint64_t *xxh3);
    const void *ctx;
} lsi_source;
/* The other way: lets ranks read their pieces from the file, after it was looked through for damage; *bad is
 * then the first variable that is damaged, or -1.  *done false: not all ranks see the file, and nothing was
 * read.  Rank 0's, as lsi_store_together. */
ls_status lsi_load_together(const lsi_source *from, const ls_state *vars, bool *done, int *bad, ls_err *err);
/* All bytes of a tensor, chunk by chunk; LS_DATA when they are damaged, which is known after the last. */
ls_status lsi_ckpt_visit(const ls_ckpt *c, const char *name, ls_tensor_look look, void *ctx, ls_err *err);
/* Like ls_ckpt_read, into a variable; its type and shape are those that the tensor must have. */
ls_status lsi_ckpt_read_variable(const ls_ckpt *c, const char *name, const ls_state *vars, int i,
                                 ls_err *err);

/* The writer with a fault hook, and for a test: the same otherwise. */
ls_status lsi_ckpt_writer_create(ls_ckpt_writer **out, const char *folder, ls_ckpt_keep keep, size_t bytes,
                                 const lsi_io *io, ls_err *err);

#define LSI_PATH 4096

#endif
