/* A store that is tortured: numbered records in batches, one batch a transaction. */
#include <stdlib.h>

#include "torture/oracle.h"
#include "torture/torture.h"

static bool control_passed(const struct torture_totals *totals)
{
    return totals->lost > 0;
}

static void *remember_nothing(void)
{
    struct oracle *oracle = malloc(sizeof(*oracle));

    if (oracle == NULL) {
        abort();
    }
    oracle_init(oracle);
    return oracle;
}

static void forget(void *memory)
{
    oracle_done(memory);
    free(memory);
}

static uint64_t ask(void *memory, uint64_t batches)
{
    const struct oracle *oracle = memory;

    (void)batches;
    return oracle->next;
}

static bool acknowledge(void *memory, const char *line, uint64_t *ret_records)
{
    struct oracle *oracle = memory;
    uint64_t before = oracle->next;
    bool expected = oracle_acknowledge(oracle, strtoull(line, NULL, 10));

    *ret_records = oracle->next - before;
    return expected;
}

static void see(void *memory, const char *line)
{
    oracle_see(memory, strtoull(line, NULL, 10));
}

static struct torture_finding compare(void *memory)
{
    struct oracle_finding found = oracle_compare(memory);

    return (struct torture_finding){
        .acknowledged = found.acknowledged,
        .lost = found.lost,
        .duplicated = found.duplicated,
        .invented = found.invented,
        .torn = found.torn,
    };
}

const struct torture_subject torture_subject = {
    .writer = STORE_WRITER,
    .control_name = "loses without fsync",
    .control_passed = control_passed,
    .remember_nothing = remember_nothing,
    .forget = forget,
    .ask = ask,
    .acknowledge = acknowledge,
    .see = see,
    .compare = compare,
};
