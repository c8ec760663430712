/* Text on its way to a terminal: made safe, measured and cut in columns.
 *
 * What is stored came from strangers; written raw it could move the cursor, change the title or
 * hide a line. Everything shown goes through pawl__display_add first. */
#ifndef PAWL_BASE_TERMINAL_DISPLAY_H
#define PAWL_BASE_TERMINAL_DISPLAY_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

/* Adds `text` with what a terminal would act on escaped: \n, \r, \t, \\ and \xNN for other control
 * characters and for bytes that are not UTF-8, \u{NNNN} for C1 controls, line separators and
 * characters that reverse the direction of writing. */
void pawl__display_add(struct pawl__buf *buf, pawl_view text);

/* The same for a whole message, in which names were escaped before: a backslash stays what it is. */
void pawl__display_add_message(struct pawl__buf *buf, pawl_view text);

/* Adds `text` as a JSON string, with its quotes. Bytes that are not UTF-8 become U+FFFD; whatever
 * pawl__display_add would escape is \uNNNN, so that JSON on a terminal is harmless, too. */
void pawl__display_add_json(struct pawl__buf *buf, pawl_view text);

/* Adds a JSON value as it is, on one line: blanks instead of tabs and line ends, which stand between
 * values, and \uNNNN for what a terminal would act on, which stands in strings. */
void pawl__display_add_json_value(struct pawl__buf *buf, pawl_view json);

/* Columns that safe text takes: two for wide (CJK, emoji), none for combining characters. Text with
 * bytes that are not UTF-8 counts one for each of them. */
size_t pawl__display_width(pawl_view text);

/* Adds at most `columns` columns of safe text; when it is longer, it ends in "…" inside them. Never
 * cuts a character, nor a combining mark from its base. */
void pawl__display_add_cut(struct pawl__buf *buf, pawl_view text, size_t columns);

/* Adds `count` spaces. */
void pawl__display_add_spaces(struct pawl__buf *buf, size_t count);

/* Adds 'text', safe and cut to something that fits a message. */
void pawl__display_add_quoted(struct pawl__buf *buf, pawl_view text);

#endif
