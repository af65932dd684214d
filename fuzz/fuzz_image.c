/* fuzz_image.c: arbitrary bytes as an image file; the first byte chooses the format whose signature is set
 * before the rest. */
#include <string.h>

#include "data/image_internal.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, jpeg[3] = {0xff, 0xd8, 0xff};
    const size_t head = size == 0 ? 0 : data[0] % 2 ? sizeof png : sizeof jpeg;
    uint8_t *bytes = malloc(size + sizeof png);
    lsi_decoder d = {0};
    lsi_pixels image;
    ls_err err = {0};

    if (!bytes) abort();
    memcpy(bytes, head == sizeof png ? png : jpeg, head);
    if (size > 1) memcpy(bytes + head, data + 1, size - 1);
    memory_file f = memory_file_open(bytes, size ? head + size - 1 : 0);
    if (lsi_image_read(&d, f.path, 3, false, &image, &err) != LS_OK && !err.text[0]) abort();
    lsi_decoder_release(&d);
    close(f.fd);
    free(bytes);
    return 0;
}
