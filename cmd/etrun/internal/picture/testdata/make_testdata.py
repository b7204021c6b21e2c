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
raw("noise.gray", img.convert("L"))
raw("palette.rgb", Image.open(os.path.join(out, "palette.png")).convert("RGB"))
raw("alpha.rgb", Image.open(os.path.join(out, "alpha.png")).convert("RGB"))
raw("smooth.rgb", Image.open(os.path.join(out, "smooth.jpg")).convert("RGB"))
# torchvision's Resize(20) and CenterCrop(15): the longer side is cut, half a pixel goes to the even side.
short = img.resize((int(20 * w / h), 20), Image.BILINEAR)
cw, ch = short.size
top, left = int(round((ch - 15) / 2)), int(round((cw - 15) / 2))
raw("noise.short20.crop15", short.crop((left, top, left + 15, top + 15)))
