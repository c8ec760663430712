#include "net/http/url.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/hex.h"
#include "base/core/macros.h"

enum { SHOWN_MAX = 64 };

/* The byte that three characters "%2F" stand for; -1: they do not. */
static int escaped(const char *text, size_t len)
{
    int high = len >= 3 ? pawl__hex_value(text[1]) : -1;
    int low = high >= 0 ? pawl__hex_value(text[2]) : -1;

    return low < 0 ? -1 : high * 16 + low;
}

/* Decodes in place: what comes out is never longer. */
static pawl_status decode(
    char *text, size_t len, bool form, pawl_view *ret_view, pawl_error *reterr)
{
    size_t to = 0;

    for (size_t from = 0; from < len; to++) {
        int byte = text[from] == '%' ? escaped(text + from, len - from) : 0;
        if (text[from] == '%' && byte <= 0) {
            return byte == 0 ? pawl__fail(reterr, PAWL_INVALID, "the address has a %%00")
                             : pawl__fail(reterr,
                                          PAWL_INVALID,
                                          "the address has a '%%' without two hexadecimal digits");
        }
        if (text[from] == '%') {
            text[to] = (char)byte;
            from += 3;
        } else {
            text[to] = form && text[from] == '+' ? ' ' : text[from];
            from++;
        }
    }
    *ret_view = (pawl_view){ text, to };
    return pawl__view_is_utf8(*ret_view)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "the address is no UTF-8 when it is decoded");
}

static pawl_status parse_path(struct pawl__http_url *url, char *path, pawl_error *reterr)
{
    if (path[0] != '/') {
        return pawl__fail(reterr, PAWL_INVALID, "the address does not begin with '/'");
    }
    for (char *part = path + 1; part != NULL;) {
        char *end = strchr(part, '/');
        size_t len = end == NULL ? strlen(part) : (size_t)(end - part);

        if (url->part_count == HTTP_PARTS_MAX) {
            return pawl__fail(
                reterr, PAWL_INVALID, "the address has more than %d parts", HTTP_PARTS_MAX);
        }
        TRY(decode(part, len, false, &url->parts[url->part_count], reterr));
        url->part_count++;
        part = end == NULL ? NULL : end + 1;
    }
    return PAWL_OK;
}

static bool is_there(const struct pawl__http_url *url, pawl_view name)
{
    for (size_t i = 0; i < url->query_count; i++) {
        if (pawl__view_equal(url->query[i].name, name)) {
            return true;
        }
    }
    return false;
}

static pawl_status parse_parameter(struct pawl__http_url *url,
                                   char *text,
                                   size_t len,
                                   pawl_error *reterr)
{
    struct pawl__http_parameter parameter = { .value = { "", 0 } };
    char *equals = memchr(text, '=', len);
    size_t name_len = equals == NULL ? len : (size_t)(equals - text);

    if (url->query_count == HTTP_QUERY_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "the query has more than %d parameters", HTTP_QUERY_MAX);
    }
    TRY(decode(text, name_len, true, &parameter.name, reterr));
    if (equals != NULL) {
        TRY(decode(equals + 1, len - name_len - 1, true, &parameter.value, reterr));
    }
    if (is_there(url, parameter.name)) {
        pawl_view shown = { parameter.name.data, MIN(parameter.name.len, SHOWN_MAX) };
        return pawl__fail(
            reterr, PAWL_INVALID, "the query has '%.*s' more than once", VIEW_ARGS(shown));
    }
    url->query[url->query_count++] = parameter;
    return PAWL_OK;
}

static pawl_status parse_query(struct pawl__http_url *url, char *query, pawl_error *reterr)
{
    while (query != NULL) {
        char *end = strchr(query, '&');
        size_t len = end == NULL ? strlen(query) : (size_t)(end - query);

        if (len > 0) {
            TRY(parse_parameter(url, query, len, reterr));
        }
        query = end == NULL ? NULL : end + 1;
    }
    return PAWL_OK;
}

/* A proxy's form, "http://HOST/path": the host is the Host header's business. */
static const char *behind_host(const char *target)
{
    static const char scheme[] = "http://";

    if (strncasecmp(target, scheme, strlen(scheme)) != 0) {
        return target;
    }
    const char *path = strpbrk(target + strlen(scheme), "/?");
    return path == NULL ? "/" : path;
}

pawl_status pawl__http_url_parse(const char *target,
                                 struct pawl__http_url *ret_url,
                                 pawl_error *reterr)
{
    struct pawl__http_url url = { .text = strdup(behind_host(target)) };

    TRY(pawl__check_memory(url.text, "an address", reterr));
    char *query = strchr(url.text, '?');
    if (query != NULL) {
        *query++ = '\0';
    }
    pawl_status status = parse_path(&url, url.text, reterr);
    if (status == PAWL_OK) {
        status = parse_query(&url, query, reterr);
    }
    if (status != PAWL_OK) {
        pawl__http_url_done(&url);
        return status;
    }
    *ret_url = url;
    return PAWL_OK;
}

void pawl__http_url_done(struct pawl__http_url *url)
{
    free(url->text);
    *url = (struct pawl__http_url){ .text = NULL };
}

const pawl_view *pawl__http_url_query(const struct pawl__http_url *url, const char *name)
{
    for (size_t i = 0; i < url->query_count; i++) {
        if (pawl__view_is(url->query[i].name, name)) {
            return &url->query[i].value;
        }
    }
    return NULL;
}

pawl_status pawl__http_number(const char *name,
                              pawl_view text,
                              const uint64_t range[2],
                              uint64_t *ret_number,
                              pawl_error *reterr)
{
    uint64_t number = 0;
    bool good = text.len > 0;

    for (size_t i = 0; i < text.len && good; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text.data[i] - '0';
        good = digit <= 9 && !__builtin_mul_overflow(number, 10, &number)
               && !__builtin_add_overflow(number, digit, &number);
    }
    if (!good || number < range[0] || number > range[1]) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' is not a whole number from %" PRIu64 " to %" PRIu64,
                          name,
                          range[0],
                          range[1]);
    }
    *ret_number = number;
    return PAWL_OK;
}
