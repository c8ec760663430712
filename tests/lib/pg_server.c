#include "lib/pg_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "lib/pg_template.h"
#include "lib/port.h"

enum {
    PATH_SIZE = 256, /* a socket's path has 107 bytes at most, so long ones are refused early */
    START_MS_MAX = 60000,
    STOP_MS_MAX = 60000,
    PORT_ATTEMPTS_MAX = 5,
    CHILDREN_MAX = 512,
    POLL_MS = 5,
};

#define DIR_PREFIX "pawl-pg."
#define MEMORY_BYTES_MIN (UINT64_C(2) << 30) /* several programs have a server at a time */

struct pg_server {
    struct pg_server *next; /* in `running`, for atexit */
    char bindir[PATH_SIZE];
    char dir[PATH_SIZE];
    char data[PATH_SIZE + 8];
    char url[PATH_SIZE];
    uid_t uid;
    gid_t gid;
    int port;
    pid_t pid; /* 0: not running */
};

static struct pg_server *running;

static int64_t now_ns(void)
{
    return pawl__monotonic_ns(pawl__clock_real());
}

static void breathe(void)
{
    poll(NULL, 0, POLL_MS);
}

/* Where initdb and postgres are. */
static bool find_bindir(char *ret_dir, size_t size)
{
    char path[PATH_SIZE + 16];
    FILE *out = popen("pg_config --bindir 2>/dev/null", "re");

    ret_dir[0] = '\0';
    if (out != NULL) {
        if (fgets(ret_dir, (int)size, out) != NULL) {
            ret_dir[strcspn(ret_dir, "\n")] = '\0';
        }
        pclose(out);
    }
    snprintf(path, sizeof(path), "%s/initdb", ret_dir);
    if (ret_dir[0] != '\0' && access(path, X_OK) == 0) {
        return true;
    }
    glob_t found;
    bool any = glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0;
    if (any) {
        snprintf(ret_dir, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
        *strrchr(ret_dir, '/') = '\0';
    }
    globfree(&found);
    return any;
}

static bool take_user(struct pg_server *server, const char *name)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char text[4096];

    if (getpwnam_r(name, &entry, text, sizeof(text), &found) != 0 || found == NULL) {
        return false;
    }
    server->uid = entry.pw_uid;
    server->gid = entry.pw_gid;
    return true;
}

/* PostgreSQL refuses to run as root. */
static pawl_status choose_user(struct pg_server *server, pawl_error *reterr)
{
    server->uid = geteuid();
    server->gid = getegid();
    if (server->uid == 0 && !take_user(server, "postgres") && !take_user(server, "nobody")) {
        return pawl__fail(reterr, PAWL_UNSUPPORTED, "neither user 'postgres' nor 'nobody' exists");
    }
    return PAWL_OK;
}

/* In the child: become the server's user, write to the log, die with the test program. */
__attribute__((noreturn)) static void become_and_exec(const struct pg_server *server,
                                                      const char *const argv[])
{
    char log[PATH_SIZE + 8];
    sigset_t none;

    snprintf(log, sizeof(log), "%s/log", server->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    int null = open("/dev/null", O_RDONLY);
    if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) {
        _exit(126);
    }
    if (geteuid() == 0
        && (setgroups(0, NULL) != 0 || setgid(server->gid) != 0 || setuid(server->uid) != 0)) {
        _exit(126);
    }
    /* After setuid, which would clear it. SIGQUIT makes postgres end its children as well. */
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() == 1 || chdir(server->dir) != 0) {
        _exit(126);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    closefrom(3);
    execv(argv[0], (char *const *)(uintptr_t)argv); /* exec changes nothing of it */
    _exit(127);
}

static pawl_status spawn(const struct pg_server *server,
                         const char *const argv[],
                         pid_t *ret_pid,
                         pawl_error *reterr)
{
    pid_t pid = fork();

    if (pid < 0) {
        return pawl__fail_errno(reterr, errno, "fork");
    }
    if (pid == 0) {
        become_and_exec(server, argv);
    }
    *ret_pid = pid;
    return PAWL_OK;
}

/* Fails with the end of the server's log, which says why. */
static pawl_status fail_with_log(const struct pg_server *server,
                                 const char *what,
                                 pawl_error *reterr)
{
    char path[PATH_SIZE + 8];
    char text[400] = "";

    snprintf(path, sizeof(path), "%s/log", server->dir);
    FILE *log = fopen(path, "re");
    if (log != NULL) {
        if (fseek(log, -(long)(sizeof(text) - 1), SEEK_END) != 0) {
            rewind(log);
        }
        text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
        fclose(log);
    }
    return pawl__fail(reterr, PAWL_FAILED, "%s; its log ends: %s", what, text);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static pawl_status run_initdb(const struct pg_server *server,
                              const struct pg_server_options *options,
                              pawl_error *reterr)
{
    char program[PATH_SIZE + 16];
    char data[PATH_SIZE + 32];
    const char *argv[] = { program,
                           data,
                           "--username=pawl",
                           "--auth=trust",
                           "--encoding=UTF8",
                           "--locale=C",
                           "--no-instructions",
                           options->sync_initdb ? NULL : "--no-sync",
                           NULL };
    pid_t pid = 0;
    int ended = 0;

    snprintf(program, sizeof(program), "%s/initdb", server->bindir);
    snprintf(data, sizeof(data), "--pgdata=%s", server->data);
    pawl_status status = spawn(server, argv, &pid, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    return ended == 0 ? PAWL_OK : fail_with_log(server, "initdb failed", reterr);
}

/* A copy of the template, which the first program of a build makes. False: there is none. */
static bool copy_template(const struct pg_server *server, pawl_error *reterr)
{
    const struct pg_server_options options = { .sync_initdb = false };
    char path[2 * PATH_SIZE];

    if (!pg_template_path(server->bindir, path, sizeof(path))) {
        return false;
    }
    int lock = pg_template_lock(path);
    bool made = access(path, F_OK) == 0;
    if (lock >= 0 && !made) {
        made =
            run_initdb(server, &options, reterr) == PAWL_OK && pg_template_copy(server->data, path);
        remove_tree(server->data);
    }
    pg_template_unlock(lock);
    return made && pg_template_copy(path, server->data);
}

static pawl_status make_cluster(const struct pg_server *server,
                                const struct pg_server_options *options,
                                pawl_error *reterr)
{
    if (!options->sync_initdb && copy_template(server, reterr)) {
        return PAWL_OK;
    }
    return run_initdb(server, options, reterr);
}

static pawl_status write_file(const struct pg_server *server,
                              const char *name,
                              const char *text,
                              const char *mode,
                              pawl_error *reterr)
{
    char path[PATH_SIZE + 32];

    snprintf(path, sizeof(path), "%s/%s", server->data, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        return pawl__fail_errno(reterr, errno, "open '%s'", path);
    }
    bool written = fputs(text, file) >= 0;
    if (fclose(file) != 0 || !written) {
        return pawl__fail_errno(reterr, errno, "write '%s'", path);
    }
    return PAWL_OK;
}

static pawl_status configure(const struct pg_server *server,
                             const struct pg_server_options *options,
                             pawl_error *reterr)
{
    char conf[PATH_SIZE + 1024];

    snprintf(conf,
             sizeof(conf),
             "listen_addresses = '127.0.0.1'\n"
             "unix_socket_directories = '%s'\n"
             "fsync = on\n"
             "max_connections = 50\n"
             "shared_buffers = 16MB\n"
             "dynamic_shared_memory_type = mmap\n" /* nothing outside our directory */
             "logging_collector = off\n"
             "timezone = 'Pacific/Chatham'\n" /* whoever forgets UTC is 12:45 off */
             "%s",
             server->dir,
             options->settings == NULL ? "" : options->settings);
    pawl_status status = write_file(server, "postgresql.conf", conf, "ae", reterr);
    return status != PAWL_OK ? status
                             : write_file(server,
                                          "pg_hba.conf",
                                          "local all all trust\n"
                                          "host all guarded 127.0.0.1/32 scram-sha-256\n"
                                          "host all all 127.0.0.1/32 trust\n",
                                          "we",
                                          reterr);
}

/* The eighth line of postmaster.pid is "ready" once connections are accepted. */
static bool says_ready(const struct pg_server *server)
{
    char path[PATH_SIZE + 32];
    char text[1024];
    size_t len = 0;

    snprintf(path, sizeof(path), "%s/postmaster.pid", server->data);
    return pawl__fs_read_small(path, text, sizeof(text), &len, NULL) == PAWL_OK
           && strtol(text, NULL, 10) == server->pid && strstr(text, "\nready") != NULL;
}

static pawl_status launch(struct pg_server *server, pawl_error *reterr)
{
    char program[PATH_SIZE + 16];
    char data[PATH_SIZE + 32];
    char port[16];
    const char *argv[] = { program, "-D", data, "-p", port, NULL };
    int64_t deadline_ns = now_ns() + START_MS_MAX * NS_PER_MS;

    snprintf(program, sizeof(program), "%s/postgres", server->bindir);
    snprintf(data, sizeof(data), "%s", server->data);
    snprintf(port, sizeof(port), "%d", server->port);
    pawl_status status = spawn(server, argv, &server->pid, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    while (!says_ready(server)) {
        int ended;
        if (waitpid(server->pid, &ended, WNOHANG) == server->pid) {
            server->pid = 0;
            return fail_with_log(server, "postgres ended at once", reterr);
        }
        if (now_ns() > deadline_ns) {
            pawl_status stopped = pg_server_kill(server, NULL);
            (void)stopped;
            return fail_with_log(server, "postgres did not become ready", reterr);
        }
        breathe();
    }
    return PAWL_OK;
}

/* Between our bind and the server's somebody else may take the port: then take another. */
static pawl_status launch_on_a_free_port(struct pg_server *server, pawl_error *reterr)
{
    pawl_status status = PAWL_FAILED;

    for (int i = 0; i < PORT_ATTEMPTS_MAX && status != PAWL_OK; i++) {
        status = port_free(&server->port, reterr);
        if (status == PAWL_OK) {
            status = launch(server, reterr);
        }
    }
    snprintf(server->url,
             sizeof(server->url),
             "postgresql://pawl@127.0.0.1:%d/postgres?sslmode=disable",
             server->port);
    return status;
}

/* The role that must give a password. */
static pawl_status create_guarded_role(const struct pg_server *server, pawl_error *reterr)
{
    PGconn *conn = PQconnectdb(server->url);
    PGresult *result = PQexec(conn, "CREATE ROLE guarded LOGIN PASSWORD 's3cret pass%word'");
    pawl_status status = PQresultStatus(result) == PGRES_COMMAND_OK
                             ? PAWL_OK
                             : pawl__fail(reterr, PAWL_FAILED, "%s", PQerrorMessage(conn));

    PQclear(result);
    PQfinish(conn);
    return status;
}

/* A program that died of kill -9 or abort left its directory behind; its name holds the pid. */
static void remove_leftovers(const char *parent)
{
    DIR *dir = opendir(parent);

    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[PATH_SIZE * 2];
        long pid = strncmp(entry->d_name, DIR_PREFIX, strlen(DIR_PREFIX)) != 0
                       ? 0
                       : strtol(entry->d_name + strlen(DIR_PREFIX), NULL, 10);

        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
            snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
            remove_tree(path);
        }
    }
    closedir(dir);
}

/* Tests make and drop schemas all the time, hundreds of files each: in memory that takes half the time, on both
 * cores. What power cuts do is tested elsewhere, with a directory that is given; benches measure the disk. */
static const char *roomy_memory(void)
{
    struct statvfs info;

    return getenv("PAWL_BUILD") != NULL && statvfs("/dev/shm", &info) == 0
                   && access("/dev/shm", W_OK) == 0
                   && (uint64_t)info.f_bavail * info.f_frsize >= MEMORY_BYTES_MIN
               ? "/dev/shm"
               : NULL;
}

static pawl_status make_directory(struct pg_server *server,
                                  const struct pg_server_options *options,
                                  pawl_error *reterr)
{
    const char *parent = options->parent == NULL ? getenv("TMPDIR") : options->parent;

    if (parent == NULL) {
        parent = roomy_memory();
    }
    if (parent == NULL || strlen(parent) > 64) {
        parent = "/tmp"; /* the socket's path has to fit into 107 bytes */
    }
    remove_leftovers(parent);
    snprintf(server->dir, sizeof(server->dir), "%s/" DIR_PREFIX "%d.XXXXXX", parent, (int)getpid());
    if (mkdtemp(server->dir) == NULL) {
        return pawl__fail_errno(reterr, errno, "create '%s'", server->dir);
    }
    if (chown(server->dir, server->uid, server->gid) != 0) {
        return pawl__fail_errno(
            reterr, errno, "give '%s' to uid %d", server->dir, (int)server->uid);
    }
    snprintf(server->data, sizeof(server->data), "%s/data", server->dir);
    return PAWL_OK;
}

/* Only the process that started a server ends it: a child forked by a test shares the list. */
static pid_t owner;

static void stop_all_at_exit(void)
{
    while (getpid() == owner && running != NULL) {
        pg_server_free(running);
    }
}

static void remember(struct pg_server *server)
{
    if (owner == 0) {
        owner = getpid();
        atexit(stop_all_at_exit);
    }
    server->next = running;
    running = server;
}

pawl_status pg_server_start(const struct pg_server_options *options,
                            struct pg_server **ret_server,
                            pawl_error *reterr)
{
    struct pg_server *server = calloc(1, sizeof(*server));

    if (server == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a server");
    }
    remember(server);
    pawl_status status = PAWL_OK;
    if (!find_bindir(server->bindir, sizeof(server->bindir))) {
        status = pawl__fail(reterr, PAWL_UNSUPPORTED, "no PostgreSQL server is installed");
    }
    status = status != PAWL_OK ? status : choose_user(server, reterr);
    status = status != PAWL_OK ? status : make_directory(server, options, reterr);
    status = status != PAWL_OK ? status : make_cluster(server, options, reterr);
    status = status != PAWL_OK ? status : configure(server, options, reterr);
    status = status != PAWL_OK ? status : launch_on_a_free_port(server, reterr);
    status = status != PAWL_OK ? status : create_guarded_role(server, reterr);
    if (status != PAWL_OK) {
        pg_server_free(server);
        return status;
    }
    *ret_server = server;
    return PAWL_OK;
}

void pg_server_free(struct pg_server *server)
{
    if (server == NULL) {
        return;
    }
    if (server->pid != 0 && pg_server_stop(server, SIGQUIT, NULL) != PAWL_OK) {
        pawl_status killed = pg_server_kill(server, NULL);
        (void)killed; /* nothing more can be done */
    }
    for (struct pg_server **at = &running; *at != NULL; at = &(*at)->next) {
        if (*at == server) {
            *at = server->next;
            break;
        }
    }
    if (server->data[0] != '\0') {
        remove_tree(server->dir);
    }
    free(server);
}

const char *pg_server_url(const struct pg_server *server)
{
    return server->url;
}

int pg_server_port(const struct pg_server *server)
{
    return server->port;
}

pid_t pg_server_pid(const struct pg_server *server)
{
    return server->pid;
}

const char *pg_server_directory(const struct pg_server *server)
{
    return server->dir;
}

static pawl_status wait_for_end(pid_t pid, pawl_error *reterr)
{
    int64_t deadline_ns = now_ns() + STOP_MS_MAX * NS_PER_MS;
    int ended;

    while (waitpid(pid, &ended, WNOHANG) == 0) {
        if (now_ns() > deadline_ns) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "process %d does not end", (int)pid);
        }
        breathe();
    }
    return PAWL_OK;
}

pawl_status pg_server_stop(struct pg_server *server, int signal, pawl_error *reterr)
{
    if (server->pid == 0) {
        return PAWL_OK;
    }
    pg_server_resume(server);
    if (kill(server->pid, signal) != 0) {
        return pawl__fail_errno(reterr, errno, "signal postgres (pid %d)", (int)server->pid);
    }
    pawl_status status = wait_for_end(server->pid, reterr);
    if (status == PAWL_OK) {
        server->pid = 0;
    }
    return status;
}

/* The processes whose parent is `pid`. */
static size_t children_of(pid_t pid, pid_t ret_pids[CHILDREN_MAX])
{
    size_t count = 0;
    DIR *proc = opendir("/proc");

    if (proc == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        char path[PATH_SIZE * 2];
        char text[512];
        size_t len;
        char *end;
        long child = strtol(entry->d_name, &end, 10);

        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        if (*end != '\0' || pawl__fs_read_small(path, text, sizeof(text), &len, NULL) != PAWL_OK) {
            continue;
        }
        /* "pid (name) state parent ..."; a name may hold anything */
        const char *after_name = strrchr(text, ')');
        if (count < CHILDREN_MAX && after_name != NULL
            && strtol(after_name + strlen(") S "), NULL, 10) == pid) {
            ret_pids[count++] = (pid_t)child;
        }
    }
    closedir(proc);
    return count;
}

void pg_server_stall(struct pg_server *server)
{
    pid_t children[CHILDREN_MAX];

    REQUIRE(server->pid != 0);
    kill(server->pid, SIGSTOP); /* first: it starts no more children then */
    size_t count = children_of(server->pid, children);
    for (size_t i = 0; i < count; i++) {
        kill(children[i], SIGSTOP);
    }
}

void pg_server_resume(struct pg_server *server)
{
    pid_t children[CHILDREN_MAX];

    REQUIRE(server->pid != 0);
    size_t count = children_of(server->pid, children);
    for (size_t i = 0; i < count; i++) {
        kill(children[i], SIGCONT);
    }
    kill(server->pid, SIGCONT);
}

/* The seventh line of postmaster.pid is key and id of the server's System V segment. */
static int shared_memory_of(const struct pg_server *server)
{
    char path[PATH_SIZE + 32];
    char text[1024];
    size_t len = 0;
    char *line = text;

    snprintf(path, sizeof(path), "%s/postmaster.pid", server->data);
    if (pawl__fs_read_small(path, text, sizeof(text), &len, NULL) != PAWL_OK) {
        return 0;
    }
    for (int i = 1; i < 7 && line != NULL; i++) {
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return line == NULL || strtoul(line, &line, 10) == 0 ? 0 : (int)strtol(line, NULL, 10);
}

pawl_status pg_server_kill(struct pg_server *server, pawl_error *reterr)
{
    pid_t children[CHILDREN_MAX];

    if (server->pid == 0) {
        return PAWL_OK;
    }
    /* Stopped first, it can start no new children; as subreaper we inherit the orphans and can wait
     * for them. A new server starts only when the last of them is gone. */
    int shared_memory = shared_memory_of(server);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    kill(server->pid, SIGSTOP);
    size_t count = children_of(server->pid, children);
    kill(server->pid, SIGKILL);
    for (size_t i = 0; i < count; i++) {
        kill(children[i], SIGKILL);
    }
    pawl_status status = wait_for_end(server->pid, reterr);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = wait_for_end(children[i], reterr);
    }
    server->pid = 0;
    /* A restart would take the segment over, unless a power cut took the file that names it. */
    if (status == PAWL_OK && shared_memory > 0) {
        shmctl(shared_memory, IPC_RMID, NULL);
    }
    return status;
}

pawl_status pg_server_restart(struct pg_server *server, pawl_error *reterr)
{
    pawl_status status = PAWL_FAILED;

    REQUIRE(server->pid == 0);
    for (int i = 0; i < PORT_ATTEMPTS_MAX && status != PAWL_OK; i++) {
        status = launch(server, reterr);
    }
    return status;
}
