#include "base/log/log_write.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

_Static_assert(PAWL__LOG_LINE_MAX <= PIPE_BUF, "a line goes into a pipe whole");

enum {
    ESCAPE_MAX = 6, /* \u001b */
    NUMBER_MAX = 32,
    /* Kept free while fields are added: "...(18446744073709551615 bytes)", the closing quote and
     * ,"fields_dropped":99}\n */
    TAIL_BYTES = 80,
};

struct line {
    struct pawl__buf *buf;
    enum pawl__log_format format;
    size_t end; /* what buf->len may be before the tail */
    size_t fields;
    size_t dropped;
};

/* What a terminal would act on, besides what JSON forbids: DEL and the C1 controls. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code <= 0x9F);
}

static void add_code(struct pawl__buf *buf, uint32_t code, pawl_view bytes)
{
    switch (code) {
    case '"':
        pawl__buf_add_text(buf, "\\\"");
        break;
    case '\\':
        pawl__buf_add_text(buf, "\\\\");
        break;
    case '\n':
        pawl__buf_add_text(buf, "\\n");
        break;
    case '\r':
        pawl__buf_add_text(buf, "\\r");
        break;
    case '\t':
        pawl__buf_add_text(buf, "\\t");
        break;
    default:
        if (is_control(code)) {
            pawl__buf_add_format(buf, "\\u%04x", (unsigned)code);
        } else {
            pawl__buf_add(buf, bytes);
        }
    }
}

/* The first character of `in` and its bytes; U+FFFD for a byte that belongs to none. */
static uint32_t take_code(pawl_view *in, pawl_view *ret_bytes)
{
    pawl_view before = *in;
    uint32_t code = 0;

    if (pawl__view_take_utf8(in, &code)) {
        REQUIRE(pawl__view_take(&before, before.len - in->len, ret_bytes));
        return code;
    }
    REQUIRE(pawl__view_take(in, 1, ret_bytes));
    *ret_bytes = pawl_view_of("\xEF\xBF\xBD");
    return 0xFFFD;
}

static void add_escaped(struct line *line, pawl_view text, size_t bytes_max)
{
    pawl_view in = text;

    while (in.len > 0) {
        pawl_view bytes;
        pawl_view rest = in;
        uint32_t code = take_code(&rest, &bytes);
        if (text.len - rest.len > bytes_max || line->buf->len + ESCAPE_MAX > line->end) {
            pawl__buf_add_format(line->buf, "...(%zu bytes)", text.len);
            return;
        }
        add_code(line->buf, code, bytes);
        in = rest;
    }
}

static bool needs_quotes(pawl_view text)
{
    pawl_view bytes;

    if (text.len == 0) {
        return true;
    }
    while (text.len > 0) {
        uint32_t code = take_code(&text, &bytes);
        if (code == ' ' || code == '=' || code == '"' || code == '\\' || is_control(code)) {
            return true;
        }
    }
    return false;
}

static void add_text(struct line *line, pawl_view text, size_t bytes_max)
{
    bool quotes = line->format == PAWL__LOG_JSON || needs_quotes(text);

    if (quotes) {
        pawl__buf_add_char(line->buf, '"');
    }
    add_escaped(line, text, bytes_max);
    if (quotes) {
        pawl__buf_add_char(line->buf, '"');
    }
}

static void add_key_bytes(struct line *line, const char *key)
{
    for (size_t i = 0; i < PAWL__LOG_KEY_MAX && key[i] != '\0'; i++) {
        char c = key[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                     || c == '.' || c == '-';
        pawl__buf_add_char(line->buf, plain ? c : '_');
    }
}

/* ,"key": or  key= */
static void add_key(struct line *line, const char *key)
{
    if (line->format == PAWL__LOG_JSON) {
        pawl__buf_add_text(line->buf, line->fields == 0 ? "{\"" : ",\"");
        add_key_bytes(line, key);
        pawl__buf_add_text(line->buf, "\":");
    } else {
        pawl__buf_add_text(line->buf, line->fields == 0 ? "" : " ");
        add_key_bytes(line, key);
        pawl__buf_add_char(line->buf, '=');
    }
    line->fields++;
}

static void add_real(struct line *line, double value)
{
    if (isfinite(value)) {
        pawl__buf_add_real(line->buf, value);
    } else if (line->format == PAWL__LOG_JSON) {
        pawl__buf_add_text(line->buf, "null"); /* JSON has no word for it */
    } else {
        pawl__buf_add_text(line->buf, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    }
}

static void add_field(struct line *line, const pawl_log_field *field)
{
    size_t key_bytes = strnlen(field->key, PAWL__LOG_KEY_MAX) + sizeof(",\"\":");

    if (line->buf->len + key_bytes + NUMBER_MAX > line->end) {
        line->dropped++;
        return;
    }
    add_key(line, field->key);
    switch (field->kind) {
    case PAWL_LOG_TEXT:
        add_text(line, field->value.text, PAWL__LOG_VALUE_MAX);
        break;
    case PAWL_LOG_INTEGER:
        pawl__buf_add_format(line->buf, "%" PRId64, field->value.integer);
        break;
    case PAWL_LOG_NATURAL:
        pawl__buf_add_format(line->buf, "%" PRIu64, field->value.natural);
        break;
    case PAWL_LOG_REAL:
        add_real(line, field->value.real);
        break;
    case PAWL_LOG_BOOLEAN:
        pawl__buf_add_text(line->buf, field->value.boolean ? "true" : "false");
        break;
    }
}

void pawl__log_line(const pawl_log_event *event,
                    enum pawl__log_format format,
                    struct pawl__buf *buf)
{
    size_t start = buf->len;
    struct line line = { .buf = buf, .format = format };
    char time[PAWL__TIME_SIZE];

    line.end = start + PAWL__LOG_LINE_MAX - TAIL_BYTES;
    pawl__time_rfc3339(event->wall_us, time);
    add_key(&line, "time");
    add_text(&line, pawl_view_of(time), sizeof(time));
    add_key(&line, "level");
    add_text(&line, pawl_view_of(pawl_log_level_name(event->level)), PAWL__LOG_KEY_MAX);
    add_key(&line, "msg");
    add_text(&line, pawl_view_of(event->message), PAWL__LOG_MESSAGE_MAX);
    for (size_t i = 0; i < event->field_count; i++) {
        if (i < PAWL__LOG_FIELDS_MAX) {
            add_field(&line, &event->fields[i]);
        } else {
            line.dropped++;
        }
    }
    if (line.dropped > 0) {
        add_key(&line, "fields_dropped");
        pawl__buf_add_format(buf, "%zu", line.dropped);
    }
    pawl__buf_add_text(buf, format == PAWL__LOG_JSON ? "}\n" : "\n");
    REQUIRE(!buf->broken);
    REQUIRE(buf->len - start <= PAWL__LOG_LINE_MAX);
}

void pawl__log_writer_init(struct pawl__log_writer *writer, int fd)
{
    writer->fd = fd;
    writer->format = isatty(fd) ? PAWL__LOG_LOGFMT : PAWL__LOG_JSON;
    atomic_init(&writer->dropped, 0);
}

void pawl__log_writer_sink(void *context, const pawl_log_event *event)
{
    struct pawl__log_writer *writer = context;
    char storage[PAWL__LOG_LINE_MAX + 1];
    struct pawl__buf buf = BUF_OVER(storage);
    ssize_t written;

    pawl__log_line(event, writer->format, &buf);
    do {
        written = write(writer->fd, buf.data, buf.len);
    } while (written < 0 && errno == EINTR);
    /* A line that went out half (a full disk) is not continued: another thread's may stand behind
     * it already. */
    if (written != (ssize_t)buf.len) {
        atomic_fetch_add(&writer->dropped, 1);
    }
}
