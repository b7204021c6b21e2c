"use strict";
(function () {
  const one = (id) => document.getElementById(id);
  const hits = [...document.querySelectorAll(".hit")];
  const texts = hits.map((hit) => hit.textContent.toLowerCase());
  const boxes = [...document.querySelectorAll(".cell")];
  const details = boxes.map((box) => box.querySelector("title").textContent.toLowerCase());

  function search() {
    const words = one("search").value.toLowerCase().split(/\s+/).filter(Boolean);
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
    section.querySelectorAll(".plan .cell").forEach((cell) => {
      cell.addEventListener("click", () => { detail.textContent = cell.querySelector("title").textContent; });
    });
  });
})();
