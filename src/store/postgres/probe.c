/* A server that takes long over a statement and one that has stalled look the same on the statement's
 * own connection: silence. So the wait asks over a second one. The request for TLS is what every
 * client may send first; a server that runs answers it with one byte, before it asks who is there,
 * and so does a pooler in front of it. A stopped server accepts the connection (its kernel does)
 * and says nothing.
 *
 * The address is that of the connection that waits: no name is looked up. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/os/fs.h"
#include "store/postgres/internal.h"

void pawl__pg_probe_stop(struct pg_probe *probe)
{
    pawl__fs_close(&probe->fd);
    probe->asked = false;
}

bool pawl__pg_probe_start(struct pg_probe *probe, int socket_of_link)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);

    pawl__pg_probe_stop(probe);
    if (getpeername(socket_of_link, (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    probe->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe->fd >= 0 && connect(probe->fd, (struct sockaddr *)&address, size) != 0
        && errno != EINPROGRESS) {
        pawl__pg_probe_stop(probe); /* a queue that is full says EAGAIN: a sign of a stall */
    }
    return probe->fd >= 0;
}

short pawl__pg_probe_events(const struct pg_probe *probe)
{
    return probe->asked ? POLLIN : POLLOUT;
}

enum pg_probed pawl__pg_probe_step(struct pg_probe *probe)
{
    static const unsigned char request_tls[] = { 0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x2F };
    char byte;

    if (!probe->asked) {
        probe->asked = send(probe->fd, request_tls, sizeof(request_tls), MSG_NOSIGNAL)
                       == (ssize_t)sizeof(request_tls);
        return probe->asked ? PG_PROBE_WAITS : PG_PROBE_FAILED;
    }
    /* A server that hangs up is one that runs. */
    ssize_t got = recv(probe->fd, &byte, 1, 0);
    if (got >= 0) {
        return PG_PROBE_ANSWERED;
    }
    return errno == EAGAIN || errno == EINTR ? PG_PROBE_WAITS : PG_PROBE_FAILED;
}
