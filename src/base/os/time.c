#include "base/os/clock.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"

/* Counted in years that start in March, so that the leap day is the last of its year. */
static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

void pawl__date_of_days(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;

    *ret_day = day_of_year - (153 * shifted + 2) / 5 + 1;
    *ret_month = shifted < 10 ? shifted + 3 : shifted - 9;
    *ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

enum { STORED_LEN = 26 }; /* 2026-01-29 10:20:30.123456 */

static void put_digits(char *text, int count, int64_t value)
{
    for (int i = count - 1; i >= 0; i--) {
        text[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

static void format_time(int64_t wall_us,
                        char between,
                        const char *end,
                        char ret_text[PAWL__TIME_SIZE])
{
    wall_us = MIN(MAX(wall_us, PAWL__WALL_US_MIN), PAWL__WALL_US_MAX);
    int64_t seconds = wall_us / US_PER_S;
    int64_t micros = wall_us % US_PER_S;
    if (micros < 0) {
        micros += US_PER_S;
        seconds--;
    }
    int64_t days = seconds / 86400;
    int64_t rest = seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    int64_t year;
    int64_t month;
    int64_t day;
    pawl__date_of_days(days, &year, &month, &day);
    /* By hand: every event that is stored has one, and snprintf takes longer than all the rest. */
    memcpy(ret_text, "0000-00-00 00:00:00.000000", STORED_LEN);
    put_digits(&ret_text[0], 4, year);
    put_digits(&ret_text[5], 2, month);
    put_digits(&ret_text[8], 2, day);
    ret_text[10] = between;
    put_digits(&ret_text[11], 2, rest / 3600);
    put_digits(&ret_text[14], 2, rest / 60 % 60);
    put_digits(&ret_text[17], 2, rest % 60);
    put_digits(&ret_text[20], 6, micros);
    memcpy(&ret_text[STORED_LEN], end, strlen(end) + 1);
}

void pawl__time_store(int64_t wall_us, char ret_text[PAWL__TIME_SIZE])
{
    format_time(wall_us, ' ', "", ret_text);
}

void pawl__time_rfc3339(int64_t wall_us, char ret_text[PAWL__TIME_SIZE])
{
    format_time(wall_us, 'T', "Z", ret_text);
}

/* Exactly `count` digits; anything else leaves the view unmoved. */
static bool take_digits(pawl_view *in, size_t count, int64_t *ret_value)
{
    pawl_view rest = *in;
    pawl_view digits;
    int64_t value = 0;

    if (!pawl__view_take(&rest, count, &digits)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9') {
            return false;
        }
        value = value * 10 + (digits.data[i] - '0');
    }
    *in = rest;
    *ret_value = value;
    return true;
}

/* One of the characters in `allowed`. */
static bool take_one_of(pawl_view *in, const char *allowed, char *ret_char)
{
    for (const char *c = allowed; in->len > 0 && *c != '\0'; c++) {
        if (in->data[0] == *c) {
            pawl_view taken;
            *ret_char = *c;
            return pawl__view_take(in, 1, &taken);
        }
    }
    return false;
}

static bool is_date(int64_t year, int64_t month, int64_t day)
{
    static const int month_days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    if (year < 1 || month < 1 || month > 12 || day < 1) {
        return false;
    }
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= month_days[month - 1] + (month == 2 && leap);
}

static bool is_clock(int64_t hour, int64_t minute, int64_t second)
{
    return hour <= 23 && minute <= 59 && second <= 59;
}

static bool take_date(pawl_view *in, int64_t *ret_days)
{
    int64_t year;
    int64_t month;
    int64_t day;
    char c;

    if (!take_digits(in, 4, &year) || !take_one_of(in, "-", &c) || !take_digits(in, 2, &month)
        || !take_one_of(in, "-", &c) || !take_digits(in, 2, &day)) {
        return false;
    }
    if (!is_date(year, month, day)) {
        return false;
    }
    *ret_days = days_of_date(year, month, day);
    return true;
}

/* ".123456789" or nothing; digits behind the sixth are read and dropped. */
static bool take_fraction(pawl_view *in, int64_t *ret_micros)
{
    int64_t micros = 0;
    int64_t digit;
    int count = 0;
    char c;

    if (take_one_of(in, ".", &c)) {
        for (; count < 9 && take_digits(in, 1, &digit); count++) {
            micros = count < 6 ? micros * 10 + digit : micros;
        }
        if (count == 0) {
            return false;
        }
        for (; count < 6; count++) {
            micros *= 10;
        }
    }
    *ret_micros = micros;
    return true;
}

static bool take_clock(pawl_view *in, int64_t *ret_us)
{
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t micros;
    char c;

    if (!take_digits(in, 2, &hour) || !take_one_of(in, ":", &c) || !take_digits(in, 2, &minute)
        || !take_one_of(in, ":", &c) || !take_digits(in, 2, &second)
        || !take_fraction(in, &micros)) {
        return false;
    }
    if (!is_clock(hour, minute, second)) {
        return false;
    }
    *ret_us = ((hour * 60 + minute) * 60 + second) * US_PER_S + micros;
    return true;
}

/* "Z" or "+02:00"; what must be subtracted to reach UTC. */
static bool take_zone(pawl_view *in, int64_t *ret_us)
{
    int64_t hours;
    int64_t minutes;
    char c;

    if (take_one_of(in, "Zz", &c)) {
        *ret_us = 0;
        return true;
    }
    char sign;
    if (!take_one_of(in, "+-", &sign) || !take_digits(in, 2, &hours) || !take_one_of(in, ":", &c)
        || !take_digits(in, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_us = (hours * 60 + minutes) * 60 * US_PER_S * (sign == '-' ? -1 : 1);
    return true;
}

static int64_t digits_at(pawl_view text, size_t start, size_t count)
{
    int64_t value = 0;

    for (size_t i = start; i < start + count; i++) {
        value = value * 10 + (text.data[i] - '0');
    }
    return value;
}

/* True when digits stand where digits do in the stored form, and the rest is as there. Eight bytes
 * at a time: what differs from the form is 0 to 9 for a digit and 0 for the rest, and adding the
 * slack to anything larger reaches the top bit. */
static bool has_stored_form(pawl_view text)
{
    static const char form[] = "0000-00-00 00:00:00.000000000000";
    static const char slack[] = "\x76\x76\x76\x76\x7F\x76\x76\x7F"
                                "\x76\x76\x7F\x76\x76\x7F\x76\x76"
                                "\x7F\x76\x76\x7F\x76\x76\x76\x76"
                                "\x76\x76\x76\x76\x76\x76\x76\x76";
    const uint64_t tops = UINT64_C(0x8080808080808080);
    char padded[32];
    uint64_t bad = 0;

    if (text.len != STORED_LEN) {
        return false;
    }
    memcpy(padded, form, sizeof(padded));
    memcpy(padded, text.data, STORED_LEN);
    for (size_t i = 0; i < sizeof(padded); i += sizeof(uint64_t)) {
        uint64_t is;
        uint64_t should;
        uint64_t more;
        memcpy(&is, &padded[i], sizeof(is));
        memcpy(&should, &form[i], sizeof(should));
        memcpy(&more, &slack[i], sizeof(more));
        uint64_t differs = is ^ should;
        bad |= ((differs & ~tops) + more) | differs;
    }
    return (bad & tops) == 0;
}

/* Exactly what pawl__time_store writes, which is what most callers have: every event that is read
 * has one. False: look closer. */
static bool parse_stored(pawl_view text, int64_t *ret_wall_us)
{
    if (!has_stored_form(text)) {
        return false;
    }
    int64_t year = digits_at(text, 0, 4);
    int64_t month = digits_at(text, 5, 2);
    int64_t day = digits_at(text, 8, 2);
    int64_t hour = digits_at(text, 11, 2);
    int64_t minute = digits_at(text, 14, 2);
    int64_t second = digits_at(text, 17, 2);
    if (!is_date(year, month, day) || !is_clock(hour, minute, second)) {
        return false;
    }
    int64_t seconds = (days_of_date(year, month, day) * 24 + hour) * 3600 + minute * 60 + second;
    *ret_wall_us = seconds * US_PER_S + digits_at(text, 20, 6);
    return true;
}

pawl_status pawl__time_parse(pawl_view text, int64_t *ret_wall_us, pawl_error *reterr)
{
    pawl_view in = text;
    int64_t days;
    int64_t clock_us;
    int64_t zone_us = 0;
    char between;

    if (parse_stored(text, ret_wall_us)) {
        return PAWL_OK;
    }
    bool good =
        take_date(&in, &days) && take_one_of(&in, "Tt ", &between) && take_clock(&in, &clock_us);
    if (good && !(between == ' ' && in.len == 0)) {
        good = take_zone(&in, &zone_us);
    }
    int64_t wall_us = good ? days * 86400 * US_PER_S + clock_us - zone_us : 0;
    /* An offset can push the first and the last day out of the years that we can write. */
    if (!good || in.len > 0 || wall_us < PAWL__WALL_US_MIN || wall_us > PAWL__WALL_US_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%.*s' is no time; write 2026-01-29T10:20:30Z",
                          (int)MIN(text.len, (size_t)40),
                          text.data == NULL ? "" : text.data);
    }
    *ret_wall_us = wall_us;
    return PAWL_OK;
}
