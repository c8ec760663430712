/* Ours, twice: the sequencer alone, on a RocksDB store and with its defaults; and the application on the
 * same engine, which gives the numbers to a record and its event and has all of it on disk. */
#include <poll.h>
#include <stdlib.h>

#include <pawl/app.h>

#include "base/macros.h"
#include "seq_store.h"
#include "sequencer_peers/peer.h"

/* --- the sequencer --- */

struct client {
    struct seq_store store;
    pawl_sequencer *seq;
};

static void fill(const char *where)
{
    seq_store_fill_numbers(where, PEER_WORKSPACES);
}

static void *open_sequencer(const char *where)
{
    struct client *client = calloc(1, sizeof(*client));

    REQUIRE(client != NULL);
    seq_store_open(where, &client->store);
    client->seq = seq_store_sequencer(&client->store);
    MUST(pawl_sequencer_wait(client->seq, 60000, err));
    return client;
}

static void take_numbers(void *context, uint64_t workspace, int numbers)
{
    struct client *client = context;
    uint64_t out = 0;

    while (pawl_sequencer_start(client->seq, SEQ_STORE_KIND, workspace, &out, NULL) != PAWL_OK) {
        const struct timespec moment = { 0, 50000 }; /* the flusher is behind */
        ppoll(NULL, 0, &moment, NULL);
    }
    for (int i = 0; i < numbers; i++) {
        uint16_t sequence = i % 2 == 0 ? PAWL_APP_SEQ_WLOG_OFFSET : PAWL_APP_SEQ_OW_RECORD;
        MUST(pawl_sequencer_next(client->seq, sequence, &out, err));
    }
    MUST(pawl_sequencer_flush(client->seq, err));
}

static void close_sequencer(void *context)
{
    struct client *client = context;

    pawl_sequencer_free(client->seq);
    seq_store_close(&client->store);
    free(client);
}

const struct peer peer_sequencer = {
    .prepare = fill,
    .open = open_sequencer,
    .take = take_numbers,
    .close = close_sequencer,
};

/* --- the application --- */

static pawl_app *app;

static void open_app(const char *where)
{
    static const pawl_app_kind kinds[] = { { .name = "shop", .id = SEQ_STORE_KIND } };
    pawl_app_descriptor descriptor = PAWL_APP_DESCRIPTOR_INIT;

    descriptor.name = "orders";
    descriptor.id = SEQ_STORE_APP;
    descriptor.kinds = kinds;
    descriptor.kind_count = COUNT_OF(kinds);
    MUST(pawl_app_open(where, &descriptor, NULL, &app, err));
    MUST(pawl_app_wait(app, 60000, err));
}

static void *share_app(const char *where)
{
    (void)where;
    return app;
}

static void leave_app(void *context)
{
    (void)context; /* it ends with the program */
}

/* An offset in the workspace's log and a record's id: two numbers. */
static void exec_command(void *context, uint64_t workspace, int numbers)
{
    const pawl_app_create create = { .record_class = PAWL_APP_O_RECORD,
                                     .raw_id = 1,
                                     .table = pawl_view_of("order"),
                                     .data = pawl_view_of("{\"sum\":5,\"item\":\"a book\"}") };
    const pawl_app_command command = {
        .workspace = workspace,
        .kind = pawl_view_of("shop"),
        .creates = &create,
        .create_count = 1,
    };
    pawl_app_response *response = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status;

    REQUIRE(numbers == 2);
    do {
        status = pawl_app_exec(context, &command, &response, &error);
    } while (status == PAWL_BUSY);
    if (status != PAWL_OK) {
        peer_stop("application", error.message);
    }
    pawl_app_response_free(response);
}

const struct peer peer_application = {
    .prepare = open_app,
    .open = share_app,
    .take = exec_command,
    .close = leave_app,
};
