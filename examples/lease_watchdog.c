/* lease_watchdog: takes back leases that ran out.
 *
 *     lease_watchdog --every 60 jobs.sqlite
 *
 * Any number may run, anywhere. A sweep decides by status, deadline and token together, so a
 * heartbeat that came in time always wins; it writes an error_boundary checkpoint with each item in
 * the same transaction. An item whose retries are used up has failed.
 *
 * Build it alone with
 *
 *     cc lease_watchdog.c $(pkg-config --cflags --libs pawl) */
#include <pawl/work.h>

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct settings {
    const char *location; /* NULL: DATABASE_URL */
    long every;           /* seconds */
    bool once;
};

static void check(pawl_status status, const char *what, const pawl_error *error)
{
    if (status != PAWL_OK) {
        fprintf(stderr, "lease_watchdog: %s: %s\n", what, error->message);
        exit(pawl_status_exit_code(status));
    }
}

static void sweep(pawl_work *work)
{
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_work_sweep(work, &report, &error);

    if (status != PAWL_OK && error.retryable) {
        fprintf(stderr, "lease_watchdog: %s; trying again\n", error.message);
        return;
    }
    check(status, "sweep", &error);
    printf("%" PRIu64 " leases ran out: %" PRIu64 " tried again, %" PRIu64 " failed\n",
           report.expired,
           report.retried,
           report.failed);
    fflush(stdout);
}

static void usage(void)
{
    fprintf(stderr, "usage: lease_watchdog [--every SECONDS] [--once] [LOCATION]\n");
    exit(2);
}

static long seconds_of(const char *text)
{
    char *end = NULL;
    long seconds = strtol(text, &end, 10);

    if (end == text || *end != '\0' || seconds < 1 || seconds > 86400) {
        usage();
    }
    return seconds;
}

int main(int argc, char **argv)
{
    static const struct option options[] = { { "every", required_argument, NULL, 'e' },
                                             { "once", no_argument, NULL, 'o' },
                                             { NULL, 0, NULL, 0 } };
    struct settings settings = { .every = 60 };
    pawl_work *work = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    sigset_t ends;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'e') {
            settings.every = seconds_of(optarg);
        } else if (option == 'o') {
            settings.once = true;
        } else {
            usage();
        }
    }
    settings.location = optind < argc ? argv[optind++] : NULL;
    if (optind < argc) {
        usage();
    }
    /* Blocked, and waited for between two sweeps: none is cut in two. */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    check(pawl_work_open(settings.location, NULL, &work, &error), "open", &error);
    struct timespec pause = { .tv_sec = settings.every };
    do {
        sweep(work);
    } while (!settings.once && sigtimedwait(&ends, NULL, &pause) < 0);
    pawl_work_close(work, 0, NULL);
    return 0;
}
