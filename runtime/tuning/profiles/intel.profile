gpurt-profile 1
# Every Intel GPU: 128 registers of 32 bytes a thread, shared by 8 to 16 lanes.
level = vendor
match.vendor = intel

from = derived: CLBlast's tuning of the Arc A770, twice as tall
gemm.tiled.large = 64 64 16 8 4
gemm.tiled.medium = 32 64 16 8 4
gemm.tiled.small = 32 32 16 4 4
gemm.tiled16.large = 64 64 16 8 4
gemm.tiled16.medium = 32 64 16 8 4
gemm.tiled16.small = 32 32 16 4 4
end
