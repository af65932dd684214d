/* fuzz_idx.c: arbitrary bytes as the two files of an IDX set; the first byte says where one ends. */
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    size_t cut = (size - 1) * data[0] / 255;
    memory_file images = memory_file_open(data + 1, cut),
                labels = memory_file_open(data + 1 + cut, size - 1 - cut);

    memory_file_read(
        &(ls_data_source){.kind = "idx", .images = images.path, .labels = labels.path, .classes = 10});
    close(images.fd);
    close(labels.fd);
    return 0;
}
