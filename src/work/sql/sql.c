/* Statements one at a time. */
#include "work/sql/sql.h"

pawl_status pawl__work_sql_run(struct work_backend *base,
                               enum work_statement statement,
                               const struct work_value *values,
                               size_t value_count,
                               pawl_error *reterr)
{
    return pawl__work_sql_ask(base, statement, values, value_count, NULL, NULL, reterr);
}

pawl_status pawl__work_sql_ask(struct work_backend *base,
                               enum work_statement statement,
                               const struct work_value *values,
                               size_t value_count,
                               work_on_row *on_row,
                               void *context,
                               pawl_error *reterr)
{
    const struct work_step step = { statement, values, value_count, on_row, context, NULL, false };
    struct work_sql_backend *sql = pawl__work_sql_of(base);

    return sql->ops->run(sql, &step, 1, reterr);
}

pawl_status pawl__work_sql_read(struct work_backend *base,
                                enum work_statement statement,
                                const struct work_value *values,
                                size_t value_count,
                                work_on_row *on_row,
                                void *context,
                                pawl_error *reterr)
{
    const struct work_step step = { statement, values, value_count, on_row, context, NULL, false };
    struct work_sql_backend *sql = pawl__work_sql_of(base);

    return sql->ops->read(sql, &step, 1, reterr);
}
