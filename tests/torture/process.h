/* A process that talks to us in lines and may be killed at any moment. It dies with us. */
#ifndef TESTS_TORTURE_PROCESS_H
#define TESTS_TORTURE_PROCESS_H

#include <sys/types.h>

#include <pawl/pawl.h>

struct process {
    pid_t pid;
    int in;  /* its standard input; -1 once closed */
    int out; /* its standard output */
    size_t len;
    char buffer[8192]; /* what came and was not yet taken */
};

struct process_options {
    const char *const *argv;     /* NULL at the end; argv[0] is the program's path */
    const char *const *settings; /* "NAME=value" for its environment, NULL at the end; or NULL */
    const char *errors;          /* file that gets its standard error, appended */
};

PAWL_MUST_USE pawl_status process_start(struct process *process,
                                        const struct process_options *options,
                                        pawl_error *reterr);

enum process_event {
    PROCESS_LINE,
    PROCESS_EOF, /* it closed its output, by dying as a rule; what it said before has been taken */
    PROCESS_SILENT,      /* until the deadline */
    PROCESS_INTERRUPTED, /* we got a signal */
};

/* The next line without its newline, or none until the monotonic deadline. */
enum process_event process_next(struct process *process,
                                int64_t deadline_ns,
                                char *ret_line,
                                size_t size);

void process_close_input(struct process *process);

/* kill -9; what it said before can still be taken. */
void process_kill(struct process *process);

/* Waits for its end and returns the wait status. */
int process_end(struct process *process);

#endif
