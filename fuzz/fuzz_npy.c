/* fuzz_npy.c: arbitrary bytes as a NumPy file of images, and of labels to go with themselves. */
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_file f = memory_file_open(data, size);

    memory_file_read(&(ls_data_source){.kind = "npy", .images = f.path});
    memory_file_read(&(ls_data_source){.kind = "npy", .images = f.path, .labels = f.path});
    close(f.fd);
    return 0;
}
