/* A program of 0.1.0 that uses <pawl/sequencer.h> with a storage of its own. */
#include <pawl/sequencer.h>

pawl_status read_numbers(
    void *, uint64_t, const uint16_t *, size_t, int64_t, uint64_t *, pawl_error *);
pawl_status read_next_offset(void *, uint64_t *, pawl_error *);
pawl_status store(void *, const pawl_seq_value *, size_t, uint64_t, pawl_error *);
pawl_status actualize(void *, uint64_t, pawl_seq_batcher, void *, pawl_error *);

int main(void)
{
    static const pawl_seq_type types[] = { { .kind = 1, .sequence = 1, .initial = 1 } };
    const pawl_seq_storage storage = { .read_numbers = read_numbers,
                                       .read_next_offset = read_next_offset,
                                       .write = store,
                                       .actualize = actualize };
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;
    pawl_sequencer_status now;
    pawl_sequencer *sequencer = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t number = 0;

    options.types = types;
    options.type_count = 1;
    options.storage = &storage;
    pawl_status status = pawl_sequencer_new(&options, &sequencer, &error);
    if (status == PAWL_OK
        && pawl_sequencer_start(sequencer, 1, 7, &number, &error) == PAWL_TRANSACTION_OPEN) {
        status = pawl_sequencer_flush(sequencer, &error);
    }
    pawl_sequencer_get_status(sequencer, &now);
    if (status == PAWL_OK) {
        status = pawl_sequencer_close(sequencer, &error);
    }
    pawl_sequencer_free(sequencer);
    return pawl_status_exit_code(status);
}
