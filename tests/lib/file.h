/* A whole file at once, to damage it or to compare it. Whatever fails fails the test. */
#ifndef TESTS_FILE_H
#define TESTS_FILE_H

#include <stddef.h>

char *file_read(const char *path, size_t *ret_size); /* for free() */
void file_write(const char *path, const void *bytes, size_t size);

#endif
