/* fuzz_safetensors.c: arbitrary bytes as a safetensors file, parsed and opened as weights.  What is accepted
 * must lie within the file. */
#include <stdlib.h>

#include "ckpt/ckpt_internal.h"
#include "ckpt/weights.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As train.init has it; a failure has words. */
static void open_as_weights(const uint8_t *data, size_t size)
{
    const memory_file f = memory_file_open(data, size);
    ls_weights *w = NULL;
    ls_err err = {0};
    uint64_t hash;

    if (ls_weights_open(&w, f.path, &err) != LS_OK && err.text[0] == '\0') abort();
    if (w != NULL && ls_weights_hash(w, &hash, &err) != LS_OK) abort();
    ls_weights_close(w);
    close(f.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lsi_table t = {0};
    size_t length;

    open_as_weights(data, size);
    if (size < 8 || lsi_st_header_length(data, size, &length, NULL) != LS_OK) return 0;
    if (lsi_st_parse(&t, (const char *)data + 8, length, size - 8 - length, NULL) == LS_OK)
        for (int i = 0; i < t.n; i++)
            if (t.items[i].begin + t.items[i].bytes > size - 8 - length) abort();
    lsi_table_release(&t);
    return 0;
}
