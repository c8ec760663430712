/* What a pipeline is: the declaration that a user gives, checked, with what was not said filled in; and how it is
 * stored. Pure, but for the working directory that a relative path starts at. */
#ifndef PAWL_DELIVERY_SERVICE_DECLARATION_H
#define PAWL_DELIVERY_SERVICE_DECLARATION_H

#include <pawl/delivery.h>

#include "delivery/mapping/mapping.h"

enum delivery_source_kind {
    DELIVERY_KIND_NATS,
    DELIVERY_KIND_LEDGER,
    DELIVERY_KIND_FILE,
    DELIVERY_KIND_STDIN,
    DELIVERY_KIND_HTTP, /* events are handed in by calls */
};

struct delivery_declared_column {
    pawl_view name;
    unsigned type; /* enum delivery_type */
    unsigned from; /* of the names in declaration.c */
    pawl_view path;
    pawl_view expression;
    bool required;
    bool lenient;
};

/* As it was given. Views end with a NUL; empty: not given. */
struct delivery_declaration {
    pawl_view name;
    pawl_view from;
    pawl_view into;
    pawl_view source;
    pawl_view id_field;
    pawl_view generation;
    pawl_view stream;
    pawl_view consumer;
    pawl_view subject;
    bool create_stream;
    pawl_view nkey_file;
    pawl_view creds_file;
    pawl_view tls_ca;
    pawl_view tls_certificate;
    pawl_view tls_key;
    bool complete_turns;
    const struct delivery_declared_column *columns;
    size_t column_count;
    pawl_view filter;
    bool unique_index;
};

/* A declaration and what is stored beside it. Everything it points to is in its arena. */
struct delivery_declared {
    struct pawl__arena arena;
    struct delivery_declaration is;
    const pawl_view *generations; /* in the order they were used; the last one is `is.generation` */
    size_t generation_count;
    bool paused;

    enum delivery_source_kind kind;
    const char *location; /* URL, ledger or path */
    pawl_view shown;      /* `from` without passwords */
    struct delivery_identity_rule identity;
    struct delivery_mapping mapping;
};

/* INVALID names the field. */
PAWL_MUST_USE pawl_status pawl__delivery_declare(pawl_view json,
                                                 struct delivery_declared *ret_declared,
                                                 pawl_error *reterr);
void pawl__delivery_declared_done(struct delivery_declared *declared);

/* Whether `next` may replace `before`, and what it takes over of it. CONFLICT says what may not change. */
PAWL_MUST_USE pawl_status pawl__delivery_declared_follow(const struct delivery_declared *before,
                                                         struct delivery_declared *next,
                                                         pawl_error *reterr);

/* The stored form, and back. CORRUPT: it is none. UNSUPPORTED: of a newer version. */
void pawl__delivery_declared_write(const struct delivery_declared *declared, struct pawl__buf *buf);
PAWL_MUST_USE pawl_status pawl__delivery_declared_read(pawl_view json,
                                                       struct delivery_declared *ret_declared,
                                                       pawl_error *reterr);

/* INVALID: no name of a pipeline. */
PAWL_MUST_USE pawl_status pawl__delivery_check_name(const char *name, pawl_error *reterr);

#endif
