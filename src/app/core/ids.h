/* Ranges of record ids (<pawl/app.h>): which class an id belongs to. Pure. */
#ifndef PAWL_APP_CORE_IDS_H
#define PAWL_APP_CORE_IDS_H

#include <pawl/app.h>

/* "C-record", "singleton". Static. */
const char *pawl__app_class_name(pawl_app_class record_class);

/* "c", "o", "w", "singleton": how people write them. False for any other word. */
PAWL_MUST_USE bool pawl__app_class_parse(pawl_view word, pawl_app_class *ret_class);

/* Whether an id lies in the range of its class. */
bool pawl__app_id_fits(pawl_app_class record_class, uint64_t id);

/* INVALID when an id is a raw one, or lies between the ranges: no record can have it. */
PAWL_MUST_USE pawl_status pawl__app_check_id(uint64_t id, pawl_error *reterr);

/* INVALID: not 1 .. PAWL_APP_RAW_ID_MAX. */
PAWL_MUST_USE pawl_status pawl__app_check_raw_id(uint64_t raw_id, pawl_error *reterr);

/* The sequence that numbers new records of a class; 0: a singleton has its id from the command. */
uint16_t pawl__app_sequence_of(pawl_app_class record_class);

#endif
