/* The checks that ask this machine, and the table of them all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/frame/run.h"
#include "cli/frame/settings.h"
#include "cli/node/doctor_checks.h"
#include "cli/node/tls.h"
#include "cli/node/versions.h"
#include "config/config.h"
#include "net/http/listen.h"
#include "server/node.h"

#define MOUNTINFO_SIZE (1u << 20)

void pawl__cli_doctor_add(struct pawl__cli_doctor *doctor, struct pawl__cli_finding finding)
{
    if (doctor->count < FINDINGS_MAX) {
        doctor->findings[doctor->count++] = finding;
    }
}

static void on_setting_problem(void *context, const pawl_error *problem)
{
    struct pawl__cli_finding finding =
        pawl__cli_finding_problem("settings", problem, "no command can run with these settings");

    pawl__cli_finding_fix(&finding, "correct it; 'pawl help settings' lists what is allowed");
    pawl__cli_doctor_add(context, finding);
}

static void inspect_settings(struct pawl__cli_doctor *doctor)
{
    struct pawl__cli_problem_sink sink = { on_setting_problem, doctor };
    pawl_error error = PAWL_ERROR_INIT;
    size_t before = doctor->count;

    pawl_status status = pawl__cli_settings_load(doctor->args, sink, &doctor->config, &error);
    if (status != PAWL_OK) {
        if (doctor->count == before) { /* failed before anything was read */
            on_setting_problem(doctor, &error);
        }
        return;
    }
    pawl__cli_log_start(doctor->config);
    doctor->data = pawl__config_text(doctor->config, PAWL__DATA);
    const char *file = pawl__config_file(doctor->config);
    pawl__cli_doctor_add(
        doctor,
        file == NULL ? pawl__cli_finding_ok("settings", "no file; defaults, environment and flags")
                     : pawl__cli_finding_ok("settings", "'%s'", file));
}

static void inspect_parts(struct pawl__cli_doctor *doctor)
{
    struct pawl__cli_part parts[VERSIONS_COUNT];
    char text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf list = BUF_OVER(text);

    pawl__cli_versions(parts);
    pawl__buf_add_format(&list, "pawl %s (%s)", pawl_version(), pawl__cli_build_kind());
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        pawl__buf_add_format(&list, ", %s %s", parts[i].name, parts[i].version);
    }
    pawl__cli_doctor_add(doctor, pawl__cli_finding_ok("versions", "%s", text));
}

static void inspect_choice(struct pawl__cli_doctor *doctor)
{
    char text[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf origin = BUF_OVER(text);
    const char *url = pawl__config_text(doctor->config, PAWL__DATABASE_URL);
    bool set = url[0] != '\0';
    struct pawl__cli_choice_facts facts = {
        .data = doctor->data,
        .data_flag = pawl__config_origin(doctor->config, PAWL__DATA).kind == PAWL__ORIGIN_FLAG,
        .database_origin = set ? text : NULL,
        .database_url = url,
    };

    pawl__config_add_origin(doctor->config, PAWL__DATABASE_URL, &origin);
    doctor->database = pawl__cli_settings_use_database(doctor->config);
    doctor->postgres = doctor->database && strncmp(url, "postgres", strlen("postgres")) == 0;
    pawl__cli_doctor_add(doctor, pawl__cli_judge_choice(&facts));
    if (doctor->database && !doctor->postgres) {
        pawl__cli_doctor_add(doctor, pawl__cli_judge_location(url));
    }
}

static pawl_status reach_directory(const char *path,
                                   bool *ret_created,
                                   struct stat *ret_info,
                                   pawl_error *reterr)
{
    bool there = stat(path, ret_info) == 0;

    TRY(pawl__fs_make_dir(path, reterr));
    if (stat(path, ret_info) != 0) {
        return pawl__fail_errno(reterr, errno, "look at '%s'", path);
    }
    if (access(path, R_OK | W_OK | X_OK) != 0) {
        return pawl__fail_errno(reterr, errno, "the data directory '%s' cannot be used", path);
    }
    *ret_created = !there;
    return PAWL_OK;
}

static void inspect_directory(struct pawl__cli_doctor *doctor)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct stat info = { 0 };
    bool created = false;
    pawl_status status = reach_directory(doctor->data, &created, &info, &error);

    if (status != PAWL_OK) {
        struct pawl__cli_finding finding =
            pawl__cli_finding_problem("data directory", &error, "nothing can be stored");

        pawl__cli_finding_fix(&finding, "name another one with --data, or make this one writable");
        pawl__cli_doctor_add(doctor, finding);
        return;
    }
    doctor->data_usable = true;
    struct pawl__cli_directory_facts facts = {
        .path = doctor->data,
        .created = created,
        .mode = info.st_mode,
        .owner = info.st_uid,
        .user = geteuid(),
    };
    pawl__cli_doctor_add(doctor, pawl__cli_judge_directory(&facts));
}

static void inspect_mount(struct pawl__cli_doctor *doctor)
{
    char *text = malloc(MOUNTINFO_SIZE);
    char *real = realpath(doctor->data, NULL);
    struct pawl__cli_mount mount = { .type = "" };
    size_t len = 0;

    /* Without /proc nothing is known, which the finding then says. */
    if (text != NULL && real != NULL
        && pawl__fs_read_small("/proc/self/mountinfo", text, MOUNTINFO_SIZE, &len, NULL)
               == PAWL_OK) {
        mount = pawl__cli_mount_of((pawl_view){ text, len }, real);
    }
    pawl__cli_doctor_add(doctor, pawl__cli_judge_mount(doctor->data, &mount));
    free(real);
    free(text);
}

static void inspect_space(struct pawl__cli_doctor *doctor)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t free_bytes = 0;
    uint64_t needed = (uint64_t)pawl__config_number(doctor->config, PAWL__STORE_FREE_SPACE_MIN);

    pawl__cli_doctor_add(doctor,
                         pawl__fs_free_bytes(doctor->data, &free_bytes, &error) == PAWL_OK
                             ? pawl__cli_judge_space(doctor->data, free_bytes, needed)
                             : pawl__cli_finding_problem("disk space", &error, "it is not known"));
}

static void inspect_open_files(struct pawl__cli_doctor *doctor)
{
    struct rlimit limit = { 0 };

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        uint32_t connections =
            (uint32_t)pawl__config_number(doctor->config, PAWL__SERVER_CONNECTIONS_MAX);

        pawl__cli_doctor_add(
            doctor, pawl__cli_judge_open_files(limit.rlim_cur, limit.rlim_max, connections));
    }
}

/* Where `pawl serve` would listen. That the address is in use is no problem when it is our own node. */
static void inspect_address(struct pawl__cli_doctor *doctor)
{
    static const char check[] = "address";
    const char *listen = pawl__config_text(doctor->config, PAWL__SERVER_LISTEN);
    AUTO(pawl__fs_close) int fd = -1;
    char text[PAWL__SETTING_NAME_SIZE];
    pawl_error error = PAWL_ERROR_INIT;
    const char *certificate = pawl__config_text(doctor->config, PAWL__SERVER_TLS_CERTIFICATE);
    const struct pawl__serve_reach reach = {
        .has_tokens = true, /* which it says itself, when it starts */
        .has_tls = certificate[0] != '\0',
    };
    pawl_status status = pawl__serve_check_address(listen, &reach, &error);

    if (status == PAWL_UNSUPPORTED) {
        return; /* a build without the node listens on nothing */
    }
    if (status == PAWL_OK) {
        status = pawl__http_listen(listen, &fd, text, sizeof(text), &error);
    }
    if (status == PAWL_OK) {
        pawl__cli_doctor_add(doctor,
                             pawl__cli_finding_ok(check, "'pawl serve' can listen on %s", listen));
    } else if (status == PAWL_BUSY) {
        pawl__cli_doctor_add(
            doctor,
            pawl__cli_finding_ok(check, "%s is in use, which is fine for your node", listen));
    } else {
        struct pawl__cli_finding finding =
            pawl__cli_finding_problem(check, &error, "'pawl serve' does not start");

        pawl__cli_finding_fix(&finding, "do so, or set server.listen to another address");
        pawl__cli_doctor_add(doctor, finding);
    }
}

/* Whether `pawl serve` can use its certificate and key, when they are set. */
static void inspect_tls(struct pawl__cli_doctor *doctor)
{
    static const char check[] = "TLS";
    const char *path = pawl__config_text(doctor->config, PAWL__SERVER_TLS_CERTIFICATE);
    AUTO(pawl__text_free) char *certificate = NULL;
    AUTO(pawl__text_free) char *key = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__cli_tls_read(doctor->config, &certificate, &key, &error) != PAWL_OK) {
        struct pawl__cli_finding finding =
            pawl__cli_finding_problem(check, &error, "'pawl serve' does not start");

        pawl__cli_finding_fix(&finding,
                              "correct server.tls_certificate and server.tls_key, or set neither");
        pawl__cli_doctor_add(doctor, finding);
    } else if (certificate != NULL) {
        pawl__cli_doctor_add(doctor,
                             pawl__cli_finding_ok(check, "certificate '%s' and its key", path));
    }
}

/* When anything directly in the data directory was changed last; 0 when there is nothing. */
static int64_t newest_change_us(const char *path)
{
    DIR *dir = opendir(path);
    int64_t newest = 0;

    if (dir == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct stat info;

        if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &info, 0) == 0) {
            int64_t changed_us = info.st_mtim.tv_sec * US_PER_S + info.st_mtim.tv_nsec / NS_PER_US;
            newest = MAX(newest, changed_us);
        }
    }
    closedir(dir);
    return newest;
}

static void inspect_clock(struct pawl__cli_doctor *doctor)
{
    int64_t newest = doctor->data_usable ? newest_change_us(doctor->data) : 0;

    pawl__cli_doctor_add(doctor, pawl__cli_judge_clock(pawl__wall_us(doctor->clock), newest));
}

/* Of the machine, or what its control group leaves; the root group has no file of that name. */
static uint64_t memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    char text[32] = "";

    if (file != NULL && fgets(text, sizeof(text), file) != NULL) {
        uint64_t limit = strtoull(text, NULL, 10); /* "max" is 0 */
        bytes = limit != 0 && (bytes == 0 || limit < bytes) ? limit : bytes;
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

static void inspect_memory(struct pawl__cli_doctor *doctor)
{
    uint64_t store = (uint64_t)pawl__config_number(doctor->config, PAWL__STORE_MEMORY_MAX);

    pawl__cli_doctor_add(doctor, pawl__cli_judge_memory(memory_bytes(), store));
}

/* What a check needs before it can say anything. */
enum needs { NOTHING, SETTINGS, DATA };

static const struct {
    void (*look)(struct pawl__cli_doctor *doctor);
    enum needs needs;
} checks[] = {
    { inspect_settings, NOTHING },
    { inspect_parts, NOTHING },
    { inspect_choice, SETTINGS },
    { inspect_directory, SETTINGS },
    { inspect_mount, DATA },
    { inspect_space, DATA },
    { pawl__cli_inspect_stores, DATA },
    { pawl__cli_inspect_postgres, SETTINGS },
    { pawl__cli_inspect_syncs, SETTINGS },
    { pawl__cli_inspect_jetstream, DATA },
    { inspect_address, SETTINGS },
    { inspect_tls, SETTINGS },
    { inspect_open_files, SETTINGS },
    { inspect_memory, SETTINGS },
    { inspect_clock, NOTHING },
};

pawl_status pawl__cli_doctor_inspect(struct pawl__cli_doctor *doctor, pawl_error *reterr)
{
    doctor->findings = calloc(FINDINGS_MAX, sizeof(doctor->findings[0]));
    TRY(pawl__check_memory(doctor->findings, "what is found", reterr));
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        if ((checks[i].needs == SETTINGS && doctor->config == NULL)
            || (checks[i].needs == DATA && !doctor->data_usable)) {
            continue; /* what is missing was found and said by an earlier check */
        }
        checks[i].look(doctor);
    }
    return PAWL_OK;
}

void pawl__cli_doctor_done(struct pawl__cli_doctor *doctor)
{
    pawl__config_free(doctor->config);
    free(doctor->findings);
    *doctor = (struct pawl__cli_doctor){ 0 };
}
