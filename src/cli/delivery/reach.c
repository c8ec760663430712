#include "cli/delivery/reach.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/app/remote.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/location.h"
#include "config/config.h"
#include "net/http/client.h"

enum {
    GREETING_MS = 5000, /* for a process to take a connection */
    ANSWER_MS = 120000, /* for an answer; the process ends its own waits before */
    RETRY_MS = 20,
};
#define ANSWER_BYTES_MAX ((size_t)256 << 20)

static int64_t from_now(const struct pawl__cli_run *run, int64_t ms)
{
    return pawl__monotonic_ns(run->clock) + ms * NS_PER_MS;
}

/* --- asking --- */

static pawl_status gather(void *context, pawl_view bytes, pawl_error *reterr)
{
    struct pawl__buf *body = context;

    pawl__buf_add(body, bytes);
    return pawl__buf_check(body, "the answer", reterr);
}

static pawl_status read_problem(pawl_view text, unsigned code, pawl_error *reterr)
{
    json_auto_t *problem = NULL;

    if (pawl__json_parse(text, text.len, &problem, NULL) != PAWL_OK) {
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "the node answers %u, and not with JSON", code);
    }
    return pawl__cli_remote_error(problem, reterr);
}

pawl_status pawl__cli_delivery_ask(struct pawl__cli_delivery *delivery,
                                   const char *method,
                                   const char *target,
                                   pawl_view body,
                                   struct pawl__buf *answer,
                                   pawl_error *reterr)
{
    struct pawl__http_reply reply;
    const struct pawl__http_ask ask = {
        .method = method,
        .target = target,
        .body = body,
        .deadline_ns = from_now(delivery->run, ANSWER_MS),
        .body_bytes_max = ANSWER_BYTES_MAX,
        .sink = gather,
        .context = answer,
    };

    TRY(pawl__http_client_ask(delivery->client, &ask, &reply, reterr));
    return reply.code < 300 ? PAWL_OK : read_problem(pawl__buf_view(answer), reply.code, reterr);
}

/* --- finding it --- */

static pawl_status socket_path(const struct pawl__cli_run *run,
                               const char *name,
                               char **ret_path,
                               pawl_error *reterr)
{
    *ret_path = pawl__fs_join(pawl__config_text(run->config, PAWL__DATA), name);
    return pawl__fs_check_path(*ret_path, reterr);
}

pawl_status pawl__cli_deliver_socket(const struct pawl__cli_run *run,
                                     char **ret_path,
                                     pawl_error *reterr)
{
    return socket_path(run, "deliver.sock", ret_path, reterr);
}

/* Whether it has the pipelines: a node that waits for them itself is as good as none. */
static pawl_status greet(struct pawl__cli_delivery *delivery, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf answer = BUF_INIT(ANSWER_BYTES_MAX);
    pawl_status status = pawl__cli_delivery_ask(
        delivery, "GET", "/v1/pipelines", (pawl_view){ NULL, 0 }, &answer, reterr);

    return status == PAWL_BUSY || status == PAWL_UNAVAILABLE
               ? pawl__fail_context(reterr, PAWL_NOT_FOUND, "ask the node")
               : status;
}

static pawl_status connect_to(const struct pawl__cli_run *run,
                              const char *name,
                              struct pawl__cli_delivery *ret_delivery,
                              pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = NULL;
    AUTO(pawl__http_client_close_p) struct pawl__http_client *client = NULL;
    int64_t deadline_ns = from_now(run, MAX(pawl__cli_busy_ms(run), (uint32_t)GREETING_MS));
    struct pawl__cli_delivery found = { .run = run };

    TRY(socket_path(run, name, &path, reterr));
    TRY(pawl__http_client_open_unix(path, run->clock, deadline_ns, &client, reterr));
    found.client = client;
    TRY(greet(&found, reterr));
    found.client = STEAL(client);
    *ret_delivery = found;
    return PAWL_OK;
}

pawl_status pawl__cli_delivery_find_process(const struct pawl__cli_run *run,
                                            struct pawl__cli_delivery *ret_delivery,
                                            pawl_error *reterr)
{
    static const char *const names[] = { "deliver.sock", "pawl.sock" };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_NOT_FOUND;

    for (size_t i = 0; i < COUNT_OF(names) && status == PAWL_NOT_FOUND; i++) {
        error = (pawl_error)PAWL_ERROR_INIT;
        status = connect_to(run, names[i], ret_delivery, &error);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

/* BUSY: a process has it, and does not let itself be asked. */
static pawl_status reach_once(const struct pawl__cli_run *run,
                              const pawl_delivery_options *options,
                              struct pawl__cli_delivery *ret_delivery,
                              pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status asked = pawl__cli_delivery_find_process(run, ret_delivery, &error);

    if (asked == PAWL_OK) {
        return PAWL_OK;
    }
    *ret_delivery = (struct pawl__cli_delivery){ .run = run };
    pawl_status status = pawl_delivery_open(
        pawl__config_text(run->config, PAWL__DATA), options, &ret_delivery->here, reterr);
    return status == PAWL_BUSY && asked != PAWL_NOT_FOUND ? pawl__fail_with(reterr, asked, &error)
                                                          : status;
}

/* Commands of a script run one after the other, and a node may be starting or stopping. */
pawl_status pawl__cli_delivery_reach(const struct pawl__cli_run *run,
                                     struct pawl__cli_delivery *ret_delivery,
                                     pawl_error *reterr)
{
    const pawl_delivery_options options = pawl__cli_delivery_options(run);
    int64_t deadline_ns = from_now(run, pawl__cli_busy_ms(run));
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = reach_once(run, &options, ret_delivery, &error);

    while (status == PAWL_BUSY && pawl__monotonic_ns(run->clock) < deadline_ns) {
        pawl__sleep_until(run->clock, MIN(deadline_ns, from_now(run, RETRY_MS)));
        error = (pawl_error)PAWL_ERROR_INIT;
        status = reach_once(run, &options, ret_delivery, &error);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl__cli_delivery_leave(struct pawl__cli_delivery *delivery,
                                     pawl_status status,
                                     pawl_error *reterr)
{
    pawl__http_client_close(STEAL(delivery->client));
    return pawl__cli_delivery_close(STEAL(delivery->here), status, reterr);
}
