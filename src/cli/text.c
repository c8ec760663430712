#include "cli/text.h"

#include <stdio.h>
#include <string.h>

/* The length of the well-formed, printable UTF-8 character at the front; 0 when there is none. */
static size_t printable_length(pawl_view text)
{
    unsigned char first = (unsigned char)text.data[0];
    size_t len = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    pawl_view rest = text;
    pawl_view character;

    if (first < 0x20 || first == 0x7F || !pawl__view_take(&rest, len, &character)
        || !pawl__view_is_utf8(character)) {
        return 0;
    }
    /* U+0080 to U+009F: control characters that some terminals obey. */
    return len == 2 && first == 0xC2 && (unsigned char)character.data[1] < 0xA0 ? 0 : len;
}

void pawl__text_add_safe(struct pawl__buf *buf, pawl_view text)
{
    pawl_view part;

    while (text.len > 0) {
        size_t len = printable_length(text);

        if (!pawl__view_take(&text, len == 0 ? 1 : len, &part)) {
            return;
        }
        if (len == 0) {
            pawl__buf_add_format(buf, "\\x%02x", (unsigned char)part.data[0]);
        } else {
            pawl__buf_add(buf, part);
        }
    }
}

void pawl__text_add_json(struct pawl__buf *buf, pawl_view text)
{
    pawl_view part;

    pawl__buf_add_char(buf, '"');
    while (text.len > 0) {
        unsigned char first = (unsigned char)text.data[0];
        size_t len = printable_length(text);

        if (!pawl__view_take(&text, len == 0 ? 1 : len, &part)) {
            return;
        }
        if (first == '"' || first == '\\') {
            pawl__buf_add_format(buf, "\\%c", first);
        } else if (len > 0) {
            pawl__buf_add(buf, part);
        } else {
            pawl__buf_add_format(buf, "\\u%04x", first < 0x80 ? first : 0xFFFDu);
        }
    }
    pawl__buf_add_char(buf, '"');
}

struct pawl__quoted pawl__quote(const char *text)
{
    struct pawl__quoted quoted;
    struct pawl__buf buf = BUF_INIT(QUOTED_SIZE - sizeof("''..."));
    pawl_view rest = pawl_view_of(text);

    /* The buffer's ceiling does the cutting: a character that does not fit leaves nothing behind.
     */
    while (rest.len > 0 && !buf.broken) {
        size_t len = printable_length(rest);
        pawl_view part;

        if (pawl__view_take(&rest, len == 0 ? 1 : len, &part)) {
            pawl__text_add_safe(&buf, part);
        }
    }
    snprintf(quoted.text,
             sizeof(quoted.text),
             "'%s%s'",
             buf.data == NULL ? "" : buf.data,
             buf.broken ? "..." : "");
    pawl__buf_done(&buf);
    return quoted;
}

static size_t columns_of(pawl_view text)
{
    size_t columns = 0;

    for (size_t i = 0; i < text.len; i++) {
        columns += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    }
    return columns;
}

void pawl__text_pad(struct pawl__buf *buf, size_t from_column, size_t column)
{
    for (; from_column < column; from_column++) {
        pawl__buf_add_char(buf, ' ');
    }
}

static void wrap_line(struct pawl__buf *buf, pawl_view line, struct pawl__wrap wrap)
{
    size_t column = wrap.column;
    bool fresh = true; /* no word on this line yet */
    pawl_view word;

    while (pawl__view_split(&line, ' ', &word)) {
        size_t columns = columns_of(word);

        if (!fresh && column + 1 + columns > wrap.width) {
            pawl__buf_add_char(buf, '\n');
            pawl__text_pad(buf, 0, wrap.indent);
            column = wrap.indent;
            fresh = true;
        }
        if (!fresh) {
            pawl__buf_add_char(buf, ' ');
            column++;
        }
        pawl__buf_add(buf, word);
        column += columns;
        fresh = false;
    }
    pawl__buf_add_char(buf, '\n');
}

void pawl__text_wrap(struct pawl__buf *buf, const char *text, struct pawl__wrap wrap)
{
    pawl_view rest = pawl_view_of(text);
    pawl_view line;

    while (pawl__view_split(&rest, '\n', &line)) {
        wrap_line(buf, line, wrap);
        if (rest.len > 0 && rest.data[0] != '\n') {
            pawl__text_pad(buf, 0, wrap.indent);
        }
        wrap.column = wrap.indent;
    }
}
