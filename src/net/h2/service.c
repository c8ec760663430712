#include "net/h2/service.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

static int compare(const void *a, const void *b)
{
    const struct pawl__h2_method *const *left = a;
    const struct pawl__h2_method *const *right = b;

    return strcmp((*left)->path, (*right)->path);
}

static pawl_status check_method(const struct pawl__h2_method *method, pawl_error *reterr)
{
    pawl_view service = { 0 };
    pawl_view name = { 0 };
    bool reads = method->kind == PAWL__H2_CLIENT_STREAM || method->kind == PAWL__H2_BIDI;

    if (!pawl__h2_path_split(pawl_view_of(method->path), &service, &name)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' is no path of a method: write /package.Service/Method",
                          method->path);
    }
    if (method->handle == NULL || (reads && (method->message == NULL || method->ended == NULL))) {
        return pawl__fail(reterr, PAWL_INVALID, "method '%s' has no handler", method->path);
    }
    if (reads && method->blocks) {
        return pawl__fail(
            reterr, PAWL_INVALID, "method '%s' reads a stream and cannot block", method->path);
    }
    return PAWL_OK;
}

pawl_status pawl__h2_services_add(struct pawl__h2_services *services,
                                  const struct pawl__h2_method *methods,
                                  size_t count,
                                  pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(check_method(&methods[i], reterr));
    }
    if (count == 0) {
        return PAWL_OK;
    }
    const struct pawl__h2_method **grown = realloc(
        services->methods, (services->count + count) * sizeof(const struct pawl__h2_method *));
    TRY(pawl__check_memory(grown, "the methods of a server", reterr));
    services->methods = grown;
    for (size_t i = 0; i < count; i++) {
        grown[services->count++] = &methods[i];
    }
    qsort(grown, services->count, sizeof(const struct pawl__h2_method *), compare);
    for (size_t i = 1; i < services->count; i++) {
        if (strcmp(grown[i - 1]->path, grown[i]->path) == 0) {
            return pawl__fail(reterr, PAWL_CONFLICT, "method '%s' is there twice", grown[i]->path);
        }
    }
    return PAWL_OK;
}

void pawl__h2_services_done(struct pawl__h2_services *services)
{
    free(services->methods);
    *services = (struct pawl__h2_services){ 0 };
}

static int compare_path(pawl_view path, const char *with)
{
    size_t len = strlen(with);
    size_t shorter = MIN(len, path.len);
    int order = shorter == 0 ? 0 : memcmp(path.data, with, shorter);

    if (order != 0 || path.len == len) {
        return order;
    }
    return path.len < len ? -1 : 1;
}

const struct pawl__h2_method *pawl__h2_services_find(const struct pawl__h2_services *services,
                                                     pawl_view path)
{
    size_t low = 0;
    size_t high = services->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_path(path, services->methods[middle]->path);
        if (order == 0) {
            return services->methods[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

bool pawl__h2_services_has(const struct pawl__h2_services *services, pawl_view service)
{
    pawl_view found = { 0 };
    pawl_view method = { 0 };

    for (size_t i = 0; i < services->count; i++) {
        if (pawl__h2_path_split(pawl_view_of(services->methods[i]->path), &found, &method)
            && pawl__view_equal(found, service)) {
            return true;
        }
    }
    return false;
}

/* Without parameters and the spaces before them. */
static pawl_view bare_type(pawl_view content_type)
{
    pawl_view type = { 0 };

    bool found = pawl__view_split(&content_type, ';', &type);
    while (found && type.len > 0 && type.data[type.len - 1] == ' ') {
        type.len--;
    }
    return type;
}

bool pawl__h2_is_grpc(pawl_view content_type)
{
    pawl_view type = bare_type(content_type);

    return pawl__view_is(type, "application/grpc") || pawl__view_is(type, "application/grpc+proto");
}

unsigned pawl__h2_connect_route(const struct pawl__h2_services *services,
                                pawl_view http_method,
                                pawl_view path,
                                pawl_view content_type,
                                struct pawl__h2_connect *ret_connect)
{
    struct pawl__h2_connect connect = { .method = pawl__h2_services_find(services, path) };
    pawl_view type = bare_type(content_type);

    if (connect.method == NULL) {
        return 404;
    }
    if (!pawl__view_is(http_method, "POST")) {
        return 405;
    }
    if (pawl__view_is(type, "application/json") && connect.method->json != NULL) {
        connect.codec = PAWL__H2_JSON;
    } else if (pawl__view_is(type, "application/proto")) {
        connect.codec = PAWL__H2_PROTO;
    } else {
        return 415;
    }
    if (connect.method->kind != PAWL__H2_UNARY) {
        return 415;
    }
    *ret_connect = connect;
    return 200;
}
