/* An index must lead to every event, and to nothing else. SQLite trusts its indexes: a duplicate of
 * an event that the index of ids does not have is taken for new, and a filter shows what its index
 * has. So the entries of each are compared with the events. */
#include <string.h>

#include "base/core/error.h"
#include "ledger/verify/verify.h"

enum { KEY_BYTES_MAX = 200, TELL_EVERY = 100000 };

static const char *const names[LEDGER_INDEXES] = {
    [LEDGER_INDEX_ID] = "id",
    [LEDGER_INDEX_RUN] = "run_id",
    [LEDGER_INDEX_KIND] = "kind",
    [LEDGER_INDEX_ACTOR] = "actor",
};

static pawl_view key_of(const pawl_event *event, enum ledger_index index)
{
    switch (index) {
    case LEDGER_INDEX_RUN:
        return event->run_id;
    case LEDGER_INDEX_KIND:
        return event->kind;
    case LEDGER_INDEX_ACTOR:
        return event->actor;
    default:
        return event->id;
    }
}

static uint64_t hash_of(const struct ledger_index_sums *sums, pawl_view key, uint64_t offset)
{
    return pawl__hash_pair(&sums->seed, pawl__hash_bytes(&sums->seed, key), offset);
}

pawl_status pawl__ledger_verify_index_start(struct ledger_index_sums *ret_sums, pawl_error *reterr)
{
    *ret_sums = (struct ledger_index_sums){ .count = 0 };
    return pawl__hash_seed(&ret_sums->seed, reterr);
}

void pawl__ledger_verify_index_event(struct ledger_index_sums *sums, const pawl_event *event)
{
    for (enum ledger_index i = 0; i < LEDGER_INDEXES; i++) {
        sums->sums[i] += hash_of(sums, key_of(event, i), event->offset);
    }
    sums->count++;
}

/* --- entries --- */

struct entries {
    const struct ledger_index_check *check;
    enum ledger_index index;
    uint64_t sum;
    uint64_t count; /* of those about events that were walked */
    uint64_t seen;
    uint64_t highest; /* offset */
    bool disorder;
    bool met;       /* the event of the last entry, and it has this key */
    uint64_t stray; /* the lowest offset of an entry without its event; UINT64_MAX: none */
    char last[KEY_BYTES_MAX];
    size_t last_len;
    uint64_t last_offset;
};

/* Entries ascend by key, those of one key by offset, and no two events have one id. */
static bool ascends(const struct entries *entries, pawl_view key, uint64_t offset)
{
    size_t len = MIN(key.len, entries->last_len);
    int order = len == 0 ? 0 : memcmp(key.data, entries->last, len);

    if (order != 0 || key.len != entries->last_len) {
        return order > 0 || (order == 0 && key.len > entries->last_len);
    }
    return entries->index != LEDGER_INDEX_ID && offset > entries->last_offset;
}

/* True when the entry is one of the ledger and comes after the one before it. */
static bool note_entry(struct entries *entries, pawl_view key, uint64_t offset)
{
    bool good = key.len > 0 && key.len <= KEY_BYTES_MAX && offset >= 1 && offset <= INT64_MAX
                && (entries->seen == 0 || ascends(entries, key, offset));

    entries->seen++;
    entries->highest = MAX(entries->highest, offset);
    if (good) {
        memcpy(entries->last, key.data, key.len);
        entries->last_len = key.len;
        entries->last_offset = offset;
    }
    return good;
}

static pawl_status tell(const struct entries *entries, pawl_error *reterr)
{
    const struct ledger_index_check *check = entries->check;

    return check->watch.progress == NULL
                   || check->watch.progress(check->watch.context, check->end, check->end)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CANCELLED, "cancelled while the indexes were read");
}

static pawl_status add_entry(void *context, pawl_view key, uint64_t offset, pawl_error *reterr)
{
    struct entries *entries = context;
    const struct ledger_index_check *check = entries->check;

    entries->disorder |= !note_entry(entries, key, offset);
    if (offset > check->from && offset <= check->end) {
        entries->sum += hash_of(check->sums, key, offset);
        entries->count++;
    }
    return entries->seen % TELL_EVERY == 0 ? tell(entries, reterr) : PAWL_OK;
}

/* --- which one, when they differ --- */

struct wanted {
    struct ledger_backend *backend;
    enum ledger_index index;
    uint64_t at;    /* the event that is searched ... */
    uint64_t found; /* ... and where the index leads to; 0: nowhere */
};

static pawl_status note_offset(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct wanted *wanted = context;

    (void)reterr;
    if (wanted->found != wanted->at) {
        wanted->found = event->offset;
    }
    return PAWL_OK;
}

/* Looks for an event as everybody does who has its key. */
static pawl_status find_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct wanted *wanted = context;
    struct ledger_backend *backend = wanted->backend;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    struct ledger_query query = {
        .from = event->offset - 1,
        .up_to = event->offset,
        .limit = 1,
        .filter = &filter,
    };
    pawl_view key = key_of(event, wanted->index);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status;

    wanted->at = event->offset;
    wanted->found = 0;
    if (wanted->index == LEDGER_INDEX_ID) {
        status = backend->ops->get(backend, key, 0, note_offset, wanted, &error);
    } else {
        *(wanted->index == LEDGER_INDEX_RUN    ? &filter.run_id
          : wanted->index == LEDGER_INDEX_KIND ? &filter.kind
                                               : &filter.actor) = key;
        status = backend->ops->read(backend, &query, note_offset, wanted, &error);
    }
    if (status != PAWL_OK && status != PAWL_NOT_FOUND && status != PAWL_CORRUPT) {
        if (reterr != NULL) {
            *reterr = error;
        }
        return status;
    }
    return wanted->found == wanted->at ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status meet_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct entries *entries = context;
    pawl_view key = key_of(event, entries->index);

    (void)reterr;
    entries->met = key.len == entries->last_len && memcmp(key.data, entries->last, key.len) == 0;
    return PAWL_OK;
}

/* The other way round: an entry whose event is not there, or is another. */
static pawl_status find_stray(void *context, pawl_view key, uint64_t offset, pawl_error *reterr)
{
    struct entries *entries = context;
    struct ledger_backend *backend = entries->check->backend;
    pawl_view no_id = { NULL, 0 };

    (void)reterr;
    entries->met = false;
    if (note_entry(entries, key, offset)) {
        (void)!backend->ops->get(backend, no_id, offset, meet_event, entries, NULL);
    }
    if (!entries->met) {
        entries->stray = MIN(entries->stray, MAX(offset, (uint64_t)1));
    }
    return PAWL_OK;
}

static pawl_status name_it(const struct ledger_index_check *check,
                           enum ledger_index index,
                           uint64_t *ret_bad,
                           pawl_error *reterr)
{
    struct wanted wanted = { .backend = check->backend, .index = index };
    struct ledger_query query = { .from = check->from, .up_to = check->end, .limit = UINT32_MAX };
    pawl_status status =
        check->backend->ops->read(check->backend, &query, find_event, &wanted, reterr);

    if (status == PAWL_CORRUPT) {
        *ret_bad = wanted.at;
        return wanted.found == 0 ? pawl__fail(
                   reterr, status, "not indexed: its %s does not lead to it", names[index])
                                 : pawl__fail(reterr,
                                              status,
                                              "not indexed: its %s leads to offset %llu instead",
                                              names[index],
                                              (unsigned long long)wanted.found);
    }
    if (status != PAWL_OK) {
        return status;
    }
    struct entries entries = { .check = check, .index = index, .stray = UINT64_MAX };
    status = check->backend->ops->entries(check->backend, index, find_stray, &entries, reterr);
    *ret_bad = entries.stray == UINT64_MAX ? check->end : entries.stray;
    return status != PAWL_OK ? status
                             : pawl__fail(reterr,
                                          PAWL_CORRUPT,
                                          "the index of its %s has an entry that is not its own",
                                          names[index]);
}

static pawl_status check_one(const struct ledger_index_check *check,
                             enum ledger_index index,
                             uint64_t *ret_bad,
                             pawl_error *reterr)
{
    struct entries entries = { .check = check, .index = index };
    pawl_ledger_head head = { 0 };
    struct ledger_backend *backend = check->backend;
    pawl_status status = backend->ops->entries(backend, index, add_entry, &entries, reterr);

    if (status == PAWL_OK) {
        status = backend->ops->head(backend, &head, reterr);
    }
    if (status != PAWL_OK && status != PAWL_CORRUPT) {
        return status;
    }
    bool good = status == PAWL_OK && !entries.disorder && entries.highest <= head.offset
                && entries.sum == check->sums->sums[index] && entries.count == check->sums->count;
    return good ? PAWL_OK : name_it(check, index, ret_bad, reterr);
}

pawl_status pawl__ledger_verify_indexes(const struct ledger_index_check *check,
                                        uint64_t *ret_bad,
                                        pawl_error *reterr)
{
    if (check->backend->ops->entries == NULL) {
        return PAWL_OK;
    }
    for (enum ledger_index i = 0; i < LEDGER_INDEXES; i++) {
        TRY(check_one(check, i, ret_bad, reterr));
    }
    return PAWL_OK;
}
