/* units.h: how a rate and a time are shown to people, everywhere: on the terminal, by bench and scale, in
 * reports.
 *
 * Bytes, counts and SI multiples are in text.h.  What programs read (JSON, CSV) has plain numbers instead. */
#ifndef LS_BASE_UNITS_H
#define LS_BASE_UNITS_H

/* Each writes into `buf` of at least LS_UNITS_TEXT bytes and returns it; "-" for what is no number. */
enum { LS_UNITS_TEXT = 32 };

/* Something per second, with four digits or all that stand before the point: "0.01234", "9.871", "812.4",
 * "12,345". */
const char *ls_units_rate(double per_s, char *buf);
/* A time that was measured, in the unit that suits it, with four digits: "12.30 us", "812.4 ms", "1.234 s",
 * "83.21 s". */
const char *ls_units_seconds(double s, char *buf);
/* A time that somebody waits, to the second: "0:42", "12:03", "1:02:03", "2d 03:04 h". */
const char *ls_units_clock(double s, char *buf);

#endif
