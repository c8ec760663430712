/* monitor: follows a ledger that other processes write, and prints each event once.
 *
 *     monitor --keep seen.offset runs/village.db
 *
 * A follower owns one number: the last offset that it has dealt with. It asks for what is behind it
 * and never for "the latest": between asking for events and asking for the latest offset more may
 * arrive, and a follower that takes the second for its position skips them.
 *
 * The number is kept in a small file, behind each event. Killed between the two, the next start
 * prints that one event again: printing cannot be undone, so no order is better. A follower whose
 * work is a database transaction stores its offset in the same transaction and is exact.
 *
 * Build it alone with
 *
 *     cc monitor.c $(pkg-config --cflags --libs pawl) */
#include <pawl/ledger.h>

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OFFSET_DIGITS = 20, WAIT_MS = 60000 };

struct settings {
    const char *location; /* NULL: DATABASE_URL */
    const char *keep;     /* the file with our offset; NULL: start at the beginning each time */
    bool complete_turns;  /* nothing of a turn before it is committed */
    bool once;            /* what there is, then end */
};

static void check(pawl_status status, const char *what, const pawl_error *error)
{
    if (status != PAWL_OK) {
        fprintf(stderr, "monitor: %s: %s\n", what, error->message);
        exit(pawl_status_exit_code(status));
    }
}

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "monitor: %s '%s'\n", what, path);
    exit(1);
}

/* --- Our offset ------------------------------------------------------------------------------- */

/* Opens the file and reads what an earlier monitor left there; 0 when there was none. */
static int open_kept(const char *path, uint64_t *ret_offset)
{
    char text[OFFSET_DIGITS + 2] = "";
    char *end = text;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        fail("cannot open", path);
    }
    if (pread(fd, text, sizeof(text) - 1, 0) > 0) {
        *ret_offset = strtoull(text, &end, 10);
        if (end != text + OFFSET_DIGITS || *end != '\n') {
            fail("this is no offset file:", path);
        }
    }
    return fd;
}

/* Always the same few bytes at the same place: there is no moment with half a number. The disk may
 * be behind after a power cut; then some events are printed again, and none is skipped. */
static void keep(int fd, uint64_t offset)
{
    char text[OFFSET_DIGITS + 2];

    snprintf(text, sizeof(text), "%020" PRIu64 "\n", offset);
    if (fd >= 0 && pwrite(fd, text, OFFSET_DIGITS + 1, 0) != OFFSET_DIGITS + 1) {
        fail("cannot write", "the offset file");
    }
}

/* --- Following -------------------------------------------------------------------------------- */

static pawl_reader *following; /* for the signal handler */

static void stop(int signal)
{
    (void)signal;
    pawl_reader_cancel(following); /* NOLINT(bugprone-signal-handler): made for it */
}

static void print_event(const pawl_event *event)
{
    printf("%6" PRIu64 "  turn %-4" PRId64 " %-8.*s %-18.*s %.*s\n",
           event->offset,
           event->turn,
           (int)event->actor.len,
           event->actor.data,
           (int)event->kind.len,
           event->kind.data,
           (int)event->payload.len,
           event->payload.data);
}

/* Prints what there is now. */
static uint64_t drain(pawl_reader *reader, int kept)
{
    pawl_error error = PAWL_ERROR_INIT;
    const pawl_event *event = NULL;
    uint64_t count = 0;
    pawl_status status;

    while ((status = pawl_reader_next(reader, &event, &error)) == PAWL_OK) {
        print_event(event);
        if (fflush(stdout) != 0) {
            fail("cannot write", "standard output");
        }
        keep(kept, pawl_reader_position(reader));
        count++;
    }
    if (status != PAWL_NOT_FOUND) { /* nothing more for now */
        check(status, "read", &error);
    }
    return count;
}

static void follow(pawl_reader *reader, int kept, bool once)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t count = drain(reader, kept);
    pawl_status status = PAWL_OK;

    while (!once && status != PAWL_CANCELLED) {
        status = pawl_reader_wait(reader, WAIT_MS, &error);
        if (status != PAWL_TIMEOUT && status != PAWL_CANCELLED) {
            check(status, "wait", &error);
        }
        count += drain(reader, kept);
    }
    fprintf(stderr,
            "monitor: %" PRIu64 " events, up to offset %" PRIu64 "\n",
            count,
            pawl_reader_position(reader));
}

static int usage(void)
{
    fprintf(stderr,
            "usage: monitor [--keep FILE] [--complete-turns] [--once] [LOCATION]\n"
            "LOCATION: a path, sqlite:PATH or postgres://...; without one DATABASE_URL\n");
    return 2;
}

static bool read_arguments(int argc, char **argv, struct settings *settings)
{
    static const struct option options[] = { { "keep", required_argument, NULL, 'k' },
                                             { "complete-turns", no_argument, NULL, 'c' },
                                             { "once", no_argument, NULL, 'o' },
                                             { NULL, 0, NULL, 0 } };
    bool good = true;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        settings->keep = option == 'k' ? optarg : settings->keep;
        settings->complete_turns |= option == 'c';
        settings->once |= option == 'o';
        good = good && option != '?';
    }
    settings->location = optind < argc ? argv[optind] : NULL;
    return good && optind + 1 >= argc;
}

int main(int argc, char **argv)
{
    struct settings settings = { .location = NULL };
    pawl_ledger_options open_options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_ledger *ledger = NULL;
    int kept = -1;

    if (!read_arguments(argc, argv, &settings)) {
        return usage();
    }
    if (settings.keep != NULL) {
        kept = open_kept(settings.keep, &options.from);
    }
    options.complete_turns = settings.complete_turns;
    open_options.read_only = true; /* who only looks can break nothing */
    check(pawl_ledger_open(settings.location, &open_options, &ledger, &error), "open", &error);
    check(pawl_reader_open(ledger, &options, &following, &error), "open a reader", &error);
    if (signal(SIGINT, SIG_IGN) != SIG_IGN) { /* in the background Ctrl-C is not for us */
        signal(SIGINT, stop);
    }
    signal(SIGTERM, stop);
    follow(following, kept, settings.once);
    signal(SIGINT, SIG_IGN); /* before the reader goes */
    signal(SIGTERM, SIG_IGN);
    pawl_reader_free(following);
    pawl_ledger_close(ledger, 0, NULL);
    return 0;
}
