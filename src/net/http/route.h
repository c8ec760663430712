/* Which handler a request is for: method and pattern, "/v1/apps/{app}/workspaces/{wsid}/wlog". Pure.
 *
 * A {name} stands for one part of the path that is not empty; everything else has to be equal. */
#ifndef PAWL_NET_HTTP_ROUTE_H
#define PAWL_NET_HTTP_ROUTE_H

#include "base/core/buf.h"
#include "net/http/http.h"
#include "net/http/url.h"

enum pawl__http_found {
    HTTP_FOUND,
    HTTP_NO_PATH,  /* no pattern fits */
    HTTP_NO_METHOD /* one does, with another method */
};

struct pawl__http_routes {
    const struct pawl__http_route *routes;
    size_t count;
};

/* HEAD is answered by what answers GET. */
enum pawl__http_found pawl__http_find_route(const struct pawl__http_routes *routes,
                                            const char *method,
                                            const struct pawl__http_url *url,
                                            size_t *ret_index);

/* Adds the methods that the path allows: "GET, HEAD, PUT". */
void pawl__http_add_allowed(const struct pawl__http_routes *routes,
                            const struct pawl__http_url *url,
                            struct pawl__buf *buf);

/* The part that stands for {name}; it has to be in the pattern. */
pawl_view pawl__http_part_of(const char *pattern,
                             const struct pawl__http_url *url,
                             const char *name);

/* INVALID names a parameter that the route does not know, and those that it does. */
PAWL_MUST_USE pawl_status pawl__http_check_query(const struct pawl__http_route *route,
                                                 const struct pawl__http_url *url,
                                                 pawl_error *reterr);

#endif
