/* pawl ledger replay */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/map.h"
#include "cli/ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 1000000 }; /* kinds and actors that a projection of counts tells apart */

/* --- the events themselves --- */

static pawl_status print_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    return pawl__cli_ledger_print(context, event, reterr);
}

/* --- counts: the smallest projection that is one --- */

struct count {
    pawl_view name;
    uint64_t events;
};

struct counts {
    const char *what;
    struct pawl__map *by_name; /* of struct count */
};

static void counts_done(struct counts *counts)
{
    size_t cursor = 0;
    void *value;

    while (counts->by_name != NULL && pawl__map_next(counts->by_name, &cursor, NULL, &value)) {
        free(value);
    }
    pawl__map_free(counts->by_name);
}

static pawl_status count_one(struct counts *counts, pawl_view name, pawl_error *reterr)
{
    struct count *count = pawl__map_get(counts->by_name, name);

    if (count != NULL) {
        count->events++;
        return PAWL_OK;
    }
    count = malloc(sizeof(*count));
    if (count == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a count");
    }
    *count = (struct count){ .events = 1 };
    pawl_status status = pawl__map_put(counts->by_name, name, count, NULL, reterr);
    if (status != PAWL_OK) {
        free(count);
    }
    return status;
}

struct projection {
    struct counts kinds;
    struct counts actors;
};

static void projection_done(struct projection *projection)
{
    counts_done(&projection->kinds);
    counts_done(&projection->actors);
}

static pawl_status count_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct projection *projection = context;

    TRY(count_one(&projection->kinds, event->kind, reterr));
    return count_one(&projection->actors, event->actor, reterr);
}

static int compare_names(const void *a, const void *b)
{
    const struct count *first = a;
    const struct count *second = b;
    size_t len = MIN(first->name.len, second->name.len);
    int order = memcmp(first->name.data, second->name.data, len);

    return order != 0 ? order
                      : (first->name.len > second->name.len) - (first->name.len < second->name.len);
}

static void free_sorted(struct count **sorted)
{
    free(*sorted);
}

static pawl_status print_counts(const struct counts *counts,
                                struct pawl__table *table,
                                pawl_error *reterr)
{
    size_t total = pawl__map_count(counts->by_name);
    AUTO(free_sorted) struct count *sorted = calloc(MAX(total, (size_t)1), sizeof(*sorted));

    size_t cursor = 0;
    size_t next = 0;
    void *value;

    if (sorted == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the counts");
    }
    for (pawl_view name; pawl__map_next(counts->by_name, &cursor, &name, &value);) {
        sorted[next++] = (struct count){ name, ((struct count *)value)->events };
    }
    qsort(sorted, total, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < total; i++) {
        const struct pawl__cell cells[] = {
            pawl__cell_text(pawl_view_of(counts->what)),
            pawl__cell_text(sorted[i].name),
            pawl__cell_integer((int64_t)sorted[i].events),
        };
        TRY(pawl__table_add(table, cells, reterr));
    }
    return PAWL_OK;
}

static pawl_status print_projection(const struct pawl__cli_run *run,
                                    const struct projection *projection,
                                    pawl_error *reterr)
{
    static const struct pawl__column columns[] = { { "what", false },
                                                   { "name", true },
                                                   { "value", false } };
    AUTO(pawl__table_done) struct pawl__table table = { 0 };
    struct pawl__table_options options = pawl__cli_out_table(run);

    pawl__table_init(&table, columns, COUNT_OF(columns), &options);
    TRY(print_counts(&projection->kinds, &table, reterr));
    TRY(print_counts(&projection->actors, &table, reterr));
    return pawl__table_end(&table, reterr);
}

static pawl_status fold_counts(const struct pawl__cli_run *run,
                               pawl_ledger *ledger,
                               const pawl_fold_options *options,
                               pawl_error *reterr)
{
    AUTO(projection_done)
    struct projection projection = { .kinds = { .what = "kind" }, .actors = { .what = "actor" } };

    TRY(pawl__map_new(NAMES_MAX, &projection.kinds.by_name, reterr));
    TRY(pawl__map_new(NAMES_MAX, &projection.actors.by_name, reterr));
    TRY(pawl_ledger_fold(ledger, options, count_event, &projection, NULL, reterr));
    return print_projection(run, &projection, reterr);
}

/* --- the command --- */

/* What a ledger was at an offset that it has not reached yet, nobody knows. */
static pawl_status check_at_offset(pawl_ledger *ledger, uint64_t at_offset, pawl_error *reterr)
{
    uint64_t end = 0;

    TRY(pawl_ledger_latest_offset(ledger, &end, reterr));
    return at_offset > end ? pawl__fail(reterr,
                                        PAWL_INVALID,
                                        "--at-offset: is %llu, but the ledger ends at offset %llu",
                                        (unsigned long long)at_offset,
                                        (unsigned long long)end)
                           : PAWL_OK;
}

static pawl_status replay_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;
    const char *at_time = pawl__cli_args_value(run->args, "at-time");
    pawl_event_filter filter;

    TRY(pawl__cli_ledger_filter(run, &filter, reterr));
    if (at_time != NULL) {
        TRY(pawl__cli_ledger_time(run, "at-time", at_time, &options.up_to_time_us, reterr));
    }
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    options.from = (uint64_t)pawl__cli_args_number(run->args, "from");
    options.up_to = pawl__cli_args_has(run->args, "at-offset")
                        ? (uint64_t)pawl__cli_args_number(run->args, "at-offset")
                        : 0;
    options.filter = &filter;
    TRY(check_at_offset(ledger, options.up_to, reterr));
    return pawl__cli_args_has(run->args, "count")
               ? fold_counts(run, ledger, &options, reterr)
               : pawl_ledger_fold(ledger, &options, print_event, run, NULL, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_replay = {
    .name = "replay",
    .summary = "print the events that count, up to any moment",
    .description =
        "Prints what a program that rebuilds its state from the log has to apply, in order: every "
        "event but those of abandoned attempts, of turns that are still open, and the ledger's own "
        "kinds. With --at-offset or --at-time it is what counted at that moment. With --count it "
        "prints how many there are of each kind and actor instead.",
    .flags = FLAGS(LEDGER_FROM_FLAG,
                   NUMBER_FLAG("at-offset", "OFFSET", 1, INT64_MAX, "As of this offset."),
                   FLAG("at-time", "TIME", "As of this time; 1h means ago."),
                   { .name = "count", .help = "Count them by kind and actor." },
                   LEDGER_FILTER_FLAGS),
    .examples =
        EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND "pawl ledger replay --data ./data --count",
                        "how many of each kind"),
                 { .line = "pawl ledger replay --data ./data --run village --at-offset 1000",
                   .says = "a run as it was then" }),
    .run = replay_run,
    .only_prints = true,
};
