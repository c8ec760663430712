#include "sequencer/storage_call.h"

#include "base/core/error.h"
#include "base/thread/inside.h"

/* What a call made of an empty error. */
static pawl_status finish(const char *call,
                          pawl_status status,
                          pawl_error *error,
                          pawl_error *reterr)
{
    status = pawl__fail_settled(error, status, "the storage's %s", call);
    if (status != PAWL_OK && reterr != NULL) {
        *reterr = *error;
    }
    return status;
}

pawl_status pawl__seq_read_numbers(struct seq_storage_of of,
                                   uint64_t workspace,
                                   const uint16_t *sequences,
                                   size_t count,
                                   int64_t deadline_ns,
                                   uint64_t *ret_numbers,
                                   pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__inside inside;

    pawl__inside_enter(&inside, of.sequencer);
    pawl_status status = of.storage->read_numbers(
        of.storage->context, workspace, sequences, count, deadline_ns, ret_numbers, &error);
    pawl__inside_leave(&inside);
    return finish("read_numbers", status, &error, reterr);
}

pawl_status pawl__seq_read_next_offset(struct seq_storage_of of,
                                       uint64_t *ret_offset,
                                       pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__inside inside;

    pawl__inside_enter(&inside, of.sequencer);
    pawl_status status = of.storage->read_next_offset(of.storage->context, ret_offset, &error);
    pawl__inside_leave(&inside);
    return finish("read_next_offset", status, &error, reterr);
}

pawl_status pawl__seq_write(struct seq_storage_of of,
                            const pawl_seq_value *values,
                            size_t count,
                            uint64_t next_offset,
                            pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__inside inside;

    pawl__inside_enter(&inside, of.sequencer);
    pawl_status status = of.storage->write(of.storage->context, values, count, next_offset, &error);
    pawl__inside_leave(&inside);
    return finish("write", status, &error, reterr);
}

pawl_status pawl__seq_actualize(struct seq_storage_of of,
                                uint64_t offset,
                                pawl_seq_batcher batcher,
                                void *batcher_context,
                                pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__inside inside;

    pawl__inside_enter(&inside, of.sequencer);
    pawl_status status =
        of.storage->actualize(of.storage->context, offset, batcher, batcher_context, &error);
    pawl__inside_leave(&inside);
    return finish("actualize", status, &error, reterr);
}
