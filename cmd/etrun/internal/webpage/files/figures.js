"use strict";
// The queue, durations and memory of /metrics, again and again while they are shown.
const figures = (function () {
  const SVG = "http://www.w3.org/2000/svg", KEPT = 90;
  const past = new Map(); // by model: the recent lengths of its queue
  let timer = 0, before = null;

  // The samples of the text format: name, labels, value.
  function parse(text) {
    const list = [];
    for (const line of text.split("\n")) {
      const m = /^([a-z_A-Z0-9:]+)(\{(.*)\})? (\S+)/.exec(line);
      if (!m) continue;
      const labels = {};
      for (const l of (m[3] || "").matchAll(/([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"/g)) {
        labels[l[1]] = l[2].replace(/\\(.)/g, (_, c) => c === "n" ? "\n" : c);
      }
      list.push({ name: m[1], labels, value: Number(m[4].replace("Inf", "Infinity")) });
    }
    return list;
  }

  function svg(name, attributes, parent) {
    const e = document.createElementNS(SVG, name);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (parent) parent.append(e);
    return e;
  }

  // A drawing between its axes: the largest and the smallest value, and below it labels at the right end of equal parts.
  function axes(card, name, most, labels, box, title) {
    const frame = element("div", null, card, { class: "axes soft" }), scale = element("div", null, frame, { class: "scale" });
    for (const v of [most, 0]) element("span", v, scale);
    const drawing = svg("svg", { class: name, viewBox: box, preserveAspectRatio: "none", role: "img", "aria-label": title }, frame);
    const below = element("div", null, frame, { class: "below" });
    for (const l of labels) element("span", l, below);
    return drawing;
  }

  const time = (s) => s >= 1 ? `${+s.toFixed(2)} s` : s >= 1e-3 ? `${+(s * 1e3).toFixed(2)} ms` : `${+(s * 1e6).toFixed(1)} µs`;

  function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let u = 0;
    for (; n >= 1024 && u < 3; u++) n /= 1024;
    return (u ? n.toFixed(1) : n) + " " + units[u];
  }

  // Durations of all methods and backends of a model, by the upper bounds of the buckets.
  function histogram(samples, name, model, card, title) {
    const sums = new Map();
    for (const s of samples) {
      if (s.name === name + "_bucket" && s.labels.model === model) {
        const le = Number(s.labels.le.replace("Inf", "Infinity"));
        sums.set(le, (sums.get(le) || 0) + s.value);
      }
    }
    const bounds = [...sums.keys()].sort((a, b) => a - b), counts = bounds.map((b, i) => sums.get(b) - (i ? sums.get(bounds[i - 1]) : 0));
    const total = counts.reduce((a, b) => a + b, 0);
    if (!total) return;
    const used = counts.map((c, i) => c > 0 ? i : -1).filter((i) => i >= 0), lo = used[0], hi = used[used.length - 1];
    const shown = counts.slice(lo, hi + 1), most = Math.max(...shown), width = 100 / shown.length;
    element("h3", title, card);
    const edge = (i) => time(i ? bounds[i - 1] : 0), every = Math.ceil(shown.length / 5);
    const labels = shown.map((_, i) => (shown.length - 1 - i) % every ? "" : time(bounds[lo + i]));
    const drawing = axes(card, "histogram", most, labels, "0 0 100 90", title);
    shown.forEach((c, i) => {
      const r = svg("rect", { x: i * width, width: Math.max(width - 0.4, 0.2), y: 90 - 90 * c / most, height: 90 * c / most }, drawing);
      svg("title", {}, r).textContent = `${c} from ${edge(lo + i)} to ${time(bounds[lo + i])}`;
    });
    const quantile = (q) => {
      let sum = 0;
      for (let i = 0; i < bounds.length; i++) if ((sum += counts[i]) >= q * total) return time(bounds[i]);
      return "";
    };
    element("p", `n = ${total}, from ${edge(lo)}; p50 ≤ ${quantile(0.5)}, p90 ≤ ${quantile(0.9)}, p99 ≤ ${quantile(0.99)}`,
      card, { class: "soft" });
  }

  function queue(samples, model, card) {
    const find = (name) => samples.filter((s) => s.name === name && s.labels.model === model).reduce((a, s) => a + s.value, 0);
    const list = past.get(model) || past.set(model, []).get(model), length = find("etrun_queue_length"), now = find("etrun_inferences_in_flight");
    list.push(length + now);
    if (list.length > KEPT) list.shift();
    const texts = samples.some((s) => s.name === "etrun_tokens_total" && s.labels.model === model); // whose steps have no metrics
    const total = find(texts ? "etrun_texts_total" : "etrun_inferences_total");
    element("p", (texts ? "" : `${now} running, `) + `${length} waiting, ${total} ${texts ? "texts" : "runs"} so far` + rate(model, total), card);
    const most = Math.max(1, ...list);
    element("h3", "requests in progress and in the queue", card);
    const drawing = axes(card, "line", most, ["−2 min", "−1 min", "now"], `0 0 ${KEPT - 1} 60`, "requests in progress and in the queue");
    svg("polyline", { points: list.map((v, i) => `${KEPT - list.length + i},${58 - 54 * v / most}`).join(" ") }, drawing);
  }

  function rate(model, total) {
    const now = performance.now(), last = before && before.get(model);
    (before || (before = new Map())).set(model, [now, total]);
    return last && now > last[0] ? `, ${((total - last[1]) / (now - last[0]) * 1000).toFixed(1)} per second` : "";
  }

  function memory(samples, model, card) {
    const list = samples.filter((s) => s.name === "etrun_memory_bytes" && s.labels.model === model && s.value > 0);
    if (!list.length) return;
    element("h3", "memory", card);
    const table = element("table", null, card, { class: "bars" }), most = Math.max(...list.map((s) => s.value));
    for (const s of list.sort((a, b) => b.value - a.value)) {
      const row = element("tr", null, table);
      element("td", s.labels.kind, row);
      element("td", bytes(s.value), row);
      element("div", null, element("td", null, row), { class: "bar" }).style.width = `${100 * s.value / most}%`;
    }
  }

  async function refresh() {
    let samples;
    try {
      samples = parse(await (await api.ask("/metrics")).text());
      one("figures-fault").textContent = "";
    } catch (e) {
      one("figures-fault").textContent = e.message;
      return;
    }
    const names = [...new Set(samples.map((s) => s.labels.model).filter(Boolean))].sort(), parent = one("figure-list");
    const list = names.map((model) => {
      const card = element("div", null, null, { class: "card" });
      element("h3", model, card);
      queue(samples, model, card);
      histogram(samples, "etrun_inference_duration_seconds", model, card, "duration of runs");
      histogram(samples, "etrun_queue_wait_seconds", model, card, "time in the queue");
      histogram(samples, "etrun_time_to_first_token_seconds", model, card, "time to the first token");
      histogram(samples, "etrun_time_per_output_token_seconds", model, card, "time per token");
      memory(samples, model, card);
      return card;
    });
    parent.replaceChildren(...list);
    if (!list.length) element("p", "no figures yet", parent, { class: "soft" });
  }

  function view() {
    clearInterval(timer);
    timer = setInterval(() => {
      if (one("figures").hidden) clearInterval(timer);
      else if (!document.hidden) refresh();
    }, 2000);
    return refresh();
  }

  return { view };
})();
