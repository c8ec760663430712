/* An application of orders, open on the backend that the program's argument names:
 *
 *     int main(int argc, char **argv) { ... return app_suite(argc, argv, tests, COUNT_OF(tests)); } */
#ifndef TESTS_APP_FIXTURE_H
#define TESTS_APP_FIXTURE_H

#include "lib/check.h"

#include <pawl/app.h>

#include "app/core/internal.h"
#include "lib/pg_fixture.h"
#include "lib/repeat.h"
#include "lib/tempdir.h"

enum { APP_PATIENCE_MS = 60000, APP_INVOICE = 16, APP_LOCATION_SIZE = 256 };

struct app_fixture {
    char dir[TEMPDIR_SIZE];
    char location[APP_LOCATION_SIZE];
    bool in_memory;
    pawl_app_descriptor
        descriptor; /* "orders", 2 partitions, kinds shop and office, invoices from 1000 */
    pawl_app_options options;
    pawl_app *app;
    pawl_app_response *response; /* of the last command */
    pawl_error error;
};

extern const char *app_backend;
extern struct pg_fixture app_server; /* of backend "postgres" */

/* Arguments: memory, rocksdb or postgres; those of lib/repeat.h. */
int app_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* Where nothing is yet; "memory:", below the directory, or an empty database. */
void app_new_location(const char *dir, char location[APP_LOCATION_SIZE]);

int app_setup(void **state); /* does not open it */
int app_teardown(void **state);

void app_open(struct app_fixture *f);
void app_reopen(struct app_fixture *f);

/* Tries while it is busy. */
pawl_status app_try(struct app_fixture *f, const pawl_app_command *command);
void app_exec(struct app_fixture *f, const pawl_app_command *command);

/* A command that creates one record with raw id 1. */
pawl_status app_try_create(struct app_fixture *f,
                           uint64_t workspace,
                           pawl_app_class record_class,
                           const char *key);
uint64_t app_create(struct app_fixture *f, uint64_t workspace, pawl_app_class record_class);

/* Puts bytes where they do not belong. */
void app_sabotage(struct app_fixture *f,
                  enum app_family family,
                  struct app_key key,
                  pawl_view bytes);

void app_remove_anchor(struct app_fixture *f); /* of an open one, whose thread may write it again */
void app_delete(struct app_fixture *f, enum app_family family, struct app_key key);
/* A stored number with a checksum that is right. */
void app_sabotage_number(struct app_fixture *f,
                         enum app_family family,
                         struct app_key key,
                         uint64_t number,
                         uint64_t offset);

/* A command that takes the next invoice. */
pawl_status app_try_invoice(struct app_fixture *f, uint64_t workspace);
uint64_t app_invoice(struct app_fixture *f, uint64_t workspace);

/* So that each number is written at once and read again: before app_open. */
void app_forget_quickly(struct app_fixture *f);
/* Waits until the numbers of a partition are written. */
void app_await_written(struct app_fixture *f, uint16_t partition);

/* Records and logs as lines of text. Free the result. */
char *app_c_records(struct app_fixture *f, uint64_t workspace, uint64_t from, uint64_t limit);
char *app_record(struct app_fixture *f, uint64_t workspace, uint64_t id);
char *app_wlog(struct app_fixture *f, uint64_t workspace, uint64_t from, uint64_t limit);
char *app_plog(struct app_fixture *f, uint16_t partition, uint64_t from, uint64_t limit);

#define app_assert_text(made, expected)         \
    do {                                        \
        char *made_ = (made);                   \
        assert_string_equal(made_, (expected)); \
        free(made_);                            \
    } while (0)

#endif
