/* The process that is killed.
 *
 *   work_writer STORE LOCATION write FIRST BATCHES [unsafe]
 *   work_writer STORE LOCATION check
 *   work_writer STORE LOCATION drop
 *
 * `write` submits a batch of items in one call and prints "s LAST", then claims and completes each of them and prints
 * "c LAST", nothing before it is durable; after BATCHES of them "end", and it waits for its standard input to close.
 * `check` prints every item, "c NUMBER" when it is completed and "p NUMBER" otherwise; an item whose input is wrong, or
 * that has another token than its one claim gave, is an error. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/work.h>

#include "base/core/error.h"
#include "store/postgres/postgres.h"
#include "torture/oracle.h"

#define TASK "torture"
#define OUTPUT "{\"done\":true}"

DEFINE_AUTO(pawl_claimed *, pawl_claimed_free)

static void work_close_p(pawl_work **work)
{
    (void)pawl_work_close(*work, 0, NULL);
}

struct texts {
    char id[BATCH_LEN_MAX][32];
    char input[BATCH_LEN_MAX][RECORD_BYTES_MAX + 2];
};

/* Unbuffered: what was written is with the driver even if we die now. */
static pawl_status say(const char *line, pawl_error *reterr)
{
    ssize_t put = write(STDOUT_FILENO, line, strlen(line));

    return put == (ssize_t)strlen(line) ? PAWL_OK
                                        : pawl__fail_errno(reterr, errno, "tell the driver");
}

static pawl_status acknowledge(char what, uint64_t last, pawl_error *reterr)
{
    char line[32];

    snprintf(line, sizeof(line), "%c %" PRIu64 "\n", what, last);
    return say(line, reterr);
}

/* The text of a record as a JSON string; it has nothing to escape. */
static pawl_view input_of(uint64_t number, char buffer[RECORD_BYTES_MAX + 2])
{
    size_t len = record_text(number, buffer + 1);

    buffer[0] = '"';
    buffer[len + 1] = '"';
    return (pawl_view){ buffer, len + 2 };
}

static pawl_status submit(
    pawl_work *work, pawl_view type, uint64_t first, uint64_t count, pawl_error *reterr)
{
    static struct texts texts;
    pawl_submission items[BATCH_LEN_MAX];

    for (uint64_t i = 0; i < count; i++) {
        items[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        snprintf(texts.id[i], sizeof(texts.id[i]), "%" PRIu64, first + i);
        items[i].work_item_id = pawl_view_of(texts.id[i]);
        items[i].task_id = pawl_view_of(TASK);
        items[i].work_type = type;
        items[i].input_data = input_of(first + i, texts.input[i]);
    }
    return pawl_work_submit(work, items, (size_t)count, NULL, reterr);
}

/* Only what this writer submitted: `type` is its own. */
static pawl_status complete(pawl_work *work, pawl_view type, uint64_t count, pawl_error *reterr)
{
    AUTO(pawl_claimed_free_p) pawl_claimed *claimed = NULL;
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("writer");
    claim.work_types = &type;
    claim.work_type_count = 1;
    claim.count_max = (uint32_t)count;
    pawl_status status = pawl_work_claim(work, &claim, &claimed, reterr);
    if (status == PAWL_OK && claimed->count != count) {
        return pawl__fail(reterr, PAWL_FAILED, "claimed %zu of %" PRIu64, claimed->count, count);
    }
    for (size_t i = 0; status == PAWL_OK && i < claimed->count; i++) {
        pawl_lease lease = { sizeof(pawl_lease),
                             claimed->items[i].work_item_id,
                             claimed->items[i].token };
        status = pawl_work_complete(work, &lease, pawl_view_of(OUTPUT), reterr);
    }
    return status;
}

static pawl_status write_batches(pawl_work *work,
                                 uint64_t first,
                                 uint64_t batches,
                                 pawl_error *reterr)
{
    char type[32];
    pawl_task task = { .size = sizeof(pawl_task),
                       .task_id = pawl_view_of(TASK),
                       .title = pawl_view_of(TASK) };
    pawl_status status = pawl_task_create(work, &task, NULL, 0, reterr);

    snprintf(type, sizeof(type), "w-%" PRIu64, first);
    for (uint64_t i = 0; status == PAWL_OK && i < batches; i++) {
        uint64_t count = batch_len(first);
        status = submit(work, pawl_view_of(type), first, count, reterr);
        if (status == PAWL_OK) {
            status = acknowledge('s', first + count - 1, reterr);
        }
        if (status == PAWL_OK) {
            status = complete(work, pawl_view_of(type), count, reterr);
        }
        if (status == PAWL_OK) {
            status = acknowledge('c', first + count - 1, reterr);
        }
        first += count;
    }
    char c = 0;
    if (status == PAWL_OK) {
        status = say("end\n", reterr);
    }
    while (status == PAWL_OK && read(STDIN_FILENO, &c, 1) > 0) {
    }
    return status;
}

/* --- check --- */

static bool print_item(void *context, const pawl_item *item)
{
    char input[RECORD_BYTES_MAX + 2];
    uint64_t number = strtoull(item->work_item_id.data, NULL, 10);
    pawl_view expected = input_of(number, input);
    bool completed = item->status == PAWL_ITEM_COMPLETED;
    bool *wrong = context;

    if (item->input_data.len != expected.len
        || memcmp(item->input_data.data, expected.data, expected.len) != 0 || item->token > 1
        || (completed && (item->token != 1 || item->output_data.len != strlen(OUTPUT)))) {
        fprintf(stderr, "item %" PRIu64 " is not what was written\n", number);
        *wrong = true;
    }
    printf("%c %" PRIu64 "\n", completed ? 'c' : 'p', number);
    return true;
}

static pawl_status check(pawl_work *work, pawl_error *reterr)
{
    bool wrong = false;
    pawl_status status = pawl_work_list(work, NULL, NULL, print_item, &wrong, reterr);

    return status == PAWL_OK && wrong ? pawl__fail(reterr, PAWL_CORRUPT, "items are damaged")
                                      : status;
}

static pawl_status drop(const char *url, pawl_error *reterr)
{
    AUTO(pawl__pg_close_p) struct pawl__pg *pg = NULL;
    pawl_status status = pawl__pg_open(url, NULL, &pg, reterr);

    return status != PAWL_OK ? status
                             : pawl__pg_script(pg, "DROP SCHEMA IF EXISTS pawl CASCADE", reterr);
}

static pawl_status run(int argc, char **argv, pawl_error *reterr)
{
    AUTO(work_close_p) pawl_work *work = NULL;
    bool server = strncmp(argv[2], "postgres", 8) == 0;
    bool normal = strcmp(argv[argc - 1], "unsafe") == 0;
    char location[1024];

    if (strcmp(argv[3], "drop") == 0) {
        return server ? drop(argv[2], reterr) : PAWL_OK;
    }
    snprintf(location,
             sizeof(location),
             server ? "%s%s" : "%s/work.sqlite%s",
             argv[2],
             normal && !server ? "?durability=normal" : "");
    pawl_status status = pawl_work_open(location, NULL, &work, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    return strcmp(argv[3], "check") == 0
               ? check(work, reterr)
               : write_batches(
                   work, strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10), reterr);
}

int main(int argc, char **argv)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool looks = argc >= 4 && (strcmp(argv[3], "check") == 0 || strcmp(argv[3], "drop") == 0);

    if (!looks && (argc < 6 || strcmp(argv[3], "write") != 0)) {
        fprintf(stderr,
                "usage: work_writer STORE LOCATION write FIRST BATCHES [unsafe]|check|drop\n");
        return 2;
    }
    pawl_status status = run(argc, argv, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "work_writer: %s: %s\n", pawl_status_name(status), error.message);
    }
    return status == PAWL_OK ? 0 : 1;
}
