#include "app/core/ids.h"

#include <inttypes.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"

static const struct {
    const char *name;
    const char *word;
    uint64_t min;
    uint64_t max;
    uint16_t sequence;
} classes[] = {
    [PAWL_APP_SINGLETON] = { "singleton",
                             "singleton",
                             PAWL_APP_SINGLETON_ID_MIN,
                             PAWL_APP_SINGLETON_ID_MAX,
                             0 },
    [PAWL_APP_C_RECORD] = { "C-record",
                            "c",
                            PAWL_APP_C_ID_MIN,
                            PAWL_APP_C_ID_MAX,
                            PAWL_APP_SEQ_C_RECORD },
    [PAWL_APP_O_RECORD] = { "O-record",
                            "o",
                            PAWL_APP_OW_ID_MIN,
                            PAWL_APP_OW_ID_MAX,
                            PAWL_APP_SEQ_OW_RECORD },
    [PAWL_APP_W_RECORD] = { "W-record",
                            "w",
                            PAWL_APP_OW_ID_MIN,
                            PAWL_APP_OW_ID_MAX,
                            PAWL_APP_SEQ_OW_RECORD },
};

_Static_assert(PAWL_APP_RAW_ID_MAX < PAWL_APP_SINGLETON_ID_MIN, "raw ids are no singletons");
_Static_assert(PAWL_APP_SINGLETON_ID_MAX < PAWL_APP_OW_ID_MIN, "singletons are no O/W-records");
_Static_assert(PAWL_APP_OW_ID_MAX < PAWL_APP_C_ID_MIN, "O/W-records are no C-records");

const char *pawl__app_class_name(pawl_app_class record_class)
{
    return (size_t)record_class < COUNT_OF(classes) ? classes[record_class].name : "unknown";
}

const char *pawl_app_class_word(pawl_app_class record_class)
{
    return (size_t)record_class < COUNT_OF(classes) ? classes[record_class].word : "unknown";
}

bool pawl__app_class_parse(pawl_view word, pawl_app_class *ret_class)
{
    for (size_t i = 0; i < COUNT_OF(classes); i++) {
        if (pawl__view_is(word, classes[i].word)) {
            *ret_class = (pawl_app_class)i;
            return true;
        }
    }
    return false;
}

bool pawl__app_id_fits(pawl_app_class record_class, uint64_t id)
{
    return (size_t)record_class < COUNT_OF(classes) && id >= classes[record_class].min
           && id <= classes[record_class].max;
}

pawl_status pawl__app_check_id(uint64_t id, pawl_error *reterr)
{
    for (size_t i = 0; i < COUNT_OF(classes); i++) {
        if (pawl__app_id_fits((pawl_app_class)i, id)) {
            return PAWL_OK;
        }
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "record id %" PRIu64 " is reserved: singletons are %" PRIu64 "-%" PRIu64
                      ", O- and W-records from %" PRIu64 ", C-records from %" PRIu64 " to %" PRIu64,
                      id,
                      PAWL_APP_SINGLETON_ID_MIN,
                      PAWL_APP_SINGLETON_ID_MAX,
                      PAWL_APP_OW_ID_MIN,
                      PAWL_APP_C_ID_MIN,
                      PAWL_APP_C_ID_MAX);
}

pawl_status pawl__app_check_raw_id(uint64_t raw_id, pawl_error *reterr)
{
    return raw_id >= 1 && raw_id <= PAWL_APP_RAW_ID_MAX
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "raw id %" PRIu64 " is not in 1-%" PRIu64,
                            raw_id,
                            PAWL_APP_RAW_ID_MAX);
}

uint16_t pawl__app_sequence_of(pawl_app_class record_class)
{
    REQUIRE((size_t)record_class < COUNT_OF(classes));
    return classes[record_class].sequence;
}
