# SPDX-License-Identifier: Apache-2.0
# offers.bash SCRIPT: for each line of the input, up to its first |, what bash would offer, on a line.
# What bash keeps of a word before = or : is put back, and folders end in /.
compopt() { :; } # that of bash works inside a completion only
. "$1"
while IFS= read -r line; do
    COMP_LINE=${line%%|*}
    COMP_POINT=${#COMP_LINE}
    word=${COMP_LINE##* }
    begin=${word%"${word##*[=:]}"}
    _gpurt </dev/null
    for i in "${!COMPREPLY[@]}"; do
        [ ! -d "${COMPREPLY[i]}" ] || COMPREPLY[i]+=/
    done
    words=("${COMPREPLY[@]/#/$begin}")
    echo "${words[*]}"
done
