/* Kills a store in the middle of its work, again and again, and counts what is missing afterwards.
 *
 *   torture_store STORE FAULT [--rounds N] [--seed N] [--control] [--verbose]
 *   torture_ledger sqlite|postgres FAULT ...   the same for a ledger
 *   torture_app rocksdb|postgres FAULT ...     the same for an application
 *   torture_work_rounds sqlite|postgres FAULT  the same for a work store
 *
 *   kill       kill -9 at a random moment: the writer, for PostgreSQL mostly the whole server as well
 *   power      the power fails at a random change of the disk; what was not synced is gone, in part
 *              or torn. Needs FUSE
 *   disk       a write or an fsync fails, and then the power. Needs FUSE
 *   read-only  the disk takes no more changes, and then the power fails. Needs FUSE
 *   full       somebody else fills the disk, and then the power fails. Needs FUSE
 *   failpoint  kill -9 at each named point that the writer passes, one after the other
 *
 * --control runs the store without its fsyncs: then acknowledged writes must get lost, or this test
 * could not see a loss and proves nothing.
 *
 * Prints TAP, and the counts as "# result name=value ...". A run with the same seed draws the same
 * faults; with threads and kill -9 the moment still varies. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/clock.h"
#include "torture/torture.h"

static const char *const fault_names[] = {
    "kill", "power", "disk", "read-only", "full", "failpoint"
};
_Static_assert(COUNT_OF(fault_names) == TORTURE_FAULT_COUNT, "one name a fault");

volatile sig_atomic_t torture_interrupted;

/* Interrupts whatever waits, too; the run then ends like any other, and cleans up. */
static void interrupt(int signal_number)
{
    torture_interrupted = signal_number;
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = interrupt };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static bool parse_number(const char *text, uint64_t *ret_number)
{
    char *end = NULL;

    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool parse_fault(const char *name, enum torture_fault *ret_fault)
{
    for (size_t i = 0; i < COUNT_OF(fault_names); i++) {
        if (strcmp(fault_names[i], name) == 0) {
            *ret_fault = (enum torture_fault)i;
            return true;
        }
    }
    return false;
}

static bool parse(int argc, char **argv, struct torture_options *ret_options)
{
    static const struct option known[] = {
        { "rounds", required_argument, NULL, 'r' },
        { "seed", required_argument, NULL, 's' },
        { "control", no_argument, NULL, 'c' },
        { "verbose", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 },
    };
    bool valid = true;

    *ret_options = (struct torture_options){ .rounds = 20, .seed = 1 };
    for (int option = 0; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'r':
            valid = parse_number(optarg, &ret_options->rounds) && valid;
            break;
        case 's':
            valid = parse_number(optarg, &ret_options->seed) && valid;
            break;
        case 'c':
            ret_options->control = true;
            break;
        case 'v':
            ret_options->verbose = true;
            break;
        default:
            valid = false;
        }
    }
    if (!valid || argc - optind != 2) {
        return false;
    }
    ret_options->store = argv[optind];
    return parse_fault(argv[optind + 1], &ret_options->fault);
}

static struct world_options choose_world(const struct torture_options *options)
{
    bool server = strcmp(options->store, "postgres") == 0;

    return (struct world_options){
        .power = options->fault != TORTURE_KILL && options->fault != TORTURE_FAILPOINT,
        .strict = options->control && !server,
        .server = server,
        /* Asynchronous commits shall be caught before the server writes them out by itself. */
        .settings = options->control ? "wal_writer_delay = '10s'\n" : NULL,
    };
}

/* Nothing wrong, and enough done to mean something; the control is the other way round. */
static bool passed(const struct torture_options *options, const struct torture_totals *totals)
{
    if (options->control) {
        return torture_subject.control_passed(totals);
    }
    /* DuckDB terminates the process on some errors of the disk, and nothing outside of it can help. */
    bool aborts = totals->aborted > 0 && strcmp(options->store, "duckdb") != 0;

    return totals->lost == 0 && totals->duplicated == 0 && totals->invented == 0
           && totals->torn == 0 && totals->broken == 0 && !aborts && totals->faults > 0
           && (options->fault == TORTURE_FAILPOINT || totals->empty * 2 < totals->rounds);
}

static void print_result(const struct torture *t, int64_t start_ns)
{
    const struct torture_totals *totals = &t->totals;
    int64_t ms = (pawl__monotonic_ns(pawl__clock_real()) - start_ns) / NS_PER_MS;

    printf("# result store=%s fault=%s control=%d seed=%llu rounds=%llu faults=%llu "
           "acknowledged=%llu lost=%llu duplicated=%llu invented=%llu torn=%llu broken=%llu "
           "aborted=%llu void=%llu ms=%lld\n",
           t->options.store,
           fault_names[t->options.fault],
           t->options.control,
           (unsigned long long)t->options.seed,
           (unsigned long long)totals->rounds,
           (unsigned long long)totals->faults,
           (unsigned long long)totals->acknowledged,
           (unsigned long long)totals->lost,
           (unsigned long long)totals->duplicated,
           (unsigned long long)totals->invented,
           (unsigned long long)totals->torn,
           (unsigned long long)totals->broken,
           (unsigned long long)totals->aborted,
           (unsigned long long)totals->empty,
           (long long)ms);
}

int main(int argc, char **argv)
{
    struct torture t = { .totals = { 0 } };
    pawl_error error = PAWL_ERROR_INIT;

    if (!parse(argc, argv, &t.options)) {
        fprintf(stderr,
                "usage: %s STORE kill|power|disk|read-only|full|failpoint "
                "[--rounds N] [--seed N] [--control] [--verbose]\n",
                argv[0]);
        return 2;
    }
    int64_t start_ns = pawl__monotonic_ns(pawl__clock_real());
    t.random = pawl__prng_seeded(t.options.seed);
    t.world_options = choose_world(&t.options);
    t.strict = t.world_options.strict;
    catch_signals();
    torture_remember_nothing(&t);
    printf("1..1\n");
    pawl_status status = torture_run(&t, &error);
    world_end(&t.world);
    torture_subject.forget(t.memory);

    const char *what = t.options.control ? torture_subject.control_name : "loses nothing";
    const char *fault = fault_names[t.options.fault];
    if (t.totals.rounds == 0 && (status == PAWL_UNAVAILABLE || status == PAWL_UNSUPPORTED)) {
        printf("ok 1 - %s %s %s # SKIP %s\n", t.options.store, fault, what, error.message);
        return 0;
    }
    if (status != PAWL_OK) {
        printf("# %s: %s\n", t.round, error.message);
    }
    bool good = status == PAWL_OK && passed(&t.options, &t.totals);
    print_result(&t, start_ns);
    printf("%sok 1 - %s %s %s\n", good ? "" : "not ", t.options.store, fault, what);
    return good ? 0 : 1;
}
