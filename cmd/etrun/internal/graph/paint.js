"use strict";
// Draws what is visible of a graph.
const GraphPaint = (function () {
  const FONT = "12px system-ui, sans-serif", BOLD = "600 12px system-ui, sans-serif", SMALL = "11px system-ui, sans-serif";
  const names = ["paper", "ground", "ink", "soft", "line", "accent", "warm", "card", "product", "activation", "norm", "reduce", "convert", "move",
    "element", "jump", "fork", "input", "output", "delegate", "node", "title", "add", "change"];
  let colours = null;

  function palette() {
    if (colours) return colours;
    const style = getComputedStyle(document.querySelector(".graph"));
    colours = {};
    for (const name of names) colours[name] = style.getPropertyValue("--graph-" + name).trim() || "#888888";
    return colours;
  }

  function cut(ctx, text, width) {
    if (ctx.measureText(text).width <= width) return text;
    let n = Math.floor(text.length * width / ctx.measureText(text).width);
    while (n > 1 && ctx.measureText(text.slice(0, n) + "…").width > width) n--;
    return text.slice(0, n) + "…";
  }

  function draw(v) {
    const c = palette(), ctx = v.canvas.getContext("2d"), { width, height } = v.size();
    const ratio = v.canvas.width / width;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = c.paper;
    ctx.fillRect(0, 0, width, height);
    const s = { v, c, ctx, scale: v.scale, width, height, sx: (x) => (x - v.left) * v.scale, sy: (y) => (y - v.top) * v.scale, nodes: 0 };
    s.y0 = v.top;
    s.y1 = v.top + height / v.scale;
    s.x0 = v.left;
    s.x1 = v.left + width / v.scale;
    blocks(s);
    sheet(s, 0);
    strip(s);
    v.canvas.dataset.drawn = s.nodes;
    v.canvas.dataset.scale = v.scale;
  }

  // The bands of blocks of a method with jumps.
  function blocks(s) {
    const p = s.v.prepared[0];
    (s.v.method.blocks || []).forEach((b, i) => {
      if (b.ranks[1] < b.ranks[0]) return;
      const y0 = s.sy(p.tops[b.ranks[0]] - 12), y1 = s.sy(p.bottoms[b.ranks[1]] + 12);
      if (y1 < 0 || y0 > s.height) return;
      s.ctx.fillStyle = i % 2 ? s.c.paper : s.c.ground;
      s.ctx.fillRect(0, y0, s.width, y1 - y0);
      s.ctx.fillStyle = s.c.soft;
      s.ctx.font = SMALL;
      if (y1 - y0 > 24) s.ctx.fillText(b.name, 8, Math.max(y0, 0) + 14);
    });
  }

  function sheet(s, index) {
    const p = s.v.prepared[index], { lower, GAP, SPAN } = GraphView;
    const r0 = lower(p.bottoms, s.y0 - GAP), r1 = lower(p.tops, s.y1 + GAP);
    edges(s, p, Math.max(0, r0 - SPAN), r1);
    for (let r = Math.max(r0, 0); r < Math.min(r1, p.ranks.length); r++) {
      const rank = p.ranks[r];
      const from = first(s, p, rank, s.x0 - p.widest[r] / 2);
      for (let i = from; i < rank.length; i++) {
        const n = p.sheet.nodes[rank[i]];
        if (s.v.x[n] - s.v.w[n] / 2 > s.x1) break;
        box(s, n);
      }
    }
  }

  function first(s, p, rank, x) {
    let lo = 0, hi = rank.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (s.v.x[p.sheet.nodes[rank[mid]]] < x) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }

  // All edges of one look are one path.
  function edges(s, p, r0, r1) {
    const chosen = s.v.selected, plain = new Path2D(), jumps = new Path2D(), picked = new Path2D();
    let n = 0;
    const most = s.scale < 0.15 ? 15000 : 60000;
    for (let r = r0; r < Math.min(r1, p.ranks.length) && n < most; r++) {
      for (const e of p.starts[r]) {
        if (p.tops[p.sheet.rank[e.to]] < s.y0 || n++ > most) continue;
        const mine = p.sheet.nodes[e.from] === chosen || p.sheet.nodes[e.to] === chosen;
        near(s, p, e, mine ? picked : e.kind ? jumps : plain);
      }
    }
    for (const e of p.back.slice(0, 3000)) {
      const mine = p.sheet.nodes[e.from] === chosen || p.sheet.nodes[e.to] === chosen;
      side(s, p, e, mine ? picked : jumps);
    }
    for (const e of chosen >= 0 ? [...(p.out.get(chosen) || []), ...(p.into.get(chosen) || [])] : []) {
      if (e.route === 1) straight(s, p, e, picked);
    }
    stroke(s, plain, s.c.soft, Math.max(0.5, Math.min(1.2, s.scale * 1.2)), []);
    stroke(s, jumps, s.c.jump, 1.4, [5, 4]);
    stroke(s, picked, s.c.accent, 2.4, []);
    if (s.scale > 0.5) for (let r = r0; r < Math.min(r1, p.ranks.length); r++) labels(s, p, p.starts[r]);
  }

  function stroke(s, path, colour, width, dash) {
    s.ctx.strokeStyle = colour;
    s.ctx.lineWidth = width;
    s.ctx.setLineDash(dash);
    s.ctx.stroke(path);
    s.ctx.setLineDash([]);
  }

  function near(s, p, e, path) {
    const from = p.sheet.nodes[e.from], to = p.sheet.nodes[e.to], v = s.v;
    let x = s.sx(v.x[from]), r = p.sheet.rank[e.from];
    path.moveTo(x, s.sy(v.y[from] + v.h[from]));
    path.lineTo(x, s.sy(p.bottoms[r]));
    const curve = (nx, top) => {
      const y0 = s.sy(p.bottoms[r]), y1 = s.sy(top), mid = (y0 + y1) / 2;
      if (Math.abs(nx - x) < 0.5) path.lineTo(nx, y1);
      else path.bezierCurveTo(x, mid, nx, mid, nx, y1);
      x = nx;
    };
    for (const b of e.bends || []) {
      curve(s.sx(p.left + b), p.tops[r + 1]);
      r++;
      path.lineTo(x, s.sy(p.bottoms[r]));
    }
    curve(s.sx(v.x[to]), v.y[to]);
    if (s.scale > 0.35) arrow(path, x, s.sy(v.y[to]));
  }

  function arrow(path, x, y) {
    path.moveTo(x - 3.5, y - 6);
    path.lineTo(x, y);
    path.lineTo(x + 3.5, y - 6);
  }

  // An edge that leads back passes at the side.
  function side(s, p, e, path) {
    const from = p.sheet.nodes[e.from], to = p.sheet.nodes[e.to], v = s.v;
    const y0 = s.sy(v.y[from] + v.h[from] / 2), y1 = s.sy(v.y[to] + v.h[to] / 2);
    const x0 = s.sx(v.x[from] + v.w[from] / 2), x1 = s.sx(v.x[to] + v.w[to] / 2), out = Math.max(x0, x1) + 30 * s.scale + 12;
    path.moveTo(x0, y0);
    path.bezierCurveTo(out, y0, out, y0, out, (y0 + y1) / 2);
    path.bezierCurveTo(out, y1, out, y1, x1, y1);
    path.moveTo(x1 + 6, y1 - 3.5);
    path.lineTo(x1, y1);
    path.lineTo(x1 + 6, y1 + 3.5);
  }

  function straight(s, p, e, path) {
    const from = p.sheet.nodes[e.from], to = p.sheet.nodes[e.to], v = s.v;
    path.moveTo(s.sx(v.x[from]), s.sy(v.y[from] + v.h[from]));
    path.lineTo(s.sx(v.x[to]), s.sy(v.y[to]));
  }

  // The branches of jumps have names.
  function labels(s, p, list) {
    s.ctx.font = SMALL;
    for (const e of list) {
      if (!e.kind) continue;
      const from = p.sheet.nodes[e.from];
      s.ctx.fillStyle = s.c.jump;
      s.ctx.fillText(e.kind, s.sx(s.v.x[from]) + (e.kind === "true" ? -34 : 8), s.sy(s.v.y[from] + s.v.h[from]) + 13);
    }
  }

  function box(s, n) {
    const v = s.v, node = v.method.nodes[n], ctx = s.ctx, open = v.open.has(n);
    const x = s.sx(v.x[n] - v.w[n] / 2), y = s.sy(v.y[n]), w = v.w[n] * s.scale, h = v.h[n] * s.scale;
    s.nodes++;
    if (open) return group(s, n, x, y, w, h);
    const heat = v.colour(node);
    const fill = heat || s.c[node.kind === "operator" || node.kind === "node" ? node.class : node.kind === "jump" ? "fork" : node.kind] || s.c.element;
    if (s.scale < 0.3) {
      ctx.fillStyle = fill;
      ctx.fillRect(x, y, Math.max(w, 1), Math.max(h, 1));
    } else {
      card(s, node, fill, x, y, w, h);
    }
    frame(s, node, n, x, y, w, h);
  }

  function frame(s, node, n, x, y, w, h) {
    const ctx = s.ctx;
    if (node.fault) {
      ctx.strokeStyle = s.c.warm;
      ctx.lineWidth = 3;
      ctx.setLineDash([6, 4]);
      ctx.strokeRect(x - 2, y - 2, w + 4, h + 4);
      ctx.setLineDash([]);
    }
    if (node.mark) {
      ctx.strokeStyle = node.mark === "only" ? s.c.add : s.c.change;
      ctx.lineWidth = 2.5;
      ctx.strokeRect(x - 1.5, y - 1.5, w + 3, h + 3);
    }
    if (s.v.selected === n) {
      ctx.strokeStyle = s.c.accent;
      ctx.lineWidth = 3;
      ctx.strokeRect(x - 3, y - 3, w + 6, h + 6);
    } else if (s.v.found && s.v.found.has(n)) {
      ctx.strokeStyle = s.c.warm;
      ctx.lineWidth = 2;
      ctx.strokeRect(x - 2, y - 2, w + 4, h + 4);
    }
  }

  function rounded(ctx, x, y, w, h, radius) {
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, radius);
  }

  // The texts have the size of the screen's, whatever the ratio of its pixels.
  function card(s, node, fill, x, y, w, h) {
    const ctx = s.ctx, k = s.scale, { TITLE, LINE, BADGES } = GraphView;
    ctx.fillStyle = s.c.card;
    rounded(ctx, x, y, w, h, 5 * k);
    ctx.fill();
    ctx.fillStyle = fill;
    rounded(ctx, x, y, w, Math.min(TITLE * k, h), h > TITLE * k ? [5 * k, 5 * k, 0, 0] : 5 * k);
    ctx.fill();
    ctx.strokeStyle = s.c.line;
    ctx.lineWidth = 1;
    rounded(ctx, x, y, w, h, 5 * k);
    ctx.stroke();
    ctx.save();
    ctx.translate(x, y);
    ctx.scale(k, k);
    const width = w / k;
    ctx.font = BOLD;
    ctx.fillStyle = s.c.title;
    ctx.fillText(cut(ctx, (node.sheet ? "▸ " : "") + node.name, width - 14), 7, 15.5);
    ctx.font = FONT;
    let at = TITLE + 14;
    if (node.result) {
      ctx.fillStyle = s.c.ink;
      ctx.fillText(cut(ctx, node.result, width - 14), 7, at);
      at += LINE;
    }
    ctx.font = SMALL;
    ctx.fillStyle = s.c.soft;
    const uses = node.constants || [];
    for (const use of uses.slice(0, BADGES)) {
      ctx.fillRect(7, at - 7, 5, 5);
      ctx.fillText(cut(ctx, (use.name + " " + s.v.program.constants[use.at].type).trim(), width - 26), 16, at);
      at += LINE;
    }
    if (uses.length > BADGES) ctx.fillText(`and ${uses.length - BADGES} more`, 16, at);
    ctx.restore();
  }

  // A delegate that is unfolded.
  function group(s, n, x, y, w, h) {
    const ctx = s.ctx, node = s.v.method.nodes[n], k = s.scale;
    ctx.fillStyle = s.c.ground;
    rounded(ctx, x, y, w, h, 8 * k);
    ctx.fill();
    ctx.strokeStyle = s.c.delegate;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    frame(s, node, n, x, y, w, h);
    sheet(s, node.sheet);
    if (k <= 0.3) return;
    ctx.font = `600 ${Math.round(12 * Math.min(k, 1.2))}px system-ui, sans-serif`;
    const left = Math.max(x, 0), text = cut(ctx, "▾ " + node.name, Math.min(x + w, s.width) - left - 16);
    const top = Math.max(y, Math.min(0, y + h - 30));
    if (top > y) {
      ctx.fillStyle = s.c.ground;
      ctx.fillRect(x + 2, top, w - 4, 25 * k);
    }
    ctx.fillStyle = s.c.ink;
    ctx.fillText(text, left + 10, top + 17 * k);
  }

  // Where the window is in a long graph.
  function strip(s) {
    const v = s.v, content = v.height * v.scale;
    v.stripped = content > s.height * 1.2;
    if (!v.stripped) return;
    const ctx = s.ctx, top = Math.max(0, v.top / v.height) * s.height, size = Math.max(24, s.height * s.height / content);
    ctx.fillStyle = s.c.line;
    ctx.fillRect(s.width - 10, 0, 10, s.height);
    ctx.fillStyle = s.c.soft;
    ctx.fillRect(s.width - 9, Math.min(top, s.height - size), 8, size);
  }

  return { draw, forget: () => { colours = null; } };
})();
