# SPDX-License-Identifier: Apache-2.0
# offers.fish SCRIPT: for each line of the input, up to its first |, what fish offers, on a line.
source $argv[1]
while read -l line
    set -l found
    for offered in (complete -C (string split '|' -- $line)[1])
        set -a found (string split \t -- $offered)[1]
    end
    echo $found
end
