#include "torture/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "lib/pg_server.h"

#define DISKS_BYTES (UINT64_C(1) << 30)

static pawl_status make_dir(const char *path, pawl_error *reterr)
{
    return mkdir(path, 0755) == 0 ? PAWL_OK : pawl__fail_errno(reterr, errno, "make '%s'", path);
}

static pawl_status mount_disk(struct world *world, bool strict, pawl_error *reterr)
{
    struct lossfs_options options = {
        .live = world->disk,
        .at = world->place,
        .strict = strict,
        .other_users = world->has_server && geteuid() == 0, /* the server then has its own user */
    };

    return lossfs_mount(&world->fs, &options, reterr);
}

/* The cluster's making is not what we test: it counts as done long ago. */
static pawl_status make_server(struct world *world, const char *settings, pawl_error *reterr)
{
    struct pg_server_options options = { .parent = world->place, .settings = settings };
    pawl_status status = pg_server_start(&options, &world->server, reterr);

    if (status == PAWL_OK) {
        snprintf(world->location, sizeof(world->location), "%s", pg_server_url(world->server));
    }
    return status == PAWL_OK && world->has_power ? lossfs_tell(&world->fs, reterr, "sync") : status;
}

/* The disks may be in memory: which writes are durable is lossfs's business, not theirs. */
static pawl_status make_disks(struct world *world, bool strict, pawl_error *reterr)
{
    pawl_status status = tempdir_make_in_memory(world->disks, "torture-disks", DISKS_BYTES, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    snprintf(world->disk, sizeof(world->disk), "%s/disk", world->disks);
    snprintf(world->saved, sizeof(world->saved), "%s/saved", world->disks);
    status = make_dir(world->disk, reterr);
    return status != PAWL_OK ? status : mount_disk(world, strict, reterr);
}

static pawl_status make_parts(struct world *world,
                              const struct world_options *options,
                              pawl_error *reterr)
{
    pawl_status status = tempdir_make(world->dir, "torture", reterr);

    if (status != PAWL_OK) {
        return status;
    }
    /* The server's own user has to get through. */
    if (chmod(world->dir, 0755) != 0) {
        return pawl__fail_errno(reterr, errno, "open '%s'", world->dir);
    }
    snprintf(world->place, sizeof(world->place), "%s/place", world->dir);
    snprintf(world->errors, sizeof(world->errors), "%s/errors", world->dir);
    snprintf(world->location, sizeof(world->location), "%s", world->place);
    status = make_dir(world->place, reterr);
    if (status == PAWL_OK && world->has_power) {
        status = make_disks(world, options->strict, reterr);
    }
    return status == PAWL_OK && world->has_server ? make_server(world, options->settings, reterr)
                                                  : status;
}

pawl_status world_make(struct world *world, const struct world_options *options, pawl_error *reterr)
{
    *world = (struct world){
        .has_power = options->power,
        .has_server = options->server,
        .fs = LOSSFS_CLIENT_INIT,
    };
    pawl_status status = make_parts(world, options, reterr);
    if (status != PAWL_OK) {
        world_end(world);
    }
    return status;
}

void world_end(struct world *world)
{
    pg_server_free(world->server);
    lossfs_unmount(&world->fs);
    if (world->disks[0] != '\0') {
        tempdir_remove(world->disks);
    }
    if (world->dir[0] != '\0') {
        tempdir_remove(world->dir);
    }
    *world = (struct world){ .fs = LOSSFS_CLIENT_INIT };
}

pawl_status world_arm(
    struct world *world, uint64_t nth, const char *cut, uint64_t seed, pawl_error *reterr)
{
    return lossfs_tell(&world->fs,
                       reterr,
                       "cut-at %llu %s %llu",
                       (unsigned long long)nth,
                       cut,
                       (unsigned long long)seed);
}

static pawl_status swap_disks(struct world *world, pawl_error *reterr)
{
    lossfs_unmount(&world->fs);
    tempdir_remove(world->disk);
    return rename(world->saved, world->disk) == 0
               ? PAWL_OK
               : pawl__fail_errno(reterr, errno, "rename '%s'", world->saved);
}

pawl_status world_lose_power(
    struct world *world, const char *cut, uint64_t seed, bool strict, pawl_error *reterr)
{
    unsigned long long seed_number = seed;
    pawl_status status = lossfs_tell(&world->fs, reterr, "cut %s %llu", cut, seed_number);

    if (status == PAWL_OK && world->has_server) {
        status = world_kill_server(world, reterr);
    }
    if (status == PAWL_OK) {
        status = make_dir(world->saved, reterr);
    }
    if (status == PAWL_OK) {
        status = lossfs_tell(&world->fs, reterr, "save %s", world->saved);
    }
    if (status == PAWL_OK) {
        status = swap_disks(world, reterr);
    }
    if (status == PAWL_OK) {
        status = mount_disk(world, strict, reterr);
    }
    return status == PAWL_OK && world->has_server ? world_start_server(world, reterr) : status;
}

pawl_status world_kill_server(struct world *world, pawl_error *reterr)
{
    return pg_server_kill(world->server, reterr);
}

pawl_status world_start_server(struct world *world, pawl_error *reterr)
{
    return pg_server_restart(world->server, reterr);
}
