#include "net/http/route.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"

enum { SHOWN_MAX = 64 };

/* Takes the next part of a pattern; false at its end. */
static bool next_part(pawl_view *pattern, pawl_view *ret_part)
{
    return pawl__view_split(pattern, '/', ret_part);
}

static pawl_view parts_of(const char *pattern)
{
    REQUIRE(pattern[0] == '/');
    return pawl_view_of(pattern + 1);
}

static bool is_name(pawl_view part)
{
    return part.len > 2 && part.data[0] == '{' && part.data[part.len - 1] == '}';
}

static bool fits(const char *pattern, const struct pawl__http_url *url)
{
    pawl_view rest = parts_of(pattern);
    pawl_view part = { "", 0 };
    size_t count = 0;

    if (rest.len == 0) { /* "/" has one part, which is empty */
        return url->part_count == 1 && url->parts[0].len == 0;
    }
    for (; next_part(&rest, &part); count++) {
        if (count == url->part_count) {
            return false;
        }
        pawl_view given = url->parts[count];
        if (is_name(part) ? given.len == 0 : !pawl__view_equal(part, given)) {
            return false;
        }
    }
    return count == url->part_count;
}

static const char *method_word(enum pawl__http_method method)
{
    static const char *const words[] = {
        [PAWL__HTTP_GET] = "GET",     [PAWL__HTTP_POST] = "POST",     [PAWL__HTTP_PUT] = "PUT",
        [PAWL__HTTP_PATCH] = "PATCH", [PAWL__HTTP_DELETE] = "DELETE",
    };
    return words[method];
}

static bool allows(const struct pawl__http_route *route, const char *method)
{
    return strcmp(method_word(route->method), method) == 0
           || (route->method == PAWL__HTTP_GET && strcmp(method, "HEAD") == 0);
}

enum pawl__http_found pawl__http_find_route(const struct pawl__http_routes *routes,
                                            const char *method,
                                            const struct pawl__http_url *url,
                                            size_t *ret_index)
{
    enum pawl__http_found found = HTTP_NO_PATH;

    for (size_t i = 0; i < routes->count; i++) {
        if (!fits(routes->routes[i].pattern, url)) {
            continue;
        }
        if (allows(&routes->routes[i], method)) {
            *ret_index = i;
            return HTTP_FOUND;
        }
        found = HTTP_NO_METHOD;
    }
    return found;
}

void pawl__http_add_allowed(const struct pawl__http_routes *routes,
                            const struct pawl__http_url *url,
                            struct pawl__buf *buf)
{
    for (size_t i = 0; i < routes->count; i++) {
        const struct pawl__http_route *route = &routes->routes[i];

        if (fits(route->pattern, url)) {
            pawl__buf_add_text(buf, buf->len == 0 ? "" : ", ");
            pawl__buf_add_text(buf, method_word(route->method));
            pawl__buf_add_text(buf, route->method == PAWL__HTTP_GET ? ", HEAD" : "");
        }
    }
}

pawl_view pawl__http_part_of(const char *pattern,
                             const struct pawl__http_url *url,
                             const char *name)
{
    pawl_view rest = parts_of(pattern);
    pawl_view part = { "", 0 };
    size_t index = 0;

    while (next_part(&rest, &part)
           && !(is_name(part) && pawl__view_is((pawl_view){ part.data + 1, part.len - 2 }, name))) {
        index++;
    }
    REQUIRE(index < url->part_count);
    return url->parts[index];
}

static bool knows(const char *const *names, pawl_view name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (pawl__view_is(name, *names)) {
            return true;
        }
    }
    return false;
}

static pawl_status refuse_parameter(const char *const *names, pawl_view name, pawl_error *reterr)
{
    char text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf list = BUF_OVER(text);
    pawl_view shown = { name.data, MIN(name.len, SHOWN_MAX) };

    for (; names != NULL && *names != NULL; names++) {
        pawl__buf_add_text(&list, list.len == 0 ? "; known: " : ", ");
        pawl__buf_add_text(&list, *names);
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "the parameter '%.*s' is unknown%s",
                      VIEW_ARGS(shown),
                      list.len == 0 ? ": none is known here" : text);
}

pawl_status pawl__http_check_query(const struct pawl__http_route *route,
                                   const struct pawl__http_url *url,
                                   pawl_error *reterr)
{
    for (size_t i = 0; i < url->query_count; i++) {
        if (!knows(route->parameters, url->query[i].name)) {
            return refuse_parameter(route->parameters, url->query[i].name, reterr);
        }
    }
    return PAWL_OK;
}
