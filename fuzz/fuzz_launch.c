/* fuzz_launch.c: arbitrary bytes as the body of a message between launchers, and as what a stranger sends to
 * the port where machines meet. */
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const lsi_key key = {"a key that nobody knows"};
    lsi_message m;
    lsi_link *link;
    ls_err err = {0};
    bool got;
    int ends[2];

    if (size < 1) return 0;
    (void)!lsi_wire_read(&m, data[0] % (LSI_MSG_KINDS + 1), data + 1, size - 1, &err);
    if (lsi_auth_usable(NULL) != LS_OK || size > 4096 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 0;
    if (lsi_link_create_take(&link, ends[0], data[0] & 1, &key, "stranger", NULL) == LS_OK) {
        (void)!write(ends[1], data + 1, size - 1);
        if (lsi_link_pump(link, &got, &m, NULL) == LS_OK && (got || lsi_link_is_open(link))) __builtin_trap();
        lsi_link_destroy(link);
    }
    close(ends[1]);
    return 0;
}
