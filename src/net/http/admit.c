/* What headers alone decide. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "net/http/internal.h"

/* A page of a stranger may have its own name resolve to 127.0.0.1 and then ask us, as the same origin:
 * its requests carry that name. */
static bool is_host(const char *host, const char *name, size_t len)
{
    return strncasecmp(host, name, len) == 0
           && (host[len] == '\0'
               || (host[len] == ':' && host[len + 1] != '\0'
                   && strspn(host + len + 1, "0123456789") == strlen(host + len + 1)));
}

/* `address` is the one that is listened on, with its port: another one of 127.0.0.0/8, maybe. */
static bool is_loopback_host(const char *host, const char *address)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
    const char *port = strrchr(address, ':');

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (is_host(host, names[i], strlen(names[i]))) {
            return true;
        }
    }
    return port != NULL && is_host(host, address, (size_t)(port - address));
}

/* --- headers that may be there once --- */

struct singles {
    const char *length;
    const char *coding;
    const char *host;
    const char *origin;
    const char *key;
    const char *token;
    const char *doubled; /* the name of one that came again; NULL: none did */
};

static enum MHD_Result see_header(void *context,
                                  enum MHD_ValueKind kind,
                                  const char *name,
                                  const char *value)
{
    struct singles *seen = context;
    const struct {
        const char *name;
        const char **first;
        bool same_is_fine;
    } singles[] = {
        { "Content-Length", &seen->length, false },
        { "Transfer-Encoding", &seen->coding, false },
        { "Host", &seen->host, false },
        { "Origin", &seen->origin, false },
        { "Authorization", &seen->token, false },
        { "Idempotency-Key", &seen->key, true },
    };

    (void)kind;
    value = value == NULL ? "" : value;
    for (size_t i = 0; i < COUNT_OF(singles); i++) {
        if (strcasecmp(name, singles[i].name) != 0) {
            continue;
        }
        if (*singles[i].first == NULL) {
            *singles[i].first = value;
        } else if (!singles[i].same_is_fine || strcmp(*singles[i].first, value) != 0) {
            seen->doubled = singles[i].name;
        }
    }
    return MHD_YES;
}

/* Two lengths, two hosts: somebody in between may have believed the other one. Where such a request ends
 * is not sure, so its connection does. */
static bool admit_singles(struct pawl__http_request *request)
{
    struct singles seen = { .length = NULL };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, see_header, &seen);
    if (seen.doubled != NULL) {
        status = pawl__fail(&error, PAWL_INVALID, "there are two headers %s", seen.doubled);
    } else if (seen.length != NULL && seen.coding != NULL) {
        status = pawl__fail(
            &error, PAWL_INVALID, "Content-Length and Transfer-Encoding exclude each other");
    } else if (seen.coding != NULL && strcasecmp(seen.coding, "chunked") != 0) {
        status = pawl__fail(&error, PAWL_INVALID, "the only Transfer-Encoding is chunked");
    }
    if (status != PAWL_OK) {
        request->ends = true;
        pawl__http_fail(request, &error);
    }
    return status == PAWL_OK;
}

enum { HEADER_BYTES = 20 }; /* that each header counts beside its own */

/* Our own limit, which is below that of MHD: it needs some 80 bytes for each header, however short. */
static bool admit_size(struct pawl__http_request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    int headers = MHD_get_connection_values(request->connection, MHD_HEADER_KIND, NULL, NULL);
    size_t most = request->http->options.header_bytes_max;
    char detail[96];

    if (info == NULL || info->header_size + (size_t)MAX(headers, 0) * HEADER_BYTES <= most) {
        return true;
    }
    (void)snprintf(detail,
                   sizeof(detail),
                   "the limit is %zu bytes; each header counts %d more",
                   most,
                   HEADER_BYTES);
    request->ends = true;
    pawl__http_refuse(request, &pawl__http_headers_too_large, detail);
    return false;
}

static bool admit_host(struct pawl__http_request *request)
{
    const char *host = pawl__http_header(request, "Host");

    if (request->http->options.loopback_hosts
        && (host == NULL || !is_loopback_host(host, request->http->address))) {
        pawl__http_refuse(
            request,
            &pawl__http_wrong_host,
            "this server is asked as localhost, 127.0.0.1, [::1] or by its own address only");
        return false;
    }
    return true;
}

/* The port of "localhost:8470" or "[::1]:8470"; without one that of the scheme. */
static const char *port_of(const char *authority, const char *scheme_port)
{
    const char *bracket = strrchr(authority, ']');
    const char *colon = strchr(bracket == NULL ? authority : bracket, ':');

    return colon == NULL ? scheme_port : colon + 1;
}

/* Whether a page of that origin is one of ours: it came from the host and port that is now asked, under
 * that name or another one of this machine. */
static bool is_own_origin(const struct pawl__http_request *request, const char *origin)
{
    static const struct {
        const char *prefix;
        const char *port;
    } schemes[] = { { "http://", "80" }, { "https://", "443" } };
    const char *host = pawl__http_header(request, "Host");

    for (size_t i = 0; i < COUNT_OF(schemes) && host != NULL; i++) {
        size_t len = strlen(schemes[i].prefix);

        if (strncasecmp(origin, schemes[i].prefix, len) == 0) {
            const char *page = origin + len;
            bool same_port =
                strcmp(port_of(page, schemes[i].port), port_of(host, schemes[i].port)) == 0;

            return strcasecmp(page, host) == 0
                   || (same_port && request->http->options.loopback_hosts
                       && is_loopback_host(page, request->http->address));
        }
    }
    return false;
}

/* A browser says which page a write comes from. Programs that are no browsers do not, and pass. */
static bool admit_origin(struct pawl__http_request *request)
{
    const char *origin = pawl__http_header(request, "Origin");
    bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;

    if (origin == NULL || reads || is_own_origin(request, origin)) {
        return true;
    }
    pawl__http_refuse(
        request, &pawl__http_wrong_origin, "other web pages cannot write here; nothing was done");
    return false;
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

static bool admit_caller(struct pawl__http_request *request)
{
    const struct pawl__http_options *options = &request->http->options;

    return options->authorize == NULL
           || options->authorize(request, pawl__http_route_of(request)->scope, options->context);
}

/* One that does nothing would be relied on. */
static bool admit_key(struct pawl__http_request *request)
{
    const char *why = pawl__http_route_of(request)->no_key;
    pawl_error error = PAWL_ERROR_INIT;

    if (why == NULL || pawl__http_header(request, "Idempotency-Key") == NULL) {
        return true;
    }
    (void)pawl__fail(
        &error, PAWL_INVALID, "the header Idempotency-Key is not taken at this address: %s", why);
    pawl__http_fail(request, &error);
    return false;
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
        request->ends = true;
        pawl__http_refuse_size(request);
        return false;
    }
    return true;
}

static void admit_type(struct pawl__http_request *request)
{
    const char *compression = pawl__http_header(request, "Content-Encoding");

    if (!is_json(pawl__http_header(request, "Content-Type"))) {
        pawl__http_refuse(
            request, &pawl__http_media_type, "send Content-Type: " HTTP_JSON " and JSON");
    } else if (compression != NULL && strcasecmp(compression, "identity") != 0) {
        pawl__http_refuse(request,
                          &pawl__http_media_type,
                          "no Content-Encoding is known here: send the JSON as it is");
    }
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
    } else if (admit_length(request, length)) {
        admit_type(request);
    }
}

void pawl__http_admit(struct pawl__http_request *request)
{
    if (admit_size(request) && admit_singles(request) && admit_host(request)
        && admit_origin(request) && admit_route(request) && admit_caller(request)
        && admit_key(request)) {
        admit_body(request);
    }
}
