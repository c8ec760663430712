/* JSON data with {"$raw": N} and {"$next": "NAME"} in it, turned into text with holes. Pure. */
#ifndef PAWL_APP_DEFINITION_TEMPLATE_H
#define PAWL_APP_DEFINITION_TEMPLATE_H

#include "app/core/command.h"
#include "base/json/json.h"

/* The raw ids of a command. */
struct app_raw {
    uint64_t raw_id;
    size_t create;
};

int pawl__app_raw_compare(const void *a, const void *b); /* for qsort: by raw id */

struct app_names {
    const pawl_app_kind *kind;
    const struct app_raw *raws; /* by ascending raw id */
    size_t raw_count;
};

/* Text and holes are in the arena. INVALID: no JSON object, or a reference to a raw id that is not
 * there; UNKNOWN_SEQUENCE. */
PAWL_MUST_USE pawl_status pawl__app_template(pawl_view data,
                                             const struct app_names *names,
                                             struct pawl__arena *arena,
                                             struct app_text *ret_text,
                                             pawl_error *reterr);

#endif
