/* printable.h: texts from elsewhere, so that a terminal shows them and obeys nothing in them.
 *
 * Names of files, lines of ranks and words of other machines may hold any bytes, among them those that move
 * the cursor, change colours or answer for the user.  Tabs, line ends and UTF-8 stay; control characters
 * (also those of the second set, U+0080 to U+009F, and those that turn the direction of writing) and bytes
 * that are no UTF-8 do not. */
#ifndef LS_BASE_PRINTABLE_H
#define LS_BASE_PRINTABLE_H

#include <stddef.h>

/* The `n` bytes of `text` into `buf` of `size` bytes, with its end; what must not be shown becomes \xNN. What
 * does not fit is left out.  Returns the length. */
size_t ls_printable(const char *text, size_t n, char *buf, size_t size);
/* The same in its place, where what must not be shown becomes '?'. */
void ls_printable_in_place(char *text);

#endif
