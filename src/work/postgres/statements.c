#include "work/postgres/statements.h"

const struct pawl__pg_statement pawl__work_pg_statements[WORK_PG_COUNT] = {
#define WORK_PG_TEXT_(name, text, params, columns) [WORK_PG_##name] = { text, params, columns },
    WORK_POSTGRES_STATEMENTS(WORK_PG_TEXT_)
#undef WORK_PG_TEXT_
};
