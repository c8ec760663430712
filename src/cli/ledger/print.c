#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/terminal/display.h"
#include "cli/ledger/ledger.h"

pawl_status pawl__cli_ledger_add_json(const struct pawl__cli_run *run,
                                      const pawl_event *event,
                                      struct pawl__buf *buf,
                                      pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    TRY(pawl_event_to_json(event, &json, &len, reterr));
    pawl__cli_out_add_value(run, buf, (pawl_view){ json, len });
    return PAWL_OK;
}

/* 12  2026-01-29T10:20:30.123456Z  village/7  ada  say  {"text":"hello"} */
static void add_line(const struct pawl__cli_run *run,
                     const pawl_event *event,
                     struct pawl__buf *buf)
{
    AUTO(pawl__buf_done) struct pawl__buf whole = BUF_INIT(SIZE_MAX / 2);
    char time[PAWL__TIME_SIZE];

    pawl__time_rfc3339(event->created_at_us, time);
    pawl__buf_add_format(&whole, "%6llu  %s  ", (unsigned long long)event->offset, time);
    pawl__display_add(&whole, event->run_id);
    pawl__buf_add_format(&whole, "/%lld  ", (long long)event->turn);
    pawl__display_add(&whole, event->actor);
    pawl__buf_add_text(&whole, "  ");
    pawl__display_add(&whole, event->kind);
    pawl__buf_add_text(&whole, "  ");
    pawl__display_add(&whole, event->payload);
    pawl__display_add_cut(buf, pawl__buf_view(&whole), run->term.width);
    buf->broken = buf->broken || whole.broken;
}

pawl_status pawl__cli_ledger_print(const struct pawl__cli_run *run,
                                   const pawl_event *event,
                                   pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(SIZE_MAX / 2);

    if (run->json || !run->term.is_terminal) {
        TRY(pawl__cli_ledger_add_json(run, event, &line, reterr));
    } else {
        add_line(run, event, &line);
    }
    pawl__buf_add_char(&line, '\n');
    return pawl__cli_out_add(&line, reterr);
}

pawl_status pawl__cli_ledger_print_row(json_t *row, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(1 << 20);

    TRY(pawl__cli_out_add_json(&out, row, reterr));
    return pawl__cli_out_add(&out, reterr);
}
