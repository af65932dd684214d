/* fields.h: fields of results that come from outside; what is missing or makes no sense is nothing. */
#ifndef LS_BENCH_FIELDS_H
#define LS_BENCH_FIELDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A finite number that is not negative; NaN otherwise. */
double ls_field_number(const json_t *o, const char *key);
/* A whole number from 1 to `most`; 0 otherwise. */
int64_t ls_field_count(const json_t *o, const char *key, int64_t most);
/* Text, "" otherwise.  What is too long for `size` bytes is cut, never within a character. */
void ls_field_text(const json_t *o, const char *key, char *to, size_t size);
/* The same for text at hand. */
void ls_field_copy(char *to, size_t size, const char *text);

#endif
