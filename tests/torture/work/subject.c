/* A work store that is tortured: batches of numbered items are submitted, then each of them is claimed and completed.
 * Two things are promised and remembered apart: that an item is there, and that it is completed. */
#include <stdlib.h>

#include "torture/oracle.h"
#include "torture/torture.h"

struct memory {
    struct oracle submitted;
    struct oracle completed; /* a batch half of which is completed is as it should be */
};

static bool control_passed(const struct torture_totals *totals)
{
    return totals->lost > 0;
}

static void *remember_nothing(void)
{
    struct memory *memory = malloc(sizeof(*memory));

    REQUIRE(memory != NULL);
    oracle_init(&memory->submitted);
    oracle_init(&memory->completed);
    return memory;
}

static void forget(void *context)
{
    struct memory *memory = context;

    oracle_done(&memory->submitted);
    oracle_done(&memory->completed);
    free(memory);
}

/* Items that a dead writer left behind keep its lease: nobody completes them any more. */
static uint64_t ask(void *context, uint64_t batches)
{
    struct memory *memory = context;

    (void)batches;
    memory->completed.next = memory->submitted.next;
    return memory->submitted.next;
}

/* "s LAST": the batch up to this one is submitted; "c LAST": and completed. */
static bool acknowledge(void *context, const char *line, uint64_t *ret_records)
{
    struct memory *memory = context;
    struct oracle *oracle = line[0] == 's' ? &memory->submitted : &memory->completed;
    uint64_t before = oracle->next;

    if ((line[0] != 's' && line[0] != 'c') || line[1] != ' ') {
        return false;
    }
    bool expected = oracle_acknowledge(oracle, strtoull(line + 2, NULL, 10));
    *ret_records = oracle->next - before;
    return expected;
}

/* "p NUMBER", or "c NUMBER" when it is completed. */
static void see(void *context, const char *line)
{
    struct memory *memory = context;
    uint64_t number = strtoull(line + 2, NULL, 10);

    oracle_see(&memory->submitted, number);
    if (line[0] == 'c') {
        oracle_see(&memory->completed, number);
    }
}

static struct torture_finding compare(void *context)
{
    struct memory *memory = context;
    struct oracle_finding items = oracle_compare(&memory->submitted);
    struct oracle_finding ends = oracle_compare(&memory->completed);

    return (struct torture_finding){
        .acknowledged = items.acknowledged + ends.acknowledged,
        .lost = items.lost + ends.lost,
        .duplicated = items.duplicated + ends.duplicated,
        .invented = items.invented + ends.invented,
        .torn = items.torn,
    };
}

const struct torture_subject torture_subject = {
    .writer = WORK_WRITER,
    .control_name = "loses without fsync",
    .control_passed = control_passed,
    .remember_nothing = remember_nothing,
    .forget = forget,
    .ask = ask,
    .acknowledge = acknowledge,
    .see = see,
    .compare = compare,
};
