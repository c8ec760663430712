#include "net/http/problem.h"

#include "base/core/macros.h"
#include "base/terminal/display.h"

/* BUSY has the seed's words; every other title is the text of the status. */
#define BUSY_TITLE "server is busy"

#define ROW(name, http, title, inner) \
    [PAWL_##name] = {                 \
        (http),                       \
        #name,                        \
        (title),                      \
        (inner),                      \
    }

static const struct pawl__http_problem problems[] = {
    ROW(OK, 500, NULL, true),         ROW(FAILED, 500, NULL, true),
    ROW(INVALID, 400, NULL, false),   ROW(NOT_FOUND, 404, NULL, false),
    ROW(CONFLICT, 409, NULL, false),  ROW(LEASE_LOST, 503, NULL, true),
    ROW(BUSY, 503, BUSY_TITLE, true), ROW(UNAVAILABLE, 503, NULL, true),
    ROW(TIMEOUT, 503, NULL, true),    ROW(NO_SPACE, 507, NULL, true),
    ROW(CORRUPT, 500, NULL, true),    ROW(UNSUPPORTED, 501, NULL, true),
    ROW(DENIED, 403, NULL, true),     ROW(IO, 500, NULL, true),
    ROW(NOMEM, 503, NULL, true),      ROW(CANCELLED, 503, NULL, true),
    ROW(CLOSED, 503, NULL, true),
};

#define ONE_(name, exit_code, text) +1
_Static_assert(COUNT_OF(problems) == PAWL_STATUS_MAP(ONE_), "a row for each status");
#undef ONE_

/* Details that change how HTTP says it. The others leave it to their status. */
#define DETAIL_ROW(name, http, inner) \
    {                                 \
        PAWL_DETAIL_##name,           \
            {                         \
                (http),               \
                #name,                \
                NULL,                 \
                (inner),              \
            },                        \
    }

static const struct {
    pawl_detail detail;
    struct pawl__http_problem problem;
} detailed[] = {
    DETAIL_ROW(TRANSACTION_OPEN, 500, true),  DETAIL_ROW(NO_TRANSACTION, 500, true),
    DETAIL_ROW(WRONG_THREAD, 500, true),      DETAIL_ROW(UNKNOWN_KIND, 400, false),
    DETAIL_ROW(UNKNOWN_SEQUENCE, 400, false), DETAIL_ROW(EXHAUSTED, 409, false),
};

const struct pawl__http_problem pawl__http_no_token = {
    401, "NO_TOKEN", "a token that is valid is needed", false
};
const struct pawl__http_problem pawl__http_wrong_scope = {
    403, "WRONG_SCOPE", "the token does not allow this", false
};
const struct pawl__http_problem pawl__http_wrong_origin = {
    403, "WRONG_ORIGIN", "the Origin header names another web page", false
};
const struct pawl__http_problem pawl__http_method_not_allowed = {
    405, "METHOD_NOT_ALLOWED", "the address does not allow this method", false
};
const struct pawl__http_problem pawl__http_lease_lost = {
    409, "LEASE_LOST", "the lease is lost", false
};
const struct pawl__http_problem pawl__http_gone = {
    410, "GONE", "what comes next was removed", false
};
const struct pawl__http_problem pawl__http_length_required = {
    411, "LENGTH_REQUIRED", "the request needs a body", false
};
const struct pawl__http_problem pawl__http_too_large = {
    413, "TOO_LARGE", "the body is too large", false
};
const struct pawl__http_problem pawl__http_target_too_long = {
    414, "TARGET_TOO_LONG", "the address is too long", false
};
const struct pawl__http_problem pawl__http_media_type = {
    415, "UNSUPPORTED_MEDIA_TYPE", "the body is not JSON by its headers", false
};
const struct pawl__http_problem pawl__http_wrong_host = {
    421, "WRONG_HOST", "the Host header names another host", false
};
const struct pawl__http_problem pawl__http_key_reused = {
    422, "KEY_REUSED", "the idempotency key was used by another command", false
};
const struct pawl__http_problem pawl__http_headers_too_large = {
    431, "HEADERS_TOO_LARGE", "the headers are too large", false
};

const struct pawl__http_problem pawl__http_not_open = {
    500, "NOT_OPEN", "the application cannot be opened", false
};
const struct pawl__http_problem pawl__http_opening = {
    503, "OPENING", "the application is being opened", false
};
const struct pawl__http_problem pawl__http_not_open_yet = {
    503, "NOT_OPEN", "the application cannot be opened yet", false
};

/* Nothing was done. */
const struct pawl__http_problem pawl__http_stopping = {
    503, "STOPPING", "the server is stopping", false
};
/* Nobody knows what was done. */
const struct pawl__http_problem pawl__http_interrupted = {
    503, "INTERRUPTED", "the server stopped before there was an answer", false
};
const struct pawl__http_problem pawl__http_no_answer = {
    504, "TIMEOUT", "there is no answer yet", false
};

static const struct pawl__http_problem *const only_http[] = {
    &pawl__http_no_token,
    &pawl__http_wrong_scope,
    &pawl__http_wrong_origin,
    &pawl__http_method_not_allowed,
    &pawl__http_lease_lost,
    &pawl__http_length_required,
    &pawl__http_too_large,
    &pawl__http_target_too_long,
    &pawl__http_media_type,
    &pawl__http_wrong_host,
    &pawl__http_gone,
    &pawl__http_key_reused,
    &pawl__http_headers_too_large,
    &pawl__http_not_open,
    &pawl__http_opening,
    &pawl__http_not_open_yet,
    &pawl__http_stopping,
    &pawl__http_interrupted,
    &pawl__http_no_answer,
};

const struct pawl__http_problem *pawl__http_problem_at(size_t index)
{
    size_t of_statuses = COUNT_OF(problems) - 1; /* PAWL_OK is none */

    if (index < of_statuses) {
        return &problems[index + 1];
    }
    index -= of_statuses;
    if (index < COUNT_OF(detailed)) {
        return &detailed[index].problem;
    }
    index -= COUNT_OF(detailed);
    return index < COUNT_OF(only_http) ? only_http[index] : NULL;
}

const struct pawl__http_problem *pawl__http_problem_of(pawl_status status)
{
    bool known = status != PAWL_OK && (size_t)status < COUNT_OF(problems);

    return &problems[known ? status : PAWL_FAILED];
}

const struct pawl__http_problem *pawl__http_problem_of_error(const pawl_error *error)
{
    const struct pawl__http_problem *problem = pawl__http_problem_of(error->status);

    for (size_t i = 0; i < COUNT_OF(detailed); i++) {
        if (error->status != PAWL_OK && error->detail == detailed[i].detail) {
            return &detailed[i].problem;
        }
    }
    bool foreign = error->native != 0 || error->sqlstate[0] != '\0';

    return foreign && problem->http < 500 ? &problems[PAWL_FAILED] : problem;
}

const char *pawl__http_problem_title(const struct pawl__http_problem *problem)
{
    for (size_t i = 0; i < COUNT_OF(detailed); i++) {
        if (problem == &detailed[i].problem) {
            return pawl_detail_text(detailed[i].detail);
        }
    }
    return problem->title != NULL ? problem->title
                                  : pawl_status_text((pawl_status)(problem - problems));
}

static void add_particulars(const pawl_error *error, struct pawl__buf *buf)
{
    if (error->detail != PAWL_DETAIL_NONE) {
        pawl__buf_add_format(buf, ",\"reason\":\"%s\"", pawl_detail_name(error->detail));
    }
    if (error->index >= 0) {
        pawl__buf_add_format(buf, ",\"index\":%lld", (long long)error->index);
    }
}

static void add_head(const struct pawl__http_problem *problem,
                     const char *code,
                     struct pawl__buf *buf)
{
    pawl__buf_add_format(buf,
                         "{\"type\":\"urn:pawl:problem:%s\",\"title\":\"%s\"",
                         code,
                         pawl__http_problem_title(problem));
    pawl__buf_add_format(buf, ",\"status\":%u,\"detail\":", problem->http);
}

void pawl__http_problem_write_whole(const struct pawl__http_problem *problem,
                                    const pawl_error *error,
                                    struct pawl__buf *buf)
{
    const char *code = pawl_status_name(error->status);

    add_head(problem, code, buf);
    pawl__display_add_json(buf, pawl_view_of(error->message));
    pawl__buf_add_format(
        buf, ",\"code\":\"%s\",\"advised\":%s", code, error->advised ? "true" : "false");
    add_particulars(error, buf);
    pawl__buf_add_text(buf, "}\n");
}

void pawl__http_problem_write(const struct pawl__http_problem *problem,
                              const char *detail,
                              const pawl_error *error,
                              struct pawl__buf *buf)
{
    add_head(problem, problem->code, buf);
    pawl__display_add_json(
        buf, pawl_view_of(problem->inner ? pawl__http_problem_title(problem) : detail));
    pawl__buf_add_format(buf, ",\"code\":\"%s\"", problem->code);
    if (error != NULL && !problem->inner) {
        add_particulars(error, buf);
    }
    pawl__buf_add_text(buf, "}\n");
}
