# SPDX-License-Identifier: Apache-2.0
# Bash completion for gpurt. `gpurt completion -- WORD...` says what the last word can become.

_gpurt() {
    local words word line files='' ends='' begin
    # Words as the user sees them: bash splits at = and : too, and replaces what follows the last one.
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} != *[[:space:]] ]] || words+=('')
    word=${words[${#words[@]} - 1]}
    begin=${word%"${word##*[=:]}"}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files*)
            files=1
            ends=${line#:files}
            ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <(command gpurt completion -- "${words[@]:1}" 2>/dev/null)
    if [ -n "$files" ]; then
        compopt -o filenames
        while IFS= read -r line; do
            if [ -d "$line" ] || [ -z "$ends" ] || [[ " $ends " == *" ${line##*.} "* ]]; then
                COMPREPLY+=("$begin$line")
            fi
        done < <(compgen -f -- "${word#"$begin"}")
    fi
    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
    COMPREPLY=("${COMPREPLY[@]#"$begin"}")
}
complete -F _gpurt gpurt
