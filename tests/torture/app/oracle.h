/* What must be in a tortured application, remembered outside of the process that writes it: for each
 * command the line that says where it is: workspace, offsets, ids. */
#ifndef TESTS_TORTURE_APP_ORACLE_H
#define TESTS_TORTURE_APP_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

struct app_slot {
    char *must; /* NULL: need not be there */
    char *seen; /* NULL: was not */
    bool gone;  /* was not there when it should have been written by, if ever */
    bool twice; /* was there twice, or acknowledged at two places */
};

struct app_oracle {
    struct app_slot *slots; /* by command, from 1 */
    uint64_t room;
    uint64_t next; /* the first that no writer was asked for */
};

struct app_finding {
    uint64_t acknowledged; /* in total that must be there */
    uint64_t lost;         /* ... and are not, or are elsewhere */
    uint64_t duplicated;
    uint64_t invented; /* never asked for, or gone before */
};

struct app_oracle *app_oracle_new(void);
void app_oracle_free(struct app_oracle *oracle);

/* A writer is asked for so many commands. Returns the first one. What was there before it may be
 * acknowledged once more, at the same place. */
uint64_t app_oracle_ask(struct app_oracle *oracle, uint64_t commands);

/* "COMMAND where it is": it is durable. False when nobody asked for it. */
__attribute__((warn_unused_result)) bool app_oracle_acknowledge(struct app_oracle *oracle,
                                                                const char *line);

/* The writer is dead; here comes what is there, in the same form. */
void app_oracle_see(struct app_oracle *oracle, const char *line);

/* Compares. Afterwards what was seen is what must be there. */
struct app_finding app_oracle_compare(struct app_oracle *oracle);

#endif
