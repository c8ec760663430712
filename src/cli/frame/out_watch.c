#include "cli/frame/out_watch.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/fs.h"
#include "cli/frame/run.h"

/* Asks for nothing: POLLERR and POLLHUP come unasked. A pipe says POLLERR when its last reader has
 * closed it, a socket and a terminal POLLHUP. A file says nothing, ever. */
static void watch_main(void *context)
{
    struct pawl__cli_out_watch *watch = context;
    struct pollfd fds[] = {
        { .fd = STDOUT_FILENO },
        { .fd = watch->stop_fd, .events = POLLIN },
    };

    while (poll(fds, COUNT_OF(fds), -1) < 0 && errno == EINTR) {
    }
    if (fds[1].revents == 0 && (fds[0].revents & (POLLERR | POLLHUP)) != 0) {
        atomic_store(&watch->gone, true);
        watch->woken->wake(watch->woken->object);
    }
}

void pawl__cli_out_watch_start(struct pawl__cli_out_watch *watch,
                               const struct pawl__cli_wakeable *woken)
{
    *watch = (struct pawl__cli_out_watch){ .stop_fd = eventfd(0, EFD_CLOEXEC), .woken = woken };
    atomic_init(&watch->gone, false);
    pawl__cli_interrupt_catch(woken);
    if (watch->stop_fd < 0
        || pawl__thread_start(&watch->thread, "pawl-output", watch_main, watch, NULL) != PAWL_OK) {
        pawl__fs_close(&watch->stop_fd);
    }
}

pawl_status pawl__cli_out_watch_end(struct pawl__cli_out_watch *watch,
                                    pawl_status status,
                                    pawl_error *reterr)
{
    if (watch->stop_fd >= 0) {
        uint64_t one = 1;
        (void)!write(watch->stop_fd, &one, sizeof(one)); /* a new eventfd takes it */
        pawl__thread_join(&watch->thread);
        pawl__fs_close(&watch->stop_fd);
    }
    pawl__cli_interrupt_release();
    return status == PAWL_CANCELLED && atomic_load(&watch->gone) ? pawl__cli_out_fail_gone(reterr)
                                                                 : status;
}
