/* fuzz_safetensors.c: arbitrary bytes as a safetensors file.  What is accepted must lie within the file. */
#include <stdlib.h>

#include "ckpt/ckpt_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lsi_table t = {0};
    size_t length;

    if (size < 8 || lsi_st_header_length(data, size, &length, NULL) != LS_OK) return 0;
    if (lsi_st_parse(&t, (const char *)data + 8, length, size - 8 - length, NULL) == LS_OK)
        for (int i = 0; i < t.n; i++)
            if (t.items[i].begin + t.items[i].bytes > size - 8 - length) abort();
    lsi_table_release(&t);
    return 0;
}
