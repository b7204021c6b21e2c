"use strict";
// Results of a model: the largest elements, a picture, a plot, the numbers.
const show = (function () {
  const mostClasses = 1100; // a longer row is a signal
  const short = (x) => Number.isInteger(x) ? String(x) : Number(x.toPrecision(5)).toString();

  function top(values, parent, softmax) {
    let shown = values;
    if (softmax) {
      const most = Math.max(...values), e = values.map((x) => Math.exp(x - most)), sum = e.reduce((a, b) => a + b, 0);
      shown = e.map((x) => x / sum);
    }
    const order = shown.map((_, i) => i).sort((a, b) => shown[b] - shown[a]).slice(0, 5);
    const lo = Math.min(0, ...order.map((i) => shown[i])), hi = Math.max(...order.map((i) => shown[i]));
    const table = element("table", null, parent, { class: "bars" }), head = element("tr", null, element("thead", null, table));
    for (const name of ["class", softmax ? "probability" : "value", ""]) element("th", name, head);
    const body = element("tbody", null, table);
    for (const i of order) {
      const row = element("tr", null, body);
      element("td", i, row);
      element("td", softmax ? (100 * shown[i]).toFixed(1) + " %" : short(shown[i]), row);
      const bar = element("div", null, element("td", null, row), { class: "bar" });
      bar.style.width = `${hi > lo ? 100 * (shown[i] - lo) / (hi - lo) : 0}%`;
    }
  }

  // The shape of a picture: channels, height, width and their strides; null if a shape is none.
  function asPicture(shape) {
    const s = shape.filter((d, i) => d !== 1 || i >= shape.length - 3);
    if (s.length < 2 || s.length > 3) return null;
    if (s.length === 2) return s[0] > 3 && s[1] > 3 ? { c: 1, h: s[0], w: s[1], sc: 0, sy: s[1], sx: 1 } : null;
    if (s[0] <= 3 && s[1] > 3 && s[2] > 3) return { c: s[0], h: s[1], w: s[2], sc: s[1] * s[2], sy: s[2], sx: 1 };
    if (s[2] <= 3 && s[0] > 3 && s[1] > 3) return { c: s[2], h: s[0], w: s[1], sc: 1, sy: s[1] * s[2], sx: s[2] };
    return null;
  }

  function picture(values, p, parent) {
    const canvas = element("canvas", null, parent, { class: "picture" });
    canvas.width = p.w;
    canvas.height = p.h;
    canvas.style.width = Math.min(400, Math.max(p.w, 160)) + "px";
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(p.w, p.h);
    let lo = Infinity, hi = -Infinity;
    for (const x of values) if (Number.isFinite(x)) { lo = Math.min(lo, x); hi = Math.max(hi, x); }
    for (let y = 0; y < p.h; y++) {
      for (let x = 0; x < p.w; x++) {
        const at = 4 * (y * p.w + x);
        for (let k = 0; k < 3; k++) {
          const v = values[y * p.sy + x * p.sx + Math.min(k, p.c - 1) * p.sc];
          image.data[at + k] = hi > lo ? 255 * (v - lo) / (hi - lo) : 0;
        }
        image.data[at + 3] = 255;
      }
    }
    ctx.putImageData(image, 0, 0);
    element("p", `${p.h} by ${p.w}, from ${short(lo)} (black) to ${short(hi)} (white)`, parent, { class: "soft" });
  }

  // Each column of a plot is the range of the elements in it.
  function plot(values, parent) {
    const canvas = element("canvas", null, parent, { class: "plot", role: "img", "aria-label": "plot of the elements" });
    const width = canvas.width = Math.max(200, parent.clientWidth || 600), height = canvas.height = 140;
    const finite = values.filter(Number.isFinite);
    if (!finite.length) return;
    let lo = Infinity, hi = -Infinity;
    for (const x of finite) { lo = Math.min(lo, x); hi = Math.max(hi, x); }
    const ctx = canvas.getContext("2d"), y = (v) => height - 4 - (height - 8) * (hi > lo ? (v - lo) / (hi - lo) : 0.5);
    ctx.strokeStyle = ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--main");
    ctx.beginPath();
    if (values.length <= width) {
      values.forEach((v, i) => ctx.lineTo(values.length > 1 ? i * (width - 1) / (values.length - 1) : 0, y(v)));
    } else {
      for (let x = 0; x < width; x++) {
        const part = values.slice(Math.floor(x * values.length / width), Math.max(Math.floor((x + 1) * values.length / width), 1));
        ctx.moveTo(x, y(Math.min(...part)) + 0.5);
        ctx.lineTo(x, y(Math.max(...part)) - 0.5);
      }
    }
    ctx.stroke();
    element("p", `${values.length} elements, from ${short(lo)} to ${short(hi)}`, parent, { class: "soft" });
  }

  function output(out, parent) {
    const card = element("div", null, parent, { class: "card" });
    element("h3", `${out.name}: ${out.datatype} ${out.shape.join("×") || "scalar"}`, card);
    const values = out.values;
    if (!values || !values.length) {
      element("p", values ? "no elements" : "the page does not show this type", card, { class: "soft" });
      return;
    }
    if (typeof values[0] === "string" || values.length === 1) {
      element("p", values.slice(0, 20).join(", "), card);
      return;
    }
    const last = out.shape[out.shape.length - 1], p = asPicture(out.shape);
    if (p) picture(values, p, card);
    else if (last === values.length && values.length <= mostClasses) classes(values, card);
    else plot(values, card);
    const d = element("details", null, card);
    element("summary", "numbers", d);
    element("code", values.slice(0, 256).map(short).join(" ") + (values.length > 256 ? " …" : ""), d);
  }

  function classes(values, card) {
    const label = element("label", null, card, { class: "soft" }), box = element("input", null, label, { type: "checkbox" });
    label.append(" softmax");
    const sum = values.reduce((a, b) => a + b, 0);
    box.checked = Math.abs(sum - 1) > 0.01 || values.some((x) => x < 0);
    const list = element("div", null, card, { class: "top" });
    const draw = () => {
      list.replaceChildren();
      top(values, list, box.checked);
    };
    box.addEventListener("change", draw);
    draw();
  }

  return { output };
})();
