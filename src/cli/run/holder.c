#include "cli/run/holder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/os/fs.h"

static bool parse_number(pawl_view *in, char separator, uint64_t *ret_number)
{
    pawl_view part;
    int64_t number = 0;

    if (!pawl__view_split(in, separator, &part)
        || pawl__integer_parse(part, &number, NULL) != PAWL_OK || number < 0) {
        return false;
    }
    *ret_number = (uint64_t)number;
    return true;
}

bool pawl__cli_holder_parse_stat(pawl_view stat, uint64_t *ret_start, bool *ret_alive)
{
    enum { FIELDS_BETWEEN = 18 }; /* from the parent's pid (4) to the one before the start (21) */
    const char *end = memrchr(stat.data, ')', stat.len);
    pawl_view skipped;
    pawl_view state;

    if (end == NULL || !pawl__view_take(&stat, (size_t)(end - stat.data) + 1, &skipped)
        || !pawl__view_take(&stat, 1, &skipped) || !pawl__view_split(&stat, ' ', &state)) {
        return false;
    }
    *ret_alive = !pawl__view_is(state, "Z") && !pawl__view_is(state, "X");
    for (int i = 0; i < FIELDS_BETWEEN; i++) {
        if (!pawl__view_split(&stat, ' ', &skipped)) {
            return false;
        }
    }
    return parse_number(&stat, ' ', ret_start);
}

enum process_state { ALIVE, GONE, UNKNOWN };

/* GONE only when the kernel says that there is no such process. */
static enum process_state inspect(int64_t pid, uint64_t *ret_start)
{
    char path[64];
    char text[2048];
    size_t len = 0;
    bool alive = false;

    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    pawl_status status = pawl__fs_read_small(path, text, sizeof(text), &len, NULL);
    if (status == PAWL_NOT_FOUND) {
        return access("/proc/self/stat", F_OK) == 0 ? GONE : UNKNOWN;
    }
    if (status != PAWL_OK
        || !pawl__cli_holder_parse_stat((pawl_view){ text, len }, ret_start, &alive)) {
        return UNKNOWN;
    }
    return alive ? ALIVE : GONE;
}

pawl_status pawl__cli_holder_inspect(pid_t guard,
                                     struct runner_holder *ret_holder,
                                     pawl_error *reterr)
{
    struct runner_holder holder = { .runner.pid = getpid(), .guard.pid = guard };
    struct stat info;

    TRY(pawl__clock_boot_id(holder.boot_id, reterr));
    if (stat("/proc/self/ns/pid", &info) != 0
        || inspect(holder.runner.pid, &holder.runner.start) != ALIVE
        || inspect(holder.guard.pid, &holder.guard.start) != ALIVE) {
        return pawl__fail(reterr, PAWL_FAILED, "/proc does not show this process");
    }
    holder.pid_namespace = info.st_ino;
    *ret_holder = holder;
    return PAWL_OK;
}

void pawl__cli_holder_text(const struct runner_holder *holder,
                           uint64_t number,
                           char ret_text[RUNNER_HOLDER_SIZE])
{
    snprintf(ret_text,
             RUNNER_HOLDER_SIZE,
             "run:1:%s:%llu:%lld.%llu:%lld.%llu:%08llx",
             holder->boot_id,
             (unsigned long long)holder->pid_namespace,
             (long long)holder->runner.pid,
             (unsigned long long)holder->runner.start,
             (long long)holder->guard.pid,
             (unsigned long long)holder->guard.start,
             (unsigned long long)(number & UINT32_MAX));
}

static bool parse_process(pawl_view *in, struct runner_process *ret_process)
{
    pawl_view part;
    uint64_t pid = 0;

    if (!pawl__view_split(in, ':', &part) || !parse_number(&part, '.', &pid) || pid == 0
        || pid > INT32_MAX || !parse_number(&part, '.', &ret_process->start)) {
        return false;
    }
    ret_process->pid = (int64_t)pid;
    return true;
}

bool pawl__cli_holder_parse(pawl_view text, struct runner_holder *ret_holder)
{
    struct runner_holder holder = { .pid_namespace = 0 };
    pawl_view part;

    if (!pawl__view_split(&text, ':', &part) || !pawl__view_is(part, "run")
        || !pawl__view_split(&text, ':', &part) || !pawl__view_is(part, "1")
        || !pawl__view_split(&text, ':', &part) || part.len != PAWL__BOOT_ID_SIZE - 1) {
        return false;
    }
    memcpy(holder.boot_id, part.data, part.len);
    if (!parse_number(&text, ':', &holder.pid_namespace) || !parse_process(&text, &holder.runner)
        || !parse_process(&text, &holder.guard)) {
        return false;
    }
    *ret_holder = holder;
    return true;
}

static bool process_is_gone(const struct runner_process *process)
{
    uint64_t start = 0;
    enum process_state state = inspect(process->pid, &start);

    return state == GONE || (state == ALIVE && start != process->start);
}

bool pawl__cli_holder_is_gone(const struct runner_holder *holder, const struct runner_holder *we)
{
    return strcmp(holder->boot_id, we->boot_id) == 0 && holder->pid_namespace == we->pid_namespace
           && process_is_gone(&holder->runner) && process_is_gone(&holder->guard);
}
