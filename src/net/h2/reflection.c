/* grpc.reflection.v1 and v1alpha: which services there are, and the files that describe them. The two differ in
 * nothing but their name. */
#include "net/h2/server.h"

#include <stdlib.h>
#include <string.h>

#include <proto/grpc_health_v1.desc.h>
#include <proto/grpc_reflection_v1.desc.h>
#include <proto/grpc_reflection_v1.pb-c.h>
#include <proto/grpc_reflection_v1alpha.desc.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "net/h2/core/proto.h"

enum {
    ANSWER_MAX = 4 << 20,
    REQUEST_DEPTH = 4,
    DEPENDENCIES_MAX = 256,
    /* fields of google.protobuf.FileDescriptorSet, .FileDescriptorProto and what it holds */
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    ANY_NAME = 1,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    SERVICE_METHOD = 2,
};

/* Views into the descriptors, which outlive the server. */
struct file {
    pawl_view name;
    pawl_view package;
    pawl_view bytes;
};

struct h2_reflection {
    struct file *files;
    size_t count;
    size_t room;
    const struct pawl__h2_services *services;
    struct pawl__h2_method methods[2];
};

/* --- descriptors --- */

static pawl_view text_field(pawl_view message, uint32_t number)
{
    struct pawl__h2_proto_field field = { .number = 0 };

    while (pawl__h2_proto_take(&message, &field)) {
        if (field.number == number && field.wire == 2) {
            return field.bytes;
        }
    }
    return (pawl_view){ 0 };
}

static const struct file *file_named(const struct h2_reflection *reflection, pawl_view name)
{
    for (size_t i = 0; i < reflection->count; i++) {
        if (pawl__view_equal(reflection->files[i].name, name)) {
            return &reflection->files[i];
        }
    }
    return NULL;
}

static pawl_status add_set(struct h2_reflection *reflection, pawl_view set, pawl_error *reterr)
{
    struct pawl__h2_proto_field field = { .number = 0 };

    while (set.len > 0) {
        if (!pawl__h2_proto_take(&set, &field) || field.number != SET_FILE || field.wire != 2) {
            return pawl__fail(reterr, PAWL_INVALID, "a descriptor is no FileDescriptorSet");
        }
        struct file file = { .name = text_field(field.bytes, FILE_NAME),
                             .package = text_field(field.bytes, FILE_PACKAGE),
                             .bytes = field.bytes };
        if (file_named(reflection, file.name) != NULL) {
            continue; /* several import it */
        }
        struct file *files =
            pawl__grow(reflection->files, reflection->count, &reflection->room, sizeof(*files));
        TRY(pawl__check_memory(files, "descriptors", reterr));
        reflection->files = files;
        files[reflection->count++] = file;
    }
    return PAWL_OK;
}

/* Takes "name" and then "." from the front of a dotted name; false: it begins otherwise. */
static bool take_name(pawl_view *symbol, pawl_view name)
{
    pawl_view taken = { 0 };
    pawl_view rest = *symbol;

    if (name.len == 0 || !pawl__view_take(&rest, name.len, &taken) || !pawl__view_equal(taken, name)
        || (rest.len > 0 && (!pawl__view_take(&rest, 1, &taken) || taken.data[0] != '.'))) {
        return false;
    }
    *symbol = rest;
    return true;
}

/* Whether a message, enum or service is or holds what `symbol` names, from its own name on. */
static bool holds(pawl_view message, uint32_t kind, pawl_view symbol)
{
    struct pawl__h2_proto_field field = { .number = 0 };

    if (!take_name(&symbol, text_field(message, ANY_NAME))) {
        return false;
    }
    if (symbol.len == 0) {
        return true;
    }
    /* A name has as many parts as there are levels: this ends. */
    while (pawl__h2_proto_take(&message, &field)) {
        if (field.wire != 2) {
            continue;
        }
        bool inner = kind == FILE_SERVICE
                         ? field.number == SERVICE_METHOD
                         : field.number == MESSAGE_NESTED || field.number == MESSAGE_ENUM;
        if (kind != FILE_ENUM && inner && holds(field.bytes, FILE_MESSAGE, symbol)) {
            return true;
        }
    }
    return false;
}

static bool file_holds(const struct file *file, pawl_view symbol)
{
    struct pawl__h2_proto_field field = { .number = 0 };
    pawl_view rest = file->bytes;

    if (file->package.len > 0 && !take_name(&symbol, file->package)) {
        return false;
    }
    while (pawl__h2_proto_take(&rest, &field)) {
        bool holder = field.number == FILE_MESSAGE || field.number == FILE_ENUM
                      || field.number == FILE_SERVICE;
        if (field.wire == 2 && holder && holds(field.bytes, field.number, symbol)) {
            return true;
        }
    }
    return false;
}

static const struct file *file_with(const struct h2_reflection *reflection, pawl_view symbol)
{
    for (size_t i = 0; i < reflection->count; i++) {
        if (file_holds(&reflection->files[i], symbol)) {
            return &reflection->files[i];
        }
    }
    return NULL;
}

/* --- answers --- */

typedef Grpc__Reflection__V1__ServerReflectionRequest reflection_request;
typedef Grpc__Reflection__V1__ServerReflectionResponse reflection_response;

static void send_answer(struct pawl__h2_call *call,
                        reflection_request *request,
                        reflection_response *response)
{
    AUTO(pawl__buf_done) struct pawl__buf bytes = BUF_INIT(ANSWER_MAX);
    pawl_error error = PAWL_ERROR_INIT;

    response->valid_host = request->host;
    response->original_request = request;
    pawl__h2_proto_pack(&response->base, &bytes);
    if (bytes.broken) {
        pawl__h2_refuse(
            call, PAWL__H2_RESOURCE_EXHAUSTED, "no memory for descriptors", (pawl_view){ 0 });
    } else if (pawl__h2_send(call, pawl__buf_view(&bytes), &error) != PAWL_OK
               && error.status != PAWL_CANCELLED) {
        pawl__h2_fail(call, &error);
    }
}

static void answer_error(struct pawl__h2_call *call,
                         reflection_request *request,
                         const char *message)
{
    reflection_response response;
    Grpc__Reflection__V1__ErrorResponse error;
    char text[64] = "";

    pawl__proto_grpc__reflection__v1__server_reflection_response__init(&response);
    pawl__proto_grpc__reflection__v1__error_response__init(&error);
    (void)strncat(text, message, sizeof(text) - 1);
    error.error_code = PAWL__H2_NOT_FOUND;
    error.error_message = text;
    response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    response.error_response = &error;
    send_answer(call, request, &response);
}

/* A file and all that it imports, the file first. */
static size_t collect(const struct h2_reflection *reflection,
                      const struct file *file,
                      ProtobufCBinaryData ret_files[DEPENDENCIES_MAX])
{
    const struct file *found[DEPENDENCIES_MAX] = { file };
    size_t count = 1;

    for (size_t i = 0; i < count; i++) {
        struct pawl__h2_proto_field field = { .number = 0 };
        pawl_view rest = found[i]->bytes;
        while (pawl__h2_proto_take(&rest, &field)) {
            const struct file *needed = field.number == FILE_DEPENDENCY && field.wire == 2
                                            ? file_named(reflection, field.bytes)
                                            : NULL;
            for (size_t k = 0; needed != NULL && k < count; k++) {
                needed = found[k] == needed ? NULL : needed;
            }
            if (needed != NULL && count < DEPENDENCIES_MAX) {
                found[count++] = needed;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret_files[i].data = (uint8_t *)(uintptr_t)found[i]->bytes.data;
        ret_files[i].len = found[i]->bytes.len;
    }
    return count;
}

static void answer_file(struct pawl__h2_call *call,
                        const struct h2_reflection *reflection,
                        reflection_request *request,
                        const struct file *file)
{
    reflection_response response;
    Grpc__Reflection__V1__FileDescriptorResponse files;
    ProtobufCBinaryData bytes[DEPENDENCIES_MAX];

    pawl__proto_grpc__reflection__v1__server_reflection_response__init(&response);
    pawl__proto_grpc__reflection__v1__file_descriptor_response__init(&files);
    if (file == NULL) {
        answer_error(call, request, "no such file or symbol");
        return;
    }
    files.n_file_descriptor_proto = collect(reflection, file, bytes);
    files.file_descriptor_proto = bytes;
    response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    response.file_descriptor_response = &files;
    send_answer(call, request, &response);
}

/* The names of the services, each once: methods are sorted by their path. Sets *ret_count. */
static Grpc__Reflection__V1__ServiceResponse *list_services(
    const struct pawl__h2_services *services, struct pawl__arena *arena, size_t *ret_count)
{
    Grpc__Reflection__V1__ServiceResponse *list =
        pawl__arena_take(arena, services->count * sizeof(*list));
    pawl_view last = { 0 };
    size_t count = 0;

    for (size_t i = 0; list != NULL && i < services->count; i++) {
        pawl_view service = { 0 };
        pawl_view method = { 0 };
        pawl_view name = { 0 };
        if (!pawl__h2_path_split(pawl_view_of(services->methods[i]->path), &service, &method)
            || (count > 0 && pawl__view_equal(service, last))) {
            continue;
        }
        if (!pawl__arena_copy(arena, service, &name)) {
            return NULL;
        }
        pawl__proto_grpc__reflection__v1__service_response__init(&list[count]);
        list[count++].name = (char *)(uintptr_t)name.data;
        last = service;
    }
    *ret_count = count;
    return list;
}

static void answer_list(struct pawl__h2_call *call,
                        const struct h2_reflection *reflection,
                        reflection_request *request)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    reflection_response response;
    Grpc__Reflection__V1__ListServiceResponse list;
    size_t count = 0;

    pawl__proto_grpc__reflection__v1__server_reflection_response__init(&response);
    pawl__proto_grpc__reflection__v1__list_service_response__init(&list);
    Grpc__Reflection__V1__ServiceResponse *services =
        list_services(reflection->services, &arena, &count);
    Grpc__Reflection__V1__ServiceResponse **pointers =
        services == NULL ? NULL : pawl__arena_take(&arena, count * sizeof(services));
    if (pointers == NULL) {
        pawl__h2_refuse(
            call, PAWL__H2_RESOURCE_EXHAUSTED, "no memory for a list", (pawl_view){ 0 });
        return;
    }
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &services[i];
    }
    list.n_service = count;
    list.service = pointers;
    response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    response.list_services_response = &list;
    send_answer(call, request, &response);
}

static void answer(struct pawl__h2_call *call,
                   const struct h2_reflection *reflection,
                   reflection_request *request)
{
    switch (request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        answer_file(call,
                    reflection,
                    request,
                    file_named(reflection, pawl_view_of(request->file_by_filename)));
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        answer_file(call,
                    reflection,
                    request,
                    file_with(reflection, pawl_view_of(request->file_containing_symbol)));
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        answer_list(call, reflection, request);
        break;
    default:
        answer_error(call, request, "proto3 has no extensions"); /* what is left asks for them */
        break;
    }
}

/* --- the calls --- */

static void begin(struct pawl__h2_call *call, void *context)
{
    (void)call;
    (void)context;
}

static void message_came(struct pawl__h2_call *call, pawl_view message, void *context)
{
    static const struct pawl__h2_proto_limits limits = { .depth_max = REQUEST_DEPTH,
                                                         .messages_max = REQUEST_DEPTH,
                                                         .elements_max = 64,
                                                         .unknown_max = 64,
                                                         .memory_max = 1 << 20 };
    AUTO(pawl__h2_proto_arena_done) struct pawl__h2_proto_arena arena = { .used = 0 };
    ProtobufCMessage *request = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__h2_proto_unpack(
            &pawl__proto_grpc__reflection__v1__server_reflection_request__descriptor,
            message,
            &limits,
            &arena,
            &request,
            &error)
        != PAWL_OK) {
        pawl__h2_fail(call, &error);
        return;
    }
    answer(call, context, (reflection_request *)request);
}

static void finish(struct pawl__h2_call *call, void *context)
{
    (void)context;
    pawl__h2_end(call);
}

static pawl_status add_files(struct h2_reflection *reflection,
                             const struct pawl__h2_options *options,
                             pawl_error *reterr)
{
    TRY(add_set(reflection, pawl__proto_grpc_health_v1, reterr));
    TRY(add_set(reflection, pawl__proto_grpc_reflection_v1, reterr));
    TRY(add_set(reflection, pawl__proto_grpc_reflection_v1alpha, reterr));
    for (size_t i = 0; i < options->descriptor_count; i++) {
        TRY(add_set(reflection, options->descriptors[i], reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__h2_reflection_add(struct pawl__h2 *server,
                                    const struct pawl__h2_options *options,
                                    pawl_error *reterr)
{
    static const char *const paths[] = {
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    };
    struct h2_reflection *reflection = calloc(1, sizeof(*reflection));

    TRY(pawl__check_memory(reflection, "the reflection service", reterr));
    server->reflection = reflection;
    reflection->services = &server->services;
    TRY(add_files(reflection, options, reterr));
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        reflection->methods[i] = (struct pawl__h2_method){
            .path = paths[i],
            .kind = PAWL__H2_BIDI,
            .open = options->authorize == NULL,
            .handle = begin,
            .message = message_came,
            .ended = finish,
            .gone = finish,
            .context = reflection,
        };
    }
    return pawl__h2_services_add(
        &server->services, reflection->methods, COUNT_OF(reflection->methods), reterr);
}

void pawl__h2_reflection_free(struct h2_reflection *reflection)
{
    if (reflection != NULL) {
        free(reflection->files);
        free(reflection);
    }
}
