#include "torture/ledger/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "torture/ledger/plan.h"

struct ledger_oracle *ledger_oracle_new(void)
{
    struct ledger_oracle *oracle = calloc(1, sizeof(*oracle));

    REQUIRE(oracle != NULL);
    oracle->first = 1;
    oracle->next = 1;
    ledger_oracle_ask(oracle, 0);
    return oracle;
}

void ledger_oracle_free(struct ledger_oracle *oracle)
{
    if (oracle != NULL) {
        free(oracle->slots);
        free(oracle);
    }
}

void ledger_oracle_ask(struct ledger_oracle *oracle, uint64_t calls)
{
    oracle->first = oracle->next;
    oracle->next += calls;
    if (oracle->next > oracle->calls) {
        uint64_t more = MAX(oracle->next, 2 * oracle->calls);
        size_t before = oracle->calls * CALL_PLACES;
        size_t after = more * CALL_PLACES;
        oracle->slots = realloc(oracle->slots, after * sizeof(*oracle->slots));
        REQUIRE(oracle->slots != NULL);
        memset(&oracle->slots[before], 0, (after - before) * sizeof(*oracle->slots));
        oracle->calls = more;
    }
}

static struct ledger_slot *slot_of(struct ledger_oracle *oracle, uint64_t call, uint32_t place)
{
    return &oracle->slots[call * CALL_PLACES + place];
}

bool ledger_oracle_acknowledge(struct ledger_oracle *oracle,
                               uint64_t call,
                               uint32_t place,
                               uint64_t offset)
{
    if (call < oracle->first || call >= oracle->next || place >= CALL_PLACES || offset == 0
        || offset > UINT32_MAX) {
        return false;
    }
    struct ledger_slot *slot = slot_of(oracle, call, place);
    slot->twice |= slot->must != 0 && slot->must != offset;
    slot->must = (uint32_t)offset;
    return true;
}

/* What no writer of ours could have made is kept in the slots of call 0. */
void ledger_oracle_see(struct ledger_oracle *oracle, uint64_t call, uint32_t place, uint64_t offset)
{
    bool ours = call < oracle->next && place < CALL_PLACES && offset <= UINT32_MAX;
    struct ledger_slot *slot = ours ? slot_of(oracle, call, place) : slot_of(oracle, 0, 0);

    slot->twice |= slot->seen != 0;
    slot->seen = ours ? (uint32_t)offset : slot->seen + 1;
}

void ledger_oracle_see_anchor(struct ledger_oracle *oracle, uint64_t offset)
{
    oracle->anchor_went_back |= offset < oracle->anchor;
    oracle->anchor = offset;
}

/* Of the events of one append all or none are there. */
static bool is_torn(struct ledger_oracle *oracle, uint64_t call, uint32_t first, uint32_t count)
{
    uint32_t present = 0;

    for (uint32_t i = 0; i < count; i++) {
        present += slot_of(oracle, call, first + i)->seen != 0;
    }
    return present != 0 && present != count;
}

static uint64_t count_torn(struct ledger_oracle *oracle, uint64_t call)
{
    struct ledger_call plan = ledger_call_of(call, oracle->first);
    uint64_t torn = 0;

    if (plan.kind == CALL_AGAIN) {
        return 0; /* its events are those of the call before */
    }
    if (plan.kind == CALL_APPEND) {
        return is_torn(oracle, call, 0, plan.count);
    }
    for (uint32_t i = 0; i < plan.attempts; i++) {
        torn += is_torn(oracle, call, i * CALL_TURN_EVENTS, CALL_TURN_EVENTS);
    }
    return torn;
}

static void judge_slot(struct ledger_slot *slot, bool old, struct ledger_finding *finding)
{
    finding->acknowledged += slot->must != 0;
    finding->lost += slot->must != 0 && slot->seen != slot->must;
    finding->duplicated += slot->twice;
    finding->invented += old && slot->must == 0 && slot->seen != 0;
    *slot = (struct ledger_slot){ .must = slot->seen };
}

struct ledger_finding ledger_oracle_compare(struct ledger_oracle *oracle)
{
    struct ledger_finding finding = { .lost = oracle->anchor_went_back };

    oracle->anchor_went_back = false;
    for (uint64_t call = oracle->first; call < oracle->next; call++) {
        finding.torn += count_torn(oracle, call);
    }
    for (uint64_t call = 0; call < oracle->next; call++) {
        for (uint32_t place = 0; place < CALL_PLACES; place++) {
            judge_slot(slot_of(oracle, call, place), call < oracle->first, &finding);
        }
    }
    *slot_of(oracle, 0, 0) = (struct ledger_slot){ 0 };
    return finding;
}
