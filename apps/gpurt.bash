# SPDX-License-Identifier: Apache-2.0
# Bash completion for gpurt. Options are read from `gpurt COMMAND --help`, so they are listed once, in
# the command; values that are a closed set stand there too, as a|b|c.

_gpurt_help() { command gpurt "$@" 2>/dev/null; }

_gpurt() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local verb=${COMP_WORDS[1]} words='' values=''
    local command=("$verb")
    # Kinds of training have options of their own.
    [ "$verb" = train ] && [ "$COMP_CWORD" -gt 2 ] && command+=("${COMP_WORDS[2]}")
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$(_gpurt_help --help | awk '/^  [a-z]/ { print $1 }') --help --version"
    elif [ "$verb" = help ]; then
        words=$(_gpurt_help --help | awk '/^  [a-z]/ { print $1 }')
    else
        case $before in
        -o | --output | --data | --config | --apply | --checkpoint | --from | --log | --tensorboard | \
            info | convert)
            compopt -o default
            return
            ;;
        --device)
            words=$(_gpurt_help devices --format csv | awk -F, 'NR > 1 { print $1 }')
            # A selector has a colon, at which bash splits words.
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
            type __ltrim_colon_completions >/dev/null 2>&1 && __ltrim_colon_completions "$word"
            return
            ;;
        --*)
            values=$(_gpurt_help "${command[@]}" --help |
                awk -v name="$before" '$1 == name && $2 ~ /[|]/ { gsub(/[|]/, " ", $2); print $2 }')
            ;;
        esac
        if [ -n "$values" ]; then
            words=$values
        else
            words=$(_gpurt_help "${command[@]}" --help | awk '
                /^  +(-[a-z], )?--/ { print $1 == "" || $1 ~ /^--/ ? $1 : $2 }')
            case $verb-$COMP_CWORD in
            bench-* | train-2)
                words="$(_gpurt_help "$verb" --help |
                    awk '/^  [a-z]+ +[a-z]/ { print $1 }') $words"
                ;;
            esac
            [ "$verb" = play ] && words="standing cartpole pendulum $words"
            [ "$verb" = data ] && words="make info regression classification points $words"
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _gpurt gpurt
