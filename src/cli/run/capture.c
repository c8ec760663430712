#include "cli/run/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/sha256.h"
#include "base/os/fs.h"

void pawl__cli_capture_done(struct runner_capture *capture)
{
    pawl__buf_done(&capture->memory);
    pawl__fs_close(&capture->fd);
}

pawl_status pawl__cli_capture_log(struct runner_capture *capture,
                                  const char *path,
                                  pawl_error *reterr)
{
    capture->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return capture->fd < 0 ? pawl__fail_errno(reterr, errno, "open '%s'", path) : PAWL_OK;
}

/* A file that is gone when it is closed. */
static int open_nameless(void)
{
    const char *dir = getenv("TMPDIR");
    AUTO(pawl__text_free)
    char *path = pawl__fs_join(dir == NULL || dir[0] == '\0' ? "/tmp" : dir, "pawl-run-XXXXXX");

    if (path == NULL) {
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        unlink(path);
    }
    return fd;
}

/* False: bytes that could not be written are dropped, and so is everything after them. */
static bool store(struct runner_capture *capture, pawl_view bytes)
{
    while (bytes.len > 0) {
        ssize_t put = write(capture->fd, bytes.data, bytes.len);
        pawl_view taken;
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0 || !pawl__view_take(&bytes, (size_t)put, &taken)) {
            return false;
        }
        capture->stored += (uint64_t)put;
    }
    return true;
}

static bool spill(struct runner_capture *capture)
{
    capture->fd = open_nameless();
    capture->stored = 0;
    if (capture->fd >= 0 && store(capture, pawl__buf_view(&capture->memory))) {
        return true;
    }
    pawl__fs_close(&capture->fd);
    capture->stored = capture->memory.len; /* it stays readable from there */
    return false;
}

void pawl__cli_capture_add(struct runner_capture *capture, pawl_view bytes)
{
    bool whole = capture->stored == capture->total;
    size_t room = RUNNER_MEMORY_BYTES - capture->memory.len;
    pawl_view rest = bytes;
    pawl_view front;

    capture->total += bytes.len;
    if (!whole) {
        return;
    }
    if (capture->fd >= 0) {
        (void)store(capture, bytes);
    } else if (bytes.len > room) {
        if (spill(capture)) {
            (void)store(capture, bytes);
        }
    } else {
        capture->stored += bytes.len;
    }
    if (pawl__view_take(&rest, MIN(room, bytes.len), &front)) {
        pawl__buf_add(&capture->memory, front);
    }
}

static pawl_status read_back(const struct runner_capture *capture,
                             uint64_t at,
                             char *ret_bytes,
                             size_t len,
                             pawl_error *reterr)
{
    size_t got = 0;

    if (len == 0) {
        return PAWL_OK;
    }
    if (at + len <= capture->memory.len) {
        memcpy(ret_bytes, capture->memory.data + at, len);
        return PAWL_OK;
    }
    while (got < len) {
        ssize_t count = pread(capture->fd, ret_bytes + got, len - got, (off_t)(at + got));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return pawl__fail_errno(reterr, count < 0 ? errno : EIO, "read a command's output");
        }
        got += (size_t)count;
    }
    return PAWL_OK;
}

pawl_status pawl__cli_capture_copy_part(const struct runner_capture *capture,
                                        uint64_t start,
                                        uint64_t len,
                                        const struct pawl__sink *sink,
                                        pawl_error *reterr)
{
    char bytes[16 << 10];
    uint64_t end = start + len;

    while (start < end) {
        size_t part = (size_t)MIN(end - start, sizeof(bytes));
        TRY(read_back(capture, start, bytes, part, reterr));
        TRY(pawl__sink_write(sink, (pawl_view){ bytes, part }, reterr));
        start += part;
    }
    return PAWL_OK;
}

pawl_status pawl__cli_capture_copy(const struct runner_capture *capture,
                                   const struct pawl__sink *sink,
                                   pawl_error *reterr)
{
    return pawl__cli_capture_copy_part(capture, 0, capture->stored, sink, reterr);
}

/* One character, whole or replaced: JSON's own rules, and U+0000 is refused by ours. */
static void add_json_char(struct pawl__buf *json, uint32_t code, pawl_view bytes)
{
    if (code == 0) {
        pawl__buf_add_text(json, "\xEF\xBF\xBD");
    } else if (code == '"' || code == '\\') {
        pawl__buf_add_char(json, '\\');
        pawl__buf_add_char(json, (char)code);
    } else if (code == '\n') {
        pawl__buf_add_text(json, "\\n");
    } else if (code < 0x20 || code == 0x7F) {
        pawl__buf_add_format(json, "\\u%04x", code);
    } else {
        pawl__buf_add(json, bytes);
    }
}

static void add_json_text(struct pawl__buf *json, pawl_view text)
{
    pawl__buf_add_char(json, '"');
    while (text.len > 0) {
        pawl_view before = text;
        pawl_view taken;
        uint32_t code = 0;
        if (!pawl__view_take_utf8(&text, &code)) {
            code = 0;
            if (!pawl__view_take(&text, 1, &taken)) {
                break;
            }
        }
        if (pawl__view_take(&before, before.len - text.len, &taken)) {
            add_json_char(json, code, taken);
        }
    }
    pawl__buf_add_char(json, '"');
}

/* The cut may be inside a character, whose remaining bytes are no text. */
static void skip_half(pawl_view *text)
{
    pawl_view taken;

    for (int i = 0; i < 3 && text->len > 0 && ((unsigned char)text->data[0] & 0xC0) == 0x80; i++) {
        if (!pawl__view_take(text, 1, &taken)) {
            return;
        }
    }
}

bool pawl__cli_capture_add_json(const struct runner_capture *capture, struct pawl__buf *json)
{
    size_t len = (size_t)MIN(capture->stored, (uint64_t)RUNNER_KEPT_BYTES);
    AUTO(pawl__text_free) char *bytes = malloc(len + 1);
    bool cut = len < capture->total;

    if (bytes == NULL || read_back(capture, capture->stored - len, bytes, len, NULL) != PAWL_OK) {
        pawl__buf_add_text(json, "\"\"");
        return capture->total > 0;
    }
    pawl_view text = { bytes, len };
    if (len < capture->stored) {
        skip_half(&text);
    }
    add_json_text(json, text);
    return cut;
}

char *pawl__cli_capture_name(pawl_view id, int64_t attempt, const char *suffix)
{
    enum { NAME_BYTES_MAX = 160, HASH_DIGITS = 16 };
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    struct pawl__buf name = BUF_INIT(4096);
    struct pawl__sha256 hash;
    char hex[PAWL__SHA256_HEX_SIZE];

    for (size_t i = 0; i < id.len; i++) {
        char c = id.data[i];
        bool is_plain = c != '\0' && (strchr(plain, c) != NULL || (c == '.' && i > 0));
        pawl__buf_add_format(&name, is_plain ? "%c" : "%%%02X", (unsigned char)c);
    }
    if (name.len > NAME_BYTES_MAX) {
        if (pawl__sha256(id, &hash, NULL) != PAWL_OK) {
            pawl__buf_done(&name);
            return NULL;
        }
        pawl__sha256_hex(&hash, hex);
        pawl__buf_cut(&name, NAME_BYTES_MAX - HASH_DIGITS - 1);
        pawl__buf_add_format(&name, "-%.*s", HASH_DIGITS, hex);
    }
    pawl__buf_add_format(&name, ".%lld.%s", (long long)attempt, suffix);
    char *text = pawl__buf_steal(&name);
    pawl__buf_done(&name);
    return text;
}
