/* Routes, declared: what a request says, what is answered, and who handles it. One dispatcher parses every request by its
 * declaration; the API's description (openapi.h) is made of the same tables.
 *
 *     static pawl_status show(struct pawl__serve_call *call, pawl_error *reterr)
 *     {
 *         const struct task_path *path = call->parameters;
 *         ...
 *         pawl__serve_answer(call, 200, task);
 *         return PAWL_OK;
 *     }
 *
 *     { .method = PAWL__HTTP_GET, .pattern = "/v1/work/tasks/{task}", .id = "workTask",
 *       .summary = "Shows a task with its items counted", .scope = PAWL__SCOPE_READ, .lane = LANE_ISOLATED,
 *       .parameters = &task_path_record, .answers = ANSWERS({ 200, &pawl__task_record }),
 *       .problems = "NOT_FOUND", .handle = show } */
#ifndef PAWL_SERVER_ROUTE_H
#define PAWL_SERVER_ROUTE_H

#include "base/core/arena.h"
#include "base/record/record.h"
#include "net/http/http.h"
#include "server/tokens/token.h"

struct pawl__serve_call;

/* Answers, or fails, and the failure becomes the answer. */
typedef pawl_status pawl__serve_handler(struct pawl__serve_call *call, pawl_error *reterr);

/* Which thread a handler runs on. */
enum pawl__serve_lane {
    LANE_INLINE,   /* one that serves other connections as well: it must not wait */
    LANE_BLOCKING, /* one of those that may wait */
    LANE_ISOLATED, /* the same, but of a pool that other lanes do not use: what it waits for may hang */
    LANE_INLINE_ISOLATED, /* as INLINE; but what it hands over goes to the isolated pool */
};

struct pawl__serve_answer {
    unsigned code;
    const struct pawl__record *record; /* NULL: it is no JSON, or any */
    const char *type;                  /* NULL: JSON */
    const char *about;                 /* NULL: "OK" */
};

/* Two at the most: the list ends with a code of 0. */
enum { SERVE_ANSWERS_MAX = 3 };

struct pawl__serve_route {
    enum pawl__http_method method;
    const char *pattern; /* "/v1/apps/{app}" */
    const char *id;      /* the method of a generated client: "workClaim". Unique */
    const char *summary; /* "Leases items" */
    const char *about;   /* more of it, for people; NULL: nothing */
    enum pawl__scope scope;
    enum pawl__serve_lane lane;

    /* Path and query: fields whose names stand in the pattern are parts of the path. NULL: neither. */
    const struct pawl__record *parameters;
    /* A JSON object. NULL: the route takes no body. */
    const struct pawl__record *body;
    bool raw_body; /* the handler reads pawl__http_body itself; `body` only describes it */

    struct pawl__serve_answer answers[SERVE_ANSWERS_MAX];
    /* Codes of problems beyond those of every route, separated by blanks: "NOT_FOUND CONFLICT". NULL: none. */
    const char *problems;

    bool takes_key; /* with an Idempotency-Key it may be sent again */
    const char
        *no_key; /* why one is refused; NULL: it is taken, or ignored where nothing is written */

    size_t state_size; /* of call->state, which starts with zeros */
    /* One of the two. `handle` has answered when it returns. `begin` may answer later: with PAWL_OK the call is the
     * handler's, which calls pawl__serve_resume exactly once, from any thread. */
    pawl__serve_handler *handle;
    pawl__serve_handler *begin;
};

#define ROUTE(verb_, pattern_, id_, summary_) \
    .method = PAWL__HTTP_##verb_, .pattern = (pattern_), .id = (id_), .summary = (summary_)
#define ANSWERS(...)  \
    {                 \
        __VA_ARGS__,  \
        {             \
            .code = 0 \
        }             \
    }

/* A body that is {}: other web pages can make a browser send a request without a body (CSRF). */
extern const struct pawl__record pawl__serve_nothing_record;

/* --- a call: one request of a route; it lives as long as the request --- */

struct pawl__serve_call {
    struct pawl__http_request *request;
    const struct pawl__serve_route *route;
    void *part;             /* the state of the part that the route belongs to */
    const void *parameters; /* of the route's records; read by then */
    const void *body;
    pawl_view key; /* of the header Idempotency-Key, where the route takes one; empty: none */
    struct pawl__arena arena; /* what ends with the call */
    void *state;              /* the handler's own */
    /* What is told when the call ends, by whoever gave the handler something that must stay until then. NULL: nobody. */
    void (*release)(void *released);
    void *released;

    /* The dispatcher's. */
    const struct pawl__serve_bound *bound;
    json_t *json;
    const struct pawl__http_problem *problem; /* that its failure is; NULL: by the error */
    pawl__serve_handler *next;
};

/* Answers with a value of the record that the route declares for the code. */
void pawl__serve_answer(struct pawl__serve_call *call, unsigned code, const void *value);
/* The same, of JSON that was written elsewhere: malloc'ed, ends in a NUL, and the request's from here on; or in a
 * buffer, which is emptied. */
void pawl__serve_answer_json(struct pawl__serve_call *call, unsigned code, char *json, size_t len);
void pawl__serve_answer_buf(struct pawl__serve_call *call, unsigned code, struct pawl__buf *body);

/* Fails with a problem that no status says: "return pawl__serve_refuse(...)". */
PRINTF_LIKE(4, 5)
pawl_status pawl__serve_refuse(struct pawl__serve_call *call,
                               const struct pawl__http_problem *problem,
                               pawl_error *reterr,
                               const char *format,
                               ...);

/* Frees what was parsed, and the body: nobody needs them any more. */
void pawl__serve_drop(struct pawl__serve_call *call);

/* --- for handlers that answer later --- */

/* Runs `handler` on a thread that may wait, as if it were the route's own; if none is free for long, answers BUSY. */
void pawl__serve_hand_over(struct pawl__serve_call *call, pawl__serve_handler *handler);

/* Runs `finish` on a thread of the server's: it answers or fails. If the client is gone, it runs here, for nothing.
 * NULL: the call was answered. */
void pawl__serve_resume(struct pawl__serve_call *call, pawl__serve_handler *finish);

#endif
