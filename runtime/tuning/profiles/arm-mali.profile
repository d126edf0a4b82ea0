gpurt-profile 1
# Arm Mali and Immortalis: shared memory is ordinary memory behind the cache, so tiles stay small; 64
# registers a lane before the threads of a core are halved.
level = vendor
match.vendor = arm

from = derived: tiles that stay within the first-level cache, 16 sums a lane
gemm.tiled.large = 64 64 16 4 4
gemm.tiled.medium = 32 32 8 4 4
gemm.tiled.small = 32 32 8 4 4
gemm.tiled16.large = 64 64 16 4 4
gemm.tiled16.medium = 32 32 8 4 4
gemm.tiled16.small = 32 32 8 4 4

from = default
stream.wg = 64
mem_fraction = 0.5
end
