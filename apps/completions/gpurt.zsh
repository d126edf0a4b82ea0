#compdef gpurt
# SPDX-License-Identifier: Apache-2.0
# Zsh completion for gpurt. `gpurt completion -- WORD...` says what the last word can become.

_gpurt() {
    local line word help files='' globs=''
    local -a plain plain_help open open_help
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        help=${line#*$'\t'}
        case $line in
        :files*)
            files=1
            globs=${${line#:files}# }
            ;;
        *=$'\t'*)
            open+=("$word")
            open_help+=("$word  $help")
            ;;
        *)
            plain+=("$word")
            plain_help+=("$word${help:+  $help}")
            ;;
        esac
    done < <(command gpurt completion -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    (( $#plain == 0 )) || compadd -l -d plain_help -a plain
    # A key has its value still to come.
    (( $#open == 0 )) || compadd -S '' -l -d open_help -a open
    if [[ -n $files ]]; then
        compset -P '*='
        if [[ -n $globs ]]; then
            _files -g "*.(${globs// /|})(-.)"
        else
            _files
        fi
    fi
}

# Loaded from a folder of $fpath it is called; sourced, it is only made known.
if [[ ${funcstack[1]:-} == _gpurt ]]; then
    _gpurt "$@"
else
    compdef _gpurt gpurt
fi
