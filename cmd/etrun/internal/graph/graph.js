"use strict";
// Connects graphs with the controls of the page.
(function () {
  const root = document.querySelector(".graph"), data = document.getElementById("graph-data");
  if (!root || !data) return;
  const programs = JSON.parse(data.textContent);
  const one = (name) => root.querySelector(`[data-graph="${name}"]`);
  const panel = one("panel"), search = one("search"), results = one("results"), methods = one("method"), colours = one("colour");
  const full = root.classList.contains("graph-full");
  let active = 0;

  const views = programs.map((program, i) => {
    const canvas = root.querySelectorAll("canvas")[i];
    const view = new GraphView(canvas, program, (v, n) => chosen(v, n));
    view.index = i;
    view.plan = () => document.querySelector(`[data-plan="${i}/${view.current}"]`);
    control(canvas, view);
    return view;
  });

  // ---- colours

  const modes = {
    kind: { name: "kind of operation" },
    time: { name: "time", of: (n) => n.time, text: GraphPanel.time },
    cycles: { name: "cycles", of: (n) => n.cycles, text: (x) => `${Math.round(x)} cycles` },
    bytes: { name: "memory: bytes written", of: (n) => n.bytes, text: GraphPanel.bytes },
    live: { name: "memory: bytes alive", of: (n) => n.live, text: GraphPanel.bytes },
    error: { name: "numeric difference", of: (n) => n.error, text: (x) => x.toPrecision(3) },
  };

  function some(of) { return views.some((v) => v.method.nodes.some((n) => of(n) > 0)); }

  function fillColours() {
    const before = colours.value;
    colours.replaceChildren();
    for (const key in modes) {
      if (!modes[key].of || some(modes[key].of)) GraphPanel.element("option", modes[key].name, colours, { value: key });
    }
    const has = (value) => [...colours.options].some((o) => o.value === value);
    colours.value = [before, "error", "time", "kind"].find(has);
    recolour();
  }

  // From pale to strong: the hue of the accent.
  function heat(share) {
    const dark = getComputedStyle(root).colorScheme === "dark";
    const s = Math.sqrt(share);
    return dark ? `hsl(${215 - 200 * s} ${30 + 50 * s}% ${26 + 26 * s}%)` : `hsl(${215 - 200 * s} ${40 + 45 * s}% ${90 - 32 * s}%)`;
  }

  // What the colours and the borders of the boxes mean, as far as the graphs have them.
  const borders = [
    ["only", "only here", (n) => n.mark === "only"], ["changed", "changed", (n) => n.mark === "changed"],
    ["fault", "missing here", (n) => n.fault], ["selected", "selected", () => true], ["found", "found", () => true],
  ];

  function swatch(legend, style, text) {
    const item = GraphPanel.element("span", null, legend, { class: "graph-key" });
    GraphPanel.element("b", null, item, { class: style });
    item.append(text);
    return item;
  }

  function explain(legend, mode) {
    const nodes = views.flatMap((v) => v.method.nodes);
    if (!mode.of) {
      const kinds = new Set(nodes.map((n) => n.kind === "operator" || n.kind === "node" ? n.class || "element" : n.kind));
      for (const kind of kinds) swatch(legend, "fill", kind).firstChild.style.background = `var(--graph-${kind === "jump" ? "fork" : kind}, var(--graph-element))`;
    }
    for (const [style, text, has] of borders) if (nodes.some(has)) swatch(legend, style, text);
    if (views.some((v) => (v.method.blocks || []).length)) swatch(legend, "jump", "jump");
  }

  function recolour() {
    const mode = modes[colours.value] || modes.kind, legend = one("legend");
    legend.replaceChildren();
    for (const view of views) {
      if (!mode.of) {
        view.colour = () => null;
        view.queue();
        continue;
      }
      let most = 0;
      for (const n of view.method.nodes) if (!n.sheet) most = Math.max(most, mode.of(n) || 0);
      view.colour = (n) => mode.of(n) > 0 ? heat(Math.min(1, mode.of(n) / (most || 1))) : heat(0);
      view.queue();
      if (most) {
        const scale = GraphPanel.element("span", `${mode.name}${views.length > 1 ? " in " + view.program.name : ""}: 0 `, null, { class: "graph-key" });
        const bar = GraphPanel.element("i", null, scale);
        bar.style.background = `linear-gradient(90deg, ${[0, 0.1, 0.3, 0.6, 1].map(heat).join(", ")})`;
        scale.append(" " + mode.text(most));
        legend.append(scale);
      }
    }
    explain(legend, mode);
  }

  // ---- selection

  let quiet = false;
  function chosen(view, n) {
    active = view.index;
    GraphPanel.show(panel, view, n);
    const plan = view.plan();
    document.querySelectorAll(".cell.picked").forEach((c) => c.classList.remove("picked"));
    if (n < 0) return;
    const node = view.method.nodes[n];
    for (const item of node.items || []) GraphPanel.boxes(plan, item).forEach((c) => c.classList.add("picked"));
    if (quiet) return;
    history.replaceState(null, "", `#node=${view.index}/${view.current}/${encodeURIComponent(node.id)}`);
    const other = views[1 - view.index];
    if (views.length === 2 && node.peer && other.byId.has(node.peer)) {
      quiet = true;
      other.select(other.byId.get(node.peer), true);
      quiet = false;
      active = view.index;
      GraphPanel.show(panel, view, n);
    }
  }

  function setMethod(k) {
    const name = methods.options[k].textContent;
    methods.selectedIndex = k;
    for (const view of views) {
      const own = view.program.methods.findIndex((m) => m.name === name);
      view.current = own < 0 ? 0 : own;
      view.setMethod(view.current);
      const canvas = view.canvas;
      canvas.setAttribute("aria-label", `graph of ${view.program.name}, method ${view.method.name}, ${view.method.nodes.length} nodes`);
    }
    fillColours();
    GraphPanel.show(panel, views[0], -1);
    find();
  }

  function follow() {
    const m = /^#node=(\d+)\/(\d+)\/(.+)$/.exec(location.hash);
    const view = m && views[Number(m[1])];
    if (!view || !view.program.methods[Number(m[2])]) return;
    const name = view.program.methods[Number(m[2])].name;
    const k = [...methods.options].findIndex((o) => o.textContent === name);
    if (k >= 0 && view.current !== Number(m[2])) setMethod(k);
    let id = m[3];
    try { id = decodeURIComponent(id); } catch (e) { return; }
    if (view.byId.has(id)) view.select(view.byId.get(id), true);
  }

  // ---- search

  let texts = [];
  function index() {
    texts = views.map((v) => v.method.nodes.map((n) => [n.id, n.name, n.full, n.layer, n.result, n.source,
      ...(n.constants || []).map((c) => v.program.constants[c.at].name)].join(" ").toLowerCase()));
  }

  let hits = [], at = -1;
  function find() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    hits = [];
    at = -1;
    results.replaceChildren();
    if (words.length) index();
    for (const view of views) {
      view.found = null;
      if (words.length) {
        const list = [];
        texts[view.index].forEach((t, n) => { if (words.every((w) => t.includes(w))) list.push(n); });
        view.found = new Set(list);
        for (const n of list) hits.push([view, n]);
      }
      view.queue();
    }
    one("found").textContent = words.length ? `${hits.length} found` : "";
    hits.slice(0, 60).forEach(([view, n], i) => {
      const node = view.method.nodes[n];
      const text = (views.length > 1 ? view.program.name + ": " : "") + `${node.id} ${node.name} ${node.result || ""}`;
      const b = GraphPanel.element("button", text, results, { type: "button", class: "graph-link" });
      b.addEventListener("click", () => jump(i));
    });
    results.hidden = !hits.length;
  }

  function jump(i) {
    if (!hits.length) return;
    at = (i + hits.length) % hits.length;
    hits[at][0].select(hits[at][1], true);
  }

  function nextChange(view) {
    const nodes = view.method.nodes;
    for (let k = 1; k <= nodes.length; k++) {
      const n = (view.selected + k) % nodes.length;
      if (n >= 0 && nodes[n].mark) return view.select(n, true);
    }
  }

  // ---- keys, mouse and fingers

  function move(view, list) {
    if (list.length && list[0] >= 0) view.select(list[0], true);
  }

  function key(view, event) {
    const n = view.selected, first = view.method.sheets[0].nodes[0];
    const actions = {
      ArrowDown: () => n < 0 ? move(view, [first ?? -1]) : move(view, view.neighbours(n, true)),
      ArrowUp: () => n < 0 ? move(view, [first ?? -1]) : move(view, view.neighbours(n, false)),
      ArrowLeft: () => n >= 0 && move(view, [view.beside(n, -1)]),
      ArrowRight: () => n >= 0 && move(view, [view.beside(n, 1)]),
      Enter: () => { if (n >= 0 && view.method.nodes[n].sheet) { view.fold(n); GraphPanel.show(panel, view, n); } },
      Escape: () => view.select(-1), "+": () => view.zoom(1.25), "=": () => view.zoom(1.25), "-": () => view.zoom(0.8), 0: () => view.fit(),
      Home: () => view.home(), n: () => nextChange(view), PageDown: () => view.pan(0, view.size().height * 0.9),
      PageUp: () => view.pan(0, -view.size().height * 0.9),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  function control(canvas, view) {
    const fingers = new Map();
    let moved = 0, strip = false, apart = 0;
    const position = (e) => [e.offsetX, e.offsetY];
    canvas.addEventListener("keydown", (event) => key(view, event));
    canvas.addEventListener("wheel", (event) => {
      if (!full && !event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) view.zoom(Math.exp(-event.deltaY * 0.01), ...position(event));
      else event.shiftKey ? view.pan(event.deltaY, 0) : view.pan(event.deltaX, event.deltaY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, position(event));
      moved = apart = 0;
      strip = view.stripped && event.offsetX > view.size().width - 14;
      if (strip) scroll(event.offsetY);
    });
    const scroll = (y) => {
      view.top = y / view.size().height * view.height - view.size().height / view.scale / 2;
      view.queue();
    };
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) {
        canvas.style.cursor = view.at(...position(event)) >= 0 ? "pointer" : "grab";
        return;
      }
      const now = position(event);
      moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      fingers.set(event.pointerId, now);
      if (strip) return scroll(now[1]);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], distance = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (apart) view.zoom(distance / apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        apart = distance;
      } else if (moved > 4) {
        view.pan(before[0] - now[0], before[1] - now[1]);
      }
    });
    const end = (event) => {
      const known = fingers.delete(event.pointerId);
      if (known && event.type === "pointerup" && moved <= 4 && !strip && !fingers.size) view.select(view.at(...position(event)));
      if (fingers.size < 2) apart = 0;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("dblclick", (event) => {
      const n = view.at(...position(event));
      if (n >= 0 && view.method.nodes[n].sheet) view.fold(n);
    });
  }

  // ---- controls

  const names = [...new Set(programs.flatMap((p) => p.methods.map((m) => m.name)))];
  for (const name of names) GraphPanel.element("option", name, methods);
  methods.hidden = names.length < 2;
  methods.addEventListener("change", () => setMethod(methods.selectedIndex));
  colours.addEventListener("change", recolour);
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") jump(at + (event.shiftKey ? -1 : 1));
    if (event.key === "Escape") { search.value = ""; find(); }
  });
  const buttons = {
    unfold: () => views.forEach((v) => v.foldAll(true)), fold: () => views.forEach((v) => v.foldAll(false)),
    fit: () => views.forEach((v) => v.fit()), larger: () => views.forEach((v) => v.zoom(1.25)), smaller: () => views.forEach((v) => v.zoom(0.8)),
    change: () => nextChange(views[active]),
  };
  for (const name in buttons) one(name)?.addEventListener("click", buttons[name]);
  document.addEventListener("keydown", (event) => {
    if (full && event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
  const repaint = () => {
    GraphPaint.forget();
    recolour();
  };
  new MutationObserver(repaint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.addEventListener("hashchange", follow);

  // A box of the memory plan leads to the node that writes it.
  document.querySelectorAll("[data-plan]").forEach((plan) => {
    const [i, k] = plan.dataset.plan.split("/").map(Number);
    plan.addEventListener("click", (event) => {
      const view = views[i], cell = event.target.closest(".cell[data-item]");
      if (!cell || !view || view.current !== k || !event.isTrusted) return;
      const n = view.method.nodes.findIndex((x) => (x.items || []).includes(Number(cell.dataset.item)));
      if (n >= 0) view.select(n, true);
    });
  });

  setMethod(0);
  follow();
  root.dataset.ready = "yes";
})();
