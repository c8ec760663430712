/* The points that were passed stand in a fixed table that only grows: a pass looks its name up
 * without a lock and counts. The lock covers the first pass of a name, which reads the environment
 * too, and every pass while some rule is on. */
#include "base/os/failpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/thread/thread.h"

enum {
    POINTS_MAX = 512,
    INDEX_SIZE = 2048, /* a power of two, so sparse that a look-up ends at once */
    RULES_MAX = 64,
    NAME_BYTES_MAX = 63,
    DELAY_MS_MAX = 600000,
};

#ifdef PAWL_FAILPOINTS
enum { BUILT_IN = true };
#else
enum { BUILT_IN = false };
#endif

struct point {
    char name[NAME_BYTES_MAX + 1];
    atomic_uint_fast64_t passes;
};

enum action { ACTION_ERROR, ACTION_DELAY, ACTION_KILL };

struct rule {
    char name[NAME_BYTES_MAX + 1];
    enum action action;
    pawl_status status;
    uint64_t delay_ms;
    uint64_t first; /* passes before this one go through; counted since the rule was set */
    uint64_t times; /* how often it may still act */
    uint64_t passes;
};

struct rules {
    struct rule list[RULES_MAX];
    size_t count;
};

static struct {
    struct pawl__lock lock; /* covers all but what is atomic */
    struct point points[POINTS_MAX];
    atomic_uint points_count;      /* points below it are complete and stay as they are */
    atomic_uint index[INDEX_SIZE]; /* number of a point plus one; 0: free */
    struct rules rules;
    atomic_bool armed; /* there is a rule, or the environment was wrong */
    bool environment_read;
    pawl_error environment_error;
    int log_fd;
} points = { .lock = { PTHREAD_MUTEX_INITIALIZER }, .log_fd = -1 };

static bool name_is_good(pawl_view name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_'
              || c == '-')) {
            return false;
        }
    }
    return name.len > 0 && name.len <= NAME_BYTES_MAX;
}

/* 1 .. max in decimal. */
static bool number_of(pawl_view text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || number > max / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (number < 1 || number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

static bool status_of(pawl_view name, pawl_status *ret_status)
{
    static const pawl_status all[] = {
#define STATUS_ROW(status, exit_code, text) PAWL_##status,
        PAWL_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
    };

    for (size_t i = 1; i < COUNT_OF(all); i++) { /* OK is no error */
        if (pawl__view_is(name, pawl_status_name(all[i]))) {
            *ret_status = all[i];
            return true;
        }
    }
    return false;
}

/* "error:NO_SPACE", "delay:20", "kill". */
static bool parse_action(pawl_view text, struct rule *rule)
{
    pawl_view verb;
    bool has_argument = text.len > 0 && memchr(text.data, ':', text.len) != NULL;

    if (!pawl__view_split(&text, ':', &verb)) {
        return false;
    }
    if (pawl__view_is(verb, "kill")) {
        rule->action = ACTION_KILL;
        return !has_argument;
    }
    if (pawl__view_is(verb, "delay")) {
        rule->action = ACTION_DELAY;
        return number_of(text, DELAY_MS_MAX, &rule->delay_ms);
    }
    rule->action = ACTION_ERROR;
    return pawl__view_is(verb, "error") && (!has_argument || status_of(text, &rule->status));
}

static size_t bytes_before_limit(pawl_view text)
{
    size_t len = 0;

    while (len < text.len && text.data[len] != '@' && text.data[len] != '*') {
        len++;
    }
    return len;
}

/* "@3*1", in either order, each at most once. */
static bool parse_limits(pawl_view text, struct rule *rule)
{
    pawl_view sign;
    pawl_view number;

    while (pawl__view_take(&text, 1, &sign)) {
        uint64_t *limit = sign.data[0] == '@' ? &rule->first : &rule->times;
        if (*limit != 0 || !pawl__view_take(&text, bytes_before_limit(text), &number)
            || !number_of(number, UINT64_MAX / 2, limit)) {
            return false;
        }
    }
    rule->first = MAX(rule->first, 1);
    rule->times = rule->times == 0 ? UINT64_MAX : rule->times;
    return true;
}

static bool parse_rule(pawl_view part, struct rule *ret_rule)
{
    pawl_view rest = part;
    pawl_view name;
    pawl_view action;
    struct rule rule = { .status = PAWL_IO };

    if (!pawl__view_split(&rest, '=', &name) || !name_is_good(name)
        || !pawl__view_take(&rest, bytes_before_limit(rest), &action)
        || !parse_action(action, &rule) || !parse_limits(rest, &rule)) {
        return false;
    }
    memcpy(rule.name, name.data, name.len);
    *ret_rule = rule;
    return true;
}

static struct rule *find_rule(struct rules *rules, const char *name)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (strcmp(rules->list[i].name, name) == 0) {
            return &rules->list[i];
        }
    }
    return NULL;
}

static pawl_status parse_rules(const char *specification, struct rules *rules, pawl_error *reterr)
{
    pawl_view rest = pawl_view_of(specification);
    pawl_view part;

    rules->count = 0;
    while (pawl__view_split(&rest, ',', &part)) {
        struct rule rule;

        if (!parse_rule(part, &rule)) {
            return pawl__fail(reterr,
                              PAWL_INVALID,
                              "failpoint '%.*s': write NAME=error[:STATUS], NAME=delay:MS or "
                              "NAME=kill, then @N or *N",
                              VIEW_ARGS(part));
        }
        if (find_rule(rules, rule.name) != NULL) {
            return pawl__fail(reterr, PAWL_INVALID, "failpoint '%s' is set twice", rule.name);
        }
        if (rules->count == RULES_MAX) {
            return pawl__fail(reterr, PAWL_INVALID, "more than %d failpoints are set", RULES_MAX);
        }
        rules->list[rules->count++] = rule;
    }
    return PAWL_OK;
}

static pawl_status open_log(pawl_error *reterr)
{
    const char *path = secure_getenv("PAWL_FAILPOINTS_LOG");

    if (path == NULL || path[0] == '\0') {
        return PAWL_OK;
    }
    points.log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (points.log_fd < 0) {
        return pawl__fail_errno(reterr, errno, "open PAWL_FAILPOINTS_LOG '%s'", path);
    }
    return PAWL_OK;
}

static void read_environment_locked(void) REQUIRES_LOCK(points.lock)
{
    pawl_error *error = &points.environment_error;

    if (points.environment_read) {
        return;
    }
    points.environment_read = true;
    pawl_status status = parse_rules(secure_getenv("PAWL_FAILPOINTS"), &points.rules, error);
    status =
        status == PAWL_OK ? open_log(error) : pawl__fail_context(error, status, "PAWL_FAILPOINTS");
    atomic_store(&points.armed, status != PAWL_OK || points.rules.count > 0);
}

static size_t slot_of(const char *name)
{
    uint64_t hash = 0xCBF29CE484222325; /* FNV-1a: short keys of our own choosing */

    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001B3;
    }
    return (size_t)(hash % INDEX_SIZE);
}

/* The point, or NULL and the free slot where it belongs. */
static struct point *find_point(const char *name, size_t *ret_slot)
{
    for (size_t slot = slot_of(name);; slot = (slot + 1) % INDEX_SIZE) {
        unsigned number = atomic_load_explicit(&points.index[slot], memory_order_acquire);
        if (number == 0) {
            *ret_slot = slot;
            return NULL;
        }
        if (strcmp(points.points[number - 1].name, name) == 0) {
            return &points.points[number - 1];
        }
    }
}

static pawl_status log_name_locked(const char *name, pawl_error *reterr) REQUIRES_LOCK(points.lock)
{
    char line[NAME_BYTES_MAX + 2];
    int len = snprintf(line, sizeof(line), "%s\n", name);

    /* One write with O_APPEND: lines of several processes do not mix. */
    if (points.log_fd >= 0 && write(points.log_fd, line, (size_t)len) != len) {
        return pawl__fail_errno(reterr, errno, "write PAWL_FAILPOINTS_LOG");
    }
    return PAWL_OK;
}

static pawl_status add_point_locked(const char *name, struct point **ret_point, pawl_error *reterr)
    REQUIRES_LOCK(points.lock)
{
    size_t slot;
    struct point *point = find_point(name, &slot);

    read_environment_locked();
    if (point != NULL) { /* another thread was first */
        *ret_point = point;
        return PAWL_OK;
    }
    unsigned count = atomic_load(&points.points_count);
    if (count == POINTS_MAX) {
        return pawl__fail(reterr, PAWL_FAILED, "more than %d names of failpoints", POINTS_MAX);
    }
    TRY(log_name_locked(name, reterr));
    point = &points.points[count];
    snprintf(point->name, sizeof(point->name), "%s", name);
    atomic_store(&points.points_count, count + 1);
    atomic_store_explicit(&points.index[slot], count + 1, memory_order_release);
    *ret_point = point;
    return PAWL_OK;
}

/* What this pass has to do, as a copy, so that it is done without the lock. */
static bool rule_fires_locked(const char *name, struct rule *ret_rule) REQUIRES_LOCK(points.lock)
{
    struct rule *rule = find_rule(&points.rules, name);

    if (rule == NULL || ++rule->passes < rule->first || rule->times == 0) {
        return false;
    }
    rule->times--;
    *ret_rule = *rule;
    return true;
}

static pawl_status act(const struct rule *rule, pawl_error *reterr)
{
    switch (rule->action) {
    case ACTION_ERROR:
        return pawl__fail(reterr, rule->status, "failpoint '%s'", rule->name);
    case ACTION_DELAY:
        (void)poll(NULL, 0, (int)rule->delay_ms);
        return PAWL_OK;
    case ACTION_KILL:
        kill(getpid(), SIGKILL);
        pause(); /* other threads may still run; this one goes no further */
    }
    return PAWL_OK;
}

static pawl_status pass_with_rules(const char *name, pawl_error *reterr)
{
    struct rule rule;

    pawl__lock(&points.lock);
    pawl_error wrong = points.environment_error;
    bool fires = wrong.status == PAWL_OK && rule_fires_locked(name, &rule);
    pawl__unlock(&points.lock);
    if (wrong.status != PAWL_OK) {
        if (reterr != NULL) {
            *reterr = wrong;
        }
        return wrong.status;
    }
    return fires ? act(&rule, reterr) : PAWL_OK;
}

pawl_status pawl__failpoint_hit(const char *name, pawl_error *reterr)
{
    if (!BUILT_IN) {
        return PAWL_OK;
    }
    size_t slot;
    struct point *point = find_point(name, &slot);
    if (point == NULL) {
        REQUIRE(name_is_good(pawl_view_of(name)));
        pawl__lock(&points.lock);
        pawl_status status = add_point_locked(name, &point, reterr);
        pawl__unlock(&points.lock);
        if (status != PAWL_OK) {
            return status;
        }
    }
    atomic_fetch_add_explicit(&point->passes, 1, memory_order_relaxed);
    if (!atomic_load_explicit(&points.armed, memory_order_acquire)) {
        return PAWL_OK;
    }
    return pass_with_rules(name, reterr);
}

pawl_status pawl__failpoint_set(const char *specification, pawl_error *reterr)
{
    struct rules rules;

    TRY(parse_rules(specification, &rules, reterr));
    if (!BUILT_IN) { /* a test that believes it made something fail would prove nothing */
        return rules.count == 0
                   ? PAWL_OK
                   : pawl__fail(reterr, PAWL_UNSUPPORTED, "built without -Dfailpoints=true");
    }
    pawl__lock(&points.lock);
    read_environment_locked(); /* once, for the log; its rules are replaced */
    points.rules = rules;
    points.environment_error = (pawl_error)PAWL_ERROR_INIT;
    atomic_store(&points.armed, rules.count > 0);
    pawl__unlock(&points.lock);
    return PAWL_OK;
}

void pawl__failpoint_names(void (*visit)(void *context, const char *name, uint64_t passes),
                           void *context)
{
    unsigned count = atomic_load(&points.points_count);

    for (unsigned i = 0; i < count; i++) {
        visit(context, points.points[i].name, atomic_load(&points.points[i].passes));
    }
}
