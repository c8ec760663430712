/* The process that is killed.
 *
 *   store_writer STORE LOCATION write FIRST BATCHES [unsafe]
 *   store_writer STORE LOCATION list
 *   store_writer STORE LOCATION drop
 *
 * `write` prints the last number of each batch after its commit has returned, and nothing before.
 * After BATCHES of them it prints "end" and waits, the store open, for its standard input to close.
 * `list` prints the number of every record; one whose text is wrong is an error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "torture/oracle.h"
#include "torture/store/store.h"

#define BATCHES_BETWEEN_TIDY 16

static const struct torture_store_ops *const stores[] = {
    &torture_sqlite,
    &torture_postgres,
    &torture_duckdb,
    &torture_rocksdb,
};

static const struct torture_store_ops *find_store(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(stores); i++) {
        if (strcmp(stores[i]->name, name) == 0) {
            return stores[i];
        }
    }
    return NULL;
}

/* Unbuffered: what was written is with the driver even if we die now. */
static pawl_status say(const char *line, pawl_error *reterr)
{
    ssize_t put = write(STDOUT_FILENO, line, strlen(line));

    return put == (ssize_t)strlen(line) ? PAWL_OK
                                        : pawl__fail_errno(reterr, errno, "tell the driver");
}

static pawl_status acknowledge(uint64_t last, pawl_error *reterr)
{
    char line[32];

    snprintf(line, sizeof(line), "%llu\n", (unsigned long long)last);
    return say(line, reterr);
}

static pawl_status wait_for_the_end(pawl_error *reterr)
{
    char c = 0;
    pawl_status status = say("end\n", reterr);

    while (status == PAWL_OK && read(STDIN_FILENO, &c, 1) > 0) {
    }
    return status;
}

static pawl_status write_batches(struct torture_store *store,
                                 uint64_t first,
                                 uint64_t batches,
                                 pawl_error *reterr)
{
    for (uint64_t i = 1; i <= batches; i++) {
        uint64_t count = batch_len(first);
        pawl_status status = store->ops->append(store, first, count, reterr);
        first += count;
        if (status == PAWL_OK) {
            status = acknowledge(first - 1, reterr);
        }
        if (status == PAWL_OK && i % BATCHES_BETWEEN_TIDY == 0) {
            status = store->ops->tidy(store, reterr);
        }
        if (status != PAWL_OK) {
            return status;
        }
    }
    return wait_for_the_end(reterr);
}

static pawl_status print_record(void *context, uint64_t number, pawl_view text, pawl_error *reterr)
{
    char expected[RECORD_BYTES_MAX];
    size_t len = record_text(number, expected);

    (void)context;
    if (text.len != len || memcmp(text.data, expected, len) != 0) {
        return pawl__fail(
            reterr, PAWL_CORRUPT, "record %llu is damaged", (unsigned long long)number);
    }
    printf("%llu\n", (unsigned long long)number);
    return PAWL_OK;
}

static void close_store(struct torture_store **store)
{
    if (*store != NULL) {
        (*store)->ops->close(*store);
    }
}

static pawl_status run(const struct torture_store_ops *ops,
                       int argc,
                       char **argv,
                       pawl_error *reterr)
{
    AUTO(close_store) struct torture_store *store = NULL;
    bool unsafe = argc == 7 && strcmp(argv[6], "unsafe") == 0;

    if (strcmp(argv[3], "drop") == 0) {
        return ops->drop == NULL ? PAWL_OK : ops->drop(argv[2], reterr);
    }
    pawl_status status = ops->open(argv[2], unsafe, &store, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (strcmp(argv[3], "check") == 0) {
        return store->ops->list(store, print_record, NULL, reterr);
    }
    if (strcmp(argv[3], "write") == 0 && argc >= 6) {
        uint64_t first = strtoull(argv[4], NULL, 10);
        return write_batches(store, first, strtoull(argv[5], NULL, 10), reterr);
    }
    return pawl__fail(reterr, PAWL_INVALID, "'%s' is none of write, check and drop", argv[3]);
}

int main(int argc, char **argv)
{
    const struct torture_store_ops *ops = argc >= 4 ? find_store(argv[1]) : NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (ops == NULL) {
        fprintf(stderr,
                "usage: store_writer STORE LOCATION write FIRST BATCHES [unsafe]|check|drop\n");
        return 2;
    }
    pawl_status status = run(ops, argc, argv, &error);
    if (status != PAWL_OK) {
        fprintf(stderr, "store_writer: %s: %s\n", pawl_status_name(status), error.message);
    }
    return status == PAWL_OK ? 0 : 1;
}
