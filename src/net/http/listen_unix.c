/* A listening socket in the file system: for programs of the same user on the same machine. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "net/http/listen.h"

enum { BACKLOG = 512 };

pawl_status pawl__http_unix_address(const char *path,
                                    struct sockaddr_un *ret_address,
                                    int *ret_directory,
                                    pawl_error *reterr)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    char directory[PATH_MAX] = "";

    *ret_directory = -1;
    if (strlen(path) < sizeof(address.sun_path)) {
        memcpy(address.sun_path, path, strlen(path) + 1);
        *ret_address = address;
        return PAWL_OK;
    }
    if (slash == NULL || (size_t)(slash - path) >= sizeof(directory)) {
        return pawl__fail(reterr, PAWL_INVALID, "the path '%s' is too long for a socket", path);
    }
    memcpy(directory, path, (size_t)(slash - path));
    AUTO(pawl__fs_close) int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", directory);
    }
    int len = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", fd, name);
    if (len < 0 || (size_t)len >= sizeof(address.sun_path)) {
        return pawl__fail(reterr, PAWL_INVALID, "the name '%s' is too long for a socket", name);
    }
    *ret_address = address;
    *ret_directory = fd;
    fd = -1;
    return PAWL_OK;
}

/* One that a process left which was killed is in nobody's way; one that answers is. */
static pawl_status remove_stale(const char *path,
                                const struct sockaddr_un *address,
                                pawl_error *reterr)
{
    struct stat found;

    if (lstat(path, &found) != 0) {
        return errno == ENOENT ? PAWL_OK : pawl__fail_errno(reterr, errno, "look at '%s'", path);
    }
    if (!S_ISSOCK(found.st_mode)) {
        return pawl__fail(reterr, PAWL_CONFLICT, "'%s' is there and is not a socket", path);
    }
    AUTO(pawl__fs_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "make a socket for '%s'", path);
    }
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN) {
        return pawl__fail(reterr, PAWL_BUSY, "another process listens on '%s'", path);
    }
    if (errno != ECONNREFUSED) {
        return pawl__fail_errno(reterr, errno, "connect to '%s'", path);
    }
    return unlink(path) == 0 || errno == ENOENT
               ? PAWL_OK
               : pawl__fail_errno(reterr, errno, "remove '%s'", path);
}

pawl_status pawl__http_listen_unix(const char *path, int *ret_fd, pawl_error *reterr)
{
    struct sockaddr_un address;
    AUTO(pawl__fs_close) int directory = -1;

    TRY(pawl__http_unix_address(path, &address, &directory, reterr));
    TRY(remove_stale(path, &address, reterr));
    AUTO(pawl__fs_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return pawl__fail_errno(reterr, errno, "make a socket for '%s'", path);
    }
    /* The file that bind makes has the mode of the socket: nobody else can connect at any moment. */
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0
        || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0
        || listen(fd, BACKLOG) != 0) {
        return pawl__fail_errno(reterr, errno, "listen on '%s'", path);
    }
    *ret_fd = fd;
    fd = -1;
    return PAWL_OK;
}

bool pawl__http_is_own_peer(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
           && (peer.uid == geteuid() || peer.uid == 0);
}
