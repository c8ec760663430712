/* The machine that a store runs on and that fails: a directory, for power cuts one on lossfs, and
 * for PostgreSQL the server.
 *
 * Power fails like this: the cut freezes what is durable, everything that runs is killed, what was
 * durable becomes the new disk, mounted at the same path, and the server starts again. */
#ifndef TESTS_TORTURE_WORLD_H
#define TESTS_TORTURE_WORLD_H

#include <pawl/pawl.h>

#include "lib/lossfs_client.h"
#include "lib/tempdir.h"

struct pg_server;

struct world {
    char dir[TEMPDIR_SIZE];
    char place[TEMPDIR_SIZE + 8];  /* where the store is; the mount point */
    char disks[TEMPDIR_SIZE];      /* holds the next two */
    char disk[TEMPDIR_SIZE + 8];   /* what is mounted at `place` */
    char saved[TEMPDIR_SIZE + 8];  /* what a cut left */
    char errors[TEMPDIR_SIZE + 8]; /* what the processes complained about */
    char location[256];            /* for the writer: `place` or a URL */
    bool has_power;                /* can lose it: on lossfs */
    bool has_server;
    struct lossfs_client fs;
    struct pg_server *server;
};

struct world_options {
    bool power;           /* on a file system that loses what was not fsynced */
    bool strict;          /* ... and names too, until their directory is */
    bool server;          /* with a PostgreSQL cluster */
    const char *settings; /* for its postgresql.conf; or NULL */
};

/* An empty world. UNAVAILABLE or UNSUPPORTED where the machine has no FUSE or no PostgreSQL. */
PAWL_MUST_USE pawl_status world_make(struct world *world,
                                     const struct world_options *options,
                                     pawl_error *reterr);
void world_end(struct world *world); /* removes everything */

/* Says when the power goes: before the nth change of the file system from now on. */
PAWL_MUST_USE pawl_status
world_arm(struct world *world, uint64_t nth, const char *cut, uint64_t seed, pawl_error *reterr);

/* The power goes now, unless it is gone already, and comes back; the writer must be dead. From then
 * on names are durable as `strict` says. */
PAWL_MUST_USE pawl_status world_lose_power(
    struct world *world, const char *cut, uint64_t seed, bool strict, pawl_error *reterr);

/* kill -9 of the whole server, and after it the start. */
PAWL_MUST_USE pawl_status world_kill_server(struct world *world, pawl_error *reterr);
PAWL_MUST_USE pawl_status world_start_server(struct world *world, pawl_error *reterr);

#endif
