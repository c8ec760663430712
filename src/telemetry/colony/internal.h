/* What polling and recovery share. */
#ifndef PAWL_TELEMETRY_COLONY_INTERNAL_H
#define PAWL_TELEMETRY_COLONY_INTERNAL_H

#include "telemetry/colony/poller.h"

/* A gap that is seen now. */
struct telemetry_gap pawl__telemetry_new_gap(const struct telemetry_colony *colony,
                                             const struct telemetry_id *session);

PAWL_MUST_USE pawl_status pawl__telemetry_feed_load(struct telemetry_colony *colony,
                                                    struct telemetry_feed *feed,
                                                    pawl_error *reterr);

/* One query; its page is an honest one and decoded. */
PAWL_MUST_USE pawl_status pawl__telemetry_feed_ask(struct telemetry_colony *colony,
                                                   struct telemetry_feed *feed,
                                                   uint64_t start,
                                                   uint64_t end,
                                                   pawl_error *reterr);

/* Counts the rows [from, to) of the page and the changes of gaps that were committed. */
void pawl__telemetry_feed_count(struct telemetry_feed *feed, size_t from, size_t to);

#endif
