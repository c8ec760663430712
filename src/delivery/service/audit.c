/* Source, write-ahead log, table and failed_events compared with each other. */
#include "base/core/argument.h"
#include "base/core/error.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

const char *pawl_audit_fault_name(pawl_audit_fault fault)
{
    return (unsigned)fault <= PAWL_AUDIT_MISCOUNTED ? pawl__audit_fault_names[fault] : "unknown";
}

pawl_status pawl_delivery_audit(pawl_delivery *delivery,
                                const char *name,
                                const pawl_delivery_watch *watch,
                                pawl_audit_visit visit,
                                void *context,
                                pawl_audit_report *ret_report,
                                pawl_error *reterr)
{
    NEED(delivery, ret_report, reterr);
    (void)name;
    (void)watch;
    (void)visit;
    (void)context;
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "audit is not there yet");
}
