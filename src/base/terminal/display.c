#include "base/terminal/display.h"

#include <locale.h>
#include <pthread.h>
#include <wchar.h>

enum { QUOTED_COLUMNS_MAX = 60 };

/* Direction overrides and isolates make text read differently from what it is; the separators end a
 * line for some readers of it. */
static bool is_deceptive(uint32_t code)
{
    return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069)
           || code == 0x200E || code == 0x200F || code == 0x061C || code == 0x2028
           || code == 0x2029;
}

static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || is_deceptive(code);
}

static void add_code(struct pawl__buf *buf, uint32_t code, pawl_view bytes)
{
    switch (code) {
    case '\n':
        pawl__buf_add_text(buf, "\\n");
        return;
    case '\r':
        pawl__buf_add_text(buf, "\\r");
        return;
    case '\t':
        pawl__buf_add_text(buf, "\\t");
        return;
    default:
        break;
    }
    if (code < 0x20 || code == 0x7F) {
        pawl__buf_add_format(buf, "\\x%02X", code);
    } else if (is_unsafe(code)) {
        pawl__buf_add_format(buf, "\\u{%04X}", code);
    } else {
        pawl__buf_add(buf, bytes);
    }
}

static void add_safe(struct pawl__buf *buf, pawl_view text, const char *backslash)
{
    while (text.len > 0) {
        pawl_view before = text;
        uint32_t code;
        uint8_t byte;

        if (pawl__view_take_utf8(&text, &code)) {
            pawl_view bytes = { before.data, before.len - text.len };
            add_code(buf, code, code == '\\' ? pawl_view_of(backslash) : bytes);
        } else if (pawl__view_take_u8(&text, &byte)) {
            pawl__buf_add_format(buf, "\\x%02X", byte);
        }
    }
}

void pawl__display_add(struct pawl__buf *buf, pawl_view text)
{
    add_safe(buf, text, "\\\\");
}

void pawl__display_add_message(struct pawl__buf *buf, pawl_view text)
{
    add_safe(buf, text, "\\");
}

/* Of a string what must be escaped in one; of a value the white space between its tokens. */
static void add_json(struct pawl__buf *buf, pawl_view text, bool string)
{
    while (text.len > 0) {
        pawl_view before = text;
        uint32_t code;
        uint8_t byte;

        if (!pawl__view_take_utf8(&text, &code)) {
            pawl__buf_add_text(buf, "\xEF\xBF\xBD");
            REQUIRE(pawl__view_take_u8(&text, &byte));
        } else if (code == '\n' || (!string && (code == '\r' || code == '\t'))) {
            pawl__buf_add_text(buf, string ? "\\n" : " ");
        } else if (is_unsafe(code)) {
            pawl__buf_add_format(buf, "\\u%04x", code); /* all of them below U+10000 */
        } else if (string && (code == '"' || code == '\\')) {
            pawl__buf_add_format(buf, "\\%c", (char)code);
        } else {
            pawl__buf_add(buf, (pawl_view){ before.data, before.len - text.len });
        }
    }
}

void pawl__display_add_json(struct pawl__buf *buf, pawl_view text)
{
    pawl__buf_add_char(buf, '"');
    add_json(buf, text, true);
    pawl__buf_add_char(buf, '"');
}

void pawl__display_add_json_value(struct pawl__buf *buf, pawl_view json)
{
    add_json(buf, json, false);
}

static locale_t utf8_locale;

static void make_locale(void)
{
    utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* wcwidth knows Unicode's tables but asks the locale of the thread, which belongs to the program
 * we live in: it is lent ours for the length of a call. */
static locale_t enter_utf8(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_locale);
    return utf8_locale == (locale_t)0 ? (locale_t)0 : uselocale(utf8_locale);
}

static void leave_utf8(locale_t previous)
{
    if (previous != (locale_t)0) {
        uselocale(previous);
    }
}

static size_t code_width(uint32_t code)
{
    int width = wcwidth((wchar_t)code);

    return width < 0 ? 1 : (size_t)width;
}

/* Takes one character and tells its columns; a byte that is no UTF-8 has one. */
static size_t take_width(pawl_view *text)
{
    uint32_t code;
    uint8_t byte;

    if (pawl__view_take_utf8(text, &code)) {
        return code_width(code);
    }
    return pawl__view_take_u8(text, &byte) ? 1 : 0;
}

size_t pawl__display_width(pawl_view text)
{
    locale_t previous = enter_utf8();
    size_t width = 0;

    while (text.len > 0) {
        width += take_width(&text);
    }
    leave_utf8(previous);
    return width;
}

/* How many bytes of `text` fit into `columns`, with the combining marks behind the last of them. */
static size_t fitting_bytes(pawl_view text, size_t columns)
{
    locale_t previous = enter_utf8();
    pawl_view rest = text;
    size_t used = 0;
    size_t fitting = 0;

    while (rest.len > 0) {
        used += take_width(&rest);
        if (used > columns) {
            break;
        }
        fitting = text.len - rest.len;
    }
    leave_utf8(previous);
    return fitting;
}

void pawl__display_add_cut(struct pawl__buf *buf, pawl_view text, size_t columns)
{
    if (fitting_bytes(text, columns) == text.len) {
        pawl__buf_add(buf, text);
    } else if (columns > 0) {
        pawl__buf_add(buf, (pawl_view){ text.data, fitting_bytes(text, columns - 1) });
        pawl__buf_add_text(buf, "…");
    }
}

void pawl__display_add_spaces(struct pawl__buf *buf, size_t count)
{
    for (; count > 0; count--) {
        pawl__buf_add_char(buf, ' ');
    }
}

void pawl__display_add_quoted(struct pawl__buf *buf, pawl_view text)
{
    /* Escapes make of one byte at most four, of three bytes eight; what is cut away need not be
     * looked at. */
    char safe_text[16 * QUOTED_COLUMNS_MAX + 1] = "";
    struct pawl__buf safe = BUF_OVER(safe_text);

    text.len = MIN(text.len, (size_t)4 * QUOTED_COLUMNS_MAX);

    pawl__display_add(&safe, text);
    pawl__buf_add_char(buf, '\'');
    pawl__display_add_cut(buf, pawl__buf_view(&safe), QUOTED_COLUMNS_MAX);
    pawl__buf_add_char(buf, '\'');
}
