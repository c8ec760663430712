/* What an application is: checked, copied, written down as JSON and read back. Pure. */
#ifndef PAWL_APP_DEFINITION_DESCRIPTOR_H
#define PAWL_APP_DEFINITION_DESCRIPTOR_H

#include <pawl/app.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/json/json.h"

#define APP_DESCRIPTOR_BYTES_MAX ((size_t)16 << 20)

/* A descriptor with the memory that it points to. Start with zeroes. */
struct app_definition {
    pawl_app_descriptor descriptor; /* kinds by ascending id, sequences too */
    struct pawl__arena arena;
};

void pawl__app_definition_done(struct app_definition *definition);

/* Checks and copies. INVALID names what is wrong. The caller empties `definition`, after a failure too. */
PAWL_MUST_USE pawl_status pawl__app_definition_copy(const pawl_app_descriptor *descriptor,
                                                    struct app_definition *definition,
                                                    pawl_error *reterr);

/* Appends JSON; equal definitions give equal bytes. */
PAWL_MUST_USE pawl_status pawl__app_definition_write(const struct app_definition *definition,
                                                     struct pawl__buf *buf,
                                                     pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__app_definition_read(pawl_view json,
                                                    struct app_definition *definition,
                                                    pawl_error *reterr);

/* An array of JSON as structs in an arena: how large an element is and how it is read. */
struct app_json_array {
    size_t size;
    pawl_status (*read)(struct pawl__json_node node,
                        struct pawl__arena *arena,
                        void *element,
                        pawl_error *reterr);
    void *elements;
    size_t count;
};
PAWL_MUST_USE pawl_status pawl__app_read_array(struct pawl__json_node node,
                                               struct pawl__arena *arena,
                                               struct app_json_array *array,
                                               pawl_error *reterr);

/* NULL: there is none of that name. */
const pawl_app_kind *pawl__app_find_kind(const pawl_app_descriptor *descriptor, pawl_view name);
const pawl_app_sequence *pawl__app_find_sequence(const pawl_app_kind *kind, pawl_view name);

/* Those that every kind has. */
enum { APP_COMMON_SEQUENCES = 3 };
const pawl_app_sequence *pawl__app_common_sequences(void);

/* The name of a sequence that every kind has; NULL: it is none of them. */
const char *pawl__app_common_sequence(uint16_t sequence);

/* The name of any sequence; "": there is no such one. */
const char *pawl__app_sequence_name(const pawl_app_descriptor *descriptor, uint16_t sequence);

/* The first number of a sequence, one of every kind or of the application's own; 0: unknown. */
uint64_t pawl__app_initial_of(const pawl_app_descriptor *descriptor, uint16_t sequence);

/* The sequences of all kinds, for a sequencer; in the definition's arena. */
PAWL_MUST_USE pawl_status pawl__app_definition_types(struct app_definition *definition,
                                                     const pawl_seq_type **ret_types,
                                                     size_t *ret_count,
                                                     pawl_error *reterr);

/* A name: 1 to PAWL_APP_NAME_BYTES_MAX bytes of UTF-8 without control characters. */
PAWL_MUST_USE pawl_status pawl__app_check_name(const char *what,
                                               pawl_view name,
                                               pawl_error *reterr);

#endif
