/* From a request to its handler: the declared routes of all parts, bound to what net/http serves. */
#ifndef PAWL_SERVER_DISPATCH_H
#define PAWL_SERVER_DISPATCH_H

#include "net/http/url.h"
#include "server/part.h"

/* A declared route and the state of its part. */
struct pawl__serve_bound {
    const struct pawl__serve_part *part;
    const struct pawl__serve_route *route;
    void *const *state;                         /* where the part's state stands once it is open */
    const char *parameters[HTTP_QUERY_MAX + 1]; /* of the query, for net/http */
    bool in_path[HTTP_QUERY_MAX + HTTP_PARTS_MAX]; /* by field: it is a part of the path */
};

struct pawl__serve_table {
    struct pawl__http_route *routes;
    struct pawl__serve_bound *bound;
    size_t count;
};

/* Routes of `count` parts; `states` outlives the table. */
PAWL_MUST_USE pawl_status pawl__serve_table_new(const struct pawl__serve_part *const *parts,
                                                void *const *states,
                                                size_t count,
                                                struct pawl__serve_table *ret_table,
                                                pawl_error *reterr);
void pawl__serve_table_done(struct pawl__serve_table *table);

/* Whether {name} stands in the pattern. */
bool pawl__serve_is_in_path(const char *pattern, const char *name);

#endif
