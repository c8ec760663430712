#include "engine/metrics.h"

#include "base/core/argument.h"
#include "ledger/core/internal.h"

pawl_status pawl_ledger_get_metrics(pawl_ledger *ledger,
                                    char **ret_text,
                                    size_t *ret_len,
                                    pawl_error *reterr)
{
    struct pawl__commit_totals totals = { 0 };

    NEED(ledger, ret_text, reterr);
    pawl__commit_totals_add(&totals, ledger->engine.commit);
    return pawl__commit_metrics_text(&totals, "ledger", ret_text, ret_len, reterr);
}
