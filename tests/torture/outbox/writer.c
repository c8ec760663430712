/* The producer that is killed: an outbox without a broker.
 *
 *   outbox_writer STORE LOCATION write FIRST BATCHES [unsafe]
 *   outbox_writer STORE LOCATION check [unsafe]
 *
 * `write` says the last number of each batch once pawl_publisher_publish has returned. `check` says the number of every
 * event that the outbox has; one whose payload is wrong is an error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/publisher.h>

#include "base/core/error.h"
#include "delivery/outbox/rocksdb.h"
#include "torture/oracle.h"

static pawl_status say(const char *line, pawl_error *reterr)
{
    ssize_t put = write(STDOUT_FILENO, line, strlen(line));

    return put == (ssize_t)strlen(line) ? PAWL_OK
                                        : pawl__fail_errno(reterr, errno, "tell the driver");
}

static pawl_status say_number(uint64_t number, pawl_error *reterr)
{
    char line[32];

    snprintf(line, sizeof(line), "%llu\n", (unsigned long long)number);
    return say(line, reterr);
}

/* One batch of events that are called by their numbers. */
static pawl_status publish(pawl_publisher *publisher,
                           uint64_t first,
                           size_t count,
                           pawl_published *ret_results,
                           pawl_error *reterr)
{
    static char texts[BATCH_LEN_MAX][RECORD_BYTES_MAX];
    static char ids[BATCH_LEN_MAX][24];
    pawl_outgoing events[BATCH_LEN_MAX];

    REQUIRE(count <= BATCH_LEN_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t len = record_text(first + i, texts[i]);
        snprintf(ids[i], sizeof(ids[i]), "e-%llu", (unsigned long long)(first + i));
        events[i] = (pawl_outgoing)PAWL_OUTGOING_INIT;
        events[i].subject = pawl_view_of((first + i) % 3 == 0 ? "a" : "b");
        events[i].event_id = pawl_view_of(ids[i]);
        events[i].payload = (pawl_view){ texts[i], len };
        ret_results[i] = (pawl_published)PAWL_PUBLISHED_INIT;
    }
    return pawl_publisher_publish(publisher, events, count, ret_results, reterr);
}

static pawl_status write_batches(pawl_publisher *publisher,
                                 uint64_t first,
                                 uint64_t batches,
                                 pawl_error *reterr)
{
    char c = 0;

    for (uint64_t i = 0; i < batches; i++) {
        pawl_published results[BATCH_LEN_MAX];
        uint64_t count = batch_len(first);
        TRY(publish(publisher, first, (size_t)count, results, reterr));
        first += count;
        TRY(say_number(first - 1, reterr));
    }
    TRY(say("end\n", reterr));
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
    return PAWL_OK;
}

static pawl_status check_event(const struct outbox_entry *entry, pawl_error *reterr)
{
    char expected[RECORD_BYTES_MAX];
    char text[RECORD_BYTES_MAX];

    snprintf(text, sizeof(text), "%.*s", VIEW_ARGS(entry->payload));
    if (strncmp(text, "record ", 7) != 0) {
        return pawl__fail(reterr, PAWL_CORRUPT, "an event that nobody published");
    }
    unsigned long long number = strtoull(&text[7], NULL, 10);
    size_t len = record_text(number, expected);
    if (!pawl__view_equal(entry->payload, (pawl_view){ expected, len })) {
        return pawl__fail(reterr, PAWL_CORRUPT, "event %llu is damaged", number);
    }
    return say_number(number, reterr);
}

static void close_store(struct outbox_store **store)
{
    if (*store != NULL) {
        (*store)->ops->close(*store);
    }
}

static pawl_status check(const char *dir, pawl_error *reterr)
{
    AUTO(close_store) struct outbox_store *store = NULL;
    AUTO(pawl__delivery_outbox_read_done) struct outbox_read read = OUTBOX_READ_INIT;
    struct outbox_stats stats;

    TRY(pawl__delivery_outbox_rocksdb_open(dir, NULL, &store, reterr));
    TRY(store->ops->stats(store, &stats, reterr));
    for (uint64_t number = 1; number <= stats.last; number++) {
        bool is_found = false;
        TRY(store->ops->read(store, number, &read, &is_found, reterr));
        if (is_found) {
            TRY(check_event(&read.entry, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status run(int argc, char **argv, pawl_error *reterr)
{
    pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;
    pawl_publisher *publisher = NULL;

    if (strcmp(argv[3], "check") == 0) {
        return check(argv[2], reterr);
    }
    if (strcmp(argv[3], "write") != 0 || argc < 6) {
        return pawl__fail(reterr, PAWL_INVALID, "'%s' is neither write nor check", argv[3]);
    }
    options.source = "torture";
    options.free_space_min = 0;
    options.unsafe_no_sync = argc == 7 && strcmp(argv[6], "unsafe") == 0;
    TRY(pawl_publisher_open(argv[2], &options, &publisher, reterr));
    pawl_status status =
        write_batches(publisher, strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10), reterr);
    (void)!pawl_publisher_close(publisher, 0, NULL);
    return status;
}

int main(int argc, char **argv)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (argc < 4) {
        fprintf(stderr, "usage: outbox_writer STORE LOCATION write FIRST BATCHES [unsafe]|check\n");
        return 2;
    }
    pawl_status status = run(argc, argv, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "outbox_writer: %s: %s\n", pawl_status_name(status), error.message);
    }
    return status == PAWL_OK ? 0 : 1;
}
