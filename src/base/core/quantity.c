#include "base/core/quantity.h"

#include <stdio.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"

struct unit {
    const char *name;
    uint64_t factor;
};

/* From the largest down: formatting takes the first that divides, a duration is read in this order.
 */
static const struct unit duration_units[] = {
    { "d", 86400 * UINT64_C(1000000000) },
    { "h", 3600 * UINT64_C(1000000000) },
    { "m", 60 * UINT64_C(1000000000) },
    { "s", UINT64_C(1000000000) },
    { "ms", UINT64_C(1000000) },
    { "us", UINT64_C(1000) },
    { "ns", 1 },
};

static const struct unit binary_units[] = {
    { "EiB", UINT64_C(1) << 60 },
    { "PiB", UINT64_C(1) << 50 },
    { "TiB", UINT64_C(1) << 40 },
    { "GiB", UINT64_C(1) << 30 },
    { "MiB", UINT64_C(1) << 20 },
    { "KiB", UINT64_C(1) << 10 },
    { "B", 1 },
};

static const struct unit decimal_units[] = {
    { "EB", UINT64_C(1000000000000000000) },
    { "PB", UINT64_C(1000000000000000) },
    { "TB", UINT64_C(1000000000000) },
    { "GB", UINT64_C(1000000000) },
    { "MB", UINT64_C(1000000) },
    { "kB", UINT64_C(1000) },
    { "KB", UINT64_C(1000) },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static pawl_view take_while(pawl_view *in, bool digits)
{
    size_t len = 0;
    pawl_view taken;

    while (len < in->len && is_digit(in->data[len]) == digits) {
        len++;
    }
    REQUIRE(pawl__view_take(in, len, &taken));
    return taken;
}

/* False when there is no digit or it does not fit. */
static bool read_number(pawl_view digits, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < digits.len; i++) {
        if (__builtin_mul_overflow(value, 10, &value)
            || __builtin_add_overflow(value, (uint64_t)(digits.data[i] - '0'), &value)) {
            return false;
        }
    }
    *ret_value = value;
    return digits.len > 0;
}

static const struct unit *find_unit(const struct unit *units, size_t count, pawl_view name)
{
    for (size_t i = 0; i < count; i++) {
        if (pawl__view_is(name, units[i].name)) {
            return &units[i];
        }
    }
    return NULL;
}

static bool all_digits(pawl_view text)
{
    return take_while(&text, true).len > 0 && text.len == 0;
}

static pawl_status fail_duration(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_INVALID, "is no duration; write 500ms, 30s, 5m, 2h or 7d");
}

static pawl_status fail_too_large(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_INVALID, "is too large to count");
}

pawl_status pawl__duration_parse(pawl_view text, int64_t *ret_ns, pawl_error *reterr)
{
    uint64_t total = 0;
    const struct unit *last = NULL;
    pawl_view in = text;

    if (pawl__view_is(text, "0")) {
        *ret_ns = 0;
        return PAWL_OK;
    }
    if (all_digits(text)) {
        return pawl__fail(reterr, PAWL_INVALID, "has no unit; write 500ms, 30s, 5m, 2h or 7d");
    }
    if (in.len == 0) {
        return fail_duration(reterr);
    }
    while (in.len > 0) {
        pawl_view digits = take_while(&in, true);
        pawl_view name = take_while(&in, false);
        const struct unit *unit = find_unit(duration_units, COUNT_OF(duration_units), name);
        uint64_t value;

        if (digits.len == 0 || unit == NULL || (last != NULL && unit <= last)) {
            return fail_duration(reterr);
        }
        if (!read_number(digits, &value) || __builtin_mul_overflow(value, unit->factor, &value)
            || __builtin_add_overflow(total, value, &total) || total > INT64_MAX) {
            return fail_too_large(reterr);
        }
        last = unit;
    }
    *ret_ns = (int64_t)total;
    return PAWL_OK;
}

pawl_status pawl__size_parse(pawl_view text, uint64_t *ret_bytes, pawl_error *reterr)
{
    pawl_view in = text;
    pawl_view digits = take_while(&in, true);
    const struct unit *unit = find_unit(binary_units, COUNT_OF(binary_units), in);
    uint64_t value;

    if (unit == NULL) {
        unit = find_unit(decimal_units, COUNT_OF(decimal_units), in);
    }
    if (digits.len == 0 || (unit == NULL && in.len > 0)) {
        return pawl__fail(reterr, PAWL_INVALID, "is no size; write 16777216, 64MB, 16MiB or 1GiB");
    }
    if (!read_number(digits, &value)
        || __builtin_mul_overflow(value, unit == NULL ? 1 : unit->factor, &value)) {
        return fail_too_large(reterr);
    }
    *ret_bytes = value;
    return PAWL_OK;
}

pawl_status pawl__integer_parse(pawl_view text, int64_t *ret_value, pawl_error *reterr)
{
    pawl_view in = text;
    pawl_view sign;
    bool negative = in.len > 0 && in.data[0] == '-' && pawl__view_take(&in, 1, &sign);
    uint64_t value;

    if (!all_digits(in)) {
        return pawl__fail(reterr, PAWL_INVALID, "is no whole number");
    }
    if (!read_number(in, &value) || value > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return fail_too_large(reterr);
    }
    *ret_value = negative ? (int64_t)(0 - value) : (int64_t)value;
    return PAWL_OK;
}

/* With the largest unit that divides it; how many characters that took. */
static int format_exact(const struct unit *units,
                        size_t count,
                        uint64_t value,
                        char ret_text[PAWL__QUANTITY_SIZE])
{
    for (size_t i = 0; i < count; i++) {
        if (value % units[i].factor == 0) {
            return snprintf(ret_text,
                            PAWL__QUANTITY_SIZE,
                            "%llu%s",
                            (unsigned long long)(value / units[i].factor),
                            units[i].name);
        }
    }
    return INT32_MAX;
}

void pawl__duration_format(int64_t ns, char ret_text[PAWL__QUANTITY_SIZE])
{
    REQUIRE(ns >= 0);
    if (ns == 0) {
        snprintf(ret_text, PAWL__QUANTITY_SIZE, "0s");
        return;
    }
    format_exact(duration_units, COUNT_OF(duration_units), (uint64_t)ns, ret_text);
}

void pawl__size_format(uint64_t bytes, char ret_text[PAWL__QUANTITY_SIZE])
{
    char decimal[PAWL__QUANTITY_SIZE];

    if (bytes == 0) {
        snprintf(ret_text, PAWL__QUANTITY_SIZE, "0B");
        return;
    }
    int binary_len = format_exact(binary_units, COUNT_OF(binary_units), bytes, ret_text);
    int decimal_len = format_exact(decimal_units, COUNT_OF(decimal_units), bytes, decimal);
    if (decimal_len < binary_len) {
        memcpy(ret_text, decimal, sizeof(decimal));
    }
}

/* Three digits or so, in the largest unit that leaves at least one before the point. */
static void format_human(
    double value, double step, const char *const *units, size_t count, char *ret_text)
{
    size_t i = 0;

    /* 999.95 would print as "1000.0". */
    while (i + 1 < count && value >= step - 0.05) {
        value /= step;
        i++;
    }
    int decimals = i > 0 || value < 10 ? 1 : 0;
    if (i == 0 && value == (double)(uint64_t)value) {
        decimals = 0;
    }
    snprintf(ret_text, PAWL__QUANTITY_SIZE, "%.*f%s", decimals, value, units[i]);
}

static double clamp(double value)
{
    return value >= 0 && value < 1e24 ? value : 0; /* not a number is nothing, too */
}

void pawl__size_human(double bytes, char ret_text[PAWL__QUANTITY_SIZE])
{
    static const char *const units[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" };

    format_human(clamp(bytes), 1024, units, COUNT_OF(units), ret_text);
}

void pawl__count_human(double count, char ret_text[PAWL__QUANTITY_SIZE])
{
    static const char *const units[] = { "", " k", " M", " G", " T", " P", " E" };

    format_human(clamp(count), 1000, units, COUNT_OF(units), ret_text);
}

void pawl__duration_human(int64_t ns, char ret_text[PAWL__QUANTITY_SIZE])
{
    int64_t seconds = MAX(ns, 0) / NS_PER_S;
    int64_t hours = seconds / 3600;

    if (hours >= 100) {
        snprintf(ret_text, PAWL__QUANTITY_SIZE, "%lld d", (long long)(hours / 24));
    } else if (hours > 0) {
        snprintf(ret_text,
                 PAWL__QUANTITY_SIZE,
                 "%d:%02d:%02d",
                 (int)hours,
                 (int)(seconds / 60 % 60),
                 (int)(seconds % 60));
    } else {
        snprintf(ret_text,
                 PAWL__QUANTITY_SIZE,
                 "%d:%02d",
                 (int)(seconds / 60 % 60),
                 (int)(seconds % 60));
    }
}
