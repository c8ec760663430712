#include "net/http/reply.h"

#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/macros.h"

void pawl__http_reply_init(struct pawl__http_reply *reply,
                           uint64_t body_bytes_max,
                           pawl__http_body_sink *sink,
                           void *context)
{
    *reply = (struct pawl__http_reply){
        .body_bytes_max = body_bytes_max,
        .text = BUF_INIT(HTTP_REPLY_HEAD_MAX),
        .sink = sink,
        .context = context,
    };
}

void pawl__http_reply_done(struct pawl__http_reply *reply)
{
    pawl__buf_done(&reply->text);
}

static pawl_status no_answer(const char *why, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_INVALID, "the answer is not HTTP/1.1: %s", why);
}

/* --- the head --- */

/* The headers that decide how the body is framed. */
struct framing {
    bool has_length;
    bool chunked;
    uint64_t length;
};

static bool take_decimal(pawl_view digits, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (digits.len == 0 || digits.len > 18) {
        return false;
    }
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(digits.data[i] - '0');
    }
    *ret_number = number;
    return true;
}

static pawl_view trimmed(pawl_view text)
{
    pawl_view blank;

    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        (void)!pawl__view_take(&text, 1, &blank);
    }
    while (text.len > 0 && strchr(" \t\r", text.data[text.len - 1]) != NULL
           && text.data[text.len - 1] != '\0') {
        text.len--;
    }
    return text;
}

static bool is_word(pawl_view text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

static pawl_status keep_word(pawl_view value, char word[HTTP_REPLY_WORD_SIZE], pawl_error *reterr)
{
    if (value.len >= HTTP_REPLY_WORD_SIZE || memchr(value.data, '\0', value.len) != NULL) {
        return no_answer("a header is too long", reterr);
    }
    memcpy(word, value.data, value.len);
    word[value.len] = '\0';
    return PAWL_OK;
}

static pawl_status read_header(struct pawl__http_reply *reply,
                               pawl_view line,
                               struct framing *framing,
                               pawl_error *reterr)
{
    pawl_view name = { NULL, 0 };
    uint64_t length = 0;
    const char *colon = memchr(line.data, ':', line.len);

    if (colon == NULL || !pawl__view_split(&line, ':', &name) || name.len == 0) {
        return no_answer("a line of its head is no header", reterr);
    }
    pawl_view value = trimmed(line);
    if (is_word(name, "Content-Length")) {
        if (!take_decimal(value, &length) || (framing->has_length && framing->length != length)) {
            return no_answer("its Content-Length is no length", reterr);
        }
        framing->has_length = true;
        framing->length = length;
    } else if (is_word(name, "Transfer-Encoding")) {
        if (framing->chunked || !is_word(value, "chunked")) {
            return no_answer("its Transfer-Encoding is not 'chunked'", reterr);
        }
        framing->chunked = true;
    } else if (is_word(name, "Connection")) {
        reply->closes = reply->closes || is_word(value, "close");
    } else if (is_word(name, "Content-Type")) {
        return keep_word(value, reply->type, reterr);
    } else if (is_word(name, "Location")) {
        return keep_word(value, reply->location, reterr);
    }
    return PAWL_OK;
}

static pawl_status read_status_line(struct pawl__http_reply *reply,
                                    pawl_view line,
                                    pawl_error *reterr)
{
    static const char version[] = "HTTP/1.";
    uint64_t code = 0;
    pawl_view head;
    pawl_view digits;

    if (!pawl__view_take(&line, strlen(version) + 2, &head)
        || memcmp(head.data, version, strlen(version)) != 0
        || (head.data[strlen(version)] != '0' && head.data[strlen(version)] != '1')
        || head.data[strlen(version) + 1] != ' ' || !pawl__view_take(&line, 3, &digits)
        || !take_decimal(digits, &code) || code < 100
        || (line.len > 0 && line.data[0] != ' ' && line.data[0] != '\r')) {
        return no_answer("its first line is something else", reterr);
    }
    reply->closes = head.data[strlen(version)] == '0';
    reply->code = (unsigned)code;
    return PAWL_OK;
}

static pawl_status decide_body(struct pawl__http_reply *reply,
                               const struct framing *framing,
                               pawl_error *reterr)
{
    if (framing->has_length && framing->chunked) {
        return no_answer("it has a length and chunks", reterr);
    }
    if (reply->code < 200) { /* another head follows */
        if (reply->code == 101) {
            return no_answer("it changes the protocol", reterr);
        }
        reply->state = HTTP_REPLY_HEAD;
    } else if (reply->no_body || reply->code == 204 || reply->code == 304) {
        reply->state = HTTP_REPLY_DONE;
    } else if (framing->chunked) {
        reply->state = HTTP_REPLY_CHUNK_SIZE;
    } else if (framing->has_length) {
        reply->left = framing->length;
        reply->state = framing->length == 0 ? HTTP_REPLY_DONE : HTTP_REPLY_LENGTH;
    } else {
        reply->closes = true;
        reply->state = HTTP_REPLY_TO_END;
    }
    return PAWL_OK;
}

static pawl_status read_head(struct pawl__http_reply *reply, pawl_error *reterr)
{
    pawl_view rest = pawl__buf_view(&reply->text);
    struct framing framing = { .length = 0 };
    pawl_view line = { NULL, 0 };

    (void)!pawl__view_split(&rest, '\n', &line);
    TRY(read_status_line(reply, line, reterr));
    while (pawl__view_split(&rest, '\n', &line) && trimmed(line).len > 0) {
        TRY(read_header(reply, line, &framing, reterr));
    }
    pawl__buf_clear(&reply->text);
    return decide_body(reply, &framing, reterr);
}

/* --- its parts, as they arrive --- */

/* Moves bytes up to a line feed from `in`; true when the line is whole. */
static bool gather_line(struct pawl__http_reply *reply, pawl_view *in)
{
    const char *feed = memchr(in->data, '\n', in->len);
    size_t len = feed == NULL ? in->len : (size_t)(feed - in->data) + 1;
    pawl_view bytes;

    if (pawl__view_take(in, len, &bytes)) {
        pawl__buf_add(&reply->text, bytes);
    }
    return feed != NULL;
}

static bool head_is_whole(const struct pawl__buf *text)
{
    return (text->len >= 2 && memcmp(&text->data[text->len - 2], "\n\n", 2) == 0)
           || (text->len >= 3 && memcmp(&text->data[text->len - 3], "\n\r\n", 3) == 0);
}

static pawl_status feed_head(struct pawl__http_reply *reply, pawl_view *in, pawl_error *reterr)
{
    bool line = gather_line(reply, in);

    if (reply->text.broken) {
        return reply->text.nomem ? pawl__fail(reterr, PAWL_NOMEM, "no memory for an answer")
                                 : no_answer("its head is too long", reterr);
    }
    return line && head_is_whole(&reply->text) ? read_head(reply, reterr) : PAWL_OK;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | ' ');
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static pawl_status read_chunk_size(struct pawl__http_reply *reply, pawl_error *reterr)
{
    pawl_view line = pawl__buf_view(&reply->text);
    uint64_t size = 0;
    size_t digits = 0;

    while (digits < line.len && hex_value(line.data[digits]) >= 0) {
        size = size * 16 + (uint64_t)hex_value(line.data[digits]);
        digits++;
        if (digits > 15) {
            return no_answer("a chunk is too large", reterr);
        }
    }
    if (digits == 0 || strchr("\r\n; \t", line.data[digits]) == NULL || line.data[digits] == '\0') {
        return no_answer("a chunk has no size", reterr);
    }
    pawl__buf_clear(&reply->text);
    reply->left = size;
    reply->state = size == 0 ? HTTP_REPLY_TRAILERS : HTTP_REPLY_CHUNK;
    return PAWL_OK;
}

/* A line between the chunks, or behind the last. */
static pawl_status feed_line(struct pawl__http_reply *reply, pawl_view *in, pawl_error *reterr)
{
    bool line = gather_line(reply, in);

    if (reply->text.broken || reply->text.len > HTTP_REPLY_LINE_MAX) {
        return no_answer("a line between its chunks is too long", reterr);
    }
    if (!line) {
        return PAWL_OK;
    }
    if (reply->state == HTTP_REPLY_CHUNK_SIZE) {
        return read_chunk_size(reply, reterr);
    }
    bool empty = trimmed((pawl_view){ reply->text.data, reply->text.len - 1 }).len == 0;
    pawl__buf_clear(&reply->text);
    if (reply->state == HTTP_REPLY_CHUNK_END) {
        reply->state = HTTP_REPLY_CHUNK_SIZE;
        return empty ? PAWL_OK : no_answer("a chunk is longer than its size", reterr);
    }
    reply->state = empty ? HTTP_REPLY_DONE : HTTP_REPLY_TRAILERS;
    return PAWL_OK;
}

static pawl_status feed_body(struct pawl__http_reply *reply, pawl_view *in, pawl_error *reterr)
{
    bool counted = reply->state != HTTP_REPLY_TO_END;
    pawl_view bytes = { NULL, 0 };

    if (!pawl__view_take(in, counted ? (size_t)MIN(in->len, reply->left) : in->len, &bytes)) {
        return PAWL_OK;
    }
    reply->body_bytes += bytes.len;
    reply->left -= counted ? bytes.len : 0;
    if (reply->body_bytes > reply->body_bytes_max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the answer has more than %llu bytes",
                          (unsigned long long)reply->body_bytes_max);
    }
    if (counted && reply->left == 0) {
        reply->state = reply->state == HTTP_REPLY_CHUNK ? HTTP_REPLY_CHUNK_END : HTTP_REPLY_DONE;
    }
    return reply->sink == NULL ? PAWL_OK : reply->sink(reply->context, bytes, reterr);
}

pawl_status pawl__http_reply_feed(struct pawl__http_reply *reply, pawl_view *in, pawl_error *reterr)
{
    while (in->len > 0 && reply->state != HTTP_REPLY_DONE) {
        switch (reply->state) {
        case HTTP_REPLY_HEAD:
            TRY(feed_head(reply, in, reterr));
            break;
        case HTTP_REPLY_CHUNK_SIZE:
        case HTTP_REPLY_CHUNK_END:
        case HTTP_REPLY_TRAILERS:
            TRY(feed_line(reply, in, reterr));
            break;
        case HTTP_REPLY_LENGTH:
        case HTTP_REPLY_CHUNK:
        case HTTP_REPLY_TO_END:
            TRY(feed_body(reply, in, reterr));
            break;
        case HTTP_REPLY_DONE:
            break;
        }
    }
    return PAWL_OK;
}

pawl_status pawl__http_reply_end(struct pawl__http_reply *reply, pawl_error *reterr)
{
    if (reply->state == HTTP_REPLY_TO_END) {
        reply->state = HTTP_REPLY_DONE;
    }
    return reply->state == HTTP_REPLY_DONE
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "the answer is cut off");
}
