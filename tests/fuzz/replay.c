/* Runs a fuzz target once on each file of a directory, in the order of their names, and prints TAP.
 * A target that finds something aborts; the last line on stderr before that names the file. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

enum { FILE_BYTES_MAX = 16 << 20 };

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The content in memory of exactly its size, so that a sanitizer sees one byte too many. */
static uint8_t *read_file(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    uint8_t *data = NULL;

    if (file == NULL) {
        return NULL;
    }
    if (fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode)
        && info.st_size <= FILE_BYTES_MAX) {
        size_t size = (size_t)info.st_size;
        data = malloc(size > 0 ? size : 1);
        if (data != NULL && fread(data, 1, size, file) != size) {
            free(data);
            data = NULL;
        }
        *ret_size = size;
    }
    fclose(file);
    return data;
}

static int replay(const char *dir, const char *name, int number)
{
    char path[4096];
    size_t size = 0;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    uint8_t *data = read_file(path, &size);
    if (data == NULL) {
        printf("not ok %d - %s: cannot be read\n", number, name);
        return 1;
    }
    fprintf(stderr, "%s\n", name);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    printf("ok %d - %s\n", number, name);
    return 0;
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    int failed = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    int count = scandir(argv[1], &entries, is_visible, alphasort);
    if (count <= 0) {
        printf("1..1\nnot ok 1 - no corpus in %s\n", argv[1]);
        return 1;
    }
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        failed += replay(argv[1], entries[i]->d_name, i + 1);
        free(entries[i]);
    }
    free(entries);
    return failed > 0;
}
