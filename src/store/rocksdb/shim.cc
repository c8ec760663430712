#include "store/rocksdb/shim.h"

#include <rocksdb/cache.h>
#if __has_include(<rocksdb/advanced_cache.h>) /* since 8.1 the class itself is there */
#include <rocksdb/advanced_cache.h>
#endif
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstdarg>
#include <cstdio>
#include <memory>

/* As db/c.cc of the engine defines them, in 7.8 and in 9.10. */
struct rocksdb_options_t {
    rocksdb::Options rep;
};
struct rocksdb_cache_t {
    std::shared_ptr<rocksdb::Cache> rep;
};

struct pawl__rocks_buffers {
    std::shared_ptr<rocksdb::WriteBufferManager> manager;
};

namespace
{

class Logger : public rocksdb::Logger
{
  public:
    explicit Logger(void (*say)(const char *))
        : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL), say_(say)
    {
    }

    using rocksdb::Logger::Logv;
    void Logv(const char *format, va_list arguments) override
    {
        char text[512];

        std::vsnprintf(text, sizeof(text), format, arguments);
        say_(text);
    }

  private:
    void (*say_)(const char *);
};

} // namespace

bool pawl__rocks_shim_fits(void)
{
    constexpr int files = 12345;
    constexpr size_t bytes = 54321;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(bytes);

    rocksdb_options_set_max_open_files(options, files);
    rocksdb_options_set_write_buffer_size(options, bytes);
    bool fits = options->rep.max_open_files == files && options->rep.write_buffer_size == bytes
                && cache->rep->GetCapacity() == rocksdb_cache_get_capacity(cache);
    rocksdb_cache_destroy(cache);
    rocksdb_options_destroy(options);
    return fits;
}

void pawl__rocks_shim_set_logger(rocksdb_options_t *options, void (*say)(const char *text))
{
    options->rep.info_log = std::make_shared<Logger>(say);
}

struct pawl__rocks_buffers *pawl__rocks_shim_buffers_new(size_t bytes, rocksdb_cache_t *cache)
{
    return new pawl__rocks_buffers{ std::make_shared<rocksdb::WriteBufferManager>(bytes,
                                                                                  cache->rep) };
}

void pawl__rocks_shim_buffers_resize(struct pawl__rocks_buffers *buffers, size_t bytes)
{
    buffers->manager->SetBufferSize(bytes);
}

size_t pawl__rocks_shim_buffers_used(const struct pawl__rocks_buffers *buffers)
{
    return buffers->manager->memory_usage();
}

void pawl__rocks_shim_set_buffers(rocksdb_options_t *options,
                                  const struct pawl__rocks_buffers *buffers)
{
    options->rep.write_buffer_manager = buffers->manager;
}
