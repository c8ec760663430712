#include "lib/file.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/check.h"

char *file_read(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rbe");

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    char *bytes = malloc((size_t)size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
    assert_int_equal(fclose(file), 0);
    *ret_size = (size_t)size;
    return bytes;
}

void file_write(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wbe");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}
