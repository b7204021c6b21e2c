"use strict";
// The panel beside a graph: what is selected, with links, constants with their distribution, and the memory plan.
const GraphPanel = (function () {
  const SVG = "http://www.w3.org/2000/svg";

  function element(name, text, parent, attributes) {
    const e = document.createElement(name);
    if (text !== undefined && text !== null) e.textContent = text;
    for (const key in attributes || {}) e.setAttribute(key, attributes[key]);
    if (parent) parent.append(e);
    return e;
  }

  function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let u = 0;
    for (; n >= 1024 && u < 3; u++) n /= 1024;
    return (u ? n.toFixed(1) : n) + " " + units[u];
  }

  function time(ns) {
    if (ns >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
    return ns >= 1e3 ? (ns / 1e3).toFixed(1) + " µs" : ns + " ns";
  }

  const number = (x) => Number(x.toPrecision(4)).toString();

  function histogram(h, parent) {
    const bins = h.bins || [], most = Math.max(1, ...bins), width = 256, height = 72;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("class", "graph-histogram");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `distribution from ${number(h.min)} to ${number(h.max)}`);
    bins.forEach((n, i) => {
      const bar = document.createElementNS(SVG, "rect"), tall = n / most * height;
      const values = { x: i * width / bins.length, y: height - tall, width: width / bins.length - 1, height: tall };
      for (const key in values) bar.setAttribute(key, values[key]);
      const title = document.createElementNS(SVG, "title");
      title.textContent = n;
      bar.append(title);
      svg.append(bar);
    });
    parent.append(svg);
    let text = `${number(h.min)} to ${number(h.max)}, mean ${number(h.mean)}, deviation ${number(h.dev)}`;
    if (h.zeros) text += `, ${(100 * h.zeros / h.count).toFixed(1)} % zeros`;
    if (h.special) text += `, ${h.special} not finite`;
    element("p", text, parent);
    const n = h.count + (h.special || 0);
    element("p", h.total > n ? `sample of ${n} of ${h.total} elements` : `of ${n} elements`, parent, { class: "graph-soft" });
  }

  function row(dl, name, value) {
    if (value === undefined || value === null || value === "" || value === 0) return;
    element("dt", name, dl);
    element("dd", value, dl);
  }

  function links(parent, title, view, list) {
    if (!list.length) return;
    element("h5", title, parent);
    const ul = element("ul", null, parent);
    for (const n of list.slice(0, 30)) {
      const node = view.method.nodes[n];
      const a = element("button", `${node.id} ${node.name}`, element("li", null, ul), { type: "button", class: "graph-link" });
      a.addEventListener("click", () => view.select(n, true));
    }
    if (list.length > 30) element("li", `and ${list.length - 30} more`, ul);
  }

  function facts(parent, view, node) {
    const dl = element("dl", null, parent);
    row(dl, "operator", node.full !== node.name ? node.full : "");
    row(dl, "layer", node.layer);
    row(dl, "instruction", node.at);
    row(dl, "result", node.result);
    row(dl, "bytes", node.bytes ? bytes(node.bytes) : "");
    row(dl, "alive", node.live ? bytes(node.live) + " of the plan" : "");
    row(dl, "time", node.time ? `${time(node.time)}, ${(100 * (node.share || 0)).toFixed(1)} %` : "");
    row(dl, "cycles", node.cycles ? `${Math.round(node.cycles)}, estimated` : "");
    row(dl, "comparison", node.mark === "only" ? "only here" : node.mark);
    row(dl, "difference", node.error === undefined ? "" : number(node.error) + " at most");
    row(dl, "source", node.source);
    row(dl, "fault", node.fault);
    for (const [name, text] of [...(node.args || []), ...(node.facts || [])]) row(dl, name || "argument", text);
  }

  function constants(parent, view, node) {
    if (!(node.constants || []).length) return;
    element("h5", "constants", parent);
    for (const use of node.constants) {
      const c = view.program.constants[use.at];
      const d = element("details", null, parent, { class: "graph-constant" });
      element("summary", `${use.name} ${c.type}, ${bytes(c.bytes)}`.trim(), d);
      d.addEventListener("toggle", () => {
        if (!d.open || d.children.length > 1) return;
        element("p", c.name, d);
        const drawing = element("div", null, d);
        const draw = (h) => {
          drawing.replaceChildren();
          if (h) histogram(h, drawing);
          else element("p", "its type has no numbers", drawing);
        };
        draw(c.histogram);
        if (c.real) {
          const label = element("label", null, d), box = element("input", null, label, { type: "checkbox" });
          label.append(" dequantized");
          box.addEventListener("change", () => draw(box.checked ? c.real : c.histogram));
        }
        save(d, view, use.at, c);
      });
    }
  }

  // A constant that the page has becomes a file; for others there is a command.
  function save(parent, view, at, c) {
    const data = document.querySelector(`[data-weight="${view.index}/${at}"]`);
    if (!data) {
      element("p", `to save it: etrun inspect ${view.program.name} --weight "${c.name}" -o weight.npy`, parent, { class: "graph-soft" });
      return;
    }
    element("button", "save as .npy", parent, { type: "button" }).addEventListener("click", () => {
      const bytes = Uint8Array.from(atob(data.textContent), (x) => x.charCodeAt(0));
      const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
      element("a", null, null, { href: url, download: c.name.replace(/[^\w.-]+/g, "_") + ".npy" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    });
  }

  function boxes(plan, item) {
    if (!plan) return [];
    later.all(plan);
    return [...plan.querySelectorAll(`.cell[data-item="${item}"]`)];
  }

  // Links to the boxes of the memory plan.
  function memory(parent, view, node) {
    const plan = view.plan();
    const items = [...new Set(node.items || [])].filter((i) => boxes(plan, i).length);
    if (!items.length) return;
    element("h5", "memory plan", parent);
    for (const item of items.slice(0, 20)) {
      const cells = boxes(plan, item);
      const b = element("button", cells[0].dataset.label || "box", parent, { type: "button", class: "graph-link" });
      const mark = (on) => cells.forEach((c) => c.classList.toggle("pointed", on));
      b.addEventListener("pointerenter", () => mark(true));
      b.addEventListener("pointerleave", () => mark(false));
      b.addEventListener("click", () => {
        cells[0].closest("details").open = true;
        cells[0].scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
        cells[0].dispatchEvent(new Event("click", { bubbles: true }));
      });
    }
  }

  function show(panel, view, n) {
    panel.replaceChildren();
    if (n < 0) {
      panel.parentElement.dataset.empty = "";
      overview(panel, view);
      return;
    }
    delete panel.parentElement.dataset.empty;
    const node = view.method.nodes[n];
    element("h4", node.name, panel);
    element("p", `${node.kind} ${node.id}`, panel, { class: "graph-soft" });
    if (node.sheet) {
      const open = view.open.has(n);
      element("button", open ? "fold" : "unfold", panel, { type: "button" }).addEventListener("click", () => {
        view.fold(n);
        show(panel, view, n);
      });
    }
    facts(panel, view, node);
    constants(panel, view, node);
    memory(panel, view, node);
    links(panel, "reads from", view, view.neighbours(n, false));
    links(panel, "is read by", view, view.neighbours(n, true));
  }

  function overview(panel, view) {
    const m = view.method;
    element("h4", `method ${m.name}`, panel);
    if (m.fault) element("p", `does not run here: ${m.fault}`, panel, { class: "graph-fault" });
    const dl = element("dl", null, panel);
    row(dl, "nodes", m.nodes.length);
    row(dl, "views joined", m.joined);
    row(dl, "not shown", m.left);
    row(dl, "blocks", (m.blocks || []).length);
    row(dl, "runs timed", m.runs);
    for (const [mark, name] of [["changed", "changed"], ["only", "only here"]]) {
      row(dl, name, m.nodes.filter((x) => x.mark === mark).length);
    }
    element("p", "Press on a node, or search. Arrow keys follow values, Enter folds and unfolds delegates, + and − zoom, 0 shows everything, " +
      "N goes to the next change.", panel, { class: "graph-soft graph-keys" });
  }

  return { show, element, bytes, time, boxes };
})();
