#include "sequencer/storage_call.h"

#include "base/core/error.h"
#include "base/thread/inside.h"

static pawl_status finish(struct pawl__inside *inside,
                          const char *method,
                          pawl_status status,
                          pawl_error *error,
                          pawl_error *reterr)
{
    pawl__inside_leave(inside);
    status = pawl__fail_settled(error, status, "the storage's %s", method);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, error);
}

/* What a method of the storage returns; it gets the context, these arguments and an error of its own. */
#define CALL(of, method, reterr, ...)                                             \
    __extension__({                                                               \
        pawl_error error_ = PAWL_ERROR_INIT;                                      \
        struct pawl__inside inside_;                                              \
        pawl__inside_enter(&inside_, (of).sequencer);                             \
        finish(&inside_,                                                          \
               #method,                                                           \
               (of).storage->method((of).storage->context, __VA_ARGS__, &error_), \
               &error_,                                                           \
               (reterr));                                                         \
    })

pawl_status pawl__seq_read_numbers(struct seq_storage_of of,
                                   uint64_t workspace,
                                   const uint16_t *sequences,
                                   size_t count,
                                   int64_t deadline_ns,
                                   uint64_t *ret_numbers,
                                   pawl_error *reterr)
{
    return CALL(of, read_numbers, reterr, workspace, sequences, count, deadline_ns, ret_numbers);
}

pawl_status pawl__seq_read_next_offset(struct seq_storage_of of,
                                       uint64_t *ret_offset,
                                       pawl_error *reterr)
{
    return CALL(of, read_next_offset, reterr, ret_offset);
}

pawl_status pawl__seq_write(struct seq_storage_of of,
                            const pawl_seq_value *values,
                            size_t count,
                            uint64_t next_offset,
                            pawl_error *reterr)
{
    return CALL(of, write, reterr, values, count, next_offset);
}

pawl_status pawl__seq_actualize(struct seq_storage_of of,
                                uint64_t offset,
                                pawl_seq_batcher batcher,
                                void *batcher_context,
                                pawl_error *reterr)
{
    return CALL(of, actualize, reterr, offset, batcher, batcher_context);
}
