#include "lib/port.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/os/fs.h"

enum { PORTS_TRIED_MAX = 100, PORT_MIN = 12000, PORT_COUNT = 18000 };

static bool is_free(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    pawl__fs_close(&fd);
    return bound;
}

pawl_status port_free(int *ret_port, pawl_error *reterr)
{
    uint64_t seed = 0;
    pawl_status status = pawl__random_bytes(pawl__random_real(), &seed, sizeof(seed), reterr);
    struct pawl__prng random = pawl__prng_seeded(seed);

    for (int i = 0; i < PORTS_TRIED_MAX && status == PAWL_OK; i++) {
        int port = PORT_MIN + (int)pawl__prng_below(&random, PORT_COUNT);
        if (is_free(port)) {
            *ret_port = port;
            return PAWL_OK;
        }
    }
    return status == PAWL_OK ? pawl__fail(reterr, PAWL_UNAVAILABLE, "found no free port") : status;
}
