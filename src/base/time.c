#include "base/clock.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"

/* Days since 1970-01-01 in the proleptic Gregorian calendar, counted in years that start in March,
 * so that the leap day is the last of its year. */
static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

static void date_of_days(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
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
    date_of_days(days, &year, &month, &day);
    /* The masks change nothing; they show the compiler that the text fits. */
    snprintf(ret_text,
             PAWL__TIME_SIZE,
             "%04u-%02u-%02u%c%02u:%02u:%02u.%06u%s",
             (unsigned)year & 0x3FFF,
             (unsigned)month & 15,
             (unsigned)day & 31,
             between,
             (unsigned)(rest / 3600) & 31,
             (unsigned)(rest / 60 % 60) & 63,
             (unsigned)(rest % 60) & 63,
             (unsigned)micros & 0xFFFFF,
             end);
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

static bool take_date(pawl_view *in, int64_t *ret_days)
{
    static const int month_days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int64_t year;
    int64_t month;
    int64_t day;
    char c;

    if (!take_digits(in, 4, &year) || !take_one_of(in, "-", &c) || !take_digits(in, 2, &month)
        || !take_one_of(in, "-", &c) || !take_digits(in, 2, &day)) {
        return false;
    }
    if (year < 1 || month < 1 || month > 12 || day < 1) {
        return false;
    }
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day > month_days[month - 1] + (month == 2 && leap)) {
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
    if (hour > 23 || minute > 59 || second > 59) {
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

pawl_status pawl__time_parse(pawl_view text, int64_t *ret_wall_us, pawl_error *reterr)
{
    pawl_view in = text;
    int64_t days;
    int64_t clock_us;
    int64_t zone_us = 0;
    char between;

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
