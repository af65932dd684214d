/* hints.h: what somebody means who writes a name that is no setting.
 *
 * People come with the names of other programs (`batch_size`, `max_epochs`, `amp`), leave out groups
 * (`epochs`), or write settings as options (`--lr`).  Each is answered with the setting that does it here, or
 * with the reason why there is none. */
#ifndef LS_CONFIG_HINTS_H
#define LS_CONFIG_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#define LS_HINT_KEYS 3

typedef struct ls_hint {
    const char *keys[LS_HINT_KEYS]; /* settings that may be meant, the likeliest first */
    int n;
    const char *text; /* where no setting does it: what does; else NULL */
    bool sure;        /* the name is known, and not just spelt like another */
} ls_hint;

/* `word`: a key, a part of one, or an option without its dashes.  `keys`: the settings there are; those of
 * the hint are among them.  Nothing is known: n is 0 and text is NULL. */
ls_hint ls_hint_find(const char *word, const char *const *keys, size_t n);
/* "did you mean "a" or "b"?", or the text; "" when nothing is known. */
void ls_hint_write(const ls_hint *h, char *buf, size_t size);

/* Where `value` is one that others know for `key`: what to say of it here, such as that it is not in this
 * version; else NULL. */
const char *ls_hint_value(const char *key, const char *value);

#endif
