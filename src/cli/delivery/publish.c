/* pawl publish: lines of JSON into the outbox, and from there to JetStream. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/json/json.h"
#include "base/os/fs.h"
#include "base/os/lines.h"
#include "cli/commands.h"
#include "cli/delivery/outbox.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/text.h"

enum {
    BATCH_EVENTS_MAX = 1000,
    BATCH_BYTES_MAX = 4 << 20,
    LINE_BYTES_MAX = 64 << 20, /* the publisher's own limit is lower, and checked there */
    FIELD_BYTES_MAX = 64,
    WAIT_SLICE_MS = 200,
};

/* A line of the batch: its texts are copies, because reading on moves the lines. */
struct held {
    char *payload;
    char *event_id;
    char *key; /* NULL: none */
    uint64_t line;
};

struct publish {
    const struct pawl__cli_run *run;
    pawl_publisher *publisher;
    const char *subject;
    const char *id_field;
    const char *key_field; /* NULL: no partitions */
    int64_t wait_ns;
    size_t count;
    size_t bytes;
    struct held held[BATCH_EVENTS_MAX];
    pawl_outgoing events[BATCH_EVENTS_MAX];
    pawl_published results[BATCH_EVENTS_MAX];
    uint64_t accepted;
    uint64_t duplicates;
};

static void drop_batch(struct publish *publish)
{
    for (size_t i = 0; i < publish->count; i++) {
        free(publish->held[i].payload);
        free(publish->held[i].event_id);
        free(publish->held[i].key);
    }
    publish->count = 0;
    publish->bytes = 0;
}

static void publish_free_p(struct publish **publish)
{
    if (*publish != NULL) {
        drop_batch(*publish);
        free(*publish);
    }
}

static pawl_status fail_at_line(uint64_t line, pawl_status status, pawl_error *reterr)
{
    return pawl__fail_context(reterr, status, "line %llu", (unsigned long long)line);
}

/* --- a batch --- */

static pawl_status submit(struct publish *publish, pawl_error *reterr)
{
    for (size_t i = 0; i < publish->count; i++) {
        const struct held *held = &publish->held[i];
        pawl_outgoing *event = &publish->events[i];
        *event = (pawl_outgoing)PAWL_OUTGOING_INIT;
        event->subject = pawl_view_of(publish->subject);
        event->event_id = pawl_view_of(held->event_id);
        event->key = pawl_view_of(held->key);
        event->payload = pawl_view_of(held->payload);
        publish->results[i] = (pawl_published)PAWL_PUBLISHED_INIT;
    }
    return pawl_publisher_publish(
        publish->publisher, publish->events, publish->count, publish->results, reterr);
}

/* An outbox that is full is waited for: the broker takes what it holds. */
static pawl_status submit_patiently(struct publish *publish, pawl_error *reterr)
{
    int64_t deadline_ns = pawl__monotonic_ns(publish->run->clock) + publish->wait_ns;
    pawl_status status = submit(publish, reterr);

    while (status == PAWL_BUSY && reterr->detail == PAWL_DETAIL_QUEUE_FULL
           && !pawl__cli_interrupted() && pawl__monotonic_ns(publish->run->clock) < deadline_ns) {
        pawl__sleep_until(publish->run->clock,
                          pawl__monotonic_ns(publish->run->clock) + WAIT_SLICE_MS * NS_PER_MS);
        *reterr = (pawl_error)PAWL_ERROR_INIT;
        status = submit(publish, reterr);
    }
    return status;
}

/* A batch that is refused for one of its lines is accepted up to that line, and the error names the line. */
static pawl_status flush(struct publish *publish, pawl_error *reterr)
{
    pawl_status status = publish->count == 0 ? PAWL_OK : submit_patiently(publish, reterr);

    if (status != PAWL_OK && reterr->index > 0) {
        pawl_error refused = *reterr;
        uint64_t line = publish->held[refused.index].line;
        size_t before = (size_t)refused.index;
        for (size_t i = before; i < publish->count; i++) {
            free(publish->held[i].payload);
            free(publish->held[i].event_id);
            free(publish->held[i].key);
        }
        publish->count = before;
        *reterr = (pawl_error)PAWL_ERROR_INIT;
        TRY(flush(publish, reterr));
        *reterr = refused;
        return fail_at_line(line, status, reterr);
    }
    if (status != PAWL_OK) {
        return reterr->index == 0 ? fail_at_line(publish->held[0].line, status, reterr) : status;
    }
    for (size_t i = 0; i < publish->count; i++) {
        publish->accepted += !publish->results[i].duplicate;
        publish->duplicates += publish->results[i].duplicate;
    }
    drop_batch(publish);
    return PAWL_OK;
}

/* --- lines --- */

/* A string or a whole number. */
static pawl_status take_field(const struct pawl__json_node *object,
                              const char *field,
                              char **ret_text,
                              pawl_error *reterr)
{
    struct pawl__json_node node = pawl__json_key(object, field);
    char room[FIELD_BYTES_MAX];
    struct pawl__buf number = BUF_OVER(room);
    pawl_view text = { NULL, 0 };

    if (json_is_integer(node.value)) {
        pawl__buf_add_format(&number, "%" JSON_INTEGER_FORMAT, json_integer_value(node.value));
        text = pawl__buf_view(&number);
    } else {
        TRY(pawl__json_text(node, &text, reterr));
    }
    *ret_text = pawl__view_dup(text);
    return *ret_text != NULL ? PAWL_OK : pawl__fail(reterr, PAWL_NOMEM, "no memory for a line");
}

static pawl_status take_line(struct publish *publish,
                             pawl_view line,
                             struct held *held,
                             pawl_error *reterr)
{
    json_auto_t *json = NULL;
    struct pawl__json_node object;

    TRY(pawl__json_parse(line, LINE_BYTES_MAX, &json, reterr));
    TRY(pawl__json_object(pawl__json_root(json, "event"), &object, reterr));
    TRY(take_field(&object, publish->id_field, &held->event_id, reterr));
    if (publish->key_field != NULL) {
        TRY(take_field(&object, publish->key_field, &held->key, reterr));
    }
    held->payload = pawl__view_dup(line);
    return held->payload != NULL ? PAWL_OK : pawl__fail(reterr, PAWL_NOMEM, "no memory for a line");
}

static pawl_view trim(pawl_view line)
{
    while (line.len > 0 && strchr(" \t\r", line.data[line.len - 1]) != NULL) {
        line.len--;
    }
    return line;
}

static pawl_status add_line(struct publish *publish,
                            pawl_view line,
                            uint64_t number,
                            pawl_error *reterr)
{
    struct held *held = &publish->held[publish->count];
    pawl_error bad = PAWL_ERROR_INIT;

    line = trim(line);
    if (line.len == 0) {
        return PAWL_OK;
    }
    *held = (struct held){ .line = number };
    pawl_status status = take_line(publish, line, held, &bad);
    if (status == PAWL_OK) {
        publish->count++;
        publish->bytes += line.len;
        return PAWL_OK;
    }
    free(held->event_id);
    free(held->key);
    TRY(flush(publish,
              reterr)); /* what came before it is accepted first, and may itself be refused */
    *reterr = bad;
    return fail_at_line(number, status, reterr);
}

static pawl_status read_lines(struct publish *publish, int fd, pawl_error *reterr)
{
    AUTO(pawl__lines_done) struct pawl__lines lines = pawl__lines_of(fd, LINE_BYTES_MAX);
    pawl_error end = PAWL_ERROR_INIT;
    pawl_view line;
    pawl_status status;

    while ((status = pawl__lines_next(&lines, &line, &end)) == PAWL_OK
           && !pawl__cli_interrupted()) {
        TRY(add_line(publish, line, lines.number, reterr));
        if (publish->count == BATCH_EVENTS_MAX || publish->bytes >= BATCH_BYTES_MAX
            || !pawl__lines_ready(&lines)) {
            TRY(flush(publish, reterr));
        }
    }
    TRY(flush(publish, reterr));
    return status == PAWL_NOT_FOUND || status == PAWL_OK ? PAWL_OK
                                                         : pawl__fail_with(reterr, status, &end);
}

/* --- the command --- */

static pawl_status wait_for_broker(struct publish *publish, pawl_error *reterr)
{
    int64_t deadline_ns = pawl__monotonic_ns(publish->run->clock) + publish->wait_ns;
    pawl_status status;

    do {
        int64_t left_ns = deadline_ns - pawl__monotonic_ns(publish->run->clock);
        int64_t slice_ms = MIN(MAX(left_ns / NS_PER_MS, (int64_t)0), (int64_t)WAIT_SLICE_MS);
        status = pawl_publisher_flush(publish->publisher, (uint32_t)slice_ms, reterr);
    } while (status == PAWL_TIMEOUT && !pawl__cli_interrupted()
             && pawl__monotonic_ns(publish->run->clock) < deadline_ns);
    return status;
}

static pawl_status print_summary(const struct publish *publish, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(LINE_BYTES_MAX);
    pawl_publisher_status status = PAWL_PUBLISHER_STATUS_INIT;

    TRY(pawl_publisher_get_status(publish->publisher, &status, reterr));
    pawl__buf_add_format(&text,
                         publish->run->json
                             ? "{\"accepted\":%llu,\"duplicates\":%llu,\"published\":%llu,"
                               "\"republished\":%llu,\"pending\":%llu,\"failed\":%llu}\n"
                             : "accepted %llu, duplicates %llu, published %llu, republished %llu, "
                               "pending %llu, failed %llu\n",
                         (unsigned long long)publish->accepted,
                         (unsigned long long)publish->duplicates,
                         (unsigned long long)status.published,
                         (unsigned long long)status.republished,
                         (unsigned long long)status.pending,
                         (unsigned long long)status.failed);
    TRY(pawl__cli_out_add(&text, reterr));
    return status.failed == 0
               ? PAWL_OK
               : pawl__fail(
                   reterr,
                   PAWL_FAILED,
                   "the server refuses %llu events; 'pawl outbox failed' lists them, 'pawl "
                   "outbox retry' tries them again",
                   (unsigned long long)status.failed);
}

/* What was accepted is shown and sent also when a later line was refused. */
static pawl_status publish_lines(struct publish *publish, int fd, pawl_error *reterr)
{
    pawl_error bad = PAWL_ERROR_INIT;
    pawl_error late = PAWL_ERROR_INIT;
    pawl_status read = read_lines(publish, fd, &bad);
    pawl_status sent = wait_for_broker(publish, &late);
    pawl_status shown = print_summary(publish, reterr);

    if (read != PAWL_OK) {
        return pawl__fail_with(reterr, read, &bad);
    }
    return sent != PAWL_OK ? pawl__fail_with(reterr, sent, &late) : shown;
}

static void close_input(const int *fd)
{
    if (*fd > STDIN_FILENO) {
        close(*fd);
    }
}

static pawl_status open_input(const char *path, int *ret_fd, pawl_error *reterr)
{
    if (path == NULL || strcmp(path, "-") == 0) {
        *ret_fd = STDIN_FILENO;
        return PAWL_OK;
    }
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    return *ret_fd >= 0 ? PAWL_OK
                        : pawl__fail_errno(reterr, errno, "open %s", pawl__cli_quote(path).text);
}

static pawl_status parse_flags(struct publish *publish,
                               pawl_publisher_options *options,
                               pawl_error *reterr)
{
    const struct pawl__cli_args *args = publish->run->args;
    const char *source = pawl__cli_args_value(args, "source");

    publish->subject = pawl__cli_args_operand(args, 0);
    publish->id_field = pawl__cli_args_value(args, "id-field");
    publish->key_field = pawl__cli_args_value(args, "key");
    if (publish->key_field != NULL && !pawl__cli_args_has(args, "partitions")) {
        return pawl__fail(reterr, PAWL_INVALID, "'--key' needs --partitions beside it");
    }
    if (pawl__cli_args_has(args, "partitions")) {
        options->partitions = (uint32_t)pawl__cli_args_number(args, "partitions");
    }
    options->servers = pawl__cli_args_value(args, "to");
    options->source = source == NULL ? publish->subject : source;
    options->creds_file = pawl__cli_args_value(args, "creds");
    options->nkey_seed_file = pawl__cli_args_value(args, "nkey");
    options->tls_ca_file = pawl__cli_args_value(args, "tls-ca");
    options->tls_cert_file = pawl__cli_args_value(args, "tls-certificate");
    options->tls_key_file = pawl__cli_args_value(args, "tls-key");
    pawl_status status = pawl__duration_parse(
        pawl_view_of(pawl__cli_args_value(args, "wait")), &publish->wait_ns, reterr);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "'--wait'");
}

static pawl_status publish_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(publish_free_p) struct publish *publish = calloc(1, sizeof(*publish));
    AUTO(close_input) int fd = -1;
    pawl_publisher_options options = pawl__cli_outbox_options(run);

    TRY(pawl__check_memory(publish, "a batch", reterr));
    publish->run = run;
    TRY(parse_flags(publish, &options, reterr));
    TRY(open_input(pawl__cli_args_operand(run->args, 1), &fd, reterr));
    TRY(pawl__cli_outbox_open(run, &options, &publish->publisher, reterr));
    pawl__cli_interrupt_catch(NULL);
    pawl_status status = publish_lines(publish, fd, reterr);
    return pawl__cli_outbox_close(publish->publisher, status, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_publish = {
    .name = "publish",
    .summary = "publish JSON lines to NATS JetStream, each once",
    .description =
        "Reads one event per line (JSON objects) from FILE or standard input. Every event is on "
        "disk "
        "in the outbox before the broker hears of it: killed at any point and run again, the same "
        "command publishes each line once, in order. Hours without a broker are fine; the next "
        "'pawl "
        "publish' sends what waits.\n\n"
        "The id of an event is {source}:{id}:0, with the id from --id-field. It becomes the "
        "message's Nats-Msg-Id, and the headers Pawl-Source, Pawl-Event-Id and Pawl-Sequence carry "
        "its parts, which 'pawl deliver' reads. The same line again is a duplicate. The same id "
        "with another payload is a conflict, exit code 4.\n\n"
        "An acknowledged event stays in the outbox until the server has surely synced it "
        "(producer_wal.keep). What the stream has lost by then is published again.\n\n"
        "A line that is not an event ends the command with its number (exit code 2); everything "
        "before it is accepted, nothing after it is. Events that are still not acknowledged after "
        "--wait are exit code 5: they stay in the outbox. 'pawl outbox' shows it.",
    .operands = OPERANDS({ .name = "SUBJECT", .help = "Where to publish." },
                         { .name = "FILE",
                           .help = "File of JSON lines; - or nothing is standard input.",
                           .kind = VALUE_FILE,
                           .optional = true }),
    .flags =
        FLAGS(FLAG("to",
                   "URL",
                   "The broker: nats://HOST:4222, tls://HOST:4222, several behind commas.",
                   .required = true),
              FLAG("source", "NAME", "Begins the ids; the subject if it is left out."),
              FLAG("id-field", "KEY", "Key of the line that has the event's id.", .fallback = "id"),
              NUMBER_FLAG("partitions",
                          "N",
                          1,
                          PAWL_PUBLISHER_PARTITIONS_MAX,
                          "Publish to SUBJECT.{0 to N-1}, by a hash of --key."),
              FLAG("key",
                   "KEY",
                   "With --partitions: key of the line that decides; the id if it is left out."),
              FLAG("wait",
                   "DURATION",
                   "How long to wait until the broker has acknowledged everything.",
                   .fallback = "1m"),
              FLAG("creds", "FILE", "Credentials file.", .kind = VALUE_FILE),
              FLAG("nkey", "FILE", "File with the seed of an nkey.", .kind = VALUE_FILE),
              FLAG("tls-ca", "FILE", "Certificates to trust.", .kind = VALUE_FILE),
              FLAG("tls-certificate", "FILE", "Our certificate.", .kind = VALUE_FILE),
              FLAG("tls-key", "FILE", "Our key.", .kind = VALUE_FILE)),
    .examples = EXAMPLES(
        { .line = "pawl publish orders orders.jsonl --to nats://localhost:4222 --id-field order",
          .says = "a file; run it again and nothing is there twice" },
        { .line = "pawl publish orders --to nats://localhost:4222 < orders.jsonl",
          .says = "standard input: what a program writes, as it comes" }),
    .run = publish_run,
};
