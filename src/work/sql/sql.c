/* Statements one at a time, and rows that several subjects have. */
#include "work/sql/sql.h"

pawl_status pawl__work_sql_run(struct work_backend *base, struct work_step step, pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);

    return sql->ops->run(sql, &step, 1, reterr);
}

pawl_status pawl__work_sql_ask(struct work_backend *base,
                               struct work_step step,
                               work_on_row *on_row,
                               void *context,
                               pawl_error *reterr)
{
    step.on_row = on_row;
    step.context = context;
    return pawl__work_sql_run(base, step, reterr);
}

pawl_status pawl__work_sql_lock(struct work_backend *base,
                                struct work_step step,
                                work_on_row *on_row,
                                void *context,
                                pawl_error *reterr)
{
    step.locks = true;
    return pawl__work_sql_ask(base, step, on_row, context, reterr);
}

pawl_status pawl__work_sql_read(struct work_backend *base,
                                struct work_step step,
                                work_on_row *on_row,
                                void *context,
                                pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);

    step.on_row = on_row;
    step.context = context;
    return sql->ops->read(sql, &step, 1, reterr);
}

pawl_status pawl__work_sql_read_int(void *context,
                                    const struct work_columns *row,
                                    pawl_error *reterr)
{
    int64_t *number = context;

    (void)reterr;
    *number = col_int(row, 0);
    return PAWL_OK;
}

pawl_status pawl__work_sql_show_count(void *context,
                                      const struct work_columns *row,
                                      pawl_error *reterr)
{
    const struct work_walk *walk = context;

    (void)reterr;
    return pawl__work_go_on(walk->visit.count(walk->context, col_text(row, 0), col_count(row, 1)));
}
