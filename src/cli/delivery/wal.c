/* pawl wal status|pending|show */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/terminal/display.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "records/delivery.h"

#define PIPELINE_OPERAND                                     \
    {                                                        \
        .name = "PIPELINE", .help = "Whose write-ahead log." \
    }
#define WAL_EXAMPLE                                                                           \
    "echo '{\"order\":17}' > orders.jsonl && pawl deliver --data ./data --from orders.jsonl " \
    "--into orders --drain && "

/* --- status --- */

static void add_count(struct pawl__buf *text, const char *what, uint64_t count, uint64_t bytes)
{
    pawl__buf_add_format(text,
                         "%-10s %llu (%llu bytes)\n",
                         what,
                         (unsigned long long)count,
                         (unsigned long long)bytes);
}

static pawl_status print_status(const struct pawl__cli_run *run,
                                struct pawl__cli_delivery *delivery,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);
    pawl_wal_status status = PAWL_WAL_STATUS_INIT;

    TRY(pawl__cli_wal_get_status(delivery, pawl__cli_args_operand(run->args, 0), &status, reterr));
    if (run->json) {
        pawl__record_write(&pawl__wal_status_record, &status, &text);
        pawl__buf_add_char(&text, '\n');
        return pawl__cli_out_add(&text, reterr);
    }
    pawl__buf_add_format(&text,
                         "LSNs       %llu to %llu\n",
                         (unsigned long long)status.first_lsn,
                         (unsigned long long)status.last_lsn);
    add_count(&text, "pending", status.pending, status.pending_bytes);
    add_count(&text, "confirmed", status.confirmed, status.confirmed_bytes);
    add_count(&text, "failed", status.failed, status.failed_bytes);
    add_count(&text, "index", status.index_entries, status.index_bytes);
    pawl__buf_add_text(&text, "last had   ");
    pawl__display_add(&text, pawl_view_of(status.lease_holder));
    pawl__buf_add_char(&text, '\n');
    return pawl__cli_out_add(&text, reterr);
}

static pawl_status status_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    struct pawl__cli_delivery delivery;

    TRY(pawl__cli_delivery_reach(run, &delivery, reterr));
    return pawl__cli_delivery_leave(&delivery, print_status(run, &delivery, reterr), reterr);
}

static const struct pawl__cli_command status_command = {
    .name = "status",
    .summary = "count what a write-ahead log holds",
    .description = "Entries and bytes by state, the LSNs that are there, and who had the log last.",
    .operands = OPERANDS(PIPELINE_OPERAND),
    .examples =
        EXAMPLES(TESTED(WAL_EXAMPLE "pawl wal status --data ./data orders", "how large it is")),
    .run = status_run,
    .only_prints = true,
};

/* --- entries --- */

struct printing {
    pawl_status status;
    pawl_error *reterr;
    uint64_t count;
};

static pawl_status print_entry(const pawl_wal_entry *entry, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT((size_t)256 << 20);
    char *json = NULL;
    size_t len = 0;

    TRY(pawl_wal_entry_to_json(entry, &json, &len, reterr));
    pawl__buf_add(&line, (pawl_view){ json, len });
    pawl__buf_add_char(&line, '\n');
    pawl_free(json);
    TRY(pawl__cli_out_add(&line, reterr));
    return pawl__cli_out_check(reterr);
}

static bool visit_entry(void *context, const pawl_wal_entry *entry)
{
    struct printing *printing = context;

    printing->count++;
    printing->status = print_entry(entry, printing->reterr);
    return printing->status == PAWL_OK;
}

static pawl_status print_entries(const struct pawl__cli_run *run,
                                 struct pawl__cli_delivery *delivery,
                                 const pawl_wal_filter *filter,
                                 pawl_page *page,
                                 uint64_t *ret_count,
                                 pawl_error *reterr)
{
    struct printing printing = { .reterr = reterr };

    TRY(pawl__cli_wal_read(delivery,
                           pawl__cli_args_operand(run->args, 0),
                           filter,
                           page,
                           visit_entry,
                           &printing,
                           reterr));
    *ret_count = printing.count;
    return printing.status;
}

static pawl_status pending_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_wal_filter filter = PAWL_WAL_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    struct pawl__cli_delivery delivery;
    uint64_t count = 0;

    filter.pending = true;
    page.from = (uint64_t)pawl__cli_args_number(run->args, "from");
    page.limit = (uint64_t)pawl__cli_args_number(run->args, "limit");
    TRY(pawl__cli_delivery_reach(run, &delivery, reterr));
    return pawl__cli_delivery_leave(
        &delivery, print_entries(run, &delivery, &filter, &page, &count, reterr), reterr);
}

static const struct pawl__cli_command pending = {
    .name = "pending",
    .summary = "print events that are in no table yet",
    .description = "One JSON object per line, in the order of their LSNs.",
    .flags = FLAGS(
        NUMBER_FLAG("from", "LSN", 0, INT64_MAX, "Begin with this LSN.", .fallback = "0"),
        NUMBER_FLAG("limit", "N", 0, INT64_MAX, "Up to this many; 0 is all.", .fallback = "100")),
    .operands = OPERANDS(PIPELINE_OPERAND),
    .examples =
        EXAMPLES(TESTED(WAL_EXAMPLE "pawl wal pending --data ./data orders", "what is on its way")),
    .run = pending_run,
    .only_prints = true,
};

static pawl_status show_one(const struct pawl__cli_run *run,
                            struct pawl__cli_delivery *delivery,
                            const char *lsn,
                            pawl_error *reterr)
{
    pawl_wal_filter filter = PAWL_WAL_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    uint64_t count = 0;
    int64_t number = 0;

    REQUIRE(pawl__cli_parse_number(lsn, &number)); /* the table allows nothing else */
    page.from = (uint64_t)number;
    filter.to = (uint64_t)number;
    TRY(print_entries(run, delivery, &filter, &page, &count, reterr));
    return count > 0 ? PAWL_OK
                     : pawl__fail(reterr,
                                  PAWL_NOT_FOUND,
                                  "no entry with LSN %s: it was cleaned up, or never there",
                                  lsn);
}

static pawl_status show_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    struct pawl__cli_delivery delivery;

    TRY(pawl__cli_delivery_reach(run, &delivery, reterr));
    return pawl__cli_delivery_leave(
        &delivery, show_one(run, &delivery, pawl__cli_args_operand(run->args, 1), reterr), reterr);
}

static const struct pawl__cli_command show = {
    .name = "show",
    .summary = "print one entry",
    .description = "As JSON, with its payload. Entries leave the log when the DuckDB file itself "
                   "has them: then it is exit code 3.",
    .operands = OPERANDS(PIPELINE_OPERAND,
                         { .name = "LSN",
                           .help = "Its log sequence number.",
                           .kind = VALUE_NUMBER,
                           .min = 1,
                           .max = INT64_MAX }),
    .examples = EXAMPLES(
        { .line = "pawl wal show --data ./data orders 17", .says = "the entry with LSN 17" }),
    .run = show_run,
    .only_prints = true,
};

const struct pawl__cli_command pawl__cli_cmd_wal = {
    .name = "wal",
    .summary = "look into the write-ahead log of a pipeline",
    .description =
        "Every event is in the write-ahead log of its pipeline before the source hears that we "
        "have it, and stays there until a checkpoint of the DuckDB file covers its row. Events in "
        "failed_events stay until somebody has dealt with them.",
    .commands = COMMANDS(&status_command, &pending, &show),
    .examples = EXAMPLES(
        TESTED(WAL_EXAMPLE "pawl wal status --data ./data --json orders", "for a program")),
};
