# SPDX-License-Identifier: Apache-2.0
# The text of a file as a literal of C, a line for each of its lines: a compiler reads it ten times
# as fast as numbers for the bytes. "?" is escaped for the sake of trigraphs.
function(gpurt_literal file literal)
    file(READ ${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}")
    string(REPLACE "\r" "\\r" text "${text}")
    string(REPLACE "\n" "\\n\"\n\"" text "${text}")
    set(${literal} "\"${text}\"" PARENT_SCOPE)
endfunction()
