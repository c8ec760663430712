/* Any bytes as the target of a request, and as a header Idempotency-Key: no crash; what is taken apart
 * fits its limits, is UTF-8 without NUL, and finds the same route again. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <pawl/app.h>

#include "base/core/macros.h"
#include "net/http/route.h"
#include "server/apps/idempotency.h"
#include "server/node_internal.h"

static void check_text(pawl_view text)
{
    CHECK(pawl__view_is_utf8(text));
    CHECK(memchr(text.data, '\0', text.len) == NULL || text.len == 0);
}

static void check_route(const struct pawl__http_url *url)
{
    const struct pawl__http_routes routes = { pawl__serve_routes, pawl__serve_route_count };
    static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "BREW" };

    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        char text[256] = "";
        struct pawl__buf allowed = BUF_OVER(text);
        size_t index = routes.count;
        enum pawl__http_found found = pawl__http_find_route(&routes, methods[i], url, &index);

        pawl__http_add_allowed(&routes, url, &allowed);
        CHECK((found == HTTP_FOUND) == (index < routes.count));
        CHECK((found == HTTP_NO_PATH) == (allowed.len == 0));
        CHECK(!allowed.broken);
        if (found == HTTP_FOUND) {
            pawl_error error = PAWL_ERROR_INIT;

            (void)!pawl__http_check_query(&routes.routes[index], url, &error);
            if (strstr(routes.routes[index].pattern, "{app}") != NULL) {
                CHECK(pawl__http_part_of(routes.routes[index].pattern, url, "app").len > 0);
            }
        }
    }
}

static void check_target(const char *target)
{
    struct pawl__http_url url = { .text = NULL };
    pawl_error error = PAWL_ERROR_INIT;
    const uint64_t range[2] = { 1, 1000 };

    if (pawl__http_url_parse(target, &url, &error) != PAWL_OK) {
        CHECK(url.text == NULL);
        CHECK(error.status == PAWL_INVALID);
        return;
    }
    CHECK(url.part_count >= 1 && url.part_count <= HTTP_PARTS_MAX);
    CHECK(url.query_count <= HTTP_QUERY_MAX);
    for (size_t i = 0; i < url.part_count; i++) {
        check_text(url.parts[i]);
    }
    for (size_t i = 0; i < url.query_count; i++) {
        uint64_t number = 0;

        check_text(url.query[i].name);
        check_text(url.query[i].value);
        if (pawl__http_number("n", url.query[i].value, range, &number, &error) == PAWL_OK) {
            CHECK(number >= 1 && number <= 1000);
        }
    }
    check_route(&url);
    pawl__http_url_done(&url);
}

static void check_key(const char *header)
{
    char bytes[2 * PAWL_APP_KEY_BYTES_MAX + 4];
    struct pawl__buf key = BUF_OVER(bytes);

    if (pawl__serve_idempotency_key(header, &key, NULL) == PAWL_OK) {
        CHECK(key.len >= 1 && key.len <= PAWL_APP_KEY_BYTES_MAX);
        check_text(pawl__buf_view(&key));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl__http_address address;
    char *text = pawl__view_dup((pawl_view){ (const char *)data, size });

    CHECK(text != NULL);
    check_target(text);
    check_key(text);
    (void)!pawl__http_address_parse(text, &address, NULL);
    free(text);
    return 0;
}
