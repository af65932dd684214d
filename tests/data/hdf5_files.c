/* hdf5_files.c: writes the files of hdf5_files.h. */
#include "hdf5_files.h"

#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data_files.h"

const char *hdf5_write(const char *name, const lsi_h5_content *contents, int n)
{
    const char *path = data_write(name, "", 0, false);
    ls_err err = {0};

    unlink(path);
    REQUIRE_OK(lsi_h5_write(path, contents, n, &err), &err);
    return path;
}

int hdf5_value(int64_t sample, int64_t element)
{
    return (int)((sample * 31 + element * 7 + element / 5) % 101);
}

static void store(uint8_t *out, uint64_t word, size_t size, bool big_endian)
{
    for (size_t i = 0; i < size; i++) out[big_endian ? size - 1 - i : i] = (uint8_t)(word >> (8 * i));
}

void hdf5_sample(void *arg, int64_t i, void *out)
{
    const lsi_h5_content *c = arg;
    const size_t size = lsi_h5_element_size(c->element);
    const lsi_h5_layout l = {.shape = c->shape};

    for (int64_t k = 0; k < lsi_h5_sample_elements(&l); k++) {
        const int value = hdf5_value(i, k);
        const float narrow = (float)value;
        const double wide = value;
        uint64_t word = (uint64_t)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        if (c->element == H5_F2) word = ls_f16_from_f32(narrow);
        if (c->element == H5_F4) word = bits;
        if (c->element == H5_F8) memcpy(&word, &wide, sizeof word);
        store((uint8_t *)out + (size_t)k * size, word, size, c->big_endian);
    }
}

void hdf5_label(void *arg, int64_t i, void *out)
{
    const lsi_h5_content *c = arg;

    store(out, (uint64_t)(i % 10), lsi_h5_element_size(c->element), c->big_endian);
}
