#include "config/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/quantity.h"
#include "base/terminal/display.h"

const struct pawl__setting pawl__settings[PAWL__SETTING_COUNT] = {
#define SETTING_ROW(id, key, type, text, min, max, one_of, also, help) \
    [PAWL__##id] = { key, PAWL__SETTING_##type, text, min, max, one_of, also, help },
    PAWL__SETTING_MAP(SETTING_ROW)
#undef SETTING_ROW
};

/* Copies a key behind a prefix, with `joint` for its dots and underscores. */
static void derive_name(const char *prefix, const char *key, char joint, char *ret_name)
{
    size_t len = strlen(prefix);

    REQUIRE(len + strlen(key) < PAWL__SETTING_NAME_SIZE);
    memcpy(ret_name, prefix, len);
    for (const char *c = key; *c != '\0'; c++) {
        bool joins = *c == '.' || *c == '_';

        memcpy(&ret_name[len++], joins ? &joint : c, 1);
    }
    ret_name[len] = '\0';
}

void pawl__setting_variable(const struct pawl__setting *setting,
                            char ret_name[PAWL__SETTING_NAME_SIZE])
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz";
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    derive_name("PAWL_", setting->key, '_', ret_name);
    for (char *c = ret_name; *c != '\0'; c++) {
        const char *at = strchr(lower, *c);
        if (at != NULL) {
            *c = upper[at - lower];
        }
    }
}

void pawl__setting_flag(const struct pawl__setting *setting, char ret_name[PAWL__SETTING_NAME_SIZE])
{
    derive_name("--", setting->key, '-', ret_name);
}

static void add_list(const char *one_of, struct pawl__buf *buf)
{
    pawl_view rest = pawl_view_of(one_of);
    pawl_view value;

    for (const char *between = ""; pawl__view_split(&rest, '|', &value); between = ", ") {
        pawl__buf_add_text(buf, between);
        pawl__buf_add(buf, value);
    }
}

static void add_quantity(const struct pawl__setting *setting, int64_t value, struct pawl__buf *buf)
{
    char text[PAWL__QUANTITY_SIZE];

    if (setting->type == PAWL__SETTING_DURATION) {
        pawl__duration_format(value, text);
    } else if (setting->type == PAWL__SETTING_SIZE) {
        pawl__size_format((uint64_t)value, text);
    } else {
        snprintf(text, sizeof(text), "%lld", (long long)value);
    }
    pawl__buf_add_text(buf, text);
}

static void add_range(const struct pawl__setting *setting, const char *what, struct pawl__buf *buf)
{
    bool counts = setting->type == PAWL__SETTING_INTEGER;

    pawl__buf_add_text(buf, what);
    if (counts ? setting->min > INT64_MIN : setting->min > 0 || setting->max < INT64_MAX) {
        pawl__buf_add_text(buf, " from ");
        add_quantity(setting, setting->min, buf);
    }
    if (setting->max < INT64_MAX) {
        pawl__buf_add_text(buf, " to ");
        add_quantity(setting, setting->max, buf);
    }
}

void pawl__setting_add_allowed(const struct pawl__setting *setting, struct pawl__buf *buf)
{
    switch (setting->type) {
    case PAWL__SETTING_TEXT:
    case PAWL__SETTING_SECRET:
        pawl__buf_add_text(buf, "a text");
        break;
    case PAWL__SETTING_PATH:
        pawl__buf_add_text(buf, "a path");
        break;
    case PAWL__SETTING_BOOL:
        pawl__buf_add_text(buf, "true or false");
        break;
    case PAWL__SETTING_INTEGER:
        add_range(setting, "a whole number", buf);
        break;
    case PAWL__SETTING_DURATION:
        add_range(setting, "a duration", buf);
        break;
    case PAWL__SETTING_SIZE:
        add_range(setting, "a size", buf);
        break;
    case PAWL__SETTING_CHOICE:
        pawl__buf_add_text(buf, "one of ");
        add_list(setting->one_of, buf);
        break;
    case PAWL__SETTING_URL:
        pawl__buf_add_text(buf, "a URL (scheme ");
        add_list(setting->one_of, buf);
        pawl__buf_add_char(buf, ')');
        break;
    }
}

static bool may_be_shown(const struct pawl__setting *setting)
{
    return setting->type != PAWL__SETTING_SECRET && setting->type != PAWL__SETTING_URL;
}

/* "'7w' is no duration; write ...; allowed: a duration from 1s to 1h". */
static pawl_status refuse(const struct pawl__setting *setting,
                          pawl_view text,
                          const char *reason,
                          pawl_error *reterr)
{
    char message_text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf message = BUF_OVER(message_text);

    if (may_be_shown(setting) && text.len > 0) {
        pawl__display_add_quoted(&message, text);
    } else {
        pawl__buf_add_text(&message, "the value");
    }
    pawl__buf_add_format(&message, " %s; allowed: ", reason);
    pawl__setting_add_allowed(setting, &message);
    return pawl__fail(reterr, PAWL_INVALID, "%s", message_text);
}

static bool has_control(pawl_view text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7F) {
            return true;
        }
    }
    return false;
}

/* What no type takes; NULL when there is nothing of the kind. */
static const char *common_fault(pawl_view text)
{
    if (text.len > PAWL__SETTING_VALUE_BYTES_MAX) {
        return "is longer than 4096 bytes";
    }
    if (!pawl__view_is_utf8(text)) {
        return "is not UTF-8";
    }
    return has_control(text) ? "has a control character in it" : NULL;
}

static bool find_choice(const char *one_of, pawl_view text, int64_t *ret_number)
{
    pawl_view rest = pawl_view_of(one_of);
    pawl_view value;

    for (int64_t i = 0; pawl__view_split(&rest, '|', &value); i++) {
        if (pawl__view_equal(value, text)) {
            *ret_number = i;
            return true;
        }
    }
    return false;
}

static bool parse_bool(pawl_view text, int64_t *ret_number)
{
    int64_t at;

    if (!find_choice("false|true|no|yes|off|on", text, &at)) {
        return false;
    }
    *ret_number = at % 2;
    return true;
}

static pawl_status parse_quantity(const struct pawl__setting *setting,
                                  pawl_view text,
                                  int64_t *ret_number,
                                  pawl_error *reterr)
{
    pawl_error reason = PAWL_ERROR_INIT;
    int64_t value = 0;
    uint64_t bytes = 0;
    pawl_status status;

    if (setting->type == PAWL__SETTING_DURATION) {
        status = pawl__duration_parse(text, &value, &reason);
    } else if (setting->type == PAWL__SETTING_SIZE) {
        status = pawl__size_parse(text, &bytes, &reason);
        value = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    } else {
        status = pawl__integer_parse(text, &value, &reason);
    }
    if (status != PAWL_OK) {
        return refuse(setting, text, reason.message, reterr);
    }
    if (value < setting->min || value > setting->max || bytes > INT64_MAX) {
        return refuse(setting, text, "is out of range", reterr);
    }
    *ret_number = value;
    return PAWL_OK;
}

/* The scheme and what stands behind "://". */
static bool split_url(pawl_view url, pawl_view *ret_scheme, pawl_view *ret_rest)
{
    pawl_view slashes;

    return pawl__view_split(&url, ':', ret_scheme) && pawl__view_take(&url, 2, &slashes)
           && pawl__view_is(slashes, "//") && pawl__view_take(&url, url.len, ret_rest);
}

/* A file has no host: sqlite:FILE. */
static bool is_file_url(const struct pawl__setting *setting, pawl_view text)
{
    pawl_view scheme;
    int64_t at;

    return pawl__view_split(&text, ':', &scheme) && pawl__view_is(scheme, "sqlite") && text.len > 0
           && find_choice(setting->one_of, scheme, &at);
}

static pawl_status parse_url(const struct pawl__setting *setting,
                             pawl_view text,
                             pawl_error *reterr)
{
    pawl_view scheme;
    pawl_view rest;
    int64_t at;

    if (is_file_url(setting, text)) {
        return PAWL_OK;
    }
    if (!split_url(text, &scheme, &rest) || memchr(text.data, ' ', text.len) != NULL) {
        return refuse(setting, text, "is no URL", reterr);
    }
    if (!find_choice(setting->one_of, scheme, &at)) {
        return refuse(setting, text, "has another scheme", reterr);
    }
    return PAWL_OK;
}

pawl_status pawl__setting_parse(const struct pawl__setting *setting,
                                pawl_view text,
                                int64_t *ret_number,
                                pawl_error *reterr)
{
    const char *fault = common_fault(text);
    int64_t number = 0;
    pawl_status status = PAWL_OK;

    if (fault != NULL) {
        return refuse(setting, text, fault, reterr);
    }
    if (text.len == 0) {
        return setting->text[0] == '\0' ? PAWL_OK : refuse(setting, text, "is empty", reterr);
    }
    switch (setting->type) {
    case PAWL__SETTING_TEXT:
    case PAWL__SETTING_SECRET:
    case PAWL__SETTING_PATH:
        break;
    case PAWL__SETTING_BOOL:
        status = parse_bool(text, &number) ? PAWL_OK : refuse(setting, text, "is neither", reterr);
        break;
    case PAWL__SETTING_CHOICE:
        status = find_choice(setting->one_of, text, &number)
                     ? PAWL_OK
                     : refuse(setting, text, "is unknown", reterr);
        break;
    case PAWL__SETTING_INTEGER:
    case PAWL__SETTING_DURATION:
    case PAWL__SETTING_SIZE:
        status = parse_quantity(setting, text, &number, reterr);
        break;
    case PAWL__SETTING_URL:
        status = parse_url(setting, text, reterr);
        break;
    }
    if (status == PAWL_OK) {
        *ret_number = number;
    }
    return status;
}

void pawl__setting_add_shown(const struct pawl__setting *setting,
                             pawl_view text,
                             struct pawl__buf *buf)
{
    if (text.len == 0) {
        return;
    }
    if (setting->type == PAWL__SETTING_SECRET) {
        pawl__buf_add_text(buf, "********");
    } else if (setting->type == PAWL__SETTING_URL) {
        pawl__url_add_masked(text, buf);
    } else {
        pawl__display_add(buf, text);
    }
}

static bool names_a_secret(pawl_view name)
{
    static const char *const names[] = { "password", "sslpassword", "passwd",  "pwd", "token",
                                         "secret",   "apikey",      "api_key", "key" };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (pawl__view_is(name, names[i])) {
            return true;
        }
    }
    return false;
}

static void add_parameters(pawl_view query, struct pawl__buf *buf)
{
    pawl_view parameter;

    for (char before = '?'; pawl__view_split(&query, '&', &parameter); before = '&') {
        pawl_view value = parameter;
        pawl_view name = { NULL, 0 };

        pawl__buf_add_char(buf, before);
        if (pawl__view_split(&value, '=', &name) && names_a_secret(name)) {
            pawl__display_add(buf, name);
            pawl__buf_add_text(buf, "=***");
        } else {
            pawl__display_add(buf, parameter);
        }
    }
}

static bool has_any(pawl_view text, const char *characters)
{
    for (const char *c = characters; *c != '\0'; c++) {
        if (text.len > 0 && memchr(text.data, *c, text.len) != NULL) {
            return true;
        }
    }
    return false;
}

/* What stands before the '@'. A password that was not encoded may hold '/', '?' and '@' itself, so
 * everything up to the last '@' is taken for it: hiding too much is the cheaper mistake. */
static void add_login(pawl_view login, struct pawl__buf *buf)
{
    pawl_view user;

    if (has_any(login, ":") && pawl__view_split(&login, ':', &user)) {
        pawl__display_add(buf, has_any(user, "/?") ? pawl_view_of("***") : user);
        pawl__buf_add_text(buf, ":***");
    } else {
        pawl__display_add(buf, has_any(login, "/?") ? pawl_view_of("***") : login);
    }
}

void pawl__url_add_masked(pawl_view url, struct pawl__buf *buf)
{
    pawl_view scheme;
    pawl_view rest;
    pawl_view part = { NULL, 0 };

    if (!split_url(url, &scheme, &rest)) {
        pawl__buf_add_text(buf, "***");
        return;
    }
    pawl__display_add(buf, scheme);
    pawl__buf_add_text(buf, "://");
    const char *at = rest.len == 0 ? NULL : memrchr(rest.data, '@', rest.len);
    if (at != NULL && pawl__view_take(&rest, (size_t)(at - rest.data), &part)) {
        add_login(part, buf);
    }
    if (pawl__view_split(&rest, '?', &part)) {
        pawl__display_add(buf, part);
        add_parameters(rest, buf);
    }
}
