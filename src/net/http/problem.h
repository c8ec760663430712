/* What goes wrong, as HTTP says it: application/problem+json (RFC 9457), with a stable word in `code`.
 * Pure.
 *
 *     {"type":"urn:pawl:problem:CONFLICT","title":"conflicts with what is stored","status":409,
 *      "detail":"...","code":"CONFLICT"} */
#ifndef PAWL_NET_HTTP_PROBLEM_H
#define PAWL_NET_HTTP_PROBLEM_H

#include "base/core/buf.h"

struct pawl__http_problem {
    unsigned http;     /* the status code */
    const char *code;  /* for programs; those of a pawl_status are its name */
    const char *title; /* for people, the same each time */
    bool inner;        /* the detail may name files or SQL: it is for the log, not for the client */
};

/* One for every status but PAWL_OK, which never gets here: it is FAILED. */
const struct pawl__http_problem *pawl__http_problem_of(pawl_status status);

/* The same for an error, by where it comes from: one of an engine, a server or the operating system (it
 * has their code) is never the fault of whoever asked, whatever its status says elsewhere. */
const struct pawl__http_problem *pawl__http_problem_of_error(const pawl_error *error);

/* All of them, also those that only HTTP knows; NULL after the last. */
const struct pawl__http_problem *pawl__http_problem_at(size_t index);
const char *pawl__http_problem_title(const struct pawl__http_problem *problem);

/* What only HTTP knows. */
extern const struct pawl__http_problem pawl__http_no_token;           /* 401 */
extern const struct pawl__http_problem pawl__http_wrong_scope;        /* 403 */
extern const struct pawl__http_problem pawl__http_wrong_origin;       /* 403 */
extern const struct pawl__http_problem pawl__http_method_not_allowed; /* 405 */
extern const struct pawl__http_problem
    pawl__http_lease_lost;                              /* 409: the client's own, not a node's */
extern const struct pawl__http_problem pawl__http_gone; /* 410 */
extern const struct pawl__http_problem pawl__http_length_required;   /* 411 */
extern const struct pawl__http_problem pawl__http_too_large;         /* 413 */
extern const struct pawl__http_problem pawl__http_target_too_long;   /* 414 */
extern const struct pawl__http_problem pawl__http_media_type;        /* 415 */
extern const struct pawl__http_problem pawl__http_wrong_host;        /* 421 */
extern const struct pawl__http_problem pawl__http_key_reused;        /* 422 */
extern const struct pawl__http_problem pawl__http_headers_too_large; /* 431 */
extern const struct pawl__http_problem pawl__http_not_open;          /* 500: of an application */
extern const struct pawl__http_problem pawl__http_opening;      /* 503: it will be in a moment */
extern const struct pawl__http_problem pawl__http_not_open_yet; /* 503: it is tried again */
extern const struct pawl__http_problem pawl__http_stopping;     /* 503: nothing was done */
extern const struct pawl__http_problem pawl__http_interrupted;  /* 503: nobody knows */
extern const struct pawl__http_problem pawl__http_no_answer;    /* 504: nobody knows */

/* Adds the JSON. `detail` may be any bytes; it is left out when the problem is an inner one. With an `error`
 * (or NULL) also its detail as "reason" and its "index", where it has them. */
void pawl__http_problem_write(const struct pawl__http_problem *problem,
                              const char *detail,
                              const pawl_error *error,
                              struct pawl__buf *buf);

/* The same for whoever may see everything: the status and the message of the error as they are, and whether it ends with
 * what to do. */
void pawl__http_problem_write_whole(const struct pawl__http_problem *problem,
                                    const pawl_error *error,
                                    struct pawl__buf *buf);

#endif
