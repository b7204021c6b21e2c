"""Makes this folder's files with Pillow 9.4: python3 make_testdata.py FOLDER

turned.jpg and upright.jpg show the same picture; the first one is stored turned, with EXIF orientation 6. They are not made here."""
import os, sys, random
from PIL import Image
random.seed(7)
out = sys.argv[1]
w, h = 53, 37
img = Image.new("RGB", (w, h))
img.putdata([(min(255, x * 5), (x * y * 3) % 256, random.randrange(256)) for y in range(h) for x in range(w)])
img.save(os.path.join(out, "noise.png"))
img.convert("L").save(os.path.join(out, "gray.png"))
img.convert("P").save(os.path.join(out, "palette.png"))
rgba = img.copy(); rgba.putalpha(Image.linear_gradient("L").resize((w, h))); rgba.save(os.path.join(out, "alpha.png"))
smooth = img.resize((8, 6), Image.BILINEAR).resize((w, h), Image.BICUBIC)
smooth.save(os.path.join(out, "smooth.jpg"), quality=92, subsampling=0)
def raw(name, im):
    open(os.path.join(out, name + ".bin"), "wb").write(im.tobytes())
for ww, hh in [(8, 8), (16, 37), (53, 11), (80, 60), (13, 50)]:
    raw(f"noise.{ww}x{hh}", img.resize((ww, hh), Image.BILINEAR))
for name in ["nearest", "lanczos", "bicubic", "box", "hamming"]:
    for ww, hh in [(16, 37), (60, 41), (9, 5)]:
        raw(f"noise.{ww}x{hh}.{name}", img.resize((ww, hh), getattr(Image.Resampling, name.upper())))
raw("noise.gray", img.convert("L"))
raw("palette.rgb", Image.open(os.path.join(out, "palette.png")).convert("RGB"))
raw("alpha.rgb", Image.open(os.path.join(out, "alpha.png")).convert("RGB"))
raw("smooth.rgb", Image.open(os.path.join(out, "smooth.jpg")).convert("RGB"))
# torchvision's Resize(20) and CenterCrop(15): the longer side is cut, half a pixel goes to the even side.
short = img.resize((int(20 * w / h), 20), Image.BILINEAR)
cw, ch = short.size
top, left = int(round((ch - 15) / 2)), int(round((cw - 15) / 2))
raw("noise.short20.crop15", short.crop((left, top, left + 15, top + 15)))

# JPEG files of all forms in the folder jpeg, some of them written by libjpeg's cjpeg, with the colors that Pillow has of them.
import subprocess
folder = os.path.join(out, "jpeg")
os.makedirs(folder, exist_ok=True)
def colorful(w, h, mode="RGB"):
    small = Image.new(mode, (w // 4 + 2, h // 4 + 2))
    small.putdata([tuple(random.randrange(256) for _ in mode) for _ in range(small.width * small.height)])
    return small.resize((w, h), Image.BICUBIC)
def keep(name):
    raw(os.path.join("jpeg", name), Image.open(os.path.join(folder, name + ".jpg")).convert("RGB"))
for name, w, h, options in [
    ("444", 19, 21, "-sample 1x1"), ("422", 19, 21, "-sample 2x1"), ("420", 19, 37, "-sample 2x2"), ("440", 19, 21, "-sample 1x2"),
    ("411", 35, 9, "-sample 4x1"), ("410", 35, 17, "-sample 4x2"), ("422_of_4x1", 35, 9, "-sample 4x1,2x1,2x1 -progressive"),
    ("a_third", 25, 9, "-sample 3x1"), ("less_luma", 19, 21, "-sample 1x1,2x2,2x1"), ("gray", 19, 21, "-grayscale"), ("rgb", 19, 21, "-rgb"),
    ("narrow", 4, 5, "-sample 2x2"), ("pixel", 1, 1, "-sample 2x2"), ("progressive", 19, 37, "-sample 2x2 -progressive -restart 1B"),
    ("single_scans", 19, 21, "-sample 2x1 -restart 2B -scans scans.txt"), ("worst", 19, 21, "-quality 1 -sample 2x2"), ("best", 19, 21, "-quality 100")]:
    colorful(w, h).save("picture.ppm")
    open("scans.txt", "w").write("0;1;2;\n")
    subprocess.check_call(["cjpeg", *options.split(), "-outfile", os.path.join(folder, name + ".jpg"), "picture.ppm"])
    keep(name)
for name, transform, subsampling in [("cmyk", 0, 0), ("cmyk_420", 0, 2), ("ycck", 2, 0), ("ycck_420", 2, 2), ("four_components", None, 0)]:
    path = os.path.join(folder, name + ".jpg")
    colorful(19, 21, "CMYK").save(path, subsampling=subsampling)
    b = open(path, "rb").read()
    at = b.index(b"Adobe")
    b = b[:at - 4] + b[at + 12:] if transform is None else b[:at + 11] + bytes([transform]) + b[at + 12:]
    open(path, "wb").write(b)
    keep(name)

# GIF and WebP files in the folder others, with the colors that Pillow has of them.
folder = os.path.join(out, "others")
os.makedirs(folder, exist_ok=True)
def other(name, im, **options):
    path = os.path.join(folder, name)
    im.save(path, **options)
    raw(os.path.join("others", name), Image.open(path).convert("RGB"))
for w, h in [(19, 21), (20, 18), (1, 1), (2, 3)]:
    other(f"lossy_{w}x{h}.webp", colorful(w, h), quality=80)
veil = colorful(19, 21).convert("RGBA")
veil.putalpha(Image.linear_gradient("L").resize((19, 21)))
other("lossy_alpha.webp", veil, quality=60)
other("lossless.webp", colorful(19, 21), lossless=True)
other("lossless_alpha.webp", veil, lossless=True, exact=True)
for name, options in [("plain", {}), ("interlaced", {"interlace": 1}), ("transparent", {"transparency": 3})]:
    other(name + ".gif", colorful(19, 21).convert("P", palette=Image.ADAPTIVE, colors=16), **options)
other("animated.gif", colorful(19, 21).convert("P"), save_all=True, append_images=[colorful(19, 21).convert("P")])
