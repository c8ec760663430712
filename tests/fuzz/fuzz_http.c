/* Any bytes as the target of a request, and as a header Idempotency-Key: no crash; what is taken apart
 * fits its limits, is UTF-8 without NUL, and finds the same route again. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <pawl/app.h>

#include "base/core/macros.h"
#include "net/http/route.h"
#include "server/idempotency.h"
#include "server/node_internal.h"

static void check_text(pawl_view text)
{
    CHECK(pawl__view_is_utf8(text));
    CHECK(memchr(text.data, '\0', text.len) == NULL || text.len == 0);
}

/* The declared routes of the node, made once. */
static const struct pawl__serve_table *all_routes(void)
{
    static void *states[NODE_PARTS_MAX];
    static struct pawl__serve_table table;
    size_t count = 0;

    while (pawl__serve_parts[count] != NULL) {
        count++;
    }
    if (table.count == 0) {
        CHECK(pawl__serve_table_new(pawl__serve_parts, states, count, &table, NULL) == PAWL_OK);
    }
    return &table;
}

/* A field of the declaration is read, or refused with a message that names it. */
static void check_parameters(const struct pawl__serve_route *route,
                             const struct pawl__http_url *url)
{
    const struct pawl__record *record = route->parameters;
    char value[256] = "";

    CHECK(record == NULL || record->size <= sizeof(value));
    for (size_t i = 0; record != NULL && i < record->count; i++) {
        const struct pawl__field *field = &record->fields[i];
        const pawl_view *query = pawl__http_url_query(url, field->name);
        pawl_view text = query != NULL ? *query : (pawl_view){ NULL, 0 };
        pawl_error error = PAWL_ERROR_INIT;

        if (pawl__serve_is_in_path(route->pattern, field->name)) {
            text = pawl__http_part_of(route->pattern, url, field->name);
        }
        if (text.data != NULL && pawl__record_read_text(field, text, value, &error) != PAWL_OK) {
            CHECK(error.status == PAWL_INVALID);
            CHECK(strstr(error.message, field->name) != NULL);
        }
    }
}

static void check_route(const struct pawl__http_url *url)
{
    const struct pawl__serve_table *table = all_routes();
    const struct pawl__http_routes routes = { table->routes, table->count };
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
            check_parameters(table->bound[index].route, url);
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
