/* units.h: how a rate and a time are shown to people, everywhere: on the terminal, by bench and scale, in
 * reports.
 *
 * Bytes, counts and SI multiples are in text.h.  What programs read (JSON, CSV) has plain numbers instead. */
#ifndef LS_BASE_UNITS_H
#define LS_BASE_UNITS_H

#include "lockstep/status.h"

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

/* The other way round: "90s", "45 min", "1.5h", "3d", or H:MM:SS and D-HH:MM:SS as batch systems have them.
 * LS_INVALID, naming `what`, for anything else, also a number without a unit, and for what is not more than
 * nothing. */
ls_status ls_units_parse_seconds(const char *text, const char *what, double *out, ls_err *err) LS_MUST_CHECK;

#endif
