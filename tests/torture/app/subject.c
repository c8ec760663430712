/* An application that is tortured: commands of several workspaces, numbered. */
#include <string.h>

#include "torture/app/oracle.h"
#include "torture/torture.h"

/* The last commands are gone, but what is left is whole: it opens, and every number was used once. */
static bool control_passed(const struct torture_totals *totals)
{
    return totals->lost > 0 && totals->duplicated == 0 && totals->invented == 0
           && totals->broken == 0;
}

static void *remember_nothing(void)
{
    return app_oracle_new();
}

static void forget(void *memory)
{
    app_oracle_free(memory);
}

static uint64_t ask(void *memory, uint64_t batches)
{
    return app_oracle_ask(memory, batches);
}

static bool acknowledge(void *memory, const char *line, uint64_t *ret_records)
{
    const char *ids = strrchr(line, ' ');

    *ret_records = ids != NULL;
    for (; ids != NULL && *ids != '\0'; ids++) {
        *ret_records += *ids == ',';
    }
    return app_oracle_acknowledge(memory, line);
}

static void see(void *memory, const char *line)
{
    app_oracle_see(memory, line);
}

static struct torture_finding compare(void *memory)
{
    struct app_finding found = app_oracle_compare(memory);

    return (struct torture_finding){
        .acknowledged = found.acknowledged,
        .lost = found.lost,
        .duplicated = found.duplicated,
        .invented = found.invented,
    };
}

const struct torture_subject torture_subject = {
    .writer = APP_WRITER,
    .control_name = "loses without fsync, and nothing worse",
    .control_passed = control_passed,
    .remember_nothing = remember_nothing,
    .forget = forget,
    .ask = ask,
    .acknowledge = acknowledge,
    .see = see,
    .compare = compare,
};
