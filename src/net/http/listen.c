#include "net/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "net/http/url.h"

enum { BACKLOG = 512, HOST_SIZE = 64 };

static pawl_status refuse(const char *text, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "'%s' is no address to listen on: write 127.0.0.1:8470, [::1]:8470 or "
                      "localhost:8470; port 0 is a free one",
                      text);
}

/* Numbers only, and localhost: a name that a resolver answers may be anywhere tomorrow. */
static bool parse_host(const char *host, bool bracketed, struct pawl__http_address *address)
{
    static const uint8_t loopback6[16] = { [15] = 1 };

    if (bracketed) {
        address->ipv6 = true;
        if (inet_pton(AF_INET6, host, address->bytes) != 1) {
            return false;
        }
        address->loopback = memcmp(address->bytes, loopback6, sizeof(loopback6)) == 0;
        return true;
    }
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, address->bytes)
        != 1) {
        return false;
    }
    address->loopback = address->bytes[0] == 127;
    return true;
}

pawl_status pawl__http_address_parse(const char *text,
                                     struct pawl__http_address *ret_address,
                                     pawl_error *reterr)
{
    struct pawl__http_address address = { .ipv6 = false };
    const char *colon = strrchr(text, ':');
    char host[HOST_SIZE] = "";
    uint64_t port = 0;

    size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    bool bracketed = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    size_t host_len = bracketed ? len - 2 : len;
    if (colon == NULL || host_len == 0 || host_len >= sizeof(host)) {
        return refuse(text, reterr);
    }
    memcpy(host, text + (bracketed ? 1 : 0), host_len);
    const uint64_t ports[2] = { 0, UINT16_MAX };
    if (!parse_host(host, bracketed, &address)
        || pawl__http_number("port", pawl_view_of(colon + 1), ports, &port, NULL) != PAWL_OK) {
        return refuse(text, reterr);
    }
    address.port = (uint16_t)port;
    *ret_address = address;
    return PAWL_OK;
}

/* The address as the system has it; what bind takes. */
union place {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t place_of(const struct pawl__http_address *address, union place *place)
{
    memset(place, 0, sizeof(*place));
    if (address->ipv6) {
        place->v6.sin6_family = AF_INET6;
        place->v6.sin6_port = htons(address->port);
        memcpy(&place->v6.sin6_addr, address->bytes, sizeof(place->v6.sin6_addr));
        return sizeof(place->v6);
    }
    place->v4.sin_family = AF_INET;
    place->v4.sin_port = htons(address->port);
    memcpy(&place->v4.sin_addr, address->bytes, sizeof(place->v4.sin_addr));
    return sizeof(place->v4);
}

static void write_place(const union place *place, char *ret_text, size_t size)
{
    char host[HOST_SIZE] = "";

    if (place->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &place->v6.sin6_addr, host, sizeof(host));
        (void)snprintf(ret_text, size, "[%s]:%u", host, ntohs(place->v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &place->v4.sin_addr, host, sizeof(host));
        (void)snprintf(ret_text, size, "%s:%u", host, ntohs(place->v4.sin_port));
    }
}

static pawl_status bind_failed(const char *text, int error_number, pawl_error *reterr)
{
    return error_number == EADDRINUSE
               ? pawl__fail(reterr,
                            PAWL_BUSY,
                            "address '%s' is in use by another process; stop that one or choose "
                            "another port",
                            text)
               : pawl__fail_errno(reterr, error_number, "listen on '%s'", text);
}

pawl_status pawl__http_listen(
    const char *text, int *ret_fd, char *ret_text, size_t size, pawl_error *reterr)
{
    struct pawl__http_address address = { .ipv6 = false };
    union place place;

    TRY(pawl__http_address_parse(text, &address, reterr));
    socklen_t len = place_of(&address, &place);
    AUTO(pawl__fs_close)
    int fd =
        socket(address.ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "make a socket for '%s'", text);
    }
    int on = 1; /* what an earlier process left in TIME_WAIT is no hindrance */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &place.any, len) != 0 || listen(fd, BACKLOG) != 0
        || getsockname(fd, &place.any, &len) != 0) {
        return bind_failed(text, errno, reterr);
    }
    write_place(&place, ret_text, size);
    *ret_fd = fd;
    fd = -1;
    return PAWL_OK;
}
