/* What headers alone decide. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/http_internal.h"

/* A page of a stranger may have its own name resolve to 127.0.0.1 and then ask us, as the same origin:
 * its requests carry that name. */
static bool is_loopback_host(const char *host)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t len = strlen(names[i]);

        if (strncasecmp(host, names[i], len) == 0
            && (host[len] == '\0'
                || (host[len] == ':' && host[len + 1] != '\0'
                    && strspn(host + len + 1, "0123456789") == strlen(host + len + 1)))) {
            return true;
        }
    }
    return false;
}

static bool admit_host(struct pawl__http_request *request)
{
    const char *host = pawl__http_header(request, "Host");

    if (request->http->options.loopback_hosts && (host == NULL || !is_loopback_host(host))) {
        pawl__http_refuse(request,
                          &pawl__http_wrong_host,
                          "this server is asked as localhost, 127.0.0.1 or [::1] only");
        return false;
    }
    return true;
}

static void refuse_method(struct pawl__http_request *request)
{
    char allowed[HTTP_HEADER_SIZE] = "";
    char detail[HTTP_HEADER_SIZE + 32];
    struct pawl__buf list = BUF_OVER(allowed);

    pawl__http_add_allowed(&request->http->routes, &request->url, &list);
    (void)snprintf(detail, sizeof(detail), "allowed here: %s", allowed);
    pawl__http_set_header(request, "Allow", allowed);
    pawl__http_refuse(request, &pawl__http_method_not_allowed, detail);
}

static bool admit_route(struct pawl__http_request *request)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__http_url_parse(request->target, &request->url, &error);

    if (status != PAWL_OK) {
        pawl__http_fail(request, &error);
        return false;
    }
    switch (pawl__http_find_route(
        &request->http->routes, request->method, &request->url, &request->route)) {
    case HTTP_FOUND:
        break;
    case HTTP_NO_METHOD:
        refuse_method(request);
        return false;
    case HTTP_NO_PATH:
        (void)pawl__fail(&error, PAWL_NOT_FOUND, "there is nothing at this address");
        pawl__http_fail(request, &error);
        return false;
    }
    if (pawl__http_check_query(pawl__http_route_of(request), &request->url, &error) != PAWL_OK) {
        pawl__http_fail(request, &error);
        return false;
    }
    return true;
}

static bool is_json(const char *type)
{
    size_t len = strlen(HTTP_JSON);

    return type != NULL && strncasecmp(type, HTTP_JSON, len) == 0
           && (type[len] == '\0' || strchr("; \t", type[len]) != NULL);
}

void pawl__http_refuse_size(struct pawl__http_request *request)
{
    char detail[64];

    (void)snprintf(
        detail, sizeof(detail), "the limit is %zu bytes", request->http->options.body_bytes_max);
    pawl__http_refuse(request, &pawl__http_too_large, detail);
}

/* The length was told: a body that is too long is refused before it is sent. */
static bool admit_length(struct pawl__http_request *request, const char *length)
{
    const uint64_t range[2] = { 0, request->http->options.body_bytes_max };
    uint64_t bytes = 0;

    if (length != NULL
        && pawl__http_number("Content-Length", pawl_view_of(length), range, &bytes, NULL)
               != PAWL_OK) {
        pawl__http_refuse_size(request);
        return false;
    }
    return true;
}

static void admit_body(struct pawl__http_request *request)
{
    const char *length = pawl__http_header(request, "Content-Length");
    const char *coding = pawl__http_header(request, "Transfer-Encoding");
    bool has_body = coding != NULL || (length != NULL && strcmp(length, "0") != 0);
    pawl_error error = PAWL_ERROR_INIT;

    if (!pawl__http_route_of(request)->takes_json) {
        if (has_body) {
            (void)pawl__fail(&error, PAWL_INVALID, "no body is taken here");
            pawl__http_fail(request, &error);
        }
        return;
    }
    if (length == NULL && coding == NULL) {
        pawl__http_refuse(
            request, &pawl__http_length_required, "send Content-Length, or a body in chunks");
    } else if (admit_length(request, length)
               && !is_json(pawl__http_header(request, "Content-Type"))) {
        pawl__http_refuse(
            request, &pawl__http_media_type, "send Content-Type: " HTTP_JSON " and JSON");
    }
}

void pawl__http_admit(struct pawl__http_request *request)
{
    if (admit_host(request) && admit_route(request)) {
        admit_body(request);
    }
}
