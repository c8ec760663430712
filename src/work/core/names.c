/* Names of states, types and kinds: as they are stored, shown and read. */
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "records/work.h"
#include "work/checkpoints/checkpoint.h"
#include "work/checkpoints/evidence.h"
#include "work/items/item.h"

/* pawl__work_X_text, whose value is one of the enum's, and pawl__work_X_parse, false for a name that it does
 * not have. */
#define NAMES_OF(what, enum_type, word, last)                                    \
    const char *pawl__work_##what##_text(enum_type word)                         \
    {                                                                            \
        REQUIRE((size_t)word <= (last));                                         \
        return pawl__##what##_names[word];                                       \
    }                                                                            \
                                                                                 \
    bool pawl__work_##what##_parse(pawl_view text, enum_type *ret_##word)        \
    {                                                                            \
        size_t found = pawl__view_index(text, pawl__##what##_names, (last) + 1); \
                                                                                 \
        if (found <= (last)) {                                                   \
            *ret_##word = (enum_type)found;                                      \
        }                                                                        \
        return found <= (last);                                                  \
    }

NAMES_OF(item_status, pawl_item_status, status, PAWL_ITEM_WAITING)
NAMES_OF(task_status, pawl_task_status, status, PAWL_TASK_CANCELLED)
NAMES_OF(checkpoint_type, pawl_checkpoint_type, type, PAWL_CHECKPOINT_ERROR_BOUNDARY)
NAMES_OF(evidence_kind, pawl_evidence_kind, kind, PAWL_EVIDENCE_ROW_EXISTS)

/* --- public --- */

const char *pawl_item_status_name(pawl_item_status status)
{
    return (size_t)status <= PAWL_ITEM_WAITING ? pawl__work_item_status_text(status) : "unknown";
}

const char *pawl_task_status_name(pawl_task_status status)
{
    return (size_t)status <= PAWL_TASK_CANCELLED ? pawl__work_task_status_text(status) : "unknown";
}

const char *pawl_checkpoint_type_name(pawl_checkpoint_type type)
{
    return (size_t)type <= PAWL_CHECKPOINT_ERROR_BOUNDARY ? pawl__work_checkpoint_type_text(type)
                                                          : "unknown";
}

pawl_status pawl_item_status_parse(pawl_view name, pawl_item_status *ret_status, pawl_error *reterr)
{
    NEED(ret_status, reterr);
    NEED_VIEW(name, reterr);
    return pawl__work_item_status_parse(name, ret_status)
               ? PAWL_OK
               : pawl__fail(
                   reterr,
                   PAWL_INVALID,
                   "not a status: pending, in_progress, completed, failed, expired or waiting");
}

pawl_status pawl_task_status_parse(pawl_view name, pawl_task_status *ret_status, pawl_error *reterr)
{
    NEED(ret_status, reterr);
    NEED_VIEW(name, reterr);
    return pawl__work_task_status_parse(name, ret_status)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "not a status: pending, running, succeeded, failed or cancelled");
}

pawl_status pawl_checkpoint_type_parse(pawl_view name,
                                       pawl_checkpoint_type *ret_type,
                                       pawl_error *reterr)
{
    NEED(ret_type, reterr);
    NEED_VIEW(name, reterr);
#define NAME_(name_, text) " " #text
    return pawl__work_checkpoint_type_parse(name, ret_type)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "not a type of checkpoint: one of" PAWL_CHECKPOINT_TYPES(NAME_));
#undef NAME_
}
