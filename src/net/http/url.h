/* The target of a request, taken apart: the parts of its path and the parameters of its query, both
 * decoded. Pure.
 *
 * A part is decoded behind the split, so %2F is a character of a name and never a separator. Refused:
 * a '%' without two hexadecimal digits, %00, and what is no UTF-8 when it is decoded. In a query '+' is
 * a blank, as forms write it. */
#ifndef PAWL_NET_HTTP_URL_H
#define PAWL_NET_HTTP_URL_H

#include <pawl/pawl.h>

enum { HTTP_PARTS_MAX = 16, HTTP_QUERY_MAX = 16 };

struct pawl__http_parameter {
    pawl_view name;
    pawl_view value;
};

struct pawl__http_url {
    char *text; /* what the views point into */
    pawl_view parts[HTTP_PARTS_MAX];
    size_t part_count;
    struct pawl__http_parameter query[HTTP_QUERY_MAX];
    size_t query_count;
};

/* "/v1/apps?from=1", or the same behind "http://HOST". INVALID says what is wrong; NOMEM. Of two
 * parameters of one name none can be right: INVALID as well. */
PAWL_MUST_USE pawl_status pawl__http_url_parse(const char *target,
                                               struct pawl__http_url *ret_url,
                                               pawl_error *reterr);
void pawl__http_url_done(struct pawl__http_url *url);

/* NULL when it is not there. */
const pawl_view *pawl__http_url_query(const struct pawl__http_url *url, const char *name);

/* A whole number from min to max in decimal digits; INVALID names the parameter and the range. */
PAWL_MUST_USE pawl_status pawl__http_number(const char *name,
                                            pawl_view text,
                                            const uint64_t range[2],
                                            uint64_t *ret_number,
                                            pawl_error *reterr);

#endif
