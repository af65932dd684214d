/* fuzz_cifar.c: arbitrary bytes, repeated to about three records, as a batch file of CIFAR-10. */
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { RECORD = 3073, MOST = 3 * RECORD };
    static uint8_t bytes[MOST];
    size_t n = size > 1 ? (size_t)(data[0] % 4) * RECORD + (data[0] >= 250) : 0;

    if (n > MOST) n = MOST;
    for (size_t i = 0; i < n; i++) bytes[i] = data[1 + i % (size - 1)];
    memory_file f = n ? memory_file_open(bytes, n) : memory_file_open(data, size);
    memory_file_read(&(ls_data_source){.kind = "cifar", .images = f.path, .classes = 10});
    close(f.fd);
    return 0;
}
