/* Who gives out numbers: ours, and what people use today. All of them have PEER_WORKSPACES workspaces
 * with two sequences each. */
#ifndef BENCH_SEQUENCER_PEER_H
#define BENCH_SEQUENCER_PEER_H

#include <stdint.h>

enum { PEER_WORKSPACES = 1000, PEER_NUMBERS_MAX = 8, PEER_UNFLUSHED = 10000 };

struct peer {
    /* Once, before any client, on an empty server or directory. */
    void (*prepare)(const char *where);

    /* A client has a thread of its own. */
    void *(*open)(const char *where);

    /* One transaction: `numbers` numbers (2 .. PEER_NUMBERS_MAX, even) of a workspace (from 1), half
     * of them of each sequence. Ends the program when they are not given. */
    void (*take)(void *client, uint64_t workspace, int numbers);

    void (*close)(void *client);
};

extern const struct peer peer_sequencer;      /* where: a directory; one client */
extern const struct peer peer_wide_sequencer; /* the same with PEER_UNFLUSHED */
extern const struct peer peer_application;    /* where: a directory; clients share it */
extern const struct peer peer_redis;          /* where: a port on loopback */
extern const struct peer peer_postgres;       /* where: a URL */
extern const struct peer peer_duckdb;         /* where: a file; one client */

__attribute__((noreturn)) void peer_stop(const char *what, const char *why);

#endif
