"use strict";
// Requests to the API of this server, with the token of this tab.
const api = (function () {
  const KEY = "etrun-token";
  let onDenied = () => {};

  function headers(more) {
    const h = { ...more }, token = sessionStorage.getItem(KEY);
    if (token) h.Authorization = "Bearer " + token;
    return h;
  }

  // The message of an error of either protocol.
  async function failure(answer) {
    let text = `status ${answer.status}`;
    try {
      const body = await answer.json();
      const e = body.error;
      if (typeof e === "string") text = e;
      else if (e && e.message) text = e.message;
    } catch { /* not JSON */ }
    const error = new Error(text);
    error.status = answer.status;
    return error;
  }

  async function ask(path, options = {}) {
    const answer = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store" });
    if (answer.status === 401) onDenied();
    if (!answer.ok) throw await failure(answer);
    return answer;
  }

  const json = async (path, options) => (await ask(path, options)).json();
  const post = (path, body, signal) => ask(path, { method: "POST", body: JSON.stringify(body), signal });
  const modelPath = (name) => "/v2/models/" + encodeURIComponent(name);

  // Elements by datatype: the size in bytes, how to read and how to write them.
  const kinds = {
    BOOL: [1, "Uint8"], UINT8: [1, "Uint8"], INT8: [1, "Int8"], UINT16: [2, "Uint16"], INT16: [2, "Int16"], UINT32: [4, "Uint32"],
    INT32: [4, "Int32"], INT64: [8, "BigInt64"], UINT64: [8, "BigUint64"], FP32: [4, "Float32"], FP64: [8, "Float64"], FP16: [2, "Uint16"], BF16: [2, "Uint16"],
  };

  function half(h) {
    const s = h & 0x8000 ? -1 : 1, e = (h >> 10) & 31, f = h & 1023;
    if (e === 31) return f ? NaN : s * Infinity;
    return s * (e ? 2 ** (e - 15) * (1 + f / 1024) : 2 ** -14 * f / 1024);
  }

  const word = new DataView(new ArrayBuffer(4));
  const bfloat = (b) => {
    word.setUint32(0, b << 16);
    return word.getFloat32(0);
  };

  function toHalf(x) {
    word.setFloat32(0, x);
    const bits = word.getUint32(0), s = (bits >>> 16) & 0x8000, e = ((bits >>> 23) & 255) - 112, f = bits & 0x7fffff;
    if (Number.isNaN(x)) return 0x7e00;
    if (e >= 31) return s | 0x7c00;
    if (e <= 0) return s | (e < -10 ? 0 : Math.round((f | 0x800000) * 2 ** (e - 14)));
    return s + (e << 10) + Math.round(f / 8192);
  }

  function toBfloat(x) {
    word.setFloat32(0, x);
    return Number.isNaN(x) ? 0x7fc0 : Math.min((word.getUint32(0) + 0x7fff) >>> 16, 0xffff);
  }

  function encode(datatype, values) {
    const kind = kinds[datatype];
    if (!kind) throw new Error(`the page cannot send ${datatype}`);
    const [size, name] = kind, bytes = new DataView(new ArrayBuffer(values.length * size)), set = "set" + name;
    for (let i = 0; i < values.length; i++) {
      let x = values[i];
      if (datatype === "FP16") x = toHalf(x);
      else if (datatype === "BF16") x = toBfloat(x);
      else if (size === 8 && name.startsWith("Big")) x = BigInt(Math.trunc(Number.isFinite(x) ? x : 0));
      bytes[set](i * size, x, true);
    }
    return new Uint8Array(bytes.buffer);
  }

  function decode(datatype, bytes) {
    const kind = kinds[datatype];
    if (!kind) return null;
    const [size, name] = kind, view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return Array.from({ length: Math.floor(bytes.byteLength / size) }, (_, i) => {
      const x = view["get" + name](i * size, true);
      return datatype === "FP16" ? half(x) : datatype === "BF16" ? bfloat(x) : Number(x);
    });
  }

  // An inference with binary data both ways: elements that JSON does not have, too.
  async function infer(model, method, inputs) {
    const head = { inputs: [], parameters: { binary_data_output: true } }, parts = [];
    for (const t of inputs) {
      const entry = { name: t.name, shape: t.shape, datatype: t.datatype };
      if (t.datatype === "BYTES") {
        entry.data = t.values;
      } else {
        const bytes = encode(t.datatype, t.values);
        entry.parameters = { binary_data_size: bytes.length };
        parts.push(bytes);
      }
      head.inputs.push(entry);
    }
    const text = new TextEncoder().encode(JSON.stringify(head));
    const path = modelPath(model) + (method ? "/versions/" + encodeURIComponent(method) : "") + "/infer";
    const begun = performance.now();
    const answer = await ask(path, { method: "POST", body: new Blob([text, ...parts]), headers: {
      "Inference-Header-Content-Length": String(text.length), "Content-Type": "application/octet-stream" } });
    const all = new Uint8Array(await answer.arrayBuffer()), took = performance.now() - begun;
    const length = Number(answer.headers.get("Inference-Header-Content-Length") || all.length);
    const body = JSON.parse(new TextDecoder().decode(all.subarray(0, length)));
    let at = length;
    for (const out of body.outputs || []) {
      const size = out.parameters && out.parameters.binary_data_size;
      if (size === undefined) {
        out.values = out.data;
        continue;
      }
      out.values = decode(out.datatype, all.subarray(at, at + size));
      at += size;
    }
    return { outputs: body.outputs || [], took };
  }

  // The objects of a stream, one after the other.
  async function* events(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const lines = rest.split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        yield JSON.parse(data);
      }
    }
  }

  return { ask, json, post, infer, events, modelPath, token: (t) => sessionStorage.setItem(KEY, t), forget: () => sessionStorage.removeItem(KEY),
    denied: (f) => { onDenied = f; }, known: () => !!sessionStorage.getItem(KEY) };
})();

// An element with text; nothing of an answer is ever markup.
function element(name, text, parent, attributes) {
  const e = document.createElement(name);
  if (text !== undefined && text !== null) e.textContent = text;
  for (const key in attributes || {}) e.setAttribute(key, attributes[key]);
  if (parent) parent.append(e);
  return e;
}
const one = (id) => document.getElementById(id);
