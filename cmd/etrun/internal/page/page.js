"use strict";
(function () {
  const one = (id) => document.getElementById(id);
  let hits, texts, boxes, details; // of the page as it is drawn

  function index() {
    hits = [...document.querySelectorAll(".hit")];
    texts = hits.map((hit) => hit.textContent.toLowerCase());
    boxes = [...document.querySelectorAll(".cell")];
    details = boxes.map((box) => box.querySelector("title").textContent.toLowerCase());
  }
  document.addEventListener("drawn", () => { hits = null; });

  function search() {
    const words = one("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) later.all(document);
    if (!hits) index();
    let found = 0;
    hits.forEach((hit, i) => {
      const is = words.every((word) => texts[i].includes(word));
      hit.classList.toggle("gone", !is);
      if (is) found++;
    });
    boxes.forEach((box, i) => box.classList.toggle("dim", !words.every((word) => details[i].includes(word))));
    one("found").textContent = words.length ? `${found} found` : "";
  }
  if (one("search")) one("search").addEventListener("input", search);
  if (one("search")) document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      one("search").focus();
    }
  });

  one("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // The box that was pressed on says what it is below the drawing: there is no pointing
  // on a telephone.
  document.querySelectorAll("section").forEach((section) => {
    const detail = section.querySelector(".detail");
    if (!detail) return;
    section.addEventListener("click", (event) => {
      const cell = event.target.closest(".plan .cell");
      if (cell) detail.textContent = cell.querySelector("title").textContent;
    });
  });
})();
