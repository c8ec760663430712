#include "delivery/core/sink.h"

const char *pawl__delivery_layer_name(enum delivery_layer layer)
{
    static const char *const names[] = {
        [DELIVERY_LAYER_VALIDATION] = "validation",
        [DELIVERY_LAYER_INSERT] = "duckdb_insert",
        [DELIVERY_LAYER_WAL] = "consumer_wal",
    };
    REQUIRE((size_t)layer < COUNT_OF(names));
    return names[layer];
}
