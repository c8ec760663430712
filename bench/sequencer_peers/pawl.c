/* Ours: the sequencer alone, on a RocksDB store, with its defaults and with more numbers that may wait to
 * be written; and the application on the same engine, which gives the numbers to a record and its event
 * and has all of it on disk. */
#include <poll.h>
#include <stdlib.h>

#include "base/core/macros.h"
#include "seq_app.h"
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

static void *open_with(const char *where, uint32_t unflushed_max)
{
    struct client *client = calloc(1, sizeof(*client));

    REQUIRE(client != NULL);
    seq_store_open(where, &client->store);
    client->seq = seq_store_sequencer(&client->store, unflushed_max);
    MUST(pawl_sequencer_wait(client->seq, 60000, err));
    return client;
}

static void *open_sequencer(const char *where)
{
    return open_with(where, 0);
}

static void *open_wide(const char *where)
{
    return open_with(where, PEER_UNFLUSHED);
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

    pawl_sequencer_close(client->seq, 0, NULL);
    seq_store_close(&client->store);
    free(client);
}

const struct peer peer_sequencer = {
    .prepare = fill,
    .open = open_sequencer,
    .take = take_numbers,
    .close = close_sequencer,
};

const struct peer peer_wide_sequencer = {
    .prepare = fill,
    .open = open_wide,
    .take = take_numbers,
    .close = close_sequencer,
};

/* --- the application --- */

static pawl_app *app;

static void open_app(const char *where)
{
    app = seq_app_open(where, PAWL_APP_TRUST_0);
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

static void exec_command(void *context, uint64_t workspace, int numbers)
{
    REQUIRE(numbers == SEQ_APP_NUMBERS);
    seq_app_exec(context, workspace);
}

const struct peer peer_application = {
    .prepare = open_app,
    .open = share_app,
    .take = exec_command,
    .close = leave_app,
};
