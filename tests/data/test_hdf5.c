/* HDF5 sets: element types, layouts and filters give the values that were stored; what is wrong is named. The
 * files are written by the HDF5 library and read by our own code, so that each checks the other. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef LS_HAVE_HDF5
#include <hdf5.h>
#endif

#include "check.h"
#include "data/loader.h"
#include "data_files.h"
#include "hdf5_files.h"

/* For samples of one of the types: hdf5_value, bytes divided by 255. */
static float expected(lsi_h5_element e, int64_t sample, int64_t k)
{
    const float value = (float)hdf5_value(sample, k);

    return e == H5_U1 ? value / 255.0f : value;
}

/* Opens `images` in the test's folder and compares every element of every sample. */
static void check_values(const char *what, const char *images, const lsi_h5_content *c)
{
    ls_err err = {0};
    ls_dataset *d;
    const ls_field *f;
    static float values[4096];
    int wrong = 0;

    if (!CHECK_OK(ls_dataset_open(
                      &d, &(ls_data_source){.kind = "hdf5", .path = data_folder(), .images = images}, &err),
                  &err))
        return;
    ls_dataset_fields(d, &f);
    REQUIRE(ls_dataset_field_bytes(d, 0) <= sizeof values);
    CHECK_EQ_INT(ls_dataset_count(d), c->shape.dim[0]);
    for (int64_t i = ls_dataset_count(d) - 1; i >= 0; i--) {
        void *const fields[] = {values};
        if (!CHECK_OK(ls_dataset_read(d, i, NULL, fields, &err), &err)) break;
        for (int64_t k = 0; k < ls_shape_count(f[0].shape); k++)
            wrong += values[k] != expected(c->element, i, k);
    }
    if (wrong) printf("%s: ", what);
    CHECK_EQ_INT(wrong, 0);
    ls_dataset_close(d);
}

static void element_types(void)
{
    for (lsi_h5_element e = 0; e < H5_ELEMENTS; e++) {
        for (int big = 0; big < 2; big++) {
            lsi_h5_content c = {.name = "x",
                                .element = e,
                                .big_endian = big,
                                .shape = LS_SHAPE(5, 3, 4, 2),
                                .sample = hdf5_sample,
                                .arg = &c};
            char what[64];
            snprintf(what, sizeof what, "element type %d, %s-endian", (int)e, big ? "big" : "little");
            hdf5_write("types.h5", &c, 1);
            check_values(what, "types.h5:/x", &c);
        }
    }
}

/* Chunks that hold one sample, several, parts of one, and reach beyond the edges; with all sets of filters.
 */
static void chunks_and_filters(void)
{
    static const int64_t chunks[][3] = {{1, 7, 9}, {4, 7, 9}, {1, 2, 9}, {3, 4, 5}, {11, 6, 8}, {2, 1, 1}};

    for (size_t k = 0; k < sizeof chunks / sizeof chunks[0]; k++) {
        for (int filters = 0; filters < 8; filters++) {
            for (int wide = 0; wide < 2; wide++) {
                lsi_h5_content c = {.name = "x",
                                    .element = wide ? H5_F4 : H5_U1,
                                    .shape = LS_SHAPE(11, 7, 9),
                                    .chunk = chunks[k],
                                    .shuffle = filters & 1,
                                    .deflate = filters & 2 ? 6 : 0,
                                    .fletcher32 = filters & 4,
                                    .sample = hdf5_sample,
                                    .arg = &c};
                char what[64];
                snprintf(what, sizeof what, "chunks %zu, filters %d, wide %d", k, filters, wide);
                hdf5_write("chunks.h5", &c, 1);
                check_values(what, "chunks.h5:/x", &c);
            }
        }
    }
}

static void fletcher(void)
{
    /* "abcde" by hand: words 6162, 6364, 6500; sums 6162, c4c6, 129c6 = 29c7; 6162, 12628 = 2629, 4ff0. */
    CHECK_EQ_INT(lsi_h5_fletcher32((const uint8_t *)"abcde", 5), 0x4ff029c7);
    CHECK_EQ_INT(lsi_h5_fletcher32((const uint8_t *)"", 0), 0);
}

#ifdef LS_HAVE_HDF5

/* -- files that only the library's own calls can make
 * --------------------------------------------------------------
 */

typedef struct special {
    bool newest;      /* the newest version of the format, whose chunk indices are others */
    bool growing;     /* unlimited first dimension */
    bool two_growing; /* and the second */
    hsize_t block;    /* bytes in front of the HDF5 part */
    bool compact;
    bool early; /* all chunks are given a place at once */
} special;

static void write_special(const char *name, const lsi_h5_content *c, special s)
{
    const char *path = data_write(name, "", 0, false);
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), fapl = H5Pcreate(H5P_FILE_ACCESS),
          dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t dim[LS_MAX_RANK], most[LS_MAX_RANK], chunk[LS_MAX_RANK];
    static uint8_t bytes[65536];
    const lsi_h5_layout l = {.shape = c->shape};
    const size_t sample = (size_t)lsi_h5_sample_elements(&l) * lsi_h5_element_size(c->element);

    for (int i = 0; i < c->shape.rank; i++) {
        dim[i] = most[i] = (hsize_t)c->shape.dim[i];
        chunk[i] = c->chunk ? (hsize_t)c->chunk[i] : 0;
    }
    if (s.growing) most[0] = H5S_UNLIMITED;
    if (s.two_growing) most[1] = H5S_UNLIMITED;
    if (s.newest) H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    if (s.block) H5Pset_userblock(fcpl, s.block);
    if (c->chunk) H5Pset_chunk(dcpl, c->shape.rank, chunk);
    if (c->deflate) H5Pset_deflate(dcpl, (unsigned)c->deflate);
    if (s.compact) H5Pset_layout(dcpl, H5D_COMPACT);
    if (s.early) H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl),
          space = H5Screate_simple(c->shape.rank, dim, most);
    hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t set = H5Dcreate2(group, "x", H5T_STD_U8LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    REQUIRE(file >= 0 && set >= 0 && c->element == H5_U1 && sample * (size_t)dim[0] <= sizeof bytes);
    for (int64_t i = 0; i < c->shape.dim[0]; i++) c->sample(c->arg, i, bytes + (size_t)i * sample);
    if (c->sample) CHECK(H5Dwrite(set, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0);
    H5Dclose(set);
    H5Gclose(group);
    H5Sclose(space);
    CHECK(H5Fclose(file) >= 0);
    H5Pclose(dcpl);
    H5Pclose(fapl);
    H5Pclose(fcpl);
}

static void other_layouts(void)
{
    static const int64_t one[] = {1, 6, 5}, all[] = {13, 6, 5}, beyond[] = {20, 10, 5};
    static const struct {
        const char *what;
        const int64_t *chunk;
        int deflate;
        special s;
    } cases[] = {{"user block", NULL, 0, {.block = 512}},
                 {"user block, chunks", one, 0, {.block = 1024}},
                 {"newest, one piece", NULL, 0, {.newest = true}},
                 {"newest, one chunk", all, 0, {.newest = true}},
                 {"newest, one packed chunk", all, 4, {.newest = true}},
                 {"newest, fixed array", one, 0, {.newest = true}},
                 {"newest, fixed array, packed", one, 4, {.newest = true}},
                 {"newest, implicit", one, 0, {.newest = true, .early = true}},
                 {"newest, extensible array", one, 4, {.newest = true, .growing = true}},
                 {"newest, second tree", one, 4, {.newest = true, .growing = true, .two_growing = true}},
                 {"oldest, growing", one, 4, {.growing = true}},
                 {"chunks beyond the array", beyond, 4, {.growing = true, .two_growing = true}}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lsi_h5_content c = {.element = H5_U1,
                            .shape = LS_SHAPE(13, 6, 5),
                            .chunk = cases[i].chunk,
                            .deflate = cases[i].deflate,
                            .sample = hdf5_sample,
                            .arg = &c};
        write_special("special.h5", &c, cases[i].s);
        check_values(cases[i].what, "special.h5:/g/x", &c);
    }
}

static void refused_layouts(void)
{
    const char *folder = data_folder();
    lsi_h5_content c = {.element = H5_U1, .shape = LS_SHAPE(3, 2), .sample = hdf5_sample, .arg = &c};

    write_special("compact.h5", &c, (special){.compact = true});
    data_check_refused(&(ls_data_source){.kind = "hdf5", .path = folder, .images = "compact.h5:/g/x"},
                       LS_DATA, "compact.h5", "h5repack -l CONTI");
    /* Nothing was written: shape, but no places. */
    static const int64_t one[] = {1, 2};
    const char *path = data_write("unwritten.h5", "", 0, false);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
          dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, (const hsize_t[]){3, 2}, NULL);
    H5Dclose(H5Dcreate2(file, "piece", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Pset_chunk(dcpl, 2, (const hsize_t[]){(hsize_t)one[0], (hsize_t)one[1]});
    H5Dclose(H5Dcreate2(file, "chunks", H5T_STD_U8LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "text", H5T_C_S1, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Pclose(dcpl);
    H5Sclose(space);
    CHECK(H5Lcreate_external("chunks.h5", "/x", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    data_check_refused(&(ls_data_source){.kind = "hdf5", .path = folder, .images = "unwritten.h5:/piece"},
                       LS_DATA, "unwritten.h5", "never written");
    data_check_refused(&(ls_data_source){.kind = "hdf5", .path = folder, .images = "unwritten.h5:/chunks"},
                       LS_DATA, "chunk 0 of 3", "never written");
    data_check_refused(&(ls_data_source){.kind = "hdf5", .path = folder, .images = "unwritten.h5:/text"},
                       LS_DATA, "text", "neither plain integers nor floats");
    data_check_refused(&(ls_data_source){.kind = "hdf5", .path = folder, .images = "unwritten.h5:/elsewhere"},
                       LS_DATA, "unwritten.h5", "cannot be opened");
}

#endif

/* -- names, labels, damage
 * -----------------------------------------------------------------------------------------
 */

static void names_and_labels(void)
{
    const char *folder = data_folder();
    lsi_h5_content c[] = {
        {.name = "images", .element = H5_U1, .shape = LS_SHAPE(20, 4, 3), .sample = hdf5_sample},
        {.name = "labels", .element = H5_I8, .shape = LS_SHAPE(20), .sample = hdf5_label},
        {.name = "short", .element = H5_I4, .shape = LS_SHAPE(19), .sample = hdf5_label},
        {.name = "rmsd", .element = H5_F4, .shape = LS_SHAPE(20), .sample = hdf5_sample}};
    ls_data_source src = {.kind = "hdf5", .path = folder};
    ls_err err = {0};
    const ls_field *f;
    ls_dataset *d;
    char path[1200];

    for (int i = 0; i < 4; i++) c[i].arg = &c[i];
    hdf5_write("train.h5", c, 4);
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    CHECK_EQ_INT(ls_dataset_fields(d, &f), 2);
    CHECK_EQ_STR(f[0].name, "image");
    CHECK(ls_shape_equal(f[0].shape, LS_SHAPE(1, 4, 3)));
    for (int i = 0; i < 20; i++) {
        int32_t label = -1;
        void *const fields[] = {NULL, &label};
        CHECK_OK(ls_dataset_read(d, i, NULL, fields, &err), &err);
        CHECK_EQ_INT(label, i % 10);
    }
    ls_dataset_close(d);

    /* The file as the path, a field of another name, no labels but those that are named. */
    snprintf(path, sizeof path, "%s/train.h5", folder);
    src = (ls_data_source){.kind = "hdf5", .path = path, .images = ":/images", .field = "cloud"};
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    CHECK_EQ_INT(ls_dataset_fields(d, &f), 1);
    CHECK_EQ_STR(f[0].name, "cloud");
    CHECK(ls_shape_equal(f[0].shape, LS_SHAPE(4, 3)));
    ls_dataset_close(d);
    src.labels = ":/labels";
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    CHECK_EQ_INT(ls_dataset_fields(d, &f), 2);
    ls_dataset_close(d);

    src.classes = 5;
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    int32_t label;
    CHECK_STATUS(ls_dataset_read(d, 5, NULL, (void *const[]){NULL, &label}, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, "train.h5:/labels: the label of sample 5 is 5");
    ls_dataset_close(d);
    src.classes = 0;
    src.labels = ":/short";
    data_check_refused(&src, LS_DATA, "labels \"/short\" of shape (19,)", "20 samples");
    src.labels = ":/rmsd";
    data_check_refused(&src, LS_DATA, "rmsd", "store them as integers");
    src.labels = ":/lables";
    data_check_refused(&src, LS_DATA, "holds no array \"/lables\"", "images, labels, rmsd, short");
    src = (ls_data_source){.kind = "hdf5", .path = folder, .images = "none.h5:/x"};
    data_check_refused(&src, LS_DATA, "none.h5: no such file", NULL);
    src.images = "test";
    data_check_refused(&src, LS_DATA, "test.h5: no such file", NULL);
    data_write("text.h5", "this is no HDF5 file, however long it may be", 44, false);
    src.images = "text.h5";
    data_check_refused(&src, LS_DATA, "text.h5: cannot be opened (HDF5: file signature not found)", NULL);
    data_check_refused(&(ls_data_source){.kind = "hdf5", .path = "/", .images = "tmp:/x"}, LS_DATA, "/tmp",
                       "is no plain file");
    data_check_refused(&(ls_data_source){.kind = "synthetic", .count = 3, .box = "auto"}, LS_INVALID,
                       "box is for data of kind hdf5", NULL);
}

static void bad_sample(void *arg, int64_t i, void *out)
{
    float *x = out;

    (void)arg;
    x[0] = x[1] = 1;
    if (i == 3) x[1] = NAN;
}

/* Writes one byte. */
static void patch(const char *path, int64_t at, uint8_t byte)
{
    int fd = open(path, O_WRONLY);

    REQUIRE(fd >= 0 && pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

static void damage(void)
{
    static const int64_t one[] = {1, 64};
    lsi_h5_content nan = {.name = "x", .element = H5_F4, .shape = LS_SHAPE(5, 2), .sample = bad_sample};
    ls_data_source src = {.kind = "hdf5", .path = data_folder(), .images = "nan.h5:/x"};
    float values[64];
    void *const fields[] = {values};
    ls_err err = {0};
    ls_dataset *d;

    hdf5_write("nan.h5", &nan, 1);
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    CHECK_OK(ls_dataset_read(d, 2, NULL, fields, &err), &err);
    CHECK_STATUS(ls_dataset_read(d, 3, NULL, fields, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, "nan.h5: \"/x\": sample 3, element 1 is");
    ls_dataset_close(d);

    for (int packed = 0; packed < 2; packed++) {
        lsi_h5_content c = {.name = "x",
                            .element = H5_U1,
                            .shape = LS_SHAPE(4, 64),
                            .chunk = one,
                            .deflate = packed ? 6 : 0,
                            .fletcher32 = !packed,
                            .sample = hdf5_sample,
                            .arg = &c};
        const char *path = hdf5_write("broken.h5", &c, 1);
        src.images = "broken.h5:/x";
        err = (ls_err){0};
        REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
        lsi_h5_chunk *chunks;
        lsi_h5_layout layout;
        lsi_h5_file file;
        ls_arena *arena;
        REQUIRE_OK(ls_arena_create(&arena, LS_MEM_TEST, &err), &err);
        REQUIRE_OK(lsi_h5_open(&file, arena, NULL, path, &err), &err);
        REQUIRE_OK(lsi_h5_map(&file, "/x", &layout, &chunks, NULL, &err), &err);
        patch(path, chunks[2].offset + 3, 0xa5);
        CHECK_OK(ls_dataset_read(d, 1, NULL, fields, &err), &err);
        CHECK_STATUS(ls_dataset_read(d, 2, NULL, fields, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, "broken.h5: \"/x\": chunk 2 (byte ");
        CHECK_CONTAINS(err.text, packed ? "compressed data is damaged" : "does not match");
        err = (ls_err){0};
        CHECK_OK(ls_dataset_read(d, 3, NULL, fields, &err), &err);
        ls_dataset_close(d);
        ls_free(chunks);
        lsi_h5_close(&file);
        ls_arena_destroy(arena);
        REQUIRE(truncate(path, 600) == 0);
        data_check_refused(&src, LS_DATA, "broken.h5: cannot be opened", "truncated");
    }
}

/* Many threads on few slots of the cache, whose chunks hold several samples. */
static void many_readers(void)
{
    static const int64_t chunk[] = {5, 4, 4};
    lsi_h5_content c = {.name = "images",
                        .element = H5_F4,
                        .shape = LS_SHAPE(200, 4, 4),
                        .chunk = chunk,
                        .deflate = 1,
                        .shuffle = true,
                        .sample = hdf5_sample,
                        .arg = &c};
    ls_err err = {0};
    ls_dataset *d;
    ls_loader *l;
    ls_batch b;
    int wrong = 0;

    hdf5_write("many.h5", &c, 1);
    ls_data_source src = {.kind = "hdf5", .path = data_folder(), .images = "many.h5"};
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    REQUIRE_OK(ls_loader_create(
                   &l, d, &(ls_loader_options){.batch = 8, .n_workers = 6, .shuffle = true, .seed = 5}, &err),
               &err);
    for (int i = 0; i < 100; i++) {
        REQUIRE_OK(ls_loader_next(l, &b, &err), &err);
        for (int64_t s = 0; s < b.n; s++)
            for (int64_t k = 0; k < 16; k++)
                wrong += ((const float *)b.fields[0])[s * 16 + k] != (float)hdf5_value(b.indices[s], k);
    }
    CHECK_EQ_INT(wrong, 0);
    ls_loader_destroy(l);
    ls_dataset_close(d);
}

/* -- clouds
 * --------------------------------------------------------------------------------------------------------
 */

static void clouds(void)
{
    static const int64_t chunk[] = {1, 3, 6};
    lsi_h5_content c = {.name = "point_cloud",
                        .element = H5_F4,
                        .shape = LS_SHAPE(12, 3, 6),
                        .chunk = chunk,
                        .fletcher32 = true,
                        .sample = hdf5_sample,
                        .arg = &c};
    ls_data_source src = {.kind = "hdf5",
                          .path = data_folder(),
                          .images = "cloud.h5",
                          .field = "cloud",
                          .box = "auto",
                          .end = 4};
    ls_err err = {0};
    ls_dataset *d;
    const ls_field *f;
    float whole[18], part[12], again[12];
    int lo = 1000, hi = -1;

    hdf5_write("cloud.h5", &c, 1);
    /* The box is that of all samples, also of those that are not in use. */
    for (int64_t i = 0; i < 12; i++) {
        for (int64_t k = 0; k < 18; k++) {
            if (hdf5_value(i, k) < lo) lo = hdf5_value(i, k);
            if (hdf5_value(i, k) > hi) hi = hdf5_value(i, k);
        }
    }
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    CHECK_EQ_INT(ls_dataset_box(d)->lo, lo);
    CHECK_EQ_INT(ls_dataset_box(d)->hi, hi);
    REQUIRE_OK(ls_dataset_read(d, 2, NULL, (void *const[]){whole}, &err), &err);
    for (int k = 0; k < 18; k++)
        CHECK(whole[k] == ((float)hdf5_value(2, k) - (float)lo) / ((float)hi - (float)lo));
    ls_dataset_close(d);

    src.points = 4;
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    ls_dataset_fields(d, &f);
    CHECK(ls_shape_equal(f[0].shape, LS_SHAPE(3, 4)));
    const ls_rng_key key = {.seed_lo = 7, .step = 3, .sample_base = 11};
    int64_t chosen[4];
    ls_points_choose(&key, 0, 6, 4, chosen);
    REQUIRE_OK(ls_dataset_read(d, 2, &key, (void *const[]){part}, &err), &err);
    for (int ch = 0; ch < 3; ch++)
        for (int k = 0; k < 4; k++) CHECK(part[ch * 4 + k] == whole[ch * 6 + chosen[k]]);
    /* Without a key the choice is the sample's own, always the same. */
    ls_points_choose(&(ls_rng_key){0}, 2, 6, 4, chosen);
    REQUIRE_OK(ls_dataset_read(d, 2, NULL, (void *const[]){part}, &err), &err);
    REQUIRE_OK(ls_dataset_read(d, 2, NULL, (void *const[]){again}, &err), &err);
    CHECK_EQ_MEM(part, again, sizeof part);
    for (int ch = 0; ch < 3; ch++)
        for (int k = 0; k < 4; k++) CHECK(part[ch * 4 + k] == whole[ch * 6 + chosen[k]]);
    ls_dataset_close(d);

    src.points = 7;
    data_check_refused(&src, LS_INVALID, "7 points cannot be taken of samples of shape (3, 6)", NULL);
    src.points = 0;
    src.box = "5:1";
    data_check_refused(&src, LS_INVALID, "box \"5:1\"", "LO:HI");
}

int main(void)
{
#ifndef LS_HAVE_HDF5
    const bool have_library = false;
#else
    const bool have_library = true;
#endif

    if (!have_library) {
        data_write("x.h5", "anything", 8, false);
        data_check_refused(&(ls_data_source){.kind = "hdf5", .path = data_folder(), .images = "x.h5"},
                           LS_UNSUPPORTED, "built without HDF5", "libhdf5-dev");
        data_clean();
        CHECK_SKIP("built without HDF5");
    }
    CHECK_RUN(element_types);
    CHECK_RUN(chunks_and_filters);
    CHECK_RUN(fletcher);
#ifdef LS_HAVE_HDF5
    CHECK_RUN(other_layouts);
    CHECK_RUN(refused_layouts);
#endif
    CHECK_RUN(names_and_labels);
    CHECK_RUN(damage);
    CHECK_RUN(many_readers);
    CHECK_RUN(clouds);
    data_clean();
    return CHECK_DONE();
}
