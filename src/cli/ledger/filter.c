#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/hex.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/core/sha256.h"
#include "base/os/clock.h"
#include "cli/frame/text.h"
#include "cli/ledger/ledger.h"

pawl_status pawl__cli_ledger_time(const struct pawl__cli_run *run,
                                  const char *flag,
                                  const char *text,
                                  int64_t *ret_us,
                                  pawl_error *reterr)
{
    int64_t ago_ns;

    if (pawl__duration_parse(pawl_view_of(text), &ago_ns, NULL) == PAWL_OK) {
        *ret_us = pawl__wall_us(run->clock) - ago_ns / NS_PER_US;
        return PAWL_OK;
    }
    return pawl__time_parse(pawl_view_of(text), ret_us, NULL) == PAWL_OK
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "'--%s' is %s, which is no time; write 2026-01-29T10:20:30Z, or 1h30m "
                            "for that long ago",
                            flag,
                            pawl__cli_quote(text).text);
}

/* "7" or "3..9"; both ends belong to it. */
static pawl_status parse_turns(const char *text, pawl_event_filter *filter, pawl_error *reterr)
{
    pawl_view first = pawl_view_of(text);
    const char *dots = strstr(text, "..");
    pawl_view last = first;

    if (dots != NULL) {
        first.len = (size_t)(dots - text);
        last = pawl_view_of(dots + 2);
    }
    if (pawl__integer_parse(first, &filter->turn_min, NULL) != PAWL_OK
        || pawl__integer_parse(last, &filter->turn_max, NULL) != PAWL_OK || filter->turn_min < 0
        || filter->turn_max < filter->turn_min) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--turn' is %s, which is no turn; write 7, or 3..9 for several",
                          pawl__cli_quote(text).text);
    }
    return PAWL_OK;
}

pawl_status pawl__cli_ledger_filter(const struct pawl__cli_run *run,
                                    pawl_event_filter *ret_filter,
                                    pawl_error *reterr)
{
    const struct pawl__cli_args *args = run->args;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    const char *turns = pawl__cli_args_value(args, "turn");
    const char *since = pawl__cli_args_value(args, "since");
    const char *until = pawl__cli_args_value(args, "until");

    filter.run_id = pawl_view_of(pawl__cli_args_value(args, "run"));
    filter.kind = pawl_view_of(pawl__cli_args_value(args, "kind"));
    filter.actor = pawl_view_of(pawl__cli_args_value(args, "actor"));
    if (turns != NULL) {
        TRY(parse_turns(turns, &filter, reterr));
    }
    if (since != NULL) {
        TRY(pawl__cli_ledger_time(run, "since", since, &filter.time_min_us, reterr));
    }
    if (until != NULL) {
        TRY(pawl__cli_ledger_time(run, "until", until, &filter.time_max_us, reterr));
    }
    *ret_filter = filter;
    return PAWL_OK;
}

pawl_status pawl__cli_ledger_head_parse(const char *flag,
                                        const char *text,
                                        pawl_ledger_head *ret_head,
                                        pawl_error *reterr)
{
    pawl_view hash = pawl_view_of(text);
    pawl_view offset = { NULL, 0 };
    struct pawl__sha256 digest;
    int64_t number = 0;

    if (!pawl__view_split(&hash, ':', &offset)
        || pawl__integer_parse(offset, &number, NULL) != PAWL_OK || number < 1
        || pawl__sha256_parse(hash, &digest, NULL) != PAWL_OK) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--%s' is %s; write OFFSET:HASH, as 'pawl ledger stats' shows the head",
                          flag,
                          pawl__cli_quote(text).text);
    }
    ret_head->offset = (uint64_t)number;
    memcpy(ret_head->hash, digest.bytes, sizeof(ret_head->hash));
    return PAWL_OK;
}

void pawl__cli_ledger_head_text(const pawl_ledger_head *head, char ret_text[LEDGER_HEAD_SIZE])
{
    char hex[2 * PAWL_LEDGER_HASH_BYTES + 1] = "";

    for (size_t i = 0; i < PAWL_LEDGER_HASH_BYTES; i++) {
        pawl__hex_byte(head->hash[i], &hex[2 * i]);
    }
    snprintf(ret_text, LEDGER_HEAD_SIZE, "%llu:%s", (unsigned long long)head->offset, hex);
}
