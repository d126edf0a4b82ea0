gpurt-profile 1
# PoCL makes one loop of a workgroup's lanes and wants it long, with one element a lane: with few
# groups a lane's next element is far away.
level = architecture
match.arch = pocl

from = measured: 2026-11-15, PoCL 3.1, copy of 64 MiB at 13 GB/s; with 256 groups 1.8 GB/s
stream.wg = 1024
stream.groups = 65535
end
