/* Sections of pawl.yaml that hold more than single values: lists, and objects with names that the
 * user chooses. A part of the node declares the section that it reads, and gets it checked:
 *
 *     static const struct pawl__section_field column_fields[] = {
 *         { .key = "name", .required = true, .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
 *         { .key = "path", .value = { .type = PAWL__SETTING_TEXT, .text = "$" } },
 *         { .key = NULL },
 *     };
 *     static const struct pawl__section_field pipeline_fields[] = {
 *         { .key = "from", .required = true,
 *           .value = { .type = PAWL__SETTING_URL, .text = "", .one_of = "nats|ledger" } },
 *         { .key = "subjects", .shape = PAWL__SHAPE_LIST, .count_max = 100,
 *           .value = { .type = PAWL__SETTING_TEXT, .text = "" } },
 *         { .key = "columns", .shape = PAWL__SHAPE_LIST, .count_max = 1000, .fields = column_fields },
 *         { .key = NULL },
 *     };
 *     static const struct pawl__section_field sections[] = {
 *         { .key = "pipelines", .shape = PAWL__SHAPE_MAP, .count_max = 64, .fields = pipeline_fields },
 *         { .key = NULL },
 *     };
 *
 * which reads
 *
 *     pipelines:
 *       orders:
 *         from: nats://localhost
 *         subjects: [orders.placed, orders.paid]
 *         columns:
 *           - name: total
 *             path: $.total
 *
 * Every problem names file, line and key: "pawl.yaml:7: pipelines.orders.columns[0]: 'name' is
 * missing". Sections come from the file alone: no variable, no flag. */
#ifndef PAWL_CONFIG_SECTION_H
#define PAWL_CONFIG_SECTION_H

#include "config/settings.h"

enum pawl__shape {
    PAWL__SHAPE_VALUE,  /* one value, as `value` says */
    PAWL__SHAPE_OBJECT, /* the declared fields */
    PAWL__SHAPE_LIST,   /* of objects when there are fields, else of values */
    PAWL__SHAPE_MAP,    /* of objects, each with a name */
};

enum { PAWL__SECTION_NAME_BYTES_MAX = 64 }; /* of a name in a MAP */

struct pawl__section_field {
    const char *key; /* without dots, but a section may be below another: "delivery.pipelines" */
    enum pawl__shape shape;
    bool required;              /* else a VALUE has its default and all others are empty */
    size_t count_max;           /* of a LIST or MAP */
    struct pawl__setting value; /* type, text (the default), min, max, one_of */
    const struct pawl__section_field *fields; /* ended by one without key */
};

/* What was read. Never changes. A default has line 0. */
struct pawl__section {
    const char *name; /* the field's key or the name in a MAP; NULL in a LIST */
    size_t line;
    const char *text;              /* of a VALUE, as of pawl__config_text; else NULL */
    int64_t number;                /* of a VALUE, as of pawl__setting_parse */
    struct pawl__section *entries; /* of an OBJECT its fields, all of them, in declared order */
    size_t count;
};

/* A field of an object, which must be declared. */
const struct pawl__section *pawl__section_field(const struct pawl__section *object,
                                                const char *key);

#endif
