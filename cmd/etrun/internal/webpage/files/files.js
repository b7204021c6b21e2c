"use strict";
// Files as numbers: pictures, NumPy arrays, sound.
const read = (function () {
  const MOST = 1 << 26; // elements

  function count(shape) { return shape.reduce((n, d) => n * d, 1); }

  // An array of a .npy file.
  function npy(buffer) {
    const bytes = new Uint8Array(buffer), view = new DataView(buffer);
    if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY") throw new Error("not a .npy file");
    const long = bytes[6] > 1, size = long ? view.getUint32(8, true) : view.getUint16(8, true), from = long ? 12 : 10;
    if (from + size > bytes.length) throw new Error("the .npy file is truncated");
    const head = new TextDecoder("latin1").decode(bytes.subarray(from, from + size));
    const type = /'descr':\s*'([<>|=]?)([a-z])(\d+)'/.exec(head), dims = /'shape':\s*\(([^)]*)\)/.exec(head);
    if (!type || !dims) throw new Error("the header of the .npy file cannot be read");
    if (/'fortran_order':\s*True/.test(head)) throw new Error("the .npy file is in Fortran order; save numpy.ascontiguousarray(x)");
    const shape = dims[1].split(",").map((d) => d.trim()).filter(Boolean).map(Number);
    const names = { f4: "Float32", f8: "Float64", i1: "Int8", i2: "Int16", i4: "Int32", i8: "BigInt64", u1: "Uint8", u2: "Uint16", u4: "Uint32",
      u8: "BigUint64", b1: "Uint8" };
    const name = names[type[2] + type[3]], width = Number(type[3]), n = count(shape);
    if (!name) throw new Error(`elements of type ${type[2]}${type[3]}, want numbers`);
    if (!(n <= MOST) || from + size + n * width > bytes.length) throw new Error("the .npy file is truncated, or its shape is too large");
    const values = Array.from({ length: n }, (_, i) => Number(view["get" + name](from + size + i * width, type[1] !== ">")));
    return { shape, values };
  }

  // The samples of a .wav file, from -1 to 1, of all channels together, at a rate.
  function wav(buffer, rate) {
    const view = new DataView(buffer), tag = (at) => String.fromCharCode(...new Uint8Array(buffer, at, 4));
    if (buffer.byteLength < 44 || tag(0) !== "RIFF" || tag(8) !== "WAVE") throw new Error("not a .wav file");
    let format = null, data = null;
    for (let at = 12; at + 8 <= buffer.byteLength;) {
      const size = view.getUint32(at + 4, true), from = at + 8;
      if (tag(at) === "fmt " && size >= 16 && from + 16 <= buffer.byteLength) {
        format = { kind: view.getUint16(from, true), channels: view.getUint16(from + 2, true), rate: view.getUint32(from + 4, true), bits: view.getUint16(from + 14, true) };
      } else if (tag(at) === "data") {
        data = { from, size: Math.min(size, buffer.byteLength - from) };
      }
      at = from + size + size % 2;
    }
    if (!format || !data || !format.channels || !format.rate) throw new Error("the .wav file has no samples");
    const readers = { 8: (p) => (view.getUint8(p) - 128) / 128, 16: (p) => view.getInt16(p, true) / 32768,
      24: (p) => (view.getUint8(p) | view.getUint8(p + 1) << 8 | view.getInt8(p + 2) << 16) / 8388608,
      32: (p) => format.kind === 3 ? view.getFloat32(p, true) : view.getInt32(p, true) / 2147483648 };
    const sample = readers[format.bits];
    if (!sample) throw new Error(`samples of ${format.bits} bits, want 8, 16, 24 or 32`);
    const width = format.bits / 8, frame = width * format.channels, frames = Math.floor(data.size / frame);
    const mono = Array.from({ length: frames }, (_, i) => {
      let sum = 0;
      for (let c = 0; c < format.channels; c++) sum += sample(data.from + i * frame + c * width);
      return sum / format.channels;
    });
    if (!rate || rate === format.rate || !frames) return mono;
    const step = format.rate / rate;
    return Array.from({ length: Math.max(1, Math.round(frames / step)) }, (_, i) => {
      const at = Math.min(i * step, frames - 1), k = Math.floor(at), next = Math.min(k + 1, frames - 1);
      return mono[k] + (mono[next] - mono[k]) * (at - k);
    });
  }

  // The pixels of a drawing, 0 to 1, as [channels][height][width].
  function pixels(source, width, height, channels) {
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const ctx = canvas.getContext("2d");
    ctx.imageSmoothingQuality = "high";
    ctx.drawImage(source, 0, 0, width, height);
    const rgba = ctx.getImageData(0, 0, width, height).data, n = width * height;
    const planes = Array.from({ length: channels }, () => new Array(n));
    for (let i = 0; i < n; i++) {
      const [r, g, b] = [rgba[4 * i] / 255, rgba[4 * i + 1] / 255, rgba[4 * i + 2] / 255];
      if (channels === 1) planes[0][i] = 0.299 * r + 0.587 * g + 0.114 * b;
      else [r, g, b].forEach((x, c) => { planes[c][i] = x; });
    }
    return planes;
  }

  function numbers(text) {
    const list = text.split(/[\s,;[\]]+/).filter(Boolean).map(Number);
    if (list.some((x) => Number.isNaN(x))) throw new Error("not all of these are numbers");
    return list;
  }

  return { npy, wav, pixels, numbers, count };
})();
