/* Applications that a running node has open, asked through the node's socket.
 *
 * A node that is not there, is starting or stopping, or serves other applications is NOT_FOUND: the caller opens the
 * store itself, or tries again. One that takes connections and says nothing is TIMEOUT. What the node answers with a
 * problem fails here as the same call fails in this process. */
#ifndef PAWL_CLI_APP_REMOTE_H
#define PAWL_CLI_APP_REMOTE_H

#include <pawl/app.h>

#include "base/core/macros.h"
#include "cli/frame/run.h"

struct pawl__cli_remote;

/* Where a node that serves `apps` listens: in its data directory, or in the directory of --apps. malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_socket_path(const struct pawl__cli_run *run,
                                                const char *apps,
                                                char **ret_path,
                                                pawl_error *reterr);

/* Says which applications a node serves, the same in every process: for one to find the other. */
enum { PAWL__CLI_APPS_ID_SIZE = 65 };
PAWL_MUST_USE pawl_status pawl__cli_apps_id(const char *apps,
                                            char ret_id[PAWL__CLI_APPS_ID_SIZE],
                                            pawl_error *reterr);

/* The node that serves the applications of this location. */
PAWL_MUST_USE pawl_status pawl__cli_remote_connect(const struct pawl__cli_run *run,
                                                   const char *apps,
                                                   struct pawl__cli_remote **ret_remote,
                                                   pawl_error *reterr);
DEFINE_AUTO(struct pawl__cli_remote *, pawl__cli_remote_close)

/* Requests are about this one from here on, and the node has it open; NOT_FOUND: it has not. */
PAWL_MUST_USE pawl_status pawl__cli_remote_choose(struct pawl__cli_remote *remote,
                                                  const char *name,
                                                  pawl_error *reterr);

struct pawl__cli_ask {
    const char *method;
    const char
        *target; /* after /v1/apps/NAME; with a / in front and `whole` set it is the whole target */
    bool whole;
    pawl_view body; /* no data: none */
};
/* *ret_json is that of a good answer. */
PAWL_MUST_USE pawl_status pawl__cli_remote_ask(struct pawl__cli_remote *remote,
                                               const struct pawl__cli_ask *ask,
                                               json_t **ret_json,
                                               pawl_error *reterr);

/* All items of a list, page by page. */
typedef pawl_status pawl__cli_item_visitor(void *context, json_t *item, pawl_error *reterr);
struct pawl__cli_pages {
    const char *target; /* as above, without a query */
    uint64_t from;
    uint64_t limit; /* 0: all */
};
PAWL_MUST_USE pawl_status pawl__cli_remote_pages(struct pawl__cli_remote *remote,
                                                 const struct pawl__cli_pages *pages,
                                                 pawl__cli_item_visitor *visitor,
                                                 void *context,
                                                 pawl_error *reterr);

/* Runs a job of the node about the application and waits for it, with a progress bar; Ctrl-C cancels it. `parameters`
 * is taken over; the name of the application is added. *ret_result is what it found. */
PAWL_MUST_USE pawl_status pawl__cli_remote_job(struct pawl__cli_remote *remote,
                                               const char *kind,
                                               json_t *parameters,
                                               json_t **ret_result,
                                               pawl_error *reterr);

/* The number that an answer, or an item of one, has there; 0: none. */
uint64_t pawl__cli_remote_number(const json_t *object, const char *key);

/* The error that an answer, or an item of one, describes: {"code": ..., "detail": ...}. */
pawl_status pawl__cli_remote_error(const json_t *problem, pawl_error *reterr);

#endif
