#include "cli/frame/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"

#define SETTING_TEXT_BYTES_MAX 4096
#define CHOICES_MAX 32

static const struct {
    const char *value;
    enum pawl__cli_value_kind kind;
} kinds[] = {
    [PAWL__SETTING_TEXT] = { "TEXT", VALUE_TEXT },
    [PAWL__SETTING_BOOL] = { "YES|NO", VALUE_TEXT },
    [PAWL__SETTING_INTEGER] = { "N", VALUE_TEXT },
    [PAWL__SETTING_DURATION] = { "DURATION", VALUE_TEXT },
    [PAWL__SETTING_SIZE] = { "SIZE", VALUE_TEXT },
    [PAWL__SETTING_CHOICE] = { "WORD", VALUE_TEXT },
    [PAWL__SETTING_PATH] = { "PATH", VALUE_FILE },
    [PAWL__SETTING_URL] = { "URL", VALUE_TEXT },
    [PAWL__SETTING_SECRET] = { "TEXT", VALUE_TEXT },
};

/* One block of memory: the pointers, NULL behind the last, then the text they point into. */
static const char *const *split_choices(const char *one_of)
{
    size_t size = strlen(one_of) + 1;
    const char **choices = calloc(1, (CHOICES_MAX + 1) * sizeof(choices[0]) + size);
    size_t count = 0;

    if (choices == NULL) {
        return NULL;
    }
    char *text = (char *)(choices + CHOICES_MAX + 1);
    memcpy(text, one_of, size);
    for (char *rest = NULL, *word = strtok_r(text, "|", &rest); word != NULL;
         word = strtok_r(NULL, "|", &rest)) {
        REQUIRE(count < CHOICES_MAX);
        choices[count++] = word;
    }
    return choices;
}

/* The names of the flag and everything help says about it, in one text with a NUL between. */
static char *describe(const struct pawl__setting *setting, const char *flag)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(SETTING_TEXT_BYTES_MAX);
    char variable[PAWL__SETTING_NAME_SIZE];

    pawl__setting_variable(setting, variable);
    pawl__buf_add(&text, (pawl_view){ flag, strlen(flag) + 1 });
    pawl__buf_add_text(&text, setting->help);
    if (setting->type == PAWL__SETTING_DURATION || setting->type == PAWL__SETTING_SIZE
        || setting->type == PAWL__SETTING_INTEGER) {
        pawl__buf_add_text(&text, " Write ");
        pawl__setting_add_allowed(setting, &text);
        pawl__buf_add_char(&text, '.');
    }
    pawl__buf_add_format(&text, " In pawl.yaml: %s. Variable: %s", setting->key, variable);
    if (setting->also != NULL && strcmp(setting->also, variable) != 0) {
        pawl__buf_add_format(&text, " or %s", setting->also);
    }
    pawl__buf_add_char(&text, '.');
    return pawl__buf_steal(&text);
}

static pawl_status init_one(struct pawl__cli_setting_flags *flags, size_t index, pawl_error *reterr)
{
    const struct pawl__setting *setting = &pawl__settings[index];
    char name[PAWL__SETTING_NAME_SIZE];

    pawl__setting_flag(setting, name);
    const char *bare = name + strlen("--");
    flags->texts[index] = describe(setting, bare);
    if (setting->type == PAWL__SETTING_CHOICE) {
        flags->choices[index] = split_choices(setting->one_of);
    } else if (setting->type == PAWL__SETTING_BOOL) {
        flags->choices[index] = split_choices("true|false|yes|no|on|off");
    }
    bool chooses = setting->type == PAWL__SETTING_CHOICE || setting->type == PAWL__SETTING_BOOL;
    if (flags->texts[index] == NULL || (chooses && flags->choices[index] == NULL)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the flags of settings");
    }
    flags->flags[index] = (struct pawl__cli_flag){
        .name = flags->texts[index],
        .value = kinds[setting->type].value,
        .help = flags->texts[index] + strlen(bare) + 1,
        .choices = flags->choices[index],
        .fallback = setting->text[0] == '\0' ? NULL : setting->text,
        .kind = strcmp(setting->key, "data") == 0 ? VALUE_DIR : kinds[setting->type].kind,
    };
    return PAWL_OK;
}

pawl_status pawl__cli_setting_flags_init(struct pawl__cli_setting_flags *flags, pawl_error *reterr)
{
    *flags = (struct pawl__cli_setting_flags){ 0 };
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        pawl_status status = init_one(flags, i, reterr);

        if (status != PAWL_OK) {
            pawl__cli_setting_flags_done(flags);
            return status;
        }
    }
    return PAWL_OK;
}

void pawl__cli_setting_flags_done(struct pawl__cli_setting_flags *flags)
{
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        free(flags->texts[i]);
        /* free takes no pointer to const; the block is ours. */
        union {
            const char *const *shown;
            void *owned;
        } choices = { .shown = flags->choices[i] };
        free(choices.owned);
    }
    *flags = (struct pawl__cli_setting_flags){ 0 };
}

/* Which setting a flag stands for; PAWL__SETTING_COUNT when it is none. */
static size_t setting_of(const struct pawl__cli_flag *flag)
{
    char name[PAWL__SETTING_NAME_SIZE];
    size_t index = 0;

    for (; index < PAWL__SETTING_COUNT; index++) {
        pawl__setting_flag(&pawl__settings[index], name);
        if (strcmp(name + strlen("--"), flag->name) == 0) {
            break;
        }
    }
    return index;
}

pawl_status pawl__cli_settings_load(const struct pawl__cli_args *args,
                                    struct pawl__cli_problem_sink sink,
                                    struct pawl__config **ret_config,
                                    pawl_error *reterr)
{
    struct pawl__config_flag *flags = calloc(args->given_count + 1, sizeof(flags[0]));
    size_t count = 0;

    TRY(pawl__check_memory(flags, "the flags of settings", reterr));
    for (size_t i = 0; i < args->given_count; i++) {
        size_t setting = setting_of(args->given[i].flag);

        if (setting < PAWL__SETTING_COUNT) {
            flags[count++] = (struct pawl__config_flag){ .id = (enum pawl__setting_id)setting,
                                                         .value = args->given[i].value };
        }
    }
    struct pawl__config_sources sources = {
        .file = pawl__cli_args_value(args, "config"),
        .environment = (const char *const *)environ,
        .flags = flags,
        .flags_count = count,
        .sections = pawl__cli_sections,
        .problem = sink.problem,
        .problem_context = sink.context,
    };
    pawl_status status = pawl__config_load(&sources, ret_config, reterr);
    free(flags);
    return status;
}

bool pawl__cli_settings_use_database(const struct pawl__config *config)
{
    return pawl__config_text(config, PAWL__DATABASE_URL)[0] != '\0'
           && pawl__config_origin(config, PAWL__DATA).kind != PAWL__ORIGIN_FLAG;
}
