/* Values of records out of the JSON that a node answers: the opposite of pawl__record_write. JSON inside them (payloads) stays
 * byte for byte what the node sent, so that a command prints the same with and without a node. */
#ifndef PAWL_CLI_DELIVERY_DECODE_H
#define PAWL_CLI_DELIVERY_DECODE_H

#include "base/record/record.h"

/* Parts of a JSON text that is known to be well formed: a value as it stands there. */
/* What is between the brackets of an array or object. */
pawl_view pawl__cli_json_inside(pawl_view json);
/* The next one of that; false: none is left. */
bool pawl__cli_json_next_item(pawl_view *rest, pawl_view *ret_item);
bool pawl__cli_json_next_member(pawl_view *rest, pawl_view *ret_key, pawl_view *ret_value);
/* Of an object. Empty: there is no such key. */
pawl_view pawl__cli_json_member(pawl_view object, const char *key);

/* Reads an object; keys that the record does not know are left out. What it points to is in the arena, or in the text.
 * `chars_size` is the room of its FIELD_CHARS. INVALID: a value is of another kind. */
PAWL_MUST_USE pawl_status pawl__cli_decode(const struct pawl__record *record,
                                           pawl_view json,
                                           size_t chars_size,
                                           struct pawl__arena *arena,
                                           void *ret_value,
                                           pawl_error *reterr);

#endif
