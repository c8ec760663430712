/* Which method a path names, and how Connect names it. Pure. */
#ifndef PAWL_NET_H2_SERVICE_H
#define PAWL_NET_H2_SERVICE_H

#include "net/h2/h2.h"

/* Methods by their path. */
struct pawl__h2_services {
    const struct pawl__h2_method **methods; /* sorted */
    size_t count;
};

/* INVALID: a path that is not "/package.Service/Method", a method without what its kind needs. CONFLICT: one twice. */
PAWL_MUST_USE pawl_status pawl__h2_services_add(struct pawl__h2_services *services,
                                                const struct pawl__h2_method *methods,
                                                size_t count,
                                                pawl_error *reterr);
void pawl__h2_services_done(struct pawl__h2_services *services);

/* NULL: there is none. */
const struct pawl__h2_method *pawl__h2_services_find(const struct pawl__h2_services *services,
                                                     pawl_view path);

/* Whether a service of this name has a method. */
bool pawl__h2_services_has(const struct pawl__h2_services *services, pawl_view service);

/* "application/grpc", also with "+proto" or parameters after ";". */
bool pawl__h2_is_grpc(pawl_view content_type);

/* Connect's unary calls: POST /package.Service/Method with application/proto or application/json. */
enum pawl__h2_codec { PAWL__H2_PROTO, PAWL__H2_JSON };

struct pawl__h2_connect {
    const struct pawl__h2_method *method;
    enum pawl__h2_codec codec;
};

/* 200 and where to go; 404: no such method; 405: not POST; 415: another type, or a stream, which has no unary form. */
unsigned pawl__h2_connect_route(const struct pawl__h2_services *services,
                                pawl_view http_method,
                                pawl_view path,
                                pawl_view content_type,
                                struct pawl__h2_connect *ret_connect);

/* The body of an error: {"code":"not_found","message":"..."}. */
void pawl__h2_connect_error(int code, pawl_view message, struct pawl__buf *out);

/* --- running a method without HTTP/2, for another port of the program --- */

/* How it ended; exactly once, on the thread that finished it. Views live during the call. */
typedef void pawl__h2_local_done(void *context, int code, pawl_view message, pawl_view answer);

/* Runs a unary method on this thread with a request, which is emptied; the handler may finish it later. NOMEM: `done` is
 * not called. */
PAWL_MUST_USE pawl_status pawl__h2_call_local(const struct pawl__h2_method *method,
                                              struct pawl__buf *request,
                                              int64_t deadline_ns,
                                              pawl__h2_local_done *done,
                                              void *context,
                                              pawl_error *reterr);

#endif
