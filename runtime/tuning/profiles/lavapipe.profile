gpurt-profile 1
# lavapipe runs a workgroup subgroup by subgroup: one subgroup each, and few of them.
level = architecture
match.arch = lavapipe

from = measured: 2026-11-15, Mesa 22.3.6 llvmpipe, copy of 16 MiB by a kernel at 0.48 GB/s; 0.29 otherwise
stream.wg = 0
stream.groups = 256
end
