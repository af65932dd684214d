/* hdf5_map.c: asks the HDF5 library where an array lies.
 *
 * The library runs in a child process with limits on time and memory, on the file that the parent opened; the
 * child sends a description through a pipe.  A child that crashes, loops or says nonsense is a damaged file.
 * The library's own way to list the chunks of a data set takes time that grows with the square of their
 * number; instead each chunk is "read" through a driver of ours, which does not read but notes the place. */
#include "hdf5_internal.h"

#ifdef LS_HAVE_HDF5

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* No deflate stream unpacks to more than 1032 times its size. */
#define MAX_RATIO 1032

/* -- driver -----------------------------------------------------------------------------------------------
 */

/* The library's file over the parent's descriptor. */
typedef struct driver {
    H5FD_t public; /* the library's; first */
    int fd;
    int64_t size;
    haddr_t eoa;
    bool opened;
    bool noting;  /* raw data is not read, but its place noted */
    haddr_t at;   /* the place noted */
    size_t bytes; /* and how much */
} driver;

typedef struct driver_info {
    driver *d;
} driver_info;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    const driver_info *info = H5Pget_driver_info(fapl);

    (void)name;
    (void)maxaddr;
    /* A second opening is a link to another file, which nobody named. */
    if (info == NULL || info->d->opened || (flags & H5F_ACC_RDWR)) return NULL;
    info->d->opened = true;
    return &info->d->public;
}

static herr_t driver_close(H5FD_t *f)
{
    (void)f;
    return 0;
}

static herr_t driver_query(const H5FD_t *f, unsigned long *flags)
{
    (void)f;
    *flags = 0;
    return 0;
}

static haddr_t driver_eoa(const H5FD_t *f, H5FD_mem_t type)
{
    (void)type;
    return ((const driver *)f)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *f, H5FD_mem_t type, haddr_t eoa)
{
    (void)type;
    ((driver *)f)->eoa = eoa;
    return 0;
}

static haddr_t driver_eof(const H5FD_t *f, H5FD_mem_t type)
{
    (void)type;
    return (haddr_t)((const driver *)f)->size;
}

static herr_t driver_read(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void *buffer)
{
    driver *d = (driver *)f;

    (void)dxpl;
    if (d->noting && type == H5FD_MEM_DRAW) {
        d->at = addr;
        d->bytes = size;
        return 0;
    }
    /* Beyond the end there are zeros, as the library expects of its drivers. */
    memset(buffer, 0, size);
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(d->fd, (char *)buffer + done, size - done, (off_t)(addr + done));
        if (n < 0 && errno != EINTR) return -1;
        if (n == 0) break;
        if (n > 0) done += (size_t)n;
    }
    return 0;
}

static herr_t driver_write(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                           const void *buffer)
{
    (void)f;
    (void)type;
    (void)dxpl;
    (void)addr;
    (void)size;
    (void)buffer;
    return -1;
}

static const H5FD_class_t driver_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)500, /* from 256 on they are free to use */
#endif
    .name = "lockstep",
    .maxaddr = HADDR_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(driver_info),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_eof,
    .read = driver_read,
    .write = driver_write,
    .fl_map = H5FD_FLMAP_SINGLE,
};

/* -- what the child finds out -----------------------------------------------------------------------------
 */

/* The library's words for what went wrong deepest. */
static herr_t first_words(unsigned n, const H5E_error2_t *e, void *arg)
{
    char *text = arg;

    if (n == 0 && e->desc) snprintf(text, 160, "%s", e->desc);
    return 0;
}

static ls_status h5_fail(const lsi_h5_file *f, const char *what, ls_err *err)
{
    char words[160] = "no reason given";

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_words, words);
    return ls_fail(err, LS_DATA, "%s: %s (HDF5: %s); the file is damaged, or no HDF5 file", f->path, what,
                   words);
}

/* "a, b, c": what lies at the top of the file. */
static void list_names(hid_t file, char *buf, size_t size)
{
    H5G_info_t group;
    size_t at = 0;

    buf[0] = '\0';
    if (H5Gget_info(file, &group) < 0) return;
    for (hsize_t i = 0; i < group.nlinks && i < 8 && at + 2 < size; i++) {
        char name[64];
        if (H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) < 0)
            return;
        at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "", name);
    }
}

/* Half precision has no predefined type. */
static bool is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;

    return H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
           sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 && mantissa_bits == 10 &&
           H5Tget_ebias(type) == 15;
}

static bool find_float(hid_t type, lsi_h5_layout *l)
{
    size_t size = H5Tget_size(type);

    l->element = size == 2 ? H5_F2 : size == 4 ? H5_F4 : H5_F8;
    if (size == 2) return is_half(type);
    return H5Tequal(type, size == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE) > 0 ||
           H5Tequal(type, size == 4 ? H5T_IEEE_F32BE : H5T_IEEE_F64BE) > 0;
}

static bool find_integer(hid_t type, lsi_h5_layout *l)
{
    size_t size = H5Tget_size(type);
    H5T_sign_t sign = H5Tget_sign(type);
    int power = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;

    l->element = (lsi_h5_element)((sign == H5T_SGN_2 ? H5_I1 : H5_U1) + power);
    return size == (size_t)1 << power && H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0 &&
           (sign == H5T_SGN_2 || sign == H5T_SGN_NONE);
}

static ls_status find_type(const lsi_h5_file *f, hid_t set, const char *name, lsi_h5_layout *l, ls_err *err)
{
    hid_t type = H5Dget_type(set);
    if (type < 0) return h5_fail(f, "the type of its elements cannot be read", err);

    H5T_class_t class = H5Tget_class(type);
    bool known = class == H5T_FLOAT ? find_float(type, l) : class == H5T_INTEGER && find_integer(type, l);
    l->big_endian = H5Tget_order(type) == H5T_ORDER_BE;
    if (!known)
        return ls_fail(
            err, LS_DATA,
            "%s: \"%s\" has elements that are neither plain integers nor floats of 2, 4 or 8 bytes; store "
            "them as such",
            f->path, name);
    return LS_OK;
}

static ls_status find_shape(const lsi_h5_file *f, hid_t set, const char *name, lsi_h5_layout *l, ls_err *err)
{
    hsize_t dim[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);

    if (rank < 0) return h5_fail(f, "the shape of its array cannot be read", err);
    if (rank < 1 || rank > LS_MAX_RANK)
        return ls_fail(err, LS_DATA,
                       "%s: \"%s\" has %d dimensions; 1 to %d are possible, the first counts samples",
                       f->path, name, rank, LS_MAX_RANK);
    if (H5Sget_simple_extent_dims(space, dim, NULL) < 0) return h5_fail(f, "the shape cannot be read", err);
    l->shape.rank = rank;
    for (int i = 0; i < rank; i++) l->shape.dim[i] = dim[i] > INT64_MAX ? -1 : (int64_t)dim[i];
    return LS_OK;
}

static ls_status find_filters(const lsi_h5_file *f, hid_t plist, lsi_h5_layout *l, ls_err *err)
{
    int n = H5Pget_nfilters(plist);

    if (n < 0 || n > LSI_H5_MAX_FILTERS) return h5_fail(f, "its filters cannot be read", err);
    for (int i = 0; i < n; i++) {
        unsigned flags, config;
        size_t n_values = 0;
        char name[64] = "";
        H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &n_values, NULL, sizeof name - 1, name, &config);
        if (id == H5Z_FILTER_DEFLATE)
            l->filter[i] = H5_DEFLATE;
        else if (id == H5Z_FILTER_SHUFFLE)
            l->filter[i] = H5_SHUFFLE;
        else if (id == H5Z_FILTER_FLETCHER32)
            l->filter[i] = H5_FLETCHER32;
        else
            return ls_fail(err, LS_DATA,
                           "%s: filter %d (%s) cannot be undone here; repack the file: h5repack -f GZIP=4",
                           f->path, (int)id, name);
    }
    l->n_filters = n;
    return LS_OK;
}

static ls_status find_chunks(const lsi_h5_file *f, hid_t plist, const char *name, lsi_h5_layout *l,
                             ls_err *err)
{
    ls_status st = LS_OK;
    hsize_t dim[H5S_MAX_RANK];

    if (H5Pget_chunk(plist, l->shape.rank, dim) != l->shape.rank)
        return h5_fail(f, "the shape of its chunks cannot be read", err);
    l->chunked = true;
    l->n_chunks = 1;
    for (int i = 0; i < l->shape.rank; i++) {
        if (dim[i] < 1 || dim[i] > UINT32_MAX || l->shape.dim[i] < 0)
            return ls_fail(err, LS_DATA, "%s: \"%s\": the shape of its chunks cannot be; the file is damaged",
                           f->path, name);
        l->chunk[i] = (int64_t)dim[i];
        int64_t across = (l->shape.dim[i] + l->chunk[i] - 1) / l->chunk[i];
        /* Each has at least a byte in the file. */
        if (across > 0 && l->n_chunks > f->size / across)
            return ls_fail(err, LS_DATA,
                           "%s: \"%s\" has more chunks than the file has bytes; the file is damaged", f->path,
                           name);
        l->n_chunks *= across;
    }
    LS_TRY(find_filters(f, plist, l, err));
out:
    return st;
}

static ls_status find_layout(const lsi_h5_file *f, hid_t set, const char *name, lsi_h5_layout *l, ls_err *err)
{
    hid_t plist = H5Dget_create_plist(set);
    if (plist < 0) return h5_fail(f, "the layout of its array cannot be read", err);

    H5D_layout_t layout = H5Pget_layout(plist);
    if (layout == H5D_CHUNKED) return find_chunks(f, plist, name, l, err);
    if (layout != H5D_CONTIGUOUS || H5Pget_external_count(plist) > 0)
        return ls_fail(
            err, LS_DATA,
            "%s: \"%s\" does not lie in the file in one piece or in chunks; repack it: h5repack -l CONTI",
            f->path, name);
    haddr_t at = H5Dget_offset(set);
    if (at == HADDR_UNDEF || at > INT64_MAX)
        return ls_fail(err, LS_DATA, "%s: \"%s\" was never written", f->path, name);
    l->offset = (int64_t)at;
    return LS_OK;
}

/* -- the child --------------------------------------------------------------------------------------------
 */

/* What goes through the pipe: this, the chunks, and this again. */
typedef struct message {
    ls_status status;
    bool found;
    lsi_h5_layout layout;
    char text[LS_ERR_TEXT_MAX];
} message;

static void send_all(int pipe, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(pipe, (const char *)data + done, size - done);
        if (n < 0 && errno != EINTR) _exit(1);
        if (n > 0) done += (size_t)n;
    }
}

/* Where chunk `k` lies; {0} and a failure for one that cannot be found. */
static ls_status find_chunk(const lsi_h5_file *f, driver *d, hid_t set, const char *name,
                            const lsi_h5_layout *l, int64_t k, lsi_h5_chunk *out, ls_err *err)
{
    hsize_t at[LS_MAX_RANK], stored = 0;
    uint32_t skipped = 0;
    int64_t rest = k;
    char nothing[8]; /* the driver writes nothing */

    for (int i = l->shape.rank - 1; i >= 0; i--) {
        int64_t across = (l->shape.dim[i] + l->chunk[i] - 1) / l->chunk[i];
        at[i] = (hsize_t)(rest % across * l->chunk[i]);
        rest /= across;
    }
    if (H5Dget_chunk_storage_size(set, at, &stored) < 0 || stored == 0 || stored > UINT32_MAX ||
        stored > (hsize_t)f->size)
        return ls_fail(err, LS_DATA,
                       "%s: \"%s\": chunk %" PRId64 " of %" PRId64
                       " was never written, or its entry is damaged; make the file again",
                       f->path, name, k, l->n_chunks);
    d->bytes = 0;
    if (H5Dread_chunk(set, H5P_DEFAULT, at, &skipped, nothing) < 0 || d->bytes != stored)
        return h5_fail(f, "a chunk cannot be found", err);
    *out = (lsi_h5_chunk){(int64_t)d->at, (uint32_t)stored, skipped};
    return LS_OK;
}

/* Sends an entry for every chunk, also after a failure: the parent knows how many to expect. */
static ls_status send_chunks(const lsi_h5_file *f, driver *d, hid_t set, const char *name,
                             const lsi_h5_layout *l, int pipe, ls_err *err)
{
    enum { BURST = 512 };
    ls_status st = LS_OK;

    d->noting = true;
    for (int64_t k = 0; k < l->n_chunks;) {
        lsi_h5_chunk burst[BURST] = {0};
        int n = 0;
        for (; n < BURST && k < l->n_chunks; n++, k++)
            if (st == LS_OK) st = find_chunk(f, d, set, name, l, k, &burst[n], err);
        send_all(pipe, burst, sizeof burst[0] * (size_t)n);
    }
    return st;
}

static ls_status open_array(const lsi_h5_file *f, driver *d, const char *name, bool optional, message *m,
                            hid_t *set, ls_err *err)
{
    ls_status st = LS_OK;
    driver_info info = {d};
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), id = H5FDregister(&driver_class), file;

    if (fapl < 0 || id < 0 || H5Pset_driver(fapl, id, &info) < 0)
        return ls_fail(err, LS_UNSUPPORTED, "%s: the HDF5 library does not take our driver", f->path);
    file = H5Fopen(f->path, H5F_ACC_RDONLY, fapl);
    if (file < 0) return h5_fail(f, "cannot be opened", err);
    m->found = H5Lexists(file, name, H5P_DEFAULT) > 0;
    if (!m->found && optional) return LS_OK;
    if (!m->found) {
        char names[400];
        list_names(file, names, sizeof names);
        return ls_fail(err, LS_DATA, "%s: holds no array \"%s\"; it holds %s", f->path, name,
                       names[0] ? names : "nothing");
    }
    *set = H5Dopen2(file, name, H5P_DEFAULT);
    if (*set < 0) return h5_fail(f, "its array cannot be opened", err);
    LS_TRY(find_type(f, *set, name, &m->layout, err));
    LS_TRY(find_shape(f, *set, name, &m->layout, err));
    LS_TRY(find_layout(f, *set, name, &m->layout, err));
out:
    return st;
}

/* Time and memory for a small file, and more for a large one; under sanitizers much is mapped from the start.
 */
static void limit_child(int64_t size)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    rlim_t seconds = 5 + (rlim_t)(size >> 22);

    if (statm != NULL && fscanf(statm, "%lu", &pages) != 1) pages = 0;
    if (statm != NULL) fclose(statm);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
    if (pages > 0) {
        rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)1 << 30);
        setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
    }
}

LS_NORETURN static void child(const lsi_h5_file *f, const char *name, bool optional, int pipe)
{
    driver d = {.fd = f->fd, .size = f->size};
    message m = {0};
    ls_err err = {0};
    hid_t set = -1;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    /* The library's last words would only add to our message. */
    if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0) dup2(null, STDERR_FILENO);
    limit_child(f->size);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    m.status = open_array(f, &d, name, optional, &m, &set, &err);
    memcpy(m.text, err.text, sizeof m.text);
    send_all(pipe, &m, sizeof m);
    if (m.status == LS_OK && m.layout.n_chunks > 0) {
        m.status = send_chunks(f, &d, set, name, &m.layout, pipe, &err);
        memcpy(m.text, err.text, sizeof m.text);
        send_all(pipe, &m, sizeof m);
    }
    _exit(0);
}

/* -- the parent -------------------------------------------------------------------------------------------
 */

static bool receive(int pipe, void *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = read(pipe, (char *)data + done, size - done);
        if (n == 0 || (n < 0 && errno != EINTR)) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

/* The child may have been led astray by the file: nothing it says is taken on trust. */
static bool layout_fits(const lsi_h5_file *f, const lsi_h5_layout *l)
{
    if (l->shape.rank < 1 || l->shape.rank > LS_MAX_RANK || !ls_shape_valid(l->shape)) return false;
    if ((unsigned)l->element >= H5_ELEMENTS) return false;
    if (!l->chunked) {
        int64_t bytes = ls_shape_count(l->shape) * (int64_t)lsi_h5_element_size(l->element);
        return l->n_chunks == 0 && l->offset >= 0 && bytes <= f->size && l->offset <= f->size - bytes;
    }
    int64_t n = 1, bytes = (int64_t)lsi_h5_element_size(l->element);
    for (int i = 0; i < l->shape.rank; i++) {
        if (l->chunk[i] < 1 || l->chunk[i] > UINT32_MAX || bytes > UINT32_MAX / l->chunk[i]) return false;
        bytes *= l->chunk[i];
        int64_t across = (l->shape.dim[i] + l->chunk[i] - 1) / l->chunk[i];
        if (across > 0 && n > f->size / across) return false;
        n *= across;
    }
    if (l->n_chunks != n || l->n_filters < 0 || l->n_filters > LSI_H5_MAX_FILTERS) return false;
    for (int i = 0; i < l->n_filters; i++)
        if ((unsigned)l->filter[i] > H5_FLETCHER32) return false;
    return true;
}

/* The chunks lie in the file, together take no more than it has, and can unpack to their size. */
static bool chunks_fit(const lsi_h5_file *f, const lsi_h5_layout *l, const lsi_h5_chunk *chunks)
{
    int64_t all = 0, unpacked = lsi_h5_chunk_bytes(l);

    for (int64_t k = 0; k < l->n_chunks; k++) {
        int64_t bytes = chunks[k].bytes, most = bytes;
        for (int i = 0; i < l->n_filters; i++)
            if (l->filter[i] == H5_DEFLATE && !(chunks[k].skipped >> i & 1)) most = bytes * MAX_RATIO + 64;
        all += bytes;
        if (bytes < 1 || chunks[k].offset < 0 || bytes > f->size || chunks[k].offset > f->size - bytes ||
            all > f->size || unpacked > most || bytes > (int64_t)lsi_h5_chunk_room(l))
            return false;
    }
    return true;
}

static ls_status nonsense(const lsi_h5_file *f, const char *name, ls_err *err)
{
    return ls_fail(err, LS_DATA,
                   "%s: \"%s\": its description does not fit a file of %" PRId64
                   " bytes; the file is damaged",
                   f->path, name, f->size);
}

/* Everything the child says; *silent when it stopped in the middle. */
static ls_status listen(const lsi_h5_file *f, const char *name, int pipe, message *m, lsi_h5_chunk **chunks,
                        bool *silent, ls_err *err)
{
    size_t bytes;

    *silent = !receive(pipe, m, sizeof *m);
    if (*silent) return LS_DATA;
    m->text[sizeof m->text - 1] = '\0';
    if (m->status != LS_OK) return ls_fail(err, m->status, "%s", m->text);
    if (!m->found) return LS_OK;
    if (!layout_fits(f, &m->layout)) return nonsense(f, name, err);
    if (m->layout.n_chunks == 0) return LS_OK;
    const lsi_h5_layout layout = m->layout;
    bytes = sizeof **chunks * (size_t)layout.n_chunks;
    *chunks = ls_alloc(LS_MEM_DATA, bytes);
    if (*chunks == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory for the places of its chunks", f->path);
    *silent = !receive(pipe, *chunks, bytes) || !receive(pipe, m, sizeof *m);
    if (*silent) return LS_DATA;
    m->text[sizeof m->text - 1] = '\0';
    m->layout = layout;
    if (m->status != LS_OK) return ls_fail(err, m->status, "%s", m->text);
    return chunks_fit(f, &layout, *chunks) ? LS_OK : nonsense(f, name, err);
}

ls_status lsi_h5_map(const lsi_h5_file *f, const char *name, lsi_h5_layout *layout, lsi_h5_chunk **chunks,
                     bool *found, ls_err *err)
{
    ls_status st = LS_OK;
    bool silent = false;
    message m = {0};
    int ends[2], how = 0;

    *chunks = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0) return ls_fail(err, LS_IO, "%s: no pipe: %s", f->path, strerror(errno));
    fflush(NULL); /* what is buffered must not be written twice, should the library call exit */
    pid_t pid = fork();
    if (pid == 0) child(f, name, found != NULL, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return ls_fail(err, LS_IO, "%s: no process to open it in: %s", f->path, strerror(errno));
    }
    st = listen(f, name, ends[0], &m, chunks, &silent, err);
    close(ends[0]);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) continue;
    if (silent && WIFSIGNALED(how))
        ls_fail(err, LS_DATA, "%s: the HDF5 library breaks down over it (%s); the file is damaged", f->path,
                strsignal(WTERMSIG(how)));
    else if (silent)
        ls_fail(err, LS_DATA, "%s: the HDF5 library gives up over it; the file is damaged", f->path);
    *layout = m.layout;
    if (found != NULL) *found = m.found;
    if (st != LS_OK) {
        ls_free(*chunks);
        *chunks = NULL;
    }
    return st;
}

#else

ls_status lsi_h5_map(const lsi_h5_file *f, const char *name, lsi_h5_layout *layout, lsi_h5_chunk **chunks,
                     bool *found, ls_err *err)
{
    (void)name;
    (void)layout;
    (void)found;
    *chunks = NULL;
    return ls_fail(err, LS_UNSUPPORTED,
                   "%s: this program was built without HDF5; install libhdf5-dev and build again", f->path);
}

#endif
