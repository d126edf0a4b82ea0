# SPDX-License-Identifier: Apache-2.0
# Bash completion for gpurt. Options and what they take are read from `gpurt COMMAND --help`, so they are
# listed once, in the command: values that are a closed set stand there as a|b|c, files as FILE.

_gpurt_help() { command gpurt "$@" 2>/dev/null; }

# The kinds of a command that has such: bench, train.
_gpurt_kinds() { _gpurt_help "$1" --help | awk '/^  [a-z]+ +[a-z]/ { print $1 }'; }

_gpurt() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local verb=${COMP_WORDS[1]} words='' takes='' environments='standing cartpole pendulum uav uav_flight'
    local command=("$verb")
    # Kinds of training, of benchmarks and of evaluations have options of their own.
    case $verb in
    sweep)
        case ${COMP_WORDS[2]} in status | best | resume | stop) command+=("${COMP_WORDS[2]}") ;; esac
        ;;
    eval)
        case ${COMP_WORDS[2]} in knn | linear) command+=("${COMP_WORDS[2]}") ;; esac
        ;;
    train | bench)
        if [ "$COMP_CWORD" -gt 2 ] && [[ ${COMP_WORDS[2]} != -* ]]; then
            command+=("${COMP_WORDS[2]}")
        fi
        ;;
    esac
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$(_gpurt_help --help | awk '/^  [a-z]/ { print $1 }') --help --version"
    elif [ "$verb" = help ]; then
        if [ "$COMP_CWORD" -eq 2 ]; then
            words=$(_gpurt_help --help | awk '/^  [a-z]/ { print $1 }')
        else
            words=$(_gpurt_kinds "$before")
        fi
    else
        case $before in
        info | convert | report | compare | status | best | resume | stop) takes=FILE ;;
        -*)
            takes=$(_gpurt_help "${command[@]}" --help | awk -v name="$before" '
                /^ +-/ && ($1 == name || $1 == name "," || $2 == name) {
                    print $1 ~ /,$/ ? $3 : $2
                }')
            ;;
        esac
        case $takes in
        FILE* | PATH | DIR)
            compopt -o default
            return
            ;;
        DEVICE)
            words=$(_gpurt_help devices --format csv | awk -F, 'NR > 1 { print $1 }')
            # A selector has a colon, at which bash splits words.
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
            type __ltrim_colon_completions >/dev/null 2>&1 && __ltrim_colon_completions "$word"
            return
            ;;
        'NAME|FILE.k')
            words=$environments
            compopt -o default
            ;;
        *'|'*) words=${takes//|/ } ;;
        esac
        if [ -z "$words" ]; then
            words=$(_gpurt_help "${command[@]}" --help | awk '
                /^  +(-[a-z], )?--/ { print $1 == "" || $1 ~ /^--/ ? $1 : $2 }')
            case $verb-$COMP_CWORD in
            bench-* | train-2) words="$(_gpurt_kinds "$verb") $words" ;;
            play-2) words="$environments $words" ;;
            sweep-2)
                words="status best resume stop $words"
                compopt -o default
                ;;
            eval-2) words="knn linear $environments $words" ;;
            data-*) words="make info import preview regression classification points shapes $words" ;;
            esac
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _gpurt gpurt
