"use strict";
// A graph on a canvas: positions, drawing and pointing. Ranks and orders come from the program that made the page.
const GraphView = (function () {
  const TITLE = 22, LINE = 15, GAP = 34, EDGE = 20, HEAD = 30, BADGES = 3, SPAN = 41;
  const MIN_WIDTH = 90, MAX_WIDTH = 280, LETTER = 6.9, PADDING = 24;
  const FAR = 1, BACK = 2, READABLE = 0.85;

  function boxWidth(node, constants) {
    let letters = Math.max(Math.floor(node.name.length * 9 / 8), (node.result || "").length);
    for (const use of (node.constants || []).slice(0, BADGES)) {
      letters = Math.max(letters, use.name.length + 1 + constants[use.at].type.length);
    }
    return Math.min(Math.max(LETTER * letters + PADDING, MIN_WIDTH), MAX_WIDTH);
  }

  function lines(node) {
    const n = (node.constants || []).length;
    return (node.result ? 1 : 0) + Math.min(n, BADGES) + (n > BADGES ? 1 : 0);
  }

  // The first index of a sorted list whose value is at least x.
  function lower(list, x) {
    let lo = 0, hi = list.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (list[mid] < x) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }

  class View {
    constructor(canvas, program, onSelect) {
      this.canvas = canvas;
      this.program = program;
      this.onSelect = onSelect;
      this.open = new Set();
      this.colour = () => null;
      this.selected = -1;
      this.scale = 1;
      this.left = this.top = 0;
      this.queued = false;
      new ResizeObserver(() => this.resize()).observe(canvas);
    }

    setMethod(index) {
      this.method = this.program.methods[index];
      this.selected = -1;
      this.open.clear();
      this.byId = new Map(this.method.nodes.map((n, i) => [n.id, i]));
      this.sheetOf = new Int32Array(this.method.nodes.length);
      this.own = this.method.nodes.map((n) => this.ownSize(n));
      this.prepared = this.method.sheets.map((s, i) => this.prepare(s, i));
      let shown = this.method.sheets[0].nodes.length;
      this.method.nodes.forEach((n, i) => {
        if (n.sheet && shown < 4000) {
          this.open.add(i);
          shown += this.method.sheets[n.sheet].nodes.length;
        }
      });
      this.layout();
      this.home();
    }

    // What does not depend on which delegates are unfolded: nodes by rank, edges by rank and by node.
    prepare(sheet, index) {
      const ranks = Array.from({ length: sheet.ranks }, () => []);
      sheet.nodes.forEach((n, k) => {
        ranks[sheet.rank[k]].push(k);
        this.sheetOf[n] = index;
      });
      ranks.forEach((r) => r.sort((a, b) => sheet.x[a] - sheet.x[b]));
      const starts = Array.from({ length: sheet.ranks }, () => []), far = [], back = [];
      const into = new Map(), out = new Map();
      const push = (map, key, e) => (map.get(key) || map.set(key, []).get(key)).push(e);
      for (const e of sheet.edges) {
        push(out, sheet.nodes[e.from], e);
        push(into, sheet.nodes[e.to], e);
        if (e.route === FAR) far.push(e);
        else if (e.route === BACK) back.push(e);
        else starts[sheet.rank[e.from]].push(e);
      }
      const widest = ranks.map((r) => r.reduce((w, k) => Math.max(w, this.widthOf(sheet.nodes[k])), 0));
      return { sheet, ranks, starts, far, back, into, out, widest };
    }

    // The size of a node that is not unfolded.
    ownSize(node) {
      const n = lines(node);
      return [boxWidth(node, this.program.constants), TITLE + LINE * n + (n ? 5 : 0)];
    }

    widthOf(n) {
      const sheet = this.method.nodes[n].sheet;
      return sheet ? Math.max(this.own[n][0], this.method.sheets[sheet].width + 2 * EDGE) : this.own[n][0];
    }

    layout() {
      const n = this.method.nodes.length;
      this.x = new Float64Array(n);
      this.y = new Float64Array(n).fill(NaN);
      this.w = new Float64Array(n);
      this.h = new Float64Array(n);
      this.height = this.layoutSheet(0, 0, 0);
      this.width = this.method.sheets[0].width;
    }

    sizes(n) {
      const { sheet } = this.method.nodes[n];
      return sheet && this.open.has(n) ? [this.widthOf(n), HEAD + EDGE + this.heightOf(sheet)] : this.own[n];
    }

    heightOf(index) {
      const p = this.prepared[index];
      if (!p.height) {
        p.height = p.ranks.reduce((sum, rank) => sum + GAP + rank.reduce((h, k) => Math.max(h, this.own[p.sheet.nodes[k]][1]), 0), 0);
      }
      return p.height;
    }

    // Stacks the ranks of a sheet, and the insides of delegates that are unfolded.
    layoutSheet(index, left, top) {
      const p = this.prepared[index], { sheet, ranks } = p;
      p.tops = new Float64Array(ranks.length);
      p.bottoms = new Float64Array(ranks.length);
      p.left = left;
      let y = top;
      ranks.forEach((rank, r) => {
        let height = 0;
        p.tops[r] = y;
        for (const k of rank) {
          const n = sheet.nodes[k], [w, h] = this.sizes(n);
          this.x[n] = left + sheet.x[k];
          this.y[n] = y;
          this.w[n] = w;
          this.h[n] = h;
          height = Math.max(height, h);
          const inner = this.method.nodes[n].sheet;
          if (inner && this.open.has(n)) this.layoutSheet(inner, this.x[n] - this.method.sheets[inner].width / 2, y + HEAD);
        }
        p.bottoms[r] = y + height;
        y += height + GAP;
      });
      return y - top;
    }

    fold(n, open) {
      if (!this.method.nodes[n].sheet) return;
      const y = this.y[n];
      if (open === undefined) open = !this.open.has(n);
      if (open) this.open.add(n);
      else this.open.delete(n);
      this.layout();
      if (!isNaN(y)) this.top += this.y[n] - y;
      if (this.selected >= 0 && isNaN(this.y[this.selected])) this.select(n);
      this.queue();
    }

    foldAll(open) {
      this.method.nodes.forEach((n, i) => { if (n.sheet) open ? this.open.add(i) : this.open.delete(i); });
      this.layout();
      this.home();
    }

    // The delegate around a node, -1 for none.
    around(n) {
      const sheet = this.sheetOf[n];
      return sheet === 0 ? -1 : this.method.nodes.findIndex((x) => x.sheet === sheet);
    }

    select(n, reveal) {
      this.selected = n;
      if (n >= 0 && reveal) {
        const parent = this.around(n);
        if (parent >= 0 && !this.open.has(parent)) this.fold(parent, true);
        this.reveal(n);
      }
      this.canvas.dataset.selected = n >= 0 ? this.method.nodes[n].id : "";
      this.onSelect(this, n);
      this.queue();
    }

    reveal(n) {
      const { width, height } = this.size();
      if (this.scale < READABLE / 2) this.scale = READABLE;
      const open = this.open.has(n);
      this.left = this.x[n] - width / 2 / this.scale;
      this.top = this.y[n] + (open ? HEAD : this.h[n]) / 2 - height / (open ? 6 : 2) / this.scale;
      this.queue();
    }

    size() { return { width: this.canvas.clientWidth || 1, height: this.canvas.clientHeight || 1 }; }

    // The beginning of the graph, at a scale at which it can be read: as much of its width as is visible then.
    home() {
      const { width } = this.size();
      this.scale = Math.min(1, Math.max(READABLE, (width - 30) / this.width));
      this.left = (this.width - width / this.scale) / 2;
      if (this.width * this.scale > width) {
        const first = this.prepared[0].ranks[0] || [];
        if (first.length) this.left = this.x[this.method.sheets[0].nodes[first[0]]] - width / 2 / this.scale;
      }
      this.top = -16 / this.scale;
      this.queue();
    }

    fit() {
      const { width, height } = this.size();
      this.scale = Math.min(1, (width - 30) / this.width, (height - 20) / this.height);
      this.left = (this.width - width / this.scale) / 2;
      this.top = -10 / this.scale;
      this.queue();
    }

    zoom(factor, px, py) {
      const { width, height } = this.size();
      if (px === undefined) [px, py] = [width / 2, height / 2];
      const scale = Math.min(4, Math.max(Math.min(0.02, height / this.height / 2), this.scale * factor));
      this.left += px / this.scale - px / scale;
      this.top += py / this.scale - py / scale;
      this.scale = scale;
      this.queue();
    }

    pan(dx, dy) {
      const { width, height } = this.size();
      this.left = Math.min(Math.max(this.left + dx / this.scale, -width / this.scale * 0.9), this.width);
      this.top = Math.min(Math.max(this.top + dy / this.scale, -height / this.scale * 0.9), this.height);
      this.queue();
    }

    at(px, py) { return this.find(0, this.left + px / this.scale, this.top + py / this.scale); }

    // The node at a position: the innermost one.
    find(index, x, y) {
      const p = this.prepared[index];
      const r = lower(p.bottoms, y);
      for (const k of p.ranks[r] || []) {
        const n = p.sheet.nodes[k];
        if (Math.abs(x - this.x[n]) > this.w[n] / 2 || y < this.y[n] || y > this.y[n] + this.h[n]) continue;
        const inner = this.method.nodes[n].sheet;
        if (inner && this.open.has(n) && y > this.y[n] + HEAD) {
          const found = this.find(inner, x, y);
          if (found >= 0) return found;
        }
        return n;
      }
      return -1;
    }

    // The nodes that lead to a node, or follow it.
    neighbours(n, after) {
      const p = this.prepared[this.sheetOf[n]];
      const list = (after ? p.out : p.into).get(n) || [];
      return [...new Set(list.map((e) => p.sheet.nodes[after ? e.to : e.from]))];
    }

    // The node beside a node in its rank.
    beside(n, step) {
      const p = this.prepared[this.sheetOf[n]];
      const k = p.sheet.nodes.indexOf(n), rank = p.ranks[p.sheet.rank[k]];
      const next = rank[rank.indexOf(k) + step];
      return next === undefined ? -1 : p.sheet.nodes[next];
    }

    resize() {
      const ratio = window.devicePixelRatio || 1, { width, height } = this.size();
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.queue();
    }

    queue() {
      if (this.queued) return;
      this.queued = true;
      requestAnimationFrame(() => {
        this.queued = false;
        if (this.method) GraphPaint.draw(this);
      });
    }
  }
  return Object.assign(View, { TITLE, LINE, HEAD, BADGES, SPAN, GAP, lower });
})();
