/* What `pawl deliver`, `pawl pipeline` and `pawl wal` share: the open directory, a pipeline from flags, how it is shown. */
#ifndef PAWL_CLI_DELIVERY_DELIVERY_H
#define PAWL_CLI_DELIVERY_DELIVERY_H

#include <pawl/delivery.h>

#include "cli/delivery/reach.h"
#include "cli/frame/command.h"
#include "cli/frame/run.h"

#define PIPELINE_FROM_FLAG(...)                                                                    \
    FLAG("from",                                                                                   \
         "SOURCE",                                                                                 \
         "What to read: nats://HOST:4222, ledger:LOCATION, a file of JSON lines, http for events " \
         "that are posted to a node, or - for standard input.",                                    \
         __VA_ARGS__)

/* What a pipeline is made of, but for its name and source. */
#define PIPELINE_FLAGS                                                                             \
    FLAG("into", "TABLE", "The table to write to.", .fallback = "events"),                         \
        FLAG("source", "NAME", "Begins the ids of events that bring none; needed with --from -."), \
        FLAG(                                                                                      \
            "generation",                                                                          \
            "NAME",                                                                                \
            "Of a file: another name means that its lines are other events, also those that were " \
            "delivered before."),                                                                  \
        FLAG("id-field", "KEY", "Key of the payload that has the event's id."),                    \
        FLAG("columns",                                                                            \
             "JSON",                                                                               \
             "Columns of the table: [{\"name\": \"total\", \"type\": \"DOUBLE\", \"path\": "       \
             "\"$.sum\"}]; @FILE reads a file."),                                                  \
        FLAG("filter",                                                                             \
             "SQL",                                                                                \
             "Only events for which this expression of DuckDB is true: payload->>'kind' = "        \
             "'paid'."),                                                                           \
        { .name = "unique-index",                                                                  \
          .help = "Index transaction_id; costs two thirds of the speed." },                        \
        FLAG("stream", "NAME", "NATS: the stream."),                                               \
        FLAG("consumer", "NAME", "NATS: the durable consumer; pawl-PIPELINE if it is left out."),  \
        FLAG("subject",                                                                            \
             "SUBJECT",                                                                            \
             "NATS: only these subjects; those of a stream that is created."),                     \
        { .name = "create-stream", .help = "NATS: make the stream when it is missing." },          \
        FLAG("creds", "FILE", "NATS: credentials file.", .kind = VALUE_FILE),                      \
        FLAG("nkey", "FILE", "NATS: file with the seed of an nkey.", .kind = VALUE_FILE),          \
        FLAG("tls-ca", "FILE", "NATS: certificates to trust.", .kind = VALUE_FILE),                \
        FLAG("tls-certificate", "FILE", "NATS: our certificate.", .kind = VALUE_FILE),             \
        FLAG("tls-key", "FILE", "NATS: our key.", .kind = VALUE_FILE),                             \
    {                                                                                              \
        .name = "complete-turns",                                                                  \
        .help = "Ledger: only committed turns, and events outside turns."                          \
    }

extern const struct pawl__cli_command pawl__cli_cmd_pipeline_replay;

/* As the settings say. */
pawl_delivery_options pawl__cli_delivery_options(const struct pawl__cli_run *run);

/* Whether pawl.yaml has pipelines. */
bool pawl__cli_delivery_is_configured(const struct pawl__cli_run *run);

/* Opens the data directory; another process that has it is waited for as the settings say. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_open(const struct pawl__cli_run *run,
                                                  pawl_delivery **ret_delivery,
                                                  pawl_error *reterr);
/* Closes it and returns `status`, or what closing failed with when that is PAWL_OK. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_close(pawl_delivery *delivery,
                                                   pawl_status status,
                                                   pawl_error *reterr);

/* While a `pawl deliver` has the directory open, other commands reach it on a socket. That it cannot listen is no reason not to
 * deliver: it is logged, and *ret_node is NULL. */
struct pawl__serve_node;
void pawl__cli_deliver_listen(const struct pawl__cli_delivery *delivery,
                              struct pawl__serve_node **ret_node);
void pawl__cli_deliver_stop_listening(struct pawl__serve_node *node); /* NULL is fine */

/* What the flags would make of the first events, and nothing else. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_preview(const struct pawl__cli_run *run,
                                                     const char *name,
                                                     pawl_error *reterr);

/* Declares the pipeline that the flags describe. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_add(const struct pawl__cli_run *run,
                                                 struct pawl__cli_delivery *delivery,
                                                 const char *name,
                                                 pawl_error *reterr);

/* Declares the pipelines of pawl.yaml. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_add_configured(const struct pawl__cli_run *run,
                                                            struct pawl__cli_delivery *delivery,
                                                            pawl_error *reterr);

/* One pipeline as JSON, or in lines for people. */
PAWL_MUST_USE pawl_status pawl__cli_delivery_print(const struct pawl__cli_run *run,
                                                   struct pawl__cli_delivery *delivery,
                                                   const char *name,
                                                   pawl_error *reterr);

#endif
