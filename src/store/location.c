#include "store/location.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"

enum { CONNECTIONS_MAX = 256, URL_BYTES_MAX = 8192 };

void pawl__location_done(struct pawl__location *location)
{
    free(location->path);
    free(location->app);
    location->path = NULL;
    location->app = NULL;
}

static bool take_prefix(pawl_view *text, const char *prefix)
{
    pawl_view taken;
    pawl_view rest = *text;

    if (!pawl__view_take(&rest, strlen(prefix), &taken) || !pawl__view_is(taken, prefix)) {
        return false;
    }
    *text = rest;
    return true;
}

static pawl_status set_parameter(struct pawl__location *location,
                                 pawl_view parameter,
                                 pawl_error *reterr)
{
    pawl_view value = parameter;
    pawl_view name = { NULL, 0 };

    if (!pawl__view_split(&value, '=', &name) || !pawl__view_is(name, "durability")) {
        return pawl__fail(
            reterr, PAWL_INVALID, "unknown parameter '%.*s'; known: durability", VIEW_ARGS(name));
    }
    if (!pawl__view_is(value, "full") && !pawl__view_is(value, "normal")) {
        return pawl__fail(
            reterr, PAWL_INVALID, "durability is '%.*s'; allowed: full, normal", VIEW_ARGS(value));
    }
    location->durability_normal = pawl__view_is(value, "normal");
    return PAWL_OK;
}

/* Where the parameters begin. Those have no slash, so a '?' before one is part of the path. */
static size_t path_bytes(pawl_view text)
{
    size_t end = text.len;

    for (size_t i = text.len; i > 0 && text.data[i - 1] != '/'; i--) {
        end = text.data[i - 1] == '?' ? i - 1 : end;
    }
    return end;
}

static pawl_status parse_file(pawl_view text, struct pawl__location *location, pawl_error *reterr)
{
    pawl_view path = { NULL, 0 };
    pawl_view mark;
    pawl_view parameter;

    location->scheme = PAWL__AT_SQLITE;
    if (!pawl__view_take(&text, path_bytes(text), &path) || path.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "no path");
    }
    (void)!pawl__view_take(&text, 1, &mark); /* the '?' */
    while (pawl__view_split(&text, '&', &parameter)) {
        TRY(set_parameter(location, parameter, reterr));
    }
    location->path = pawl__view_dup(path);
    return location->path != NULL ? PAWL_OK
                                  : pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
}

static bool parse_connections(pawl_view text, uint32_t *ret_connections)
{
    uint32_t number = 0;

    for (size_t i = 0; i < text.len && number <= CONNECTIONS_MAX; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        number = number * 10 + (uint32_t)(text.data[i] - '0');
    }
    *ret_connections = number;
    return number >= 1 && number <= CONNECTIONS_MAX;
}

static pawl_status set_app(pawl_view name, struct pawl__location *location, pawl_error *reterr)
{
    if (location->app != NULL && !pawl__view_is(name, location->app)) {
        pawl_view shown = { name.data, MIN(name.len, (size_t)64) };
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the location says 'app=%.64s', and also 'app=%.*s'",
                          location->app,
                          VIEW_ARGS(shown));
    }
    free(location->app);
    location->app = pawl__view_dup(name);
    return location->app != NULL ? PAWL_OK : pawl__fail(reterr, PAWL_NOMEM, "no memory for a name");
}

/* The URL is libpq's but for our own parameters, which libpq would refuse. Nothing of it is shown:
 * it may hold a password. */
static pawl_status parse_url(pawl_view text,
                             bool may_name_app,
                             struct pawl__location *location,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf url = BUF_INIT(URL_BYTES_MAX);
    pawl_view base = { NULL, 0 };
    pawl_view parameter;
    char before = '?';

    location->scheme = PAWL__AT_POSTGRES;
    (void)!pawl__view_split(&text, '?', &base);
    pawl__buf_add(&url, base);
    while (pawl__view_split(&text, '&', &parameter)) {
        pawl_view rest = parameter;
        if (may_name_app && take_prefix(&rest, "app=")) {
            TRY(set_app(rest, location, reterr));
        } else if (!take_prefix(&rest, "connections=")) {
            pawl__buf_add_char(&url, before);
            pawl__buf_add(&url, parameter);
            before = '&';
        } else if (!parse_connections(rest, &location->connections)) {
            return pawl__fail(
                reterr, PAWL_INVALID, "connections: must be 1 to %d", CONNECTIONS_MAX);
        }
    }
    pawl_status status = pawl__buf_check(&url, "the URL", reterr);
    location->path = status == PAWL_OK ? pawl__buf_steal(&url) : NULL;
    return status;
}

/* "file:x" or "mysql://..." is a mistake, "C:x" and "a/b:c" may be paths. */
static bool looks_like_a_scheme(pawl_view text)
{
    const char *colon = text.len == 0 ? NULL : memchr(text.data, ':', text.len);
    size_t len = colon == NULL ? 0 : (size_t)(colon - text.data);

    if (len < 2 || memchr(text.data, '/', len) != NULL || memchr(text.data, '.', len) != NULL) {
        return false;
    }
    return true;
}

bool pawl__location_is_postgres(const char *text)
{
    pawl_view rest = pawl_view_of(text);

    return take_prefix(&rest, "postgres://") || take_prefix(&rest, "postgresql://");
}

static pawl_status parse(const char *text, struct pawl__location *location, pawl_error *reterr)
{
    pawl_view rest = pawl_view_of(text);

    if (take_prefix(&rest, "memory:")) {
        location->scheme = PAWL__AT_MEMORY;
        return rest.len == 0 ? PAWL_OK
                             : pawl__fail(reterr, PAWL_INVALID, "nothing may follow 'memory:'");
    }
    if (pawl__location_is_postgres(text)) {
        return parse_url(rest, false, location, reterr);
    }
    if (!take_prefix(&rest, "sqlite:") && looks_like_a_scheme(rest)) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "unknown kind of store; allowed: memory:, a path, sqlite:PATH, postgres://");
    }
    return parse_file(rest, location, reterr);
}

static pawl_status parse_app(const char *text, struct pawl__location *location, pawl_error *reterr)
{
    if (text == NULL || text[0] == '\0') {
        return pawl__fail(reterr, PAWL_INVALID, "the location is empty");
    }
    pawl_view rest = pawl_view_of(text);
    if (pawl__location_is_postgres(text)) {
        return parse_url(rest, true, location, reterr);
    }
    bool in_memory = take_prefix(&rest, "memory:");
    if (in_memory && rest.len == 0) {
        location->scheme = PAWL__AT_MEMORY;
        return PAWL_OK;
    }
    if (in_memory || strstr(text, "://") != NULL) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "location '%s' is neither a directory nor postgres:// nor memory:",
                          text);
    }
    location->scheme = PAWL__AT_DIRECTORY;
    location->path = strdup(text);
    return location->path != NULL ? PAWL_OK
                                  : pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
}

static pawl_status parse_by(pawl__location_parser *parser,
                            const char *text,
                            struct pawl__location *ret_location,
                            pawl_error *reterr)
{
    struct pawl__location location = { 0 };
    pawl_status status = parser(text, &location, reterr);

    if (status != PAWL_OK) {
        pawl__location_done(&location);
        return status;
    }
    *ret_location = location;
    return PAWL_OK;
}

pawl_status pawl__location_parse(const char *text,
                                 struct pawl__location *ret_location,
                                 pawl_error *reterr)
{
    return parse_by(parse, text, ret_location, reterr);
}

pawl_status pawl__location_parse_app(const char *text,
                                     struct pawl__location *ret_location,
                                     pawl_error *reterr)
{
    return parse_by(parse_app, text, ret_location, reterr);
}
