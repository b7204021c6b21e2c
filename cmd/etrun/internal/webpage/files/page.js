"use strict";
// The parts of the page, the login, the health of the server and the theme.
(function () {
  const parts = { models: models.view, try: trying.view, chat: chat.view, listen: listening.view, figures: figures.view };

  function denied() {
    api.forget();
    for (const name in parts) one(name).hidden = true;
    one("login").hidden = false;
    one("token").focus();
  }
  api.denied(denied);

  async function open() {
    const name = location.hash.slice(1) in parts ? location.hash.slice(1) : "models";
    one("login").hidden = true;
    for (const part in parts) one(part).hidden = part !== name;
    document.querySelectorAll("nav a").forEach((a) => {
      if (a.getAttribute("href") === "#" + name) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    });
    try {
      await parts[name]();
    } catch (e) {
      if (e.status !== 401) health(e.message, false);
    }
  }

  function health(text, good) {
    one("health").textContent = text;
    one("health").className = good ? "good" : "fault";
  }

  async function watch() {
    if (document.hidden) return;
    try {
      const answer = await fetch("/v2/health/ready", { cache: "no-store" });
      health(answer.ok ? "all models are ready" : "not all models are ready", answer.ok);
    } catch {
      health("the server does not answer", false);
    }
  }

  one("login").addEventListener("submit", async (event) => {
    event.preventDefault();
    api.token(one("token").value.trim());
    one("login-fault").textContent = "";
    try {
      await api.json("/v2");
    } catch (e) {
      one("login-fault").textContent = e.status === 401 ? "the server does not know this token" : e.message;
      return;
    }
    one("token").value = "";
    open();
  });

  one("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  window.addEventListener("hashchange", open);
  setInterval(watch, 5000);
  watch();
  open();
})();
