gpurt-profile 1
# NVIDIA H200; the rest is nvidia-hopper.
level = device
match.vendor = nvidia
match.name = H200

from = measured: 2026-11-15, driver 580.159.04, f32 4096^3: OpenCL 91 TFLOP/s against 40 without, Vulkan 92 against 40
gemm.split.use = 1

from = measured: 2026-11-15, driver 580.159.04, Vulkan: linear 2024 M steps/s, mlp256 718 M; 128 lanes: 1955 M, 539 M
rollout.wg = 256

# What the tiles of products cost; the cheapest is taken.
from = measured: 2026-11-15, driver 580.159.04, Vulkan, f16 8192^3: tile 128x256 359 TFLOP/s, 160x256 370, 128x128 326
gemm.coop.fit = 1 1 1 2 1 2 10
gemm.coop.step = 750 790 890 825 410 360 400
gemm.coop.step_t = 750 715 890 825 410 360 400
gemm.coop.ends = 5800 6000 6500 5000 3800 1900 2500

from = measured: 2026-11-15, driver 580.159.04, Vulkan, f32 4096^3: tile 64x128 44 TFLOP/s, 64x64 42
gemm.split.fit = 2 3 6
gemm.split.step = 3030 2300 1200
gemm.split.ends = 6000 4400 2400

from = measured: 2026-11-15, driver 580.159.04, OpenCL, f32 4096^3: tile 128x128x32 96 TFLOP/s, 64x128x16 78, 64x64x32 74; 64x32x32 is a guess, by which 20 random shapes gained (2026-11-17)
gemm.split_wgmma.fit = 1 2 2 3
gemm.split_wgmma.step = 1460 860 950 960
gemm.split_wgmma.ends = 5000 3600 2200 1800

from = measured: 2026-11-19, driver 580.159.04, OpenCL, fitted to 5400 ways of 110 products: what is chosen takes 2.8 % longer than the best
gemm.wgmma.fit = 1 1 1 1 1 3 2
gemm.wgmma.step = 0.534 0.422 0.27 0.151 0.179 0.419 0.197
gemm.wgmma.ends = 1.2 0.59 0.28 0.38 0.05 0.41 0.01

from = measured: 2026-11-16, driver 580.159.04, fitted to 228 products
gemm.wgmma_48k.step = 0.3 0.17 0.12
gemm.wgmma_48k.ends = 0.3 0.3 0.3
end
