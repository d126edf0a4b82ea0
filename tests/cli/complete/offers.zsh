# SPDX-License-Identifier: Apache-2.0
# offers.zsh SCRIPT: for each line of the input, up to its first |, what zsh would offer, on a line.
# The calls that zsh has inside a completion only are stood in for: they note the words.
typeset -a found
compdef() { : }
compset() { begin=${typed%"${typed##*=}"} }
compadd() {
    local name=${@[-1]} w
    for w in ${(P)name}; do
        [[ $w == $typed* ]] && found+=($w)
    done
}
_files() {
    local glob=${2%%\(-.\)} f
    for f in *(N); do
        [[ $f == ${typed#$begin}* ]] || continue
        if [[ -d $f ]]; then
            found+=($begin$f/)
        elif [[ -z $glob || $f == ${~glob} ]]; then
            found+=($begin$f)
        fi
    done
}
setopt extendedglob
source $1
while IFS= read -r line; do
    line=${line%%\|*}
    words=(${(s: :)line})
    [[ $line == *' ' ]] && words+=('')
    CURRENT=$#words
    typed=$words[-1] begin=''
    found=()
    _gpurt </dev/null
    print -r -- $found
done
