/* The rows of turns are kept beside the events they come from, in the same transaction. Each event
 * pawl.turn.begin, .commit and .abandon must have its row and the other way round. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/sha256.h"
#include "ledger/core/event.h"
#include "ledger/verify/verify.h"

enum { PAGE_CLAIMS = 1000 };

/* What an event, or half of a row, says about a turn. */
struct claim {
    uint64_t offset;
    struct pawl__sha256 hash; /* over everything it says */
};

static pawl_status make_claim(const char *kind,
                              uint64_t offset,
                              const pawl_turn_info *info,
                              struct claim *ret_claim,
                              pawl_error *reterr)
{
    char space[64];
    struct pawl__buf numbers = BUF_OVER(space);

    pawl__buf_add_u64le(&numbers, offset);
    pawl__buf_add_u64le(&numbers, (uint64_t)info->turn);
    pawl__buf_add_u32le(&numbers, info->attempt);
    pawl__buf_add_u64le(&numbers, info->run_id.len);
    const pawl_view parts[] = { pawl__buf_view(&numbers), info->run_id, pawl_view_of(kind) };
    ret_claim->offset = offset;
    return pawl__sha256_parts(parts, COUNT_OF(parts), &ret_claim->hash, reterr);
}

static void add_claim(struct ledger_turn_sum *sum, const struct claim *claim)
{
    uint64_t lanes[COUNT_OF(sum->lanes)];

    memcpy(lanes, claim->hash.bytes, sizeof(lanes));
    for (size_t i = 0; i < COUNT_OF(lanes); i++) {
        sum->lanes[i] += lanes[i];
    }
    sum->count++;
}

/* --- events --- */

static const char *const turn_kinds[] = {
    PAWL__KIND_TURN_BEGIN,
    PAWL__KIND_TURN_COMMIT,
    PAWL__KIND_TURN_ABANDON,
};

/* NULL: it says nothing about a turn. */
static const char *turn_kind(const pawl_event *event)
{
    if (!pawl__ledger_event_is_reserved(event)) {
        return NULL;
    }
    for (size_t i = 0; i < COUNT_OF(turn_kinds); i++) {
        if (pawl__view_is(event->kind, turn_kinds[i])) {
            return turn_kinds[i];
        }
    }
    return NULL;
}

static pawl_status claim_of(const pawl_event *event,
                            const char *kind,
                            struct claim *ret_claim,
                            pawl_error *reterr)
{
    pawl_turn_info info = { .size = sizeof(pawl_turn_info),
                            .run_id = event->run_id,
                            .turn = event->turn };

    /* One that the ledger did not write itself is about attempt 0, of which no row speaks. */
    (void)!pawl__ledger_event_turn_attempt(event, &info.attempt, NULL);
    return make_claim(kind, event->offset, &info, ret_claim, reterr);
}

pawl_status pawl__ledger_verify_turn_event(struct ledger_turn_sum *sum,
                                           const pawl_event *event,
                                           pawl_error *reterr)
{
    const char *kind = turn_kind(event);
    struct claim claim;

    if (kind == NULL) {
        return PAWL_OK;
    }
    TRY(claim_of(event, kind, &claim, reterr));
    add_claim(sum, &claim);
    return PAWL_OK;
}

/* --- rows --- */

typedef void (*claim_sink)(void *context, const struct claim *claim);

struct rows {
    uint64_t from;
    uint64_t end;
    claim_sink sink;
    void *context;
    uint64_t highest; /* offset that a row is about; one below 1 is higher than any other */
    pawl_status status;
    pawl_error *reterr;
};

static bool in_range(const struct rows *rows, uint64_t offset)
{
    return offset > rows->from && offset <= rows->end;
}

static bool add_half(struct rows *rows,
                     const char *kind,
                     uint64_t offset,
                     const pawl_turn_info *info)
{
    struct claim claim;

    rows->status = make_claim(kind, offset, info, &claim, rows->reterr);
    if (rows->status == PAWL_OK) {
        rows->sink(rows->context, &claim);
    }
    return rows->status == PAWL_OK;
}

/* A row is two claims: where the attempt began, and where and how it ended. */
static bool add_row(void *context, const pawl_turn_info *info)
{
    struct rows *rows = context;
    bool open = info->state == PAWL_TURN_OPEN;
    const char *ended =
        info->state == PAWL_TURN_COMMITTED ? PAWL__KIND_TURN_COMMIT : PAWL__KIND_TURN_ABANDON;

    uint64_t begin = info->begin_offset == 0 ? UINT64_MAX : info->begin_offset;
    rows->highest = MAX(rows->highest, MAX(begin, info->end_offset));
    if (in_range(rows, info->begin_offset)
        && !add_half(rows, PAWL__KIND_TURN_BEGIN, info->begin_offset, info)) {
        return false;
    }
    /* An open attempt with an end, or an ended one without, is a claim that no event makes. */
    if (open != (info->end_offset == 0)) {
        return !in_range(rows, info->begin_offset) || add_half(rows, "", info->begin_offset, info);
    }
    return !in_range(rows, info->end_offset) || add_half(rows, ended, info->end_offset, info);
}

static pawl_status each_claim(struct ledger_backend *backend, struct rows *rows, pawl_error *reterr)
{
    rows->status = PAWL_OK;
    rows->reterr = reterr;
    TRY(backend->ops->turns(backend, (pawl_view){ NULL, 0 }, 0, add_row, rows, reterr));
    return rows->status;
}

static void sum_up(void *context, const struct claim *claim)
{
    add_claim(context, claim);
}

/* --- which one, when the sums differ --- */

struct page {
    struct claim claims[PAGE_CLAIMS]; /* of events, in order of the offset */
    bool met[PAGE_CLAIMS];            /* by a row that says the same */
    size_t count;
    uint64_t stray; /* the lowest offset of which a row speaks but no event; UINT64_MAX: none */
};

static pawl_status add_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct page *page = context;
    const char *kind = turn_kind(event);

    if (kind == NULL) {
        return PAWL_OK;
    }
    if (page->count == PAGE_CLAIMS) {
        return PAWL_CANCELLED; /* full: this event begins the next page */
    }
    pawl_status status = claim_of(event, kind, &page->claims[page->count], reterr);
    page->count += status == PAWL_OK ? 1 : 0;
    return status;
}

static void meet(void *context, const struct claim *claim)
{
    struct page *page = context;
    size_t low = 0;

    for (size_t high = page->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (page->claims[middle].offset < claim->offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < page->count && page->claims[low].offset == claim->offset && !page->met[low]
        && pawl__sha256_equal(&page->claims[low].hash, &claim->hash)) {
        page->met[low] = true;
    } else {
        page->stray = MIN(page->stray, claim->offset);
    }
}

/* The lowest offset that is bad among those after `from` that fit on a page; 0: none of them is.
 * *ret_next is where the next page begins. */
static pawl_status search_page(struct ledger_backend *backend,
                               struct page *page,
                               uint64_t from,
                               uint64_t end,
                               uint64_t *ret_next,
                               uint64_t *ret_bad,
                               pawl_error *reterr)
{
    struct ledger_query query = { .from = from, .up_to = end, .limit = UINT32_MAX };

    page->count = 0;
    page->stray = UINT64_MAX;
    memset(page->met, 0, sizeof(page->met));
    pawl_status status = backend->ops->read(backend, &query, add_event, page, reterr);
    if (status != PAWL_OK && status != PAWL_CANCELLED) {
        return status;
    }
    *ret_next = status == PAWL_OK ? end : page->claims[page->count - 1].offset;
    struct rows rows = { .from = from, .end = *ret_next, .sink = meet, .context = page };
    status = each_claim(backend, &rows, reterr);
    uint64_t bad = page->stray;
    for (size_t i = 0; i < page->count; i++) {
        if (!page->met[i]) {
            bad = MIN(bad, page->claims[i].offset);
            break;
        }
    }
    *ret_bad = bad == UINT64_MAX ? 0 : bad;
    return status;
}

static pawl_status search(struct ledger_backend *backend,
                          uint64_t from,
                          uint64_t end,
                          uint64_t *ret_bad,
                          pawl_error *reterr)
{
    struct page *page = malloc(sizeof(*page));
    pawl_status status = PAWL_OK;
    uint64_t bad = 0;

    if (page == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to compare turns");
    }
    for (uint64_t at = from; status == PAWL_OK && at < end && bad == 0;) {
        status = search_page(backend, page, at, end, &at, &bad, reterr);
    }
    free(page);
    *ret_bad = bad;
    return status;
}

/* Rows and events are written together, so what was read of the rows before is in the log now. */
static pawl_status check_past_end(struct ledger_backend *backend,
                                  uint64_t highest,
                                  uint64_t *ret_bad,
                                  pawl_error *reterr)
{
    pawl_ledger_head head;

    TRY(backend->ops->head(backend, &head, reterr));
    if (highest <= head.offset) {
        return PAWL_OK;
    }
    if (highest > INT64_MAX) {
        *ret_bad = 1;
        return pawl__fail(
            reterr, PAWL_CORRUPT, "changed: a turn's row is about an offset before the first");
    }
    *ret_bad = head.offset + 1;
    return pawl__fail_advised(
        reterr,
        PAWL_CORRUPT,
        "cut off: the log ends at offset %llu, a turn's row is about %llu; " LEDGER_CUT_ADVICE,
        (unsigned long long)head.offset,
        (unsigned long long)highest);
}

pawl_status pawl__ledger_verify_turn_rows(struct ledger_backend *backend,
                                          const struct ledger_turn_sum *events,
                                          uint64_t from,
                                          uint64_t end,
                                          uint64_t *ret_bad,
                                          pawl_error *reterr)
{
    struct ledger_turn_sum sum = { 0 };
    struct rows rows = { .from = from, .end = end, .sink = sum_up, .context = &sum };
    uint64_t bad = 0;

    TRY(each_claim(backend, &rows, reterr));
    TRY(check_past_end(backend, rows.highest, ret_bad, reterr));
    if (memcmp(&sum, events, sizeof(sum)) == 0) {
        return PAWL_OK;
    }
    TRY(search(backend, from, end, &bad, reterr));
    *ret_bad = bad == 0 ? end : bad;
    return pawl__fail(reterr, PAWL_CORRUPT, "changed: what the turn's row says is not in the log");
}
