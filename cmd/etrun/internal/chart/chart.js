"use strict";
// Large parts of a page are text in it until they are seen, or something in them is needed.
const later = (function () {
  function draw(part) {
    if (!part.classList.contains("later")) return;
    part.classList.remove("later");
    seen.unobserve(part);
    part.innerHTML = part.querySelector("script").textContent;
    part.dispatchEvent(new Event("drawn", { bubbles: true }));
  }
  const seen = new IntersectionObserver((entries) => entries.forEach((e) => { if (e.isIntersecting) draw(e.target); }), { rootMargin: "200px" });
  const all = (root) => root.querySelectorAll(".later").forEach(draw);
  document.querySelectorAll(".later").forEach((part) => seen.observe(part));
  addEventListener("beforeprint", () => all(document));
  return { all };
})();
// Labels as they fit: along a box, up a box, or none.
(function () {
  const SVG = "http://www.w3.org/2000/svg", LETTER = 6.2;
  function fit(label, width) {
    const n = Math.floor(width / LETTER);
    if (label.length <= n) return label;
    return n >= 5 ? label.slice(0, n - 1) + "…" : "";
  }
  // Letters differ in width: what is too long in truth is cut further.
  function text(parent, value, length, attributes) {
    const t = document.createElementNS(SVG, "text");
    t.setAttribute("class", "label");
    for (const name in attributes) t.setAttribute(name, attributes[name]);
    t.textContent = value;
    parent.append(t);
    for (let n = value.length - 2; t.getComputedTextLength() > length; n--) {
      if (n < 4) {
        t.remove();
        return;
      }
      t.textContent = value.slice(0, n) + "…";
    }
  }
  function relabel(cell, width) {
    cell.querySelectorAll(".label, .up").forEach((old) => old.remove());
    const w = parseFloat(cell.getAttribute("width")) / 100 * width, h = parseFloat(cell.getAttribute("height"));
    const along = fit(cell.dataset.label, w - 8), up = fit(cell.dataset.label, h - 8);
    if (along && h >= 13) {
      text(cell, along, w - 6, { x: 4, y: h / 2 + 4 });
    } else if (up && w >= 11) {
      text(cell, up, h - 6, { transform: `translate(${w / 2 + 4} ${h - 4}) rotate(-90)` });
    }
  }
  const seen = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const width = entry.contentRect.width;
      if (width > 0) entry.target.querySelectorAll(".cell").forEach((cell) => relabel(cell, width));
    }
  });
  const observe = (root) => root.querySelectorAll(".chart").forEach((chart) => seen.observe(chart));
  document.addEventListener("drawn", (event) => observe(event.target));
  observe(document);
})();
