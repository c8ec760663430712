/* How one JSON value differs from another, as RFC 6901 paths. */
#ifndef PAWL_WORK_CHECKPOINTS_DIFF_H
#define PAWL_WORK_CHECKPOINTS_DIFF_H

#include <pawl/work.h>

/* One call for each value that was added, removed or changed, until `visit` returns false. Objects
 * are compared key by key (those of `from` in their order, then the new ones), arrays item by item.
 * Numbers are the same when their canonical forms are: 1 and 1.0 are. INVALID says which of the two
 * is no JSON. */
PAWL_MUST_USE pawl_status pawl__work_json_diff(
    pawl_view from, pawl_view to, pawl_difference_visit visit, void *context, pawl_error *reterr);

#endif
