/* The process that is killed.
 *
 *   app_writer STORE LOCATION write FIRST COMMANDS [unsafe]
 *   app_writer STORE LOCATION check [unsafe]
 *   app_writer STORE LOCATION drop
 *
 * LOCATION is a directory or a postgres:// URL; STORE says the same and is not read. `write` makes the commands FIRST, FIRST +
 * 1, ... from several threads, and before that the last ones that are there once more; each has its
 * number as its key. It says, when a command has its answer,
 *
 *   COMMAND WORKSPACE PLOG-OFFSET WLOG-OFFSET ID,ID,...
 *
 * In between it closes and opens. After COMMANDS of them it prints "end" and waits, the application open,
 * for its standard input to close.
 *
 * `check` opens, and prints the same line for every event. What it finds wrong is an error: a hole in
 * the offsets of a log, a number that a workspace used twice or not at all, a record that is not there
 * or says something else, a WLog that does not know the event, a command that is not answered with it when
 * it comes again. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/app.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/thread/thread.h"
#include "store/postgres/postgres.h"

enum {
    THREADS = 6,
    WORKSPACES = 5,
    PARTITIONS = 2,
    RECORDS_MAX = 4,
    DATA_SIZE = 256,
    COMMANDS_BETWEEN_CLOSES = 64,
    LINE_SIZE = 512,
    EVENTS_AGAIN = 4, /* of each log */
    PATIENCE_MS = 30000,
};

struct writer {
    pawl_app *app;
    char location[512];
    pawl_app_options options;
    uint64_t end; /* of the commands until the application is closed */
    atomic_uint_fast64_t next;
    atomic_bool failed;
    pawl_error error; /* of the thread that failed first */
};

static pawl_status open_app(struct writer *writer, pawl_error *reterr)
{
    static const pawl_app_sequence own = {
        sizeof(pawl_app_sequence), "invoice", PAWL_APP_SEQ_OWN_MIN, 1
    };
    static const pawl_app_kind kind = { sizeof(pawl_app_kind), "shop", 1, &own, 1 };
    pawl_app_descriptor descriptor = PAWL_APP_DESCRIPTOR_INIT;

    descriptor.name = "orders";
    descriptor.id = 1;
    descriptor.partitions = PARTITIONS;
    descriptor.kinds = &kind;
    descriptor.kind_count = 1;
    return pawl_app_open(writer->location, &descriptor, &writer->options, &writer->app, reterr);
}

/* --- what a command is: it follows from its number --- */

static uint64_t workspace_of(uint64_t command)
{
    return 1 + command % WORKSPACES;
}

static size_t records_of(uint64_t command)
{
    return 1 + command / 3 % RECORDS_MAX;
}

static pawl_app_class class_of(uint64_t command, size_t place)
{
    return (command + place) % 2 == 0 ? PAWL_APP_C_RECORD : PAWL_APP_W_RECORD;
}

/* Up to the id of its first record, which both sides add. */
static size_t data_of(uint64_t command, size_t place, char data[DATA_SIZE])
{
    int padding = (int)(command * 37 % 90);

    return (size_t)snprintf(data,
                            DATA_SIZE,
                            "{\"command\":%" PRIu64 ",\"place\":%zu,\"pad\":\"%*s\",\"first\":",
                            command,
                            place,
                            padding,
                            "");
}

/* --- writing --- */

/* Unbuffered and in one piece: what was written is with the driver even if we die now. */
static pawl_status say(const char *line, pawl_error *reterr)
{
    ssize_t put = write(STDOUT_FILENO, line, strlen(line));

    return put == (ssize_t)strlen(line) ? PAWL_OK
                                        : pawl__fail_errno(reterr, errno, "tell the driver");
}

static pawl_status exec(struct writer *writer,
                        const pawl_app_command *command,
                        pawl_app_response **ret_response,
                        pawl_error *reterr)
{
    pawl_status status = PAWL_BUSY;

    while (status == PAWL_BUSY && !atomic_load(&writer->failed)) {
        status = pawl_app_wait(writer->app, PATIENCE_MS, reterr);
        if (status == PAWL_OK) {
            status = pawl_app_exec(writer->app, command, ret_response, reterr);
        }
    }
    return status;
}

static pawl_status acknowledge(uint64_t command,
                               const pawl_app_response *response,
                               pawl_error *reterr)
{
    char space[LINE_SIZE];
    struct pawl__buf line = BUF_OVER(space);

    pawl__buf_add_format(&line,
                         "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                         command,
                         workspace_of(command),
                         response->plog_offset,
                         response->wlog_offset);
    for (size_t i = 0; i < response->id_count; i++) {
        pawl__buf_add_format(&line, "%c%" PRIu64, i == 0 ? ' ' : ',', response->ids[i].id);
    }
    pawl__buf_add_char(&line, '\n');
    REQUIRE(!line.broken);
    return say(line.data, reterr);
}

/* A command and all that it points to. */
struct given {
    char data[RECORDS_MAX][DATA_SIZE];
    char key[32];
    pawl_app_create creates[RECORDS_MAX];
    pawl_app_command command;
};

static void fill_command(uint64_t number, struct given *given)
{
    size_t count = records_of(number);

    snprintf(given->key, sizeof(given->key), "c-%" PRIu64, number);
    for (size_t i = 0; i < count; i++) {
        size_t len = data_of(number, i, given->data[i]);
        snprintf(&given->data[i][len],
                 DATA_SIZE - len,
                 "{\"$raw\":1},\"no\":%s}",
                 i == 0 ? "{\"$next\":\"invoice\"}" : "0");
        given->creates[i] = (pawl_app_create){ .size = sizeof(pawl_app_create),
                                               .record_class = class_of(number, i),
                                               .raw_id = i + 1,
                                               .table = pawl_view_of("order"),
                                               .data = pawl_view_of(given->data[i]) };
    }
    given->command = (pawl_app_command){ .size = sizeof(pawl_app_command),
                                         .workspace = workspace_of(number),
                                         .kind = pawl_view_of("shop"),
                                         .key = pawl_view_of(given->key),
                                         .creates = given->creates,
                                         .create_count = count };
}

static pawl_status make_command(struct writer *writer, uint64_t number, pawl_error *reterr)
{
    struct given given;
    pawl_app_response *response = NULL;

    fill_command(number, &given);
    pawl_status status = exec(writer, &given.command, &response, reterr);
    if (status == PAWL_OK) {
        status = acknowledge(number, response, reterr);
    }
    pawl_app_response_free(response);
    return status;
}

static void run_thread(void *context)
{
    struct writer *writer = context;
    pawl_error error = PAWL_ERROR_INIT;

    for (;;) {
        uint64_t number = atomic_fetch_add(&writer->next, 1);
        if (number >= writer->end || atomic_load(&writer->failed)) {
            return;
        }
        if (make_command(writer, number, &error) != PAWL_OK
            && !atomic_exchange(&writer->failed, true)) {
            writer->error = error;
        }
    }
}

static pawl_status run_threads(struct writer *writer, pawl_error *reterr)
{
    struct pawl__thread threads[THREADS] = { 0 };
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < THREADS && status == PAWL_OK; i++) {
        status = pawl__thread_start(&threads[i], "commands", run_thread, writer, reterr);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&threads[i]);
    }
    if (status == PAWL_OK && atomic_load(&writer->failed)) {
        *reterr = writer->error;
        status = writer->error.status;
    }
    return status;
}

static pawl_status wait_for_the_end(pawl_error *reterr)
{
    char c = 0;
    pawl_status status = say("end\n", reterr);

    while (status == PAWL_OK && read(STDIN_FILENO, &c, 1) > 0) {
    }
    return status;
}

struct repeats {
    uint64_t commands[EVENTS_AGAIN];
    size_t count;
};

static uint64_t command_of(const pawl_app_event *event)
{
    pawl_view key = event->key;
    pawl_view prefix;
    char digits[32];

    if (!pawl__view_take(&key, 2, &prefix)) {
        return 0;
    }
    snprintf(digits, sizeof(digits), "%.*s", VIEW_ARGS(key));
    return strtoull(digits, NULL, 10);
}

static bool note_command(void *context, const pawl_app_event *event)
{
    struct repeats *repeats = context;

    repeats->commands[repeats->count++] = command_of(event);
    return true;
}

/* Those that a crash left at the end of a log: their keys are known, and they have their place. */
static pawl_status repeat_last(struct writer *writer, pawl_error *reterr)
{
    pawl_status status = pawl_app_wait(writer->app, PATIENCE_MS, reterr);

    for (uint16_t i = 0; i < PARTITIONS && status == PAWL_OK; i++) {
        pawl_sequencer_status at = PAWL_SEQUENCER_STATUS_INIT;
        struct repeats repeats = { .count = 0 };
        status = pawl_app_get_status(writer->app, i, &at, reterr);
        if (status == PAWL_OK) {
            pawl_page page = PAWL_PAGE_INIT;
            page.from = at.next_offset > EVENTS_AGAIN ? at.next_offset - EVENTS_AGAIN : 1;
            page.limit = EVENTS_AGAIN;
            status = pawl_app_read_plog(writer->app, i, &page, note_command, &repeats, reterr);
        }
        for (size_t k = 0; k < repeats.count && status == PAWL_OK; k++) {
            status = make_command(writer, repeats.commands[k], reterr);
        }
    }
    return status;
}

static pawl_status write_commands(struct writer *writer,
                                  uint64_t first,
                                  uint64_t count,
                                  pawl_error *reterr)
{
    uint64_t end = first + count;
    pawl_status status = repeat_last(writer, reterr);

    atomic_store(&writer->next, first);
    while (status == PAWL_OK && atomic_load(&writer->next) < end) {
        uint64_t from = atomic_load(&writer->next);
        writer->end = MIN(end, from + COMMANDS_BETWEEN_CLOSES);
        status = run_threads(writer, reterr);
        atomic_store(&writer->next, writer->end); /* threads looked beyond it */
        if (status == PAWL_OK && writer->end < end) {
            pawl_app_close(STEAL(writer->app), 0, NULL);
            status = open_app(writer, reterr);
        }
    }
    return status == PAWL_OK ? wait_for_the_end(reterr) : status;
}

/* --- checking --- */

struct check {
    struct writer *writer;
    uint64_t next_offset;
    uint64_t wlogs[WORKSPACES + 1]; /* the last offset of each */
    const pawl_app_record *wanted;
    const pawl_app_event *event;
    pawl_status status; /* what a visitor found */
    pawl_error error;
};

/* What a walk returned, or else what its visitor found. */
static pawl_status found(struct check *check, pawl_status status, pawl_error *reterr)
{
    pawl_status inner = check->status;

    check->status = PAWL_OK;
    return status != PAWL_OK || inner == PAWL_OK ? status
                                                 : pawl__fail_with(reterr, inner, &check->error);
}

static pawl_status fail_event(const pawl_app_event *event, const char *what, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_CORRUPT,
                      "PLog offset %" PRIu64 " (WLog offset %" PRIu64 " of workspace %" PRIu64
                      "): %s",
                      event->plog_offset,
                      event->wlog_offset,
                      event->workspace,
                      what);
}

static pawl_status compare_record_now(void *context,
                                      const pawl_app_record *record,
                                      pawl_error *reterr)
{
    const struct check *check = context;

    return pawl__view_equal(record->data, check->wanted->data)
                   && pawl__view_equal(record->table, check->wanted->table)
                   && record->record_class == check->wanted->record_class
               ? PAWL_OK
               : fail_event(check->event, "a record says something else", reterr);
}

static bool compare_record(void *context, const pawl_app_record *record)
{
    struct check *check = context;

    check->status = compare_record_now(context, record, &check->error);
    return check->status == PAWL_OK;
}

static pawl_status compare_wlog_now(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct check *check = context;

    if (event->plog_offset != check->event->plog_offset) {
        return fail_event(check->event, "the WLog has another event there", reterr);
    }
    check->wanted = NULL; /* it was there */
    return PAWL_OK;
}

static bool compare_wlog(void *context, const pawl_app_event *event)
{
    struct check *check = context;

    check->status = compare_wlog_now(context, event, &check->error);
    return check->status == PAWL_OK;
}

/* 0: it has none, or more than one. */
static uint64_t invoice_of(const pawl_app_event *event)
{
    uint64_t invoice = 0;
    size_t count = 0;

    for (size_t i = 0; i < event->number_count; i++) {
        if (event->numbers[i].sequence == PAWL_APP_SEQ_OWN_MIN) {
            invoice = event->numbers[i].number;
            count++;
        }
    }
    return count == 1 ? invoice : 0;
}

static pawl_status check_record(struct check *check,
                                uint64_t command,
                                size_t place,
                                pawl_error *reterr)
{
    const pawl_app_event *event = check->event;
    const pawl_app_record *record = &event->records[place];
    char expected[DATA_SIZE];
    size_t len = data_of(command, place, expected);

    snprintf(&expected[len],
             DATA_SIZE - len,
             "%" PRIu64 ",\"no\":%" PRIu64 "}",
             event->records[0].id,
             place == 0 ? invoice_of(event) : 0);
    if (!pawl__view_is(record->data, expected)) {
        return fail_event(event, "a record of the event is not as it was written", reterr);
    }
    check->wanted = record;
    pawl_status status = pawl_app_read_record(
        check->writer->app, event->workspace, record->id, compare_record, check, reterr);
    status = found(check, status, reterr);
    return status == PAWL_NOT_FOUND ? fail_event(event, "a record is not there", reterr) : status;
}

static pawl_status check_wlog(struct check *check, pawl_error *reterr)
{
    const pawl_app_event *event = check->event;
    pawl_page page = PAWL_PAGE_INIT;

    page.from = event->wlog_offset;
    page.limit = 1;
    pawl_status status = pawl_app_read_wlog(
        check->writer->app, event->workspace, &page, compare_wlog, check, reterr);

    status = found(check, status, reterr);
    if (status == PAWL_OK && check->wanted != NULL) {
        return fail_event(event, "it is not in the WLog", reterr);
    }
    return status;
}

static bool answers(const pawl_app_response *response, const pawl_app_event *event)
{
    bool same = response->duplicate && response->plog_offset == event->plog_offset
                && response->wlog_offset == event->wlog_offset
                && response->id_count == event->record_count && response->number_count == 1
                && response->numbers[0].number == invoice_of(event);

    for (size_t i = 0; same && i < event->record_count; i++) {
        same = response->ids[i].id == event->records[i].id;
    }
    return same;
}

/* The same command again is answered with the event. */
static pawl_status check_key(struct check *check, uint64_t command, pawl_error *reterr)
{
    struct given given;
    pawl_app_response *response = NULL;

    fill_command(command, &given);
    pawl_status status = exec(check->writer, &given.command, &response, reterr);
    if (status == PAWL_OK && !answers(response, check->event)) {
        status = fail_event(check->event, "its key does not know it", reterr);
    }
    pawl_app_response_free(response);
    return status;
}

static void print_event(uint64_t command, const pawl_app_event *event)
{
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
           command,
           event->workspace,
           event->plog_offset,
           event->wlog_offset);
    for (size_t i = 0; i < event->record_count; i++) {
        printf("%c%" PRIu64, i == 0 ? ' ' : ',', event->records[i].id);
    }
    printf("\n");
}

static pawl_status check_event_now(void *context, const pawl_app_event *event, pawl_error *reterr)
{
    struct check *check = context;
    uint64_t command = command_of(event);
    pawl_status status = PAWL_OK;

    check->event = event;
    if (event->plog_offset != ++check->next_offset) {
        return fail_event(event, "there is a hole before it", reterr);
    }
    if (event->workspace != workspace_of(command) || event->record_count != records_of(command)
        || event->wlog_offset != ++check->wlogs[event->workspace]) {
        return fail_event(event, "it is not as it was written", reterr);
    }
    for (size_t i = 0; i < event->record_count && status == PAWL_OK; i++) {
        status = check_record(check, command, i, reterr);
    }
    if (status == PAWL_OK) {
        status = check_wlog(check, reterr);
    }
    if (status == PAWL_OK) {
        status = check_key(check, command, reterr);
    }
    if (status == PAWL_OK) {
        print_event(command, event);
    }
    return status;
}

static bool check_event(void *context, const pawl_app_event *event)
{
    struct check *check = context;

    check->status = check_event_now(context, event, &check->error);
    return check->status == PAWL_OK;
}

static pawl_status check_numbers(pawl_app *app, pawl_error *reterr)
{
    static const uint16_t sequences[] = { PAWL_APP_SEQ_WLOG_OFFSET,
                                          PAWL_APP_SEQ_C_RECORD,
                                          PAWL_APP_SEQ_OW_RECORD,
                                          PAWL_APP_SEQ_OWN_MIN };
    pawl_status status = PAWL_OK;

    for (uint64_t workspace = 1; workspace <= WORKSPACES; workspace++) {
        for (size_t i = 0; i < COUNT_OF(sequences) && status == PAWL_OK; i++) {
            pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;
            status = pawl_app_verify_sequence(
                app, workspace, sequences[i], NULL, NULL, NULL, &certificate, reterr);
        }
    }
    return status;
}

static pawl_status check_app(struct writer *writer, pawl_error *reterr)
{
    pawl_status status = pawl_app_wait(writer->app, PATIENCE_MS, reterr);

    for (uint16_t i = 0; i < PARTITIONS && status == PAWL_OK; i++) {
        struct check check = { .writer = writer };
        status = pawl_app_read_plog(writer->app, i, NULL, check_event, &check, reterr);
        status = found(&check, status, reterr);
    }
    return status == PAWL_OK ? check_numbers(writer->app, reterr) : status;
}

static pawl_status drop(const char *url, pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    pawl_status status = pawl__pg_open(url, NULL, &pg, reterr);

    return status == PAWL_OK ? pawl__pg_script(pg, "DROP SCHEMA IF EXISTS pawl CASCADE", reterr)
                             : status;
}

static pawl_status run(int argc, char **argv, pawl_error *reterr)
{
    static struct writer writer;
    bool server = strncmp(argv[2], "postgres", 8) == 0;

    if (strcmp(argv[3], "drop") == 0) {
        return server ? drop(argv[2], reterr) : PAWL_OK;
    }
    snprintf(writer.location, sizeof(writer.location), server ? "%s" : "%s/orders", argv[2]);
    writer.options = (pawl_app_options)PAWL_APP_OPTIONS_INIT;
    writer.options.flush_interval_ms = 5; /* the sequences are written all the time */
    writer.options.cache_size = 4;        /* and read */
    writer.options.unsafe_no_sync = strcmp(argv[argc - 1], "unsafe") == 0;
    pawl_status status = open_app(&writer, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    status = strcmp(argv[3], "check") == 0
                 ? check_app(&writer, reterr)
                 : write_commands(
                     &writer, strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10), reterr);
    pawl_app_close(writer.app, 0, NULL);
    return status;
}

int main(int argc, char **argv)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool writes = argc >= 6 && strcmp(argv[3], "write") == 0;
    bool looks = argc >= 4 && (strcmp(argv[3], "check") == 0 || strcmp(argv[3], "drop") == 0);

    if (!writes && !looks) {
        fprintf(stderr,
                "usage: app_writer STORE LOCATION write FIRST COMMANDS [unsafe]|check|drop\n");
        return 2;
    }
    pawl_status status = run(argc, argv, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "app_writer: %s: %s\n", pawl_status_name(status), error.message);
    }
    return status == PAWL_OK ? 0 : 1;
}
