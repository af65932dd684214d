/* fuzz_manifest.c: arbitrary bytes as a manifest, given the hash that makes the parser look at them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "ckpt/ckpt_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lsi_manifest m;
    ls_text text = {0};
    char *body = malloc(size + 64);
    int n;

    if (body == NULL) abort();
    memcpy(body, data, size);
    n = snprintf(body + size, 64, ",\n \"xxh3\": \"%016llx\"\n}\n",
                 (unsigned long long)XXH3_64bits(data, size));
    /* What is accepted can be written again. */
    if (lsi_manifest_parse(&m, body, size + (size_t)n, NULL) == LS_OK &&
        lsi_manifest_text(&m, &text, NULL) != LS_OK)
        abort();
    ls_text_release(&text);
    lsi_manifest_release(&m);
    free(body);
    return 0;
}
