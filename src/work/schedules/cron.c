#include "work/schedules/cron.h"

#include <string.h>
#include <strings.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/quantity.h"
#include "base/os/clock.h"

enum {
    FIELD_COUNT = 5,
    DAYS_IN_CYCLE = 146097, /* of the calendar, weekdays included: 400 years */
    MINUTES_PER_DAY = 1440,
};

#define US_PER_MINUTE (60 * US_PER_S)

struct field {
    const char *name;
    int min;
    int max;
    const char *const *names; /* of min, min + 1, ...; NULL: none */
    int name_count;
};

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun",
                                           "jul", "aug", "sep", "oct", "nov", "dec" };
static const char *const weekday_names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

static const struct field fields[FIELD_COUNT] = {
    { "minute", 0, 59, NULL, 0 },
    { "hour", 0, 23, NULL, 0 },
    { "day-of-month", 1, 31, NULL, 0 },
    { "month", 1, 12, month_names, 12 },
    { "day-of-week", 0, 7, weekday_names, 7 },
};

static const struct {
    const char *name;
    const char *expression;
} nicknames[] = {
    { "@annually", "0 0 1 1 *" }, { "@daily", "0 0 * * *" },   { "@hourly", "0 * * * *" },
    { "@midnight", "0 0 * * *" }, { "@monthly", "0 0 1 * *" }, { "@weekly", "0 0 * * 0" },
    { "@yearly", "0 0 1 1 *" },
};

/* --- Reading ---------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool read_number(pawl_view text, int *ret_value)
{
    int64_t value = 0;

    if (text.len > 4 || pawl__integer_parse(text, &value, NULL) != PAWL_OK || text.data[0] == '-') {
        return false;
    }
    *ret_value = (int)value;
    return true;
}

static pawl_status read_value(const struct field *field,
                              pawl_view text,
                              int *ret_value,
                              pawl_error *reterr)
{
    for (int i = 0; i < field->name_count; i++) {
        if (text.len == 3 && strncasecmp(text.data, field->names[i], 3) == 0) {
            *ret_value = field->min + i;
            return PAWL_OK;
        }
    }
    int value;
    if (!read_number(text, &value)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: '%.*s' is not a number%s",
                          field->name,
                          VIEW_ARGS(text),
                          field->names != NULL ? " or a name of three letters" : "");
    }
    if (value < field->min || value > field->max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: %d is not within %d to %d",
                          field->name,
                          value,
                          field->min,
                          field->max);
    }
    *ret_value = value;
    return PAWL_OK;
}

/* "*", "a" or "a-b". A single value with a step goes up to the end of the field. */
static pawl_status read_range(const struct field *field,
                              pawl_view text,
                              bool stepped,
                              int *ret_low,
                              int *ret_high,
                              pawl_error *reterr)
{
    pawl_view low = { NULL, 0 };
    pawl_view high = text;

    if (pawl__view_is(text, "*")) {
        *ret_low = field->min;
        *ret_high = field->max;
        return PAWL_OK;
    }
    bool range = memchr(text.data, '-', text.len) != NULL;
    if (!pawl__view_split(&high, '-', &low)) {
        low = text;
    }
    TRY(read_value(field, low, ret_low, reterr));
    if (!range) {
        *ret_high = stepped ? field->max : *ret_low;
        return PAWL_OK;
    }
    TRY(read_value(field, high, ret_high, reterr));
    if (*ret_low > *ret_high) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: the range '%.*s' ends before it starts",
                          field->name,
                          VIEW_ARGS(text));
    }
    return PAWL_OK;
}

static pawl_status read_step(const struct field *field,
                             pawl_view text,
                             int *ret_step,
                             pawl_error *reterr)
{
    if (!read_number(text, ret_step) || *ret_step < 1 || *ret_step > field->max) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: the step '%.*s' is not within 1 to %d",
                          field->name,
                          VIEW_ARGS(text),
                          field->max);
    }
    return PAWL_OK;
}

static pawl_status read_part(const struct field *field,
                             pawl_view part,
                             uint64_t *bits,
                             pawl_error *reterr)
{
    pawl_view step_text = part;
    pawl_view range = { NULL, 0 };
    int low = 0;
    int high = 0;
    int step = 1;

    if (part.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: an empty part", field->name);
    }
    bool stepped = memchr(part.data, '/', part.len) != NULL;
    if (!pawl__view_split(&step_text, '/', &range) || range.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "%s: nothing before '/'", field->name);
    }
    TRY(stepped ? read_step(field, step_text, &step, reterr) : PAWL_OK);
    TRY(read_range(field, range, stepped, &low, &high, reterr));
    for (int value = low; value <= high; value += step) {
        *bits |= UINT64_C(1) << value;
    }
    return PAWL_OK;
}

static pawl_status read_field(const struct field *field,
                              pawl_view text,
                              uint64_t *ret_bits,
                              pawl_error *reterr)
{
    uint64_t bits = 0;
    bool more = true;

    while (more) {
        const char *comma = memchr(text.data, ',', text.len);
        pawl_view part = text;
        more = comma != NULL;
        if (more && !pawl__view_split(&text, ',', &part)) {
            part.len = 0;
        }
        TRY(read_part(field, part, &bits, reterr));
        if (more && text.len == 0) {
            return pawl__fail(reterr, PAWL_INVALID, "%s: an empty part", field->name);
        }
    }
    *ret_bits = bits;
    return PAWL_OK;
}

/* The next run of bytes that are no space; empty at the end. */
static pawl_view next_word(pawl_view *text)
{
    pawl_view word = { NULL, 0 };
    pawl_view skipped;
    size_t len = 0;

    while (text->len > 0 && is_space(text->data[0]) && pawl__view_take(text, 1, &skipped)) {
    }
    while (len < text->len && !is_space(text->data[len])) {
        len++;
    }
    if (len > 0 && !pawl__view_take(text, len, &word)) {
        word.len = 0;
    }
    return word;
}

static pawl_view without_nickname(pawl_view text)
{
    for (size_t i = 0; i < COUNT_OF(nicknames); i++) {
        if (pawl__view_is(text, nicknames[i].name)) {
            return pawl_view_of(nicknames[i].expression);
        }
    }
    return text;
}

static pawl_status read_fields(pawl_view text, struct work_cron *cron, pawl_error *reterr)
{
    uint64_t bits[FIELD_COUNT];
    bool star[FIELD_COUNT];

    for (int i = 0; i < FIELD_COUNT; i++) {
        pawl_view word = next_word(&text);
        if (word.len == 0) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "%s: missing; five fields are needed (minute hour day-of-month month "
                              "day-of-week)",
                              fields[i].name);
        }
        star[i] = word.data[0] == '*';
        TRY(read_field(&fields[i], word, &bits[i], reterr));
    }
    pawl_view rest = next_word(&text);
    if (rest.len > 0) {
        return pawl__fail(reterr, PAWL_INVALID, "'%.*s' follows the fifth field", VIEW_ARGS(rest));
    }
    cron->minutes = bits[0];
    cron->hours = (uint32_t)bits[1];
    cron->days = (uint32_t)bits[2];
    cron->months = (uint32_t)bits[3];
    cron->weekdays = (uint32_t)((bits[4] | bits[4] >> 7) & 0x7f);
    cron->either_day = !star[2] && !star[4];
    return PAWL_OK;
}

pawl_status pawl__work_cron_parse(pawl_view text, struct work_cron *ret_cron, pawl_error *reterr)
{
    struct work_cron cron;
    int64_t slot;

    if (text.len > CRON_BYTES_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%zu bytes, the limit is %d", text.len, (int)CRON_BYTES_MAX);
    }
    pawl_view whole = text;
    pawl_view word = next_word(&text);
    pawl_view meant = next_word(&text).len == 0 ? without_nickname(word) : whole;
    if (meant.len > 0 && meant.data[0] == '@') {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "'%.*s' is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly",
            VIEW_ARGS(meant));
    }
    TRY(read_fields(meant, &cron, reterr));
    if (!pawl__work_cron_next(&cron, 0, &slot)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "day-of-month: '%.*s' never comes", VIEW_ARGS(meant));
    }
    *ret_cron = cron;
    return PAWL_OK;
}

/* --- Slots ------------------------------------------------------------------------------------ */

static int64_t floor_divide(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

static bool day_matches(const struct work_cron *cron, int64_t days)
{
    int64_t year;
    int64_t month;
    int64_t day;

    pawl__date_of_days(days, &year, &month, &day);
    int64_t weekday = ((days + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
    bool by_day = (cron->days >> day & 1) != 0;
    bool by_weekday = (cron->weekdays >> weekday & 1) != 0;
    return (cron->months >> month & 1) != 0
           && (cron->either_day ? by_day || by_weekday : by_day && by_weekday);
}

static bool minute_matches(const struct work_cron *cron, int minute)
{
    return (cron->hours >> (minute / 60) & 1) != 0 && (cron->minutes >> (minute % 60) & 1) != 0;
}

bool pawl__work_cron_next(const struct work_cron *cron, int64_t after_us, int64_t *ret_slot_us)
{
    if (after_us >= PAWL__WALL_US_MAX) {
        return false;
    }
    int64_t minute = floor_divide(MAX(after_us, PAWL__WALL_US_MIN), US_PER_MINUTE) + 1;
    int64_t day = floor_divide(minute, MINUTES_PER_DAY);
    int from = (int)(minute - day * MINUTES_PER_DAY);

    /* Every calendar day comes again within one cycle, so what is not in it never comes. */
    for (int64_t last = day + DAYS_IN_CYCLE; day <= last; day++, from = 0) {
        if (!day_matches(cron, day)) {
            continue;
        }
        for (int i = from; i < MINUTES_PER_DAY; i++) {
            if (minute_matches(cron, i)) {
                int64_t slot_us = (day * MINUTES_PER_DAY + i) * US_PER_MINUTE;
                if (slot_us > PAWL__WALL_US_MAX) {
                    return false;
                }
                *ret_slot_us = slot_us;
                return true;
            }
        }
    }
    return false;
}

bool pawl__work_cron_newest(const struct work_cron *cron,
                            int64_t from_us,
                            int64_t until_us,
                            int64_t *ret_slot_us)
{
    int64_t minute = floor_divide(until_us, US_PER_MINUTE);
    int64_t day = floor_divide(minute, MINUTES_PER_DAY);
    int from = (int)(minute - day * MINUTES_PER_DAY);

    for (int64_t first = floor_divide(from_us, MINUTES_PER_DAY * US_PER_MINUTE); day >= first;
         day--, from = MINUTES_PER_DAY - 1) {
        if (!day_matches(cron, day)) {
            continue;
        }
        for (int i = from; i >= 0; i--) {
            int64_t slot_us = (day * MINUTES_PER_DAY + i) * US_PER_MINUTE;
            if (minute_matches(cron, i)) {
                if (slot_us < from_us) {
                    return false;
                }
                *ret_slot_us = slot_us;
                return true;
            }
        }
    }
    return false;
}
