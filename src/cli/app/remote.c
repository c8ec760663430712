#include "cli/app/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/hex.h"
#include "base/core/sha256.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/location.h"
#include "config/config.h"
#include "config/settings.h"
#include "net/http/client.h"
#include "store/location.h"

enum {
    GREETING_MS = 5000, /* at the least, for a node to say who it is */
    ANSWER_MS = 90000,  /* for any other answer; the node ends its own waits before */
    PAGE_ITEMS = 1000,
    NAP_MS_MIN = 10, /* between two looks at a job */
    NAP_MS_MAX = 200,
    CANCEL_MS_MAX = 5000, /* for a job that was cancelled to end */
    TARGET_SIZE = 1024
};
#define ANSWER_BYTES_MAX ((size_t)128 << 20)

struct pawl__cli_remote {
    const struct pawl__cli_run *run;
    struct pawl__http_client *client;
    char name[PAWL_APP_NAME_BYTES_MAX + 1];
};

static int64_t from_now(const struct pawl__cli_run *run, int64_t ms)
{
    return pawl__monotonic_ns(run->clock) + ms * NS_PER_MS;
}

/* --- where --- */

pawl_status pawl__cli_socket_path(const struct pawl__cli_run *run,
                                  const char *apps,
                                  char **ret_path,
                                  pawl_error *reterr)
{
    bool own = pawl__cli_args_has(run->args, "apps") && !pawl__location_is_postgres(apps);

    *ret_path = pawl__fs_join(own ? apps : pawl__config_text(run->config, PAWL__DATA), "pawl.sock");
    return pawl__check_memory(*ret_path, "a path", reterr);
}

pawl_status pawl__cli_apps_id(const char *apps,
                              char ret_id[PAWL__CLI_APPS_ID_SIZE],
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);
    struct pawl__sha256 hash;
    struct stat directory;

    if (pawl__location_is_postgres(apps)) {
        pawl__url_add_masked(pawl_view_of(apps), &text);
    } else if (stat(apps, &directory) == 0) { /* whatever it is called */
        pawl__buf_add_format(
            &text, "%ju %ju", (uintmax_t)directory.st_dev, (uintmax_t)directory.st_ino);
    } else {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "there is no directory '%s'", apps);
    }
    TRY(pawl__buf_check(&text, "the location", reterr));
    TRY(pawl__sha256(pawl__buf_view(&text), &hash, reterr));
    for (size_t i = 0; i < sizeof(hash.bytes); i++) {
        pawl__hex_byte(hash.bytes[i], &ret_id[2 * i]);
    }
    ret_id[PAWL__CLI_APPS_ID_SIZE - 1] = '\0';
    return PAWL_OK;
}

/* --- asking --- */

static pawl_status gather(void *context, pawl_view bytes, pawl_error *reterr)
{
    struct pawl__buf *body = context;

    pawl__buf_add(body, bytes);
    return pawl__buf_check(body, "the answer", reterr);
}

static pawl_status status_of(const char *code)
{
    static const struct {
        const char *code;
        pawl_status status;
    } others[] = {
        { "KEY_REUSED", PAWL_CONFLICT },     { "OPENING", PAWL_BUSY },
        { "NOT_OPEN", PAWL_BUSY },           { "STOPPING", PAWL_BUSY },
        { "TOO_LARGE", PAWL_INVALID },       { "WRONG_SCOPE", PAWL_DENIED },
        { "NO_TOKEN", PAWL_DENIED },         { "INTERRUPTED", PAWL_UNAVAILABLE },
        { "TARGET_TOO_LONG", PAWL_INVALID },
    };

#define IS_CODE_(name, exit_code, text) \
    if (strcmp(code, #name) == 0) {     \
        return PAWL_##name;             \
    }
    PAWL_STATUS_MAP(IS_CODE_)
#undef IS_CODE_
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (strcmp(code, others[i].code) == 0) {
            return others[i].status;
        }
    }
    return PAWL_FAILED;
}

static pawl_detail detail_of(const char *name)
{
#define IS_DETAIL_(name_, text)                      \
    if (name != NULL && strcmp(name, #name_) == 0) { \
        return PAWL_DETAIL_##name_;                  \
    }
    PAWL_DETAIL_MAP(IS_DETAIL_)
#undef IS_DETAIL_
    return PAWL_DETAIL_NONE;
}

pawl_status pawl__cli_remote_error(const json_t *problem, pawl_error *reterr)
{
    const char *code = json_string_value(json_object_get(problem, "code"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    pawl_status status = code == NULL ? PAWL_FAILED : status_of(code);

    status = status == PAWL_OK ? PAWL_FAILED : status;
    (void)pawl__fail_detail(reterr,
                            status,
                            detail_of(json_string_value(json_object_get(problem, "reason"))),
                            "%s",
                            detail == NULL ? "the node gave no reason" : detail);
    return json_is_true(json_object_get(problem, "advised")) ? pawl__mark_advised(reterr, status)
                                                             : status;
}

/* A good answer, or the error that it describes. */
static pawl_status read_answer(const struct pawl__http_reply *reply,
                               pawl_view body,
                               json_t **ret_json,
                               pawl_error *reterr)
{
    json_auto_t *json = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__json_parse(body, ANSWER_BYTES_MAX, &json, &error) != PAWL_OK) {
        return pawl__fail(reterr,
                          PAWL_UNAVAILABLE,
                          "the node answers %u, and not with JSON: %s",
                          reply->code,
                          error.message);
    }
    if (reply->code >= 300) {
        return pawl__cli_remote_error(json, reterr);
    }
    *ret_json = json_incref(json);
    return PAWL_OK;
}

static pawl_status ask_until(struct pawl__cli_remote *remote,
                             const char *method,
                             const char *target,
                             pawl_view request,
                             int64_t deadline_ns,
                             json_t **ret_json,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(ANSWER_BYTES_MAX);
    struct pawl__http_reply reply;
    const struct pawl__http_ask ask = {
        .method = method,
        .target = target,
        .body = request,
        .deadline_ns = deadline_ns,
        .body_bytes_max = ANSWER_BYTES_MAX,
        .sink = gather,
        .context = &body,
    };

    TRY(pawl__http_client_ask(remote->client, &ask, &reply, reterr));
    return read_answer(&reply, pawl__buf_view(&body), ret_json, reterr);
}

pawl_status pawl__cli_remote_ask(struct pawl__cli_remote *remote,
                                 const struct pawl__cli_ask *ask,
                                 json_t **ret_json,
                                 pawl_error *reterr)
{
    char target[TARGET_SIZE];
    int len = ask->whole
                  ? snprintf(target, sizeof(target), "%s", ask->target)
                  : snprintf(target, sizeof(target), "/v1/apps/%s%s", remote->name, ask->target);

    REQUIRE(len > 0 && (size_t)len < sizeof(target));
    return ask_until(
        remote, ask->method, target, ask->body, from_now(remote->run, ANSWER_MS), ret_json, reterr);
}

/* --- finding the node --- */

void pawl__cli_remote_close(struct pawl__cli_remote *remote)
{
    if (remote != NULL) {
        pawl__http_client_close(remote->client);
        free(remote);
    }
}

/* Whether it is the node of these applications. */
static pawl_status greet(struct pawl__cli_remote *remote,
                         const char *apps_id,
                         int64_t deadline_ns,
                         pawl_error *reterr)
{
    json_auto_t *node = NULL;

    TRY(ask_until(remote, "GET", "/v1/node", (pawl_view){ NULL, 0 }, deadline_ns, &node, reterr));
    const char *served = json_string_value(json_object_get(node, "apps"));
    return served != NULL && strcmp(served, apps_id) == 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOT_FOUND, "the node serves other applications");
}

static pawl_status connect_to(const struct pawl__cli_run *run,
                              const char *path,
                              const char *apps_id,
                              struct pawl__cli_remote **ret_remote,
                              pawl_error *reterr)
{
    AUTO(pawl__cli_remote_close_p) struct pawl__cli_remote *remote = calloc(1, sizeof(*remote));
    int64_t deadline_ns = from_now(run, MAX(pawl__cli_busy_ms(run), (uint32_t)GREETING_MS));

    TRY(pawl__check_memory(remote, "a connection", reterr));
    remote->run = run;
    TRY(pawl__http_client_open_unix(path, run->clock, deadline_ns, &remote->client, reterr));
    pawl_status status = greet(remote, apps_id, deadline_ns, reterr);
    if (status == PAWL_UNAVAILABLE) { /* it ended meanwhile */
        return pawl__fail_context(reterr, PAWL_NOT_FOUND, "ask '%s'", path);
    }
    if (status == PAWL_OK) {
        *ret_remote = STEAL(remote);
    }
    return status;
}

/* data/apps is served by the node of data: the socket may be beside the directory, too. */
static pawl_status beside(const char *apps, char **ret_path, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf path = BUF_INIT(1 << 16);

    pawl__buf_add_format(&path, "%s/../pawl.sock", apps);
    return pawl__buf_hand_out(&path, "the path", ret_path, NULL, reterr);
}

pawl_status pawl__cli_remote_connect(const struct pawl__cli_run *run,
                                     const char *apps,
                                     struct pawl__cli_remote **ret_remote,
                                     pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = NULL;
    AUTO(pawl__text_free) char *other = NULL;
    char apps_id[PAWL__CLI_APPS_ID_SIZE];
    pawl_error error = PAWL_ERROR_INIT;

    TRY(pawl__cli_apps_id(apps, apps_id, reterr));
    TRY(pawl__cli_socket_path(run, apps, &path, reterr));
    pawl_status status = connect_to(run, path, apps_id, ret_remote, &error);
    if (status == PAWL_NOT_FOUND && pawl__cli_args_has(run->args, "apps")
        && !pawl__location_is_postgres(apps)) {
        TRY(beside(apps, &other, reterr));
        status = connect_to(run, other, apps_id, ret_remote, &error);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl__cli_remote_choose(struct pawl__cli_remote *remote,
                                    const char *name,
                                    pawl_error *reterr)
{
    const struct pawl__cli_ask ask = { .method = "GET", .target = "" };
    json_auto_t *descriptor = NULL;

    (void)snprintf(remote->name, sizeof(remote->name), "%s", name);
    pawl_status status = pawl__cli_remote_ask(remote, &ask, &descriptor, reterr);
    /* It is being opened, or somebody else has it: as if the node were not there yet. */
    return status == PAWL_BUSY || status == PAWL_UNAVAILABLE
               ? pawl__fail_context(reterr, PAWL_NOT_FOUND, "application '%s'", name)
               : status;
}

/* --- lists --- */

static pawl_status visit_items(const json_t *page,
                               pawl__cli_item_visitor *visitor,
                               void *context,
                               uint64_t *left,
                               pawl_error *reterr)
{
    const json_t *items = json_object_get(page, "items");

    for (size_t i = 0; i < json_array_size(items) && *left > 0; i++) {
        TRY(visitor(context, json_array_get(items, i), reterr));
        (*left)--;
    }
    return PAWL_OK;
}

pawl_status pawl__cli_remote_pages(struct pawl__cli_remote *remote,
                                   const struct pawl__cli_pages *pages,
                                   pawl__cli_item_visitor *visitor,
                                   void *context,
                                   pawl_error *reterr)
{
    uint64_t left = pages->limit == 0 ? UINT64_MAX : pages->limit;
    char from[32];

    (void)snprintf(from, sizeof(from), "%" PRIu64, pages->from);
    while (left > 0) {
        json_auto_t *page = NULL;
        char target[TARGET_SIZE];

        (void)snprintf(target,
                       sizeof(target),
                       "%s?from=%s&limit=%" PRIu64,
                       pages->target,
                       from,
                       MIN(left, (uint64_t)PAGE_ITEMS));
        const struct pawl__cli_ask ask = { .method = "GET", .target = target };
        TRY(pawl__cli_remote_ask(remote, &ask, &page, reterr));
        TRY(visit_items(page, visitor, context, &left, reterr));
        const char *next = json_string_value(json_object_get(page, "next"));
        if (next == NULL) {
            break;
        }
        (void)snprintf(from, sizeof(from), "%s", next);
    }
    return PAWL_OK;
}

/* --- jobs --- */

static pawl_status start_job(struct pawl__cli_remote *remote,
                             const char *kind,
                             json_t *parameters,
                             char target[TARGET_SIZE],
                             pawl_error *reterr)
{
    json_auto_t *request = json_pack("{s:s, s:o}", "kind", kind, "parameters", parameters);
    json_auto_t *job = NULL;
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(1 << 16);

    TRY(pawl__check_memory(request, "a job", reterr));
    if (json_object_set_new(parameters, "app", json_string(remote->name)) != 0) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a job");
    }
    TRY(pawl__json_dump(request, &body, reterr));
    const struct pawl__cli_ask ask = {
        .method = "POST", .target = "/v1/jobs", .whole = true, .body = pawl__buf_view(&body)
    };
    TRY(pawl__cli_remote_ask(remote, &ask, &job, reterr));
    const char *job_id = json_string_value(json_object_get(job, "job_id"));
    (void)snprintf(target, TARGET_SIZE, "/v1/jobs/%s", job_id == NULL ? "" : job_id);
    return PAWL_OK;
}

static void cancel_job(struct pawl__cli_remote *remote, const char *job)
{
    char target[TARGET_SIZE + 8];
    json_auto_t *ignored = NULL;

    (void)snprintf(target, sizeof(target), "%s/cancel", job);
    const struct pawl__cli_ask ask = {
        .method = "POST", .target = target, .whole = true, .body = pawl_view_of("{}")
    };
    (void)!pawl__cli_remote_ask(remote, &ask, &ignored, NULL); /* it may have ended */
}

uint64_t pawl__cli_remote_number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* What became of one that has ended. */
static pawl_status conclude(const json_t *job, json_t **ret_result, pawl_error *reterr)
{
    const char *state = json_string_value(json_object_get(job, "state"));

    if (state == NULL || strcmp(state, "done") != 0) {
        pawl_status status = pawl__cli_remote_error(job, reterr);

        return state != NULL && strcmp(state, "cancelled") == 0
                   ? pawl__fail(reterr, PAWL_CANCELLED, "the verification was cancelled")
                   : status;
    }
    *ret_result = json_incref(json_object_get(job, "result"));
    return PAWL_OK;
}

static bool job_has_ended(const json_t *job)
{
    return !json_is_null(json_object_get(job, "ended_at"));
}

/* Ctrl-C cancels the job, which then has a moment to end. */
static pawl_status await_job(struct pawl__cli_remote *remote,
                             const char *target,
                             json_t **ret_result,
                             pawl_error *reterr)
{
    const struct pawl__cli_ask ask = { .method = "GET", .target = target, .whole = true };
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress progress = pawl__cli_progress_start(remote->run, "verify", false);
    int64_t deadline_ns = INT64_MAX;

    for (int64_t nap_ms = NAP_MS_MIN;; nap_ms = MIN(nap_ms * 2, (int64_t)NAP_MS_MAX)) {
        json_auto_t *job = NULL;

        TRY(pawl__cli_remote_ask(remote, &ask, &job, reterr));
        if (job_has_ended(job)) {
            return conclude(job, ret_result, reterr);
        }
        bool wanted = pawl__cli_progress_step(
            &progress, pawl__cli_remote_number(job, "done"), pawl__cli_remote_number(job, "total"));
        if (!wanted && deadline_ns == INT64_MAX) {
            cancel_job(remote, target);
            deadline_ns = from_now(remote->run, CANCEL_MS_MAX);
        }
        if (pawl__monotonic_ns(remote->run->clock) >= deadline_ns) {
            return pawl__fail(reterr, PAWL_CANCELLED, "cancelled; the node has not ended it yet");
        }
        pawl__sleep_until(remote->run->clock, from_now(remote->run, nap_ms));
    }
}

pawl_status pawl__cli_remote_job(struct pawl__cli_remote *remote,
                                 const char *kind,
                                 json_t *parameters,
                                 json_t **ret_result,
                                 pawl_error *reterr)
{
    char target[TARGET_SIZE];

    TRY(pawl__check_memory(parameters, "a job", reterr));
    TRY(start_job(remote, kind, parameters, target, reterr));
    return await_job(remote, target, ret_result, reterr);
}
