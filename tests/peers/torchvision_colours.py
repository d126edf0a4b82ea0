# SPDX-License-Identifier: Apache-2.0
# What torchvision's v2 functionals make of a small image of floats, each step with given numbers,
# into tests/golden/torchvision_colours.h:
#
#     python3 tests/peers/torchvision_colours.py > tests/golden/torchvision_colours.h
import torch
import torchvision
from torchvision.transforms.v2 import functional as F

HEIGHT, WIDTH = 7, 6


def mix(i):
    """A byte of its index, by 32-bit arithmetic that C has too."""
    x = (i * 2654435761 + 12345) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 2246822519) & 0xFFFFFFFF
    x ^= x >> 13
    return x & 255


def image():
    count = HEIGHT * WIDTH * 3
    pixels = torch.tensor([mix(i) for i in range(count)], dtype=torch.float32)
    pixels[0:3] = 0
    pixels[3:6] = 255
    pixels[6:9] = torch.tensor([200.0, 200.0, 10.0])  # two channels are the largest
    return (pixels / 255).reshape(HEIGHT, WIDTH, 3).permute(2, 0, 1)


def chain(*steps):
    x = image()
    for step, number in steps:
        x = step(x, number)
    return x


B, C, S, H = F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue
rows = {
    "brighter": ("{color_jitter: {brightness: [1.4, 1.4]}}", chain((B, 1.4))),
    "darker": ("{color_jitter: {brightness: [0.3, 0.3]}}", chain((B, 0.3))),
    "contrast": ("{color_jitter: {contrast: [1.7, 1.7]}}", chain((C, 1.7))),
    "flatter": ("{color_jitter: {contrast: [0.25, 0.25]}}", chain((C, 0.25))),
    "saturated": ("{color_jitter: {saturation: [1.8, 1.8]}}", chain((S, 1.8))),
    "pale": ("{color_jitter: {saturation: [0.2, 0.2]}}", chain((S, 0.2))),
    "turned": ("{color_jitter: {hue: [0.2, 0.2]}}", chain((H, 0.2))),
    "turned_back": ("{color_jitter: {hue: [-0.45, -0.45]}}", chain((H, -0.45))),
    "grey": ("{random_grayscale: 1}", F.rgb_to_grayscale(image(), 3)),
    "blurred": ("{gaussian_blur: {kernel_size: 5, sigma: 0.9}}",
                F.gaussian_blur(image(), [5, 5], [0.9, 0.9])),
    "much_blurred": ("{gaussian_blur: {kernel_size: 11, sigma: 3}}",
                     F.gaussian_blur(image(), [11, 11], [3.0, 3.0])),
}
factors = {1: (B, 1.2), 2: (C, 0.7), 3: (S, 1.5), 4: (H, -0.1)}
for order in ((1, 2, 3, 4), (4, 3, 2, 1), (2, 4, 1, 3)):
    word = sum(op << (4 * k) for k, op in enumerate(order))
    rows["order_%x" % word] = (
        "{color_jitter: {brightness: [1.2, 1.2], contrast: [0.7, 0.7], saturation: [1.5, 1.5], "
        "hue: [-0.1, -0.1]}}", chain(*(factors[op] for op in order)))

print("// SPDX-License-Identifier: Apache-2.0")
print("// Made by tests/peers/torchvision_colours.py with PyTorch %s and torchvision %s on a CPU:"
      % (torch.__version__.split("+")[0], torchvision.__version__.split("+")[0]))
print("// do not edit.")
print("// clang-format off")
print("#ifndef TEST_GOLDEN_TORCHVISION_COLOURS_H")
print("#define TEST_GOLDEN_TORCHVISION_COLOURS_H")
print()
print("#define GOLDEN_HEIGHT %d" % HEIGHT)
print("#define GOLDEN_WIDTH %d" % WIDTH)
print()
print("static const struct golden_colours {")
print("    const char *text;")
print("    unsigned order;  // of four operations; 0: any")
print("    float y[GOLDEN_HEIGHT * GOLDEN_WIDTH * 3];  // from 0 to 255")
print("} golden_colours[] = {")
for name, (text, y) in rows.items():
    order = "0x" + name[6:] if name.startswith("order_") else "0"
    print("    // %s" % name)
    head, rest = text[:80], text[80:]
    print('    {"[%s%s%s, %s, {' % (head, '"\n     "' if rest else "", rest + ']"', order))
    values = (y * 255).permute(1, 2, 0).reshape(-1).tolist()
    for i in range(0, len(values), 6):
        print("        " + " ".join("%.8g," % v for v in values[i:i + 6]))
    print("    }},")
print("};")
print()
print("#endif")
