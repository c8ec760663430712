#include "server/page.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/core/macros.h"
#include "base/terminal/display.h"

enum { PAGE_BYTES = 8 << 20 }; /* a page ends after the item that exceeds it */
#define BODY_BYTES_MAX ((size_t)64 << 20)

void pawl__serve_page_start(struct pawl__serve_page *ret_page, uint64_t limit)
{
    *ret_page = (struct pawl__serve_page){ .limit = limit };
    ret_page->body = (struct pawl__buf)BUF_INIT(BODY_BYTES_MAX);
    pawl__buf_add_text(&ret_page->body, "{\"items\":[");
}

void pawl__serve_page_done(struct pawl__serve_page *page)
{
    pawl__buf_done(&page->body);
}

bool pawl__serve_page_has_room(struct pawl__serve_page *page, pawl_view position)
{
    if (page->count < page->limit && page->body.len <= PAGE_BYTES) {
        return true;
    }
    struct pawl__buf next = BUF_OVER(page->next);
    pawl__buf_add(&next, position);
    return false;
}

void pawl__serve_page_follow(struct pawl__serve_page *page, const pawl_page *listed)
{
    (void)snprintf(page->next, sizeof(page->next), "%s", listed->more ? listed->from_id : "");
}

void pawl__serve_page_follow_at(struct pawl__serve_page *page, const pawl_page *listed)
{
    if (listed->more) {
        (void)snprintf(page->next, sizeof(page->next), "%" PRIu64, listed->from);
    }
}

static bool has_space(const struct pawl__serve_page *page)
{
    return !page->body.broken && page->body.len <= PAGE_BYTES;
}

static void begin_item(struct pawl__serve_page *page)
{
    pawl__buf_add_text(&page->body, page->count++ == 0 ? "" : ",");
}

bool pawl__serve_page_add(struct pawl__serve_page *page,
                          const struct pawl__record *record,
                          const void *value)
{
    begin_item(page);
    pawl__record_write(record, value, &page->body);
    return has_space(page);
}

bool pawl__serve_page_add_json(struct pawl__serve_page *page, pawl_view json)
{
    begin_item(page);
    pawl__buf_add(&page->body, json);
    return has_space(page);
}

void pawl__serve_page_end_list(struct pawl__serve_page *page)
{
    pawl__buf_add_text(&page->body, "],\"next\":");
    if (page->next[0] == '\0') {
        pawl__buf_add_text(&page->body, "null");
    } else {
        pawl__display_add_json(&page->body, pawl_view_of(page->next));
    }
}

void pawl__serve_page_answer(struct pawl__serve_page *page, struct pawl__serve_call *call)
{
    pawl__serve_page_end_list(page);
    pawl__buf_add_text(&page->body, "}\n");
    pawl__serve_answer_buf(call, 200, &page->body);
}
