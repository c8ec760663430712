/* What bash, zsh and fish load: each hands the words so far to `pawl __complete`. */
#include <string.h>

#include "base/core/macros.h"
#include "cli/frame/complete.h"

/* bash splits words at '=' and ':' (COMP_WORDBREAKS); they are joined again before asking, and what
 * stands before the last of those characters is cut from the answers. */
static const char bash_script[] =
    "# bash completion for pawl\n"
    "_pawl() {\n"
    "    local word='' answer rule=:none i\n"
    "    local -a asked=()\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        if [[ ${COMP_WORDS[i]} == [=:]* || ${COMP_WORDS[i - 1]} == [=:] ]]; then\n"
    "            word+=${COMP_WORDS[i]}\n"
    "        else\n"
    "            ((i > 1)) && asked+=(\"$word\")\n"
    "            word=${COMP_WORDS[i]}\n"
    "        fi\n"
    "    done\n"
    "    local prefix=${word%\"${word##*[=:]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r answer; do\n"
    "        case $answer in\n"
    "        :*) rule=$answer ;;\n"
    "        *) answer=${answer%%$'\\t'*}\n"
    "           COMPREPLY+=(\"${answer#\"$prefix\"}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" __complete -- \"${asked[@]}\" \"$word\" 2>/dev/null)\n"
    "    case $rule in\n"
    "    :file) compopt -o default 2>/dev/null ;;\n"
    "    :dir) compopt -o dirnames 2>/dev/null ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _pawl pawl\n";

static const char zsh_script[] =
    "#compdef pawl\n"
    "_pawl() {\n"
    "    local answer rule=:none value\n"
    "    local -a found\n"
    "    while IFS= read -r answer; do\n"
    "        case $answer in\n"
    "        :*) rule=$answer ;;\n"
    "        *) value=${answer%%$'\\t'*}\n"
    "           found+=(\"${value//:/\\\\:}:${answer#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done < <(\"${words[1]}\" __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( $#found )) && _describe -V pawl found\n"
    "    case $rule in\n"
    "    :file) [[ $PREFIX == --*=* ]] && compset -P '*='; _files ;;\n"
    "    :dir) [[ $PREFIX == --*=* ]] && compset -P '*='; _files -/ ;;\n"
    "    esac\n"
    "}\n"
    "if [[ $funcstack[1] == _pawl ]]; then\n"
    "    _pawl \"$@\"\n"
    "else\n"
    "    compdef _pawl pawl\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion for pawl\n"
    "function __pawl_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    for answer in ($words[1] __complete -- $words[2..-1] \"$word\" 2>/dev/null)\n"
    "        switch $answer\n"
    "            case :file\n"
    "                __fish_complete_path (string replace -r '^--[^=]*=' '' -- $word)\n"
    "            case :dir\n"
    "                __fish_complete_directories (string replace -r '^--[^=]*=' '' -- $word)\n"
    "            case :none\n"
    "            case '*'\n"
    "                echo $answer\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c pawl -f -a '(__pawl_complete)'\n";

static const struct {
    const char *shell;
    const char *script;
} scripts[] = {
    { "bash", bash_script },
    { "zsh", zsh_script },
    { "fish", fish_script },
};

const char *pawl__cli_completion_script(const char *shell)
{
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        if (strcmp(scripts[i].shell, shell) == 0) {
            return scripts[i].script;
        }
    }
    return NULL;
}
