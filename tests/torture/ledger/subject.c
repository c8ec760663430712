/* A ledger that is tortured: appends, batches and turns, as plan.h numbers them. */
#include <stdlib.h>
#include <string.h>

#include "torture/ledger/oracle.h"
#include "torture/torture.h"

#define ANCHOR "anchor "

/* The last events are gone, but what is left is whole: it opens, verifies and fits its anchor. */
static bool control_passed(const struct torture_totals *totals)
{
    return totals->lost > 0 && totals->duplicated == 0 && totals->invented == 0 && totals->torn == 0
           && totals->broken == 0;
}

static void *remember_nothing(void)
{
    return ledger_oracle_new();
}

static void forget(void *memory)
{
    ledger_oracle_free(memory);
}

static uint64_t ask(void *memory, uint64_t batches)
{
    struct ledger_oracle *oracle = memory;

    ledger_oracle_ask(oracle, batches);
    return oracle->first;
}

/* "CALL PLACE OFFSET OFFSET ..." */
static bool acknowledge(void *memory, const char *line, uint64_t *ret_records)
{
    char *rest = NULL;
    uint64_t call = strtoull(line, &rest, 10);
    uint32_t place = (uint32_t)strtoul(rest, &rest, 10);

    for (*ret_records = 0; *rest != '\0'; ++*ret_records) {
        uint64_t offset = strtoull(rest, &rest, 10);
        if (!ledger_oracle_acknowledge(memory, call, place++, offset)) {
            return false;
        }
    }
    return true;
}

/* "anchor OFFSET", or "CALL PLACE OFFSET". */
static void see(void *memory, const char *line)
{
    char *rest = NULL;

    if (strncmp(line, ANCHOR, strlen(ANCHOR)) == 0) {
        ledger_oracle_see_anchor(memory, strtoull(line + strlen(ANCHOR), NULL, 10));
        return;
    }
    uint64_t call = strtoull(line, &rest, 10);
    uint32_t place = (uint32_t)strtoul(rest, &rest, 10);
    ledger_oracle_see(memory, call, place, strtoull(rest, NULL, 10));
}

static struct torture_finding compare(void *memory)
{
    struct ledger_finding found = ledger_oracle_compare(memory);

    return (struct torture_finding){
        .acknowledged = found.acknowledged,
        .lost = found.lost,
        .duplicated = found.duplicated,
        .invented = found.invented,
        .torn = found.torn,
    };
}

const struct torture_subject torture_subject = {
    .writer = LEDGER_WRITER,
    .control_name = "loses with durability=normal, and nothing worse",
    .control_passed = control_passed,
    .remember_nothing = remember_nothing,
    .forget = forget,
    .ask = ask,
    .acknowledge = acknowledge,
    .see = see,
    .compare = compare,
};
