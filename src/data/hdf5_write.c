/* hdf5_write.c: writes arrays as HDF5 files, sample by sample; for `lockstep data make` and the tests.
 *
 * Unlike reading, this runs in the program's own process: the bytes are ours. */
#include "hdf5_internal.h"

#ifdef LS_HAVE_HDF5

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <string.h>
#include <unistd.h>

static hid_t type_of(const lsi_h5_content *c)
{
    const bool be = c->big_endian;

    switch (c->element) {
    case H5_U1: return H5Tcopy(H5T_STD_U8LE);
    case H5_U2: return H5Tcopy(be ? H5T_STD_U16BE : H5T_STD_U16LE);
    case H5_U4: return H5Tcopy(be ? H5T_STD_U32BE : H5T_STD_U32LE);
    case H5_U8: return H5Tcopy(be ? H5T_STD_U64BE : H5T_STD_U64LE);
    case H5_I1: return H5Tcopy(H5T_STD_I8LE);
    case H5_I2: return H5Tcopy(be ? H5T_STD_I16BE : H5T_STD_I16LE);
    case H5_I4: return H5Tcopy(be ? H5T_STD_I32BE : H5T_STD_I32LE);
    case H5_I8: return H5Tcopy(be ? H5T_STD_I64BE : H5T_STD_I64LE);
    case H5_F4: return H5Tcopy(be ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
    case H5_F8: return H5Tcopy(be ? H5T_IEEE_F64BE : H5T_IEEE_F64LE);
    default: break;
    }
    /* Half precision: single precision with its fields moved. */
    hid_t half = H5Tcopy(be ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    return half;
}

static hid_t properties_of(const lsi_h5_content *c)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[LS_MAX_RANK];

    if (!c->chunk) return list;
    for (int i = 0; i < c->shape.rank; i++) chunk[i] = (hsize_t)c->chunk[i];
    H5Pset_chunk(list, c->shape.rank, chunk);
    if (c->shuffle) H5Pset_shuffle(list);
    if (c->deflate) H5Pset_deflate(list, (unsigned)c->deflate);
    if (c->fletcher32) H5Pset_fletcher32(list);
    return list;
}

/* One sample after the other through the library: bytes are given as they are to be stored. */
static bool put_samples(hid_t set, hid_t type, const lsi_h5_content *c, uint8_t *buffer)
{
    hsize_t dim[LS_MAX_RANK], at[LS_MAX_RANK] = {0};
    bool good = true;

    for (int i = 0; i < c->shape.rank; i++) dim[i] = (hsize_t)c->shape.dim[i];
    dim[0] = 1;
    hid_t memory = H5Screate_simple(c->shape.rank, dim, NULL), file = H5Dget_space(set);
    for (int64_t k = 0; good && k < c->shape.dim[0]; k++) {
        at[0] = (hsize_t)k;
        c->sample(c->arg, k, buffer);
        good = H5Sselect_hyperslab(file, H5S_SELECT_SET, at, NULL, dim, NULL) >= 0 &&
               H5Dwrite(set, type, memory, file, H5P_DEFAULT, buffer) >= 0;
    }
    H5Sclose(memory);
    H5Sclose(file);
    return good;
}

static bool put_array(hid_t file, const lsi_h5_content *c, uint8_t *buffer)
{
    hsize_t dim[LS_MAX_RANK];
    hid_t type = type_of(c), list = properties_of(c), space, set;

    for (int i = 0; i < c->shape.rank; i++) dim[i] = (hsize_t)c->shape.dim[i];
    space = H5Screate_simple(c->shape.rank, dim, NULL);
    set = H5Dcreate2(file, c->name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    bool good = set >= 0 && put_samples(set, type, c, buffer);
    if (set >= 0) good = H5Dclose(set) >= 0 && good;
    H5Sclose(space);
    H5Pclose(list);
    H5Tclose(type);
    return good;
}

static ls_status write_arrays(const char *path, const lsi_h5_content *contents, int n, uint8_t *buffer,
                              ls_err *err)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    bool good = file >= 0;

    for (int i = 0; good && i < n; i++) good = put_array(file, &contents[i], buffer);
    if (file >= 0) good = H5Fclose(file) >= 0 && good;
    return good ? LS_OK : ls_fail(err, LS_IO, "%s: cannot be written; is there room?", path);
}

ls_status lsi_h5_write(const char *path, const lsi_h5_content *contents, int n, ls_err *err)
{
    size_t most = 1;
    uint8_t *buffer;
    H5E_auto2_t print;
    void *print_arg;

    /* The library would overwrite, or print its refusal. */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return ls_fail(err, LS_INVALID, "%s: is already there; choose another folder, or remove it", path);
    if (fd < 0) return ls_fail(err, LS_IO, "%s: cannot be written: %s", path, strerror(errno));
    close(fd);
    for (int i = 0; i < n; i++) {
        lsi_h5_layout l = {.shape = contents[i].shape, .element = contents[i].element};
        size_t bytes = (size_t)lsi_h5_sample_elements(&l) * lsi_h5_element_size(l.element);
        if (bytes > most) most = bytes;
    }
    buffer = ls_alloc(LS_MEM_DATA, most);
    if (!buffer) return ls_fail(err, LS_NOMEM, "no memory for a sample of %zu bytes", most);
    H5Eget_auto2(H5E_DEFAULT, &print, &print_arg);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    ls_status st = write_arrays(path, contents, n, buffer, err);
    H5Eset_auto2(H5E_DEFAULT, print, print_arg);
    ls_free(buffer);
    return st;
}

#else

ls_status lsi_h5_write(const char *path, const lsi_h5_content *contents, int n, ls_err *err)
{
    (void)contents;
    (void)n;
    return ls_fail(err, LS_UNSUPPORTED,
                   "%s: this program was built without HDF5; install libhdf5-dev and build again", path);
}

#endif
