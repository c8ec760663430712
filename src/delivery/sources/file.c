#include "delivery/sources/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/sha256.h"
#include "base/os/fs.h"
#include "delivery/sources/in_flight.h"

enum {
    READ_BYTES = 256 << 10,
    SLICE_MS =
        50, /* how often a file is looked at that has no more: network file systems tell nobody of a write */
    RECENT = 1024, /* places that a probe finds without reading the file again */
};

/* Lines with their numbers and fingerprints. Several can read one file. */
struct lines {
    int fd;
    bool is_file;   /* read at an offset; else as it comes */
    int64_t offset; /* of the next byte to read */
    struct pawl__buf buf;
    size_t at;       /* [at, len) of buf is not yet returned ... */
    size_t searched; /* ... and has no line feed before this */
    size_t line_bytes_max;
    uint64_t number;           /* of the line that was returned last */
    struct pawl__sha256 chain; /* over all lines up to it */
    bool at_end;               /* the last read found nothing */
};

struct file_source {
    struct delivery_source base;
    struct delivery_file_options options;
    const char *name; /* for messages, and as subject */
    struct pawl__clock *clock;
    int own_fd; /* -1: not ours */
    int64_t created_ns;
    struct lines lines;
    bool is_placed;   /* restart_at has said where we are: until then there is no consumer */
    uint64_t skip_to; /* lines up to this one are read, and not delivered */
    struct delivery_in_flight in_flight;
    struct delivery_place recent[RECENT]; /* by number % RECENT */
};

static struct file_source *as_file(struct delivery_source *base)
{
    return (struct file_source *)base; /* base is its first member */
}

/* Never 0, which means that nothing is known. */
static int64_t positive(const struct pawl__sha256 *hash)
{
    pawl_view bytes = { (const char *)hash->bytes, sizeof(hash->bytes) };
    uint64_t number = 0;

    REQUIRE(pawl__view_take_u64be(&bytes, &number));
    return (int64_t)MAX(number >> 1, UINT64_C(1));
}

/* --- lines --- */

static struct lines lines_from_start(int fd, bool is_file, size_t line_bytes_max)
{
    return (struct lines){ .fd = fd,
                           .is_file = is_file,
                           .buf = BUF_INIT(line_bytes_max + READ_BYTES),
                           .line_bytes_max = line_bytes_max };
}

static void lines_done(struct lines *lines)
{
    pawl__buf_done(&lines->buf);
}

/* Drops what was returned, so that the buffer holds one line and what came with it. */
static void drop_returned(struct lines *lines)
{
    size_t rest = lines->buf.len - lines->at;

    if (lines->at > 0) {
        memmove(lines->buf.data, &lines->buf.data[lines->at], rest);
        pawl__buf_cut(&lines->buf, rest);
        lines->searched -= lines->at;
        lines->at = 0;
    }
}

/* read() of a pipe would wait for its writer. */
static bool may_read(const struct lines *lines)
{
    struct pollfd more = { .fd = lines->fd, .events = POLLIN };

    return lines->is_file || poll(&more, 1, 0) > 0;
}

/* *ret_any: false when there is nothing now. */
static pawl_status read_more(struct lines *lines, bool *ret_any, pawl_error *reterr)
{
    *ret_any = false;
    if (!may_read(lines)) {
        return PAWL_OK;
    }
    drop_returned(lines);
    size_t before = lines->buf.len;
    char *room = pawl__buf_extend(&lines->buf, READ_BYTES);
    if (room == NULL) {
        pawl__buf_cut(&lines->buf, before); /* what is there stays good */
        return pawl__check_memory(room, "a line", reterr);
    }
    ssize_t got;
    do {
        got = lines->is_file ? pread(lines->fd, room, READ_BYTES, lines->offset)
                             : read(lines->fd, room, READ_BYTES);
    } while (got < 0 && errno == EINTR);
    int error_number = errno;
    pawl__buf_cut(&lines->buf, before + (size_t)MAX(got, 0));
    if (got < 0 && error_number != EAGAIN) {
        return pawl__fail_errno(reterr, error_number, "read");
    }
    lines->at_end = got == 0;
    lines->offset += MAX(got, 0);
    *ret_any = got > 0;
    return PAWL_OK;
}

/* The line at `at`, which is returned only when `at` is moved behind it. */
static bool find_line(struct lines *lines, pawl_view *ret_line)
{
    size_t from = lines->searched;
    const char *end =
        from == lines->buf.len ? NULL : memchr(&lines->buf.data[from], '\n', lines->buf.len - from);

    if (end == NULL) {
        lines->searched = lines->buf.len;
        return false;
    }
    lines->searched = (size_t)(end - lines->buf.data);
    *ret_line = (pawl_view){ &lines->buf.data[lines->at], lines->searched + 1 - lines->at };
    return true;
}

static pawl_status check_length(const struct lines *lines, size_t len, pawl_error *reterr)
{
    return len <= lines->line_bytes_max ? PAWL_OK
                                        : pawl__fail(reterr,
                                                     PAWL_INVALID,
                                                     "line %llu is longer than %zu bytes",
                                                     (unsigned long long)lines->number + 1,
                                                     lines->line_bytes_max);
}

/* The next line with its line feed, good until the next call. NOT_FOUND: there is none yet. */
static pawl_status lines_next(struct lines *lines, pawl_view *ret_line, pawl_error *reterr)
{
    pawl_view line;
    bool any = true;

    while (!find_line(lines, &line)) {
        TRY(check_length(lines, lines->buf.len - lines->at, reterr));
        TRY(read_more(lines, &any, reterr));
        if (!any) {
            return pawl__fail(reterr, PAWL_NOT_FOUND, "no more lines for now");
        }
    }
    TRY(check_length(lines, line.len - 1, reterr));
    pawl_view parts[] = { { (const char *)lines->chain.bytes, sizeof(lines->chain.bytes) }, line };
    struct pawl__sha256 chain;
    TRY(pawl__sha256_parts(parts, COUNT_OF(parts), &chain, reterr));
    lines->chain = chain;
    lines->at += line.len;
    lines->searched = lines->at;
    lines->number++;
    *ret_line = line;
    return PAWL_OK;
}

/* --- reading on --- */

static pawl_status fail_changed(const struct file_source *source,
                                const char *what,
                                pawl_error *reterr)
{
    return pawl__fail_advised(reterr,
                              PAWL_CONFLICT,
                              "'%s' %s since lines of it were delivered; to deliver it from its "
                              "beginning as something new, name another --generation than '%s'",
                              source->name,
                              what,
                              source->options.generation);
}

static struct delivery_place place_of(const struct file_source *source, const struct lines *lines)
{
    return (struct delivery_place){ source->created_ns, lines->number, positive(&lines->chain) };
}

static pawl_status check_applied(const struct file_source *source,
                                 const struct delivery_place *place,
                                 pawl_error *reterr)
{
    const struct delivery_place *applied = &source->options.applied;
    bool differs = place->sequence == applied->sequence && place->created_ns == applied->created_ns
                   && applied->stored_ns != 0 && place->stored_ns != applied->stored_ns;

    return differs ? fail_changed(source, "has changed", reterr) : PAWL_OK;
}

static pawl_status next_place(struct file_source *source,
                              struct delivery_place *ret_place,
                              pawl_view *ret_line,
                              pawl_error *reterr)
{
    pawl_status status = lines_next(&source->lines, ret_line, reterr);

    if (status != PAWL_OK) {
        return status == PAWL_NOT_FOUND ? status
                                        : pawl__fail_context(reterr, status, "'%s'", source->name);
    }
    *ret_place = place_of(source, &source->lines);
    source->recent[ret_place->sequence % RECENT] = *ret_place;
    return check_applied(source, ret_place, reterr);
}

static pawl_view without_mark(pawl_view line, uint64_t number)
{
    static const pawl_view mark = { "\xef\xbb\xbf", 3 };
    pawl_view start = { line.data, MIN(line.len, mark.len) };

    if (number == 1 && pawl__view_equal(start, mark)) {
        REQUIRE(pawl__view_take(&line, mark.len, &start));
    }
    return line;
}

static bool is_blank(pawl_view line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (strchr(" \t\r\n", line.data[i]) == NULL || line.data[i] == '\0') {
            return false;
        }
    }
    return true;
}

static pawl_status add_lines(struct file_source *source,
                             const struct delivery_fetch *limits,
                             pawl_error *reterr)
{
    while (!pawl__delivery_in_flight_is_full(&source->in_flight, limits)) {
        struct delivery_message message = { .subject = pawl_view_of(source->name) };
        pawl_error error = PAWL_ERROR_INIT;
        pawl_view line;
        pawl_status status = next_place(source, &message.place, &line, &error);
        if (status == PAWL_NOT_FOUND) {
            return PAWL_OK;
        }
        if (status != PAWL_OK) {
            /* Lines before a bad one are handed out first; the next call meets it again. */
            return source->in_flight.batch_count > 0 && !error.retryable && status == PAWL_INVALID
                       ? PAWL_OK
                       : pawl__fail_with(reterr, status, &error);
        }
        line.len--; /* the line feed */
        message.payload = without_mark(line, message.place.sequence);
        if (message.place.sequence <= source->skip_to) {
            continue;
        }
        if (is_blank(message.payload)) {
            pawl__delivery_in_flight_pass(&source->in_flight, message.place.sequence);
        } else {
            TRY(pawl__delivery_in_flight_add(&source->in_flight, &message, reterr));
        }
    }
    return PAWL_OK;
}

/* A file that is shorter than what we have read, or has another in its place, is not the one we know. */
static pawl_status check_file(struct file_source *source, pawl_error *reterr)
{
    struct stat open_one;
    struct stat named;

    if (!source->lines.is_file) {
        return PAWL_OK;
    }
    if (fstat(source->lines.fd, &open_one) != 0) {
        return pawl__fail_errno(reterr, errno, "look at '%s'", source->name);
    }
    if (open_one.st_size < source->lines.offset) {
        return fail_changed(source, "has become shorter", reterr);
    }
    if (source->options.path != NULL && stat(source->options.path, &named) == 0
        && (named.st_ino != open_one.st_ino || named.st_dev != open_one.st_dev)) {
        return fail_changed(source, "was replaced by another file", reterr);
    }
    return PAWL_OK;
}

/* --- the interface --- */

static void wait_for_more(struct file_source *source, int64_t until_ns)
{
    int64_t now_ns = pawl__monotonic_ns(source->clock);
    int64_t slice_ns = MIN(until_ns - now_ns, SLICE_MS * NS_PER_MS);
    struct pollfd more = { .fd = source->lines.fd, .events = POLLIN };

    if (source->lines.is_file || source->lines.at_end) {
        if (source->options.cancel != NULL) {
            pawl__cancel_wait_until(source->options.cancel, now_ns + slice_ns);
        } else {
            pawl__sleep_until(source->clock, now_ns + slice_ns);
        }
    } else {
        poll(&more, 1, (int)(slice_ns / NS_PER_MS) + 1);
    }
}

static pawl_status fetch_now(struct file_source *source,
                             const struct delivery_fetch *limits,
                             pawl_error *reterr)
{
    pawl__delivery_in_flight_begin(&source->in_flight);
    TRY(pawl__delivery_in_flight_add_due(
        &source->in_flight, limits, pawl__monotonic_ns(source->clock), reterr));
    return add_lines(source, limits, reterr);
}

static pawl_status fetch(struct delivery_source *base,
                         const struct delivery_fetch *limits,
                         struct delivery_batch *ret_batch,
                         pawl_error *reterr)
{
    struct file_source *source = as_file(base);
    int64_t until_ns = pawl__monotonic_ns(source->clock) + limits->wait_ns;

    TRY(fetch_now(source, limits, reterr));
    while (source->in_flight.batch_count == 0 && pawl__monotonic_ns(source->clock) < until_ns) {
        if (pawl__cancelled(source->options.cancel)) {
            return pawl__fail(reterr, PAWL_CANCELLED, "cancelled while reading '%s'", source->name);
        }
        TRY(check_file(source, reterr));
        wait_for_more(source, until_ns);
        TRY(fetch_now(source, limits, reterr));
    }
    *ret_batch = pawl__delivery_in_flight_batch(&source->in_flight);
    return PAWL_OK;
}

static pawl_status ack(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       pawl_error *reterr)
{
    (void)reterr;
    pawl__delivery_in_flight_ack(&as_file(base)->in_flight, messages, count);
    return PAWL_OK;
}

static pawl_status nak(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       int64_t delay_ns,
                       pawl_error *reterr)
{
    struct file_source *source = as_file(base);

    (void)reterr;
    pawl__delivery_in_flight_nak(
        &source->in_flight, messages, count, pawl__monotonic_ns(source->clock) + delay_ns);
    return PAWL_OK;
}

/* Reads from the beginning up to a line. NOT_FOUND: it has fewer; *ret_place is then the last one's. */
static pawl_status scan_to(const struct file_source *source,
                           uint64_t sequence,
                           struct delivery_place *ret_place,
                           pawl_error *reterr)
{
    AUTO(lines_done)
    struct lines lines = lines_from_start(source->lines.fd, true, source->lines.line_bytes_max);
    pawl_status status = PAWL_OK;
    pawl_view line;

    while (status == PAWL_OK && lines.number < sequence) {
        status =
            pawl__cancelled(source->options.cancel)
                ? pawl__fail(reterr, PAWL_CANCELLED, "cancelled while reading '%s'", source->name)
                : lines_next(&lines, &line, reterr);
    }
    *ret_place = place_of(source, &lines);
    return status;
}

static pawl_status probe_file(struct file_source *source,
                              uint64_t probe,
                              struct delivery_stream_state *state,
                              pawl_error *reterr)
{
    struct delivery_place place = source->recent[probe % RECENT];
    pawl_error error = PAWL_ERROR_INIT;

    if (place.sequence != probe) {
        pawl_status status = scan_to(source, probe, &place, &error);
        if (status != PAWL_OK && status != PAWL_NOT_FOUND) {
            return pawl__fail_with(reterr, status, &error);
        }
    }
    state->probe_found = place.sequence == probe;
    state->probe_stored_ns = state->probe_found ? place.stored_ns : 0;
    state->last = MAX(state->last, place.sequence);
    return PAWL_OK;
}

static pawl_status state(struct delivery_source *base,
                         uint64_t probe,
                         struct delivery_stream_state *ret_state,
                         pawl_error *reterr)
{
    struct file_source *source = as_file(base);
    struct delivery_stream_state now = {
        .created_ns = source->created_ns,
        .first = 1,
        .last = source->lines.number,
        .consumer_found = source->is_placed,
        .consumer_created_ns = source->created_ns,
        .delivered = source->in_flight.handed_out,
        .acked_to = pawl__delivery_in_flight_acked_to(&source->in_flight),
    };

    TRY(check_file(source, reterr));
    if (probe > 0 && source->lines.is_file) {
        TRY(probe_file(source, probe, &now, reterr));
    } else {
        now.last = MAX(now.last, probe); /* what is still to be read again, see `applied` */
    }
    *ret_state = now;
    return PAWL_OK;
}

static pawl_status restart_at(struct delivery_source *base, uint64_t sequence, pawl_error *reterr)
{
    struct file_source *source = as_file(base);
    uint64_t before = MAX(sequence, UINT64_C(1)) - 1;

    source->is_placed = true;
    if (source->lines.number > before && !source->lines.is_file) {
        return pawl__delivery_in_flight_repeat(&source->in_flight, sequence)
                   ? PAWL_OK
                   : pawl__fail_advised(
                       reterr,
                       PAWL_UNSUPPORTED,
                       "'%s' cannot be read again from line %llu; run the command again",
                       source->name,
                       (unsigned long long)sequence);
    }
    if (source->lines.number > before) {
        struct lines again = lines_from_start(source->lines.fd, true, source->lines.line_bytes_max);
        lines_done(&source->lines);
        source->lines = again;
    }
    source->skip_to = before;
    pawl__delivery_in_flight_restart(&source->in_flight, before);
    return PAWL_OK;
}

static void close_file(struct delivery_source *base)
{
    struct file_source *source = as_file(base);

    lines_done(&source->lines);
    pawl__delivery_in_flight_done(&source->in_flight);
    pawl__fs_close(&source->own_fd);
    free(source);
}

static void close_p(struct file_source **source)
{
    if (*source != NULL) {
        close_file(&(*source)->base);
    }
}

bool pawl__delivery_file_is_at_end(const struct delivery_source *base, size_t *ret_rest)
{
    const struct file_source *source = (const struct file_source *)base;

    *ret_rest = source->lines.buf.len - source->lines.at;
    return source->lines.at_end;
}

/* --- open --- */

static pawl_status hash_generation(struct file_source *source, pawl_error *reterr)
{
    struct pawl__sha256 hash;

    TRY(pawl__sha256(pawl_view_of(source->options.generation), &hash, reterr));
    source->created_ns = positive(&hash);
    return PAWL_OK;
}

static pawl_status open_path(struct file_source *source, pawl_error *reterr)
{
    struct stat info;
    int fd = source->options.fd;

    if (source->options.path != NULL) {
        fd = open(source->options.path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return pawl__fail_errno(reterr, errno, "open '%s'", source->name);
        }
        source->own_fd = fd;
    }
    if (fstat(fd, &info) != 0) {
        return pawl__fail_errno(reterr, errno, "look at '%s'", source->name);
    }
    if (S_ISDIR(info.st_mode)) {
        return pawl__fail(reterr, PAWL_INVALID, "'%s' is a directory", source->name);
    }
    size_t limit = source->options.line_bytes_max;
    source->lines = lines_from_start(
        fd, S_ISREG(info.st_mode), limit == 0 ? (size_t)DELIVERY_LINE_BYTES_MAX : limit);
    return PAWL_OK;
}

/* Is it still the file whose lines the sink has? */
static pawl_status check_past(struct file_source *source, pawl_error *reterr)
{
    const struct delivery_place *applied = &source->options.applied;
    struct delivery_place place;
    pawl_error error = PAWL_ERROR_INIT;

    if (!source->lines.is_file || applied->sequence == 0
        || applied->created_ns != source->created_ns) {
        return PAWL_OK;
    }
    pawl_status status = scan_to(source, applied->sequence, &place, &error);
    if (status == PAWL_NOT_FOUND) {
        return fail_changed(source, "has become shorter", reterr);
    }
    return status == PAWL_OK ? check_applied(source, &place, reterr)
                             : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl__delivery_file_open(const struct delivery_file_options *options,
                                     struct delivery_source **ret_source,
                                     pawl_error *reterr)
{
    static const struct delivery_source_ops ops = {
        .fetch = fetch,
        .ack = ack,
        .nak = nak,
        .state = state,
        .restart_at = restart_at,
        .close = close_file,
    };
    AUTO(close_p) struct file_source *source = NULL;

    NEED(options, reterr);
    NEED(ret_source, reterr);
    source = calloc(1, sizeof(*source));
    TRY(pawl__check_memory(source, "a source", reterr));
    source->base = (struct delivery_source){ .ops = &ops,
                                             .is_named = true,
                                             .may_skip = true }; /* blank lines */
    source->options = *options;
    source->options.generation = options->generation == NULL ? "1" : options->generation;
    source->name = options->path == NULL ? "standard input" : options->path;
    source->clock = pawl__clock_or_real(options->clock);
    source->own_fd = -1;
    TRY(hash_generation(source, reterr));
    TRY(open_path(source, reterr));
    TRY(check_past(source, reterr));
    *ret_source = &STEAL(source)->base;
    return PAWL_OK;
}
