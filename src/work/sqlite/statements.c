#include "work/sqlite/statements.h"

const char *const pawl__work_sqlite_statements[WORK_SQL_COUNT] = {
#define WORK_SQL_TEXT_(name, text) [WORK_SQL_##name] = text,
    WORK_SQLITE_STATEMENTS(WORK_SQL_TEXT_)
#undef WORK_SQL_TEXT_
};
