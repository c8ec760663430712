#include "net/nats/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/hex.h"

enum { URL_BYTES_MAX = 4096, PORT_DEFAULT = 4222, PORT_MAX = 65535 };

static pawl_status fail_url(pawl_error *reterr, const char *what)
{
    return pawl__fail_advised(
        reterr,
        PAWL_INVALID,
        "the NATS URL %s; expected nats://user:password@host:4222 with '@', '/', "
        "':', ',' and '%%' inside user and password written as %%40, %%2F, %%3A, %%2C "
        "and %%25",
        what);
}

/* "a%40b" into "a@b". */
static pawl_status decode(pawl_view text, char **ret_text, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(URL_BYTES_MAX);

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '%') {
            pawl__buf_add_char(&buf, text.data[i]);
            continue;
        }
        int high = i + 2 < text.len ? pawl__hex_value(text.data[i + 1]) : -1;
        int low = i + 2 < text.len ? pawl__hex_value(text.data[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0) { /* %00 would end the text */
            return fail_url(reterr, "has a '%' without two hexadecimal digits after it");
        }
        pawl__buf_add_char(&buf, (char)(high * 16 + low));
        i += 2;
    }
    return pawl__buf_hand_out(&buf, "the NATS URL", ret_text, NULL, reterr);
}

/* What stands before the '@': user and password, or a token. */
static pawl_status parse_identity(pawl_view text, struct pawl__nats_url *url, pawl_error *reterr)
{
    pawl_view first = { 0 };
    bool has_colon = text.len > 0 && memchr(text.data, ':', text.len) != NULL;

    if (url->user != NULL || url->token != NULL) {
        return fail_url(reterr,
                        "says twice who we are: write user and password once, for all servers");
    }
    if (!pawl__view_split(&text, ':', &first) || first.len == 0) {
        return fail_url(reterr, "has nothing before its '@'");
    }
    if (!has_colon) {
        return decode(first, &url->token, reterr);
    }
    if (memchr(text.data, ':', text.len) != NULL) {
        return fail_url(reterr, "has a second ':' before its '@'");
    }
    TRY(decode(first, &url->user, reterr));
    return decode(text, &url->password, reterr);
}

static bool is_host(pawl_view host)
{
    bool bracketed = host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']';

    for (size_t i = 0; i < host.len; i++) {
        char c = host.data[i];
        bool edge = bracketed && (i == 0 || i == host.len - 1);
        if (!edge && !isalnum((unsigned char)c) && c != '.' && c != '-' && c != '_'
            && !(bracketed && (c == ':' || c == '%'))) {
            return false;
        }
    }
    return host.len > 0;
}

static bool parse_port(pawl_view text, int *ret_port)
{
    long port = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (!isdigit((unsigned char)text.data[i]) || port > PORT_MAX) {
            return false;
        }
        port = port * 10 + (text.data[i] - '0');
    }
    *ret_port = (int)port;
    return text.len > 0 && port > 0 && port <= PORT_MAX;
}

/* Where the port begins: behind the last ':' that is not inside [ ]. */
static size_t host_length(pawl_view address)
{
    for (size_t i = address.len; i > 0; i--) {
        if (address.data[i - 1] == ']') {
            break;
        }
        if (address.data[i - 1] == ':') {
            return i - 1;
        }
    }
    return address.len;
}

static pawl_status parse_address(pawl_view address, struct pawl__nats_url *url, pawl_error *reterr)
{
    int port = PORT_DEFAULT;
    pawl_view rest = address;
    pawl_view host = { 0 };

    if (address.len > 0 && address.data[address.len - 1] == '/') {
        rest.len--;
    }
    size_t len = host_length(rest);
    bool has_port = len < rest.len;
    if (!pawl__view_take(&rest, len, &host) || !is_host(host)) {
        return fail_url(reterr, "has no host that can be one");
    }
    pawl_view colon;
    if (has_port && (!pawl__view_take(&rest, 1, &colon) || !parse_port(rest, &port))) {
        return fail_url(reterr, "has no port from 1 to 65535 after its host");
    }
    if (url->server_count == PAWL__NATS_SERVERS_MAX) {
        return fail_url(reterr, "names more than 16 servers");
    }
    char **server = &url->servers[url->server_count];
    if (asprintf(server, "nats://%.*s:%d", VIEW_ARGS(host), port) < 0) {
        *server = NULL;
    }
    TRY(pawl__check_memory(*server, "the NATS URL", reterr));
    url->server_count++;
    return PAWL_OK;
}

static pawl_status parse_server(pawl_view text, struct pawl__nats_url *url, pawl_error *reterr)
{
    static const char *const schemes[] = { "nats://", "tls://" };
    pawl_view identity = { 0 };

    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        pawl_view scheme = pawl_view_of(schemes[i]);
        pawl_view start = { text.data, MIN(text.len, scheme.len) };
        if (pawl__view_equal(start, scheme)) {
            url->tls = url->tls || i == 1;
            REQUIRE(pawl__view_take(&text, scheme.len, &start));
            break;
        }
    }
    const char *at = text.len == 0 ? NULL : memrchr(text.data, '@', text.len);
    if (at != NULL) {
        pawl_view sign;
        REQUIRE(pawl__view_take(&text, (size_t)(at - text.data), &identity));
        REQUIRE(pawl__view_take(&text, 1, &sign));
        TRY(parse_identity(identity, url, reterr));
    }
    return parse_address(text, url, reterr);
}

static pawl_status join_shown(struct pawl__nats_url *url, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT((size_t)2 * URL_BYTES_MAX);

    for (size_t i = 0; i < url->server_count; i++) {
        pawl__buf_add_text(&buf, i == 0 ? "" : ",");
        pawl__buf_add_text(&buf, url->servers[i]);
    }
    return pawl__buf_hand_out(&buf, "the NATS URL", &url->shown, NULL, reterr);
}

static pawl_status parse_all(const char *text, struct pawl__nats_url *url, pawl_error *reterr)
{
    pawl_view rest = pawl_view_of(text);
    pawl_view server = { 0 };

    if (rest.len > URL_BYTES_MAX) {
        return fail_url(reterr, "is longer than 4096 bytes");
    }
    while (pawl__view_split(&rest, ',', &server)) {
        TRY(parse_server(server, url, reterr));
    }
    return url->server_count == 0 ? fail_url(reterr, "is empty") : join_shown(url, reterr);
}

pawl_status pawl__nats_url_parse(const char *text,
                                 struct pawl__nats_url *ret_url,
                                 pawl_error *reterr)
{
    struct pawl__nats_url url = { 0 };
    pawl_status status = parse_all(text, &url, reterr);

    if (status != PAWL_OK) {
        pawl__nats_url_done(&url);
        return status;
    }
    *ret_url = url;
    return PAWL_OK;
}

static void wipe(char *secret)
{
    if (secret != NULL) {
        explicit_bzero(secret, strlen(secret));
        free(secret);
    }
}

void pawl__nats_url_done(struct pawl__nats_url *url)
{
    for (size_t i = 0; i < url->server_count; i++) {
        free(url->servers[i]);
    }
    free(url->shown);
    free(url->user);
    wipe(url->password);
    wipe(url->token);
    *url = (struct pawl__nats_url){ 0 };
}
