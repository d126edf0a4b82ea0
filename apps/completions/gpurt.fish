# SPDX-License-Identifier: Apache-2.0
# Fish completion for gpurt. `gpurt completion -- WORD...` says what the last word can become.

function __gpurt_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l begin (string match -r '^[^=]*=' -- "$word")
    for line in (command gpurt completion -- $words[2..] "$word" 2>/dev/null)
        if not string match -q ':files*' -- $line
            echo $line
            continue
        end
        set -l ends (string split -n ' ' -- (string replace ':files' '' -- $line))
        for file in (__fish_complete_path (string replace -- "$begin" '' "$word"))
            set -l name (string split \t -- $file)[1]
            if string match -q '*/' -- $name; or test (count $ends) -eq 0; or contains -- (string replace -r '.*\.' '' -- $name) $ends
                echo "$begin$file"
            end
        end
    end
end

complete -c gpurt -f -a '(__gpurt_complete)'
