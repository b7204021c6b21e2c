"use strict";
// The list of models, and what they are: of /v2 and /v1.
const models = (function () {
  let list = [], control = false;
  const texts = new Map(); // language models that were loaded at any time, and what they can do: /v1 does not list others

  async function refresh() {
    const [server, index] = await Promise.all([api.json("/v2"), api.json("/v2/repository/index", { method: "POST" })]);
    control = (server.extensions || []).includes("model_repository");
    try {
      for (const m of (await api.json("/v1/models")).data || []) if (m.capabilities.length || !texts.has(m.id)) texts.set(m.id, m.capabilities);
    } catch { /* no language models */ }
    const byName = new Map();
    for (const row of index) {
      const m = byName.get(row.name) || byName.set(row.name, { name: row.name, state: row.state, reason: row.reason, methods: [] }).get(row.name);
      if (row.version) m.methods.push(row.version);
    }
    list = [...byName.values()];
    list.forEach((m) => {
      m.text = texts.has(m.name);
      m.vectors = m.text && texts.get(m.name).includes("embedding");
      m.chats = m.text && texts.get(m.name).includes("chat");
      m.sees = m.chats && texts.get(m.name).includes("vision");
      m.speech = m.text && texts.get(m.name).includes("transcription");
      m.sounds = m.speech || m.text && ["voice_detection", "diarization"].some((c) => texts.get(m.name).includes(c));
      m.translates = m.text && texts.get(m.name).includes("translation");
    });
    return list;
  }

  async function act(card, name, what) {
    const fault = card.querySelector(".fault"), buttons = card.querySelectorAll("button");
    fault.textContent = "";
    buttons.forEach((b) => { b.disabled = true; });
    try {
      await api.post(`/v2/repository/models/${encodeURIComponent(name)}/${what}`, {});
    } catch (e) {
      fault.textContent = e.message;
      buttons.forEach((b) => { b.disabled = false; });
      return;
    }
    await view();
  }

  async function describe(m, card) {
    for (const method of m.methods.length ? m.methods : []) {
      const info = await api.json(api.modelPath(m.name) + "/versions/" + encodeURIComponent(method));
      const table = element("table", null, element("div", null, card.querySelector(".methods"), { class: "scroll" }));
      const row = (name, list) => {
        const tr = element("tr", null, table);
        element("th", name, tr);
        element("td", list.map((t) => `${t.name} ${t.datatype} ${t.shape.join("×")}${t.max_shape ? " up to " + t.max_shape.join("×") : ""}`).join(", ") || "none", tr);
      };
      if (m.methods.length > 1) element("th", method, element("tr", null, table));
      row("inputs", info.inputs);
      row("outputs", info.outputs);
    }
  }

  async function view() {
    const fault = one("models-fault");
    fault.textContent = "";
    try {
      await refresh();
    } catch (e) {
      fault.textContent = e.message;
      return;
    }
    const parent = one("model-list");
    parent.replaceChildren();
    for (const m of list) {
      const card = element("div", null, parent, { class: "card" });
      element("h3", m.name, card);
      const state = element("p", null, card), ready = m.state === "READY";
      element("span", ready ? "ready" : m.state.toLowerCase().replaceAll("_", " "), state, { class: ready ? "good" : "fault" });
      if (m.reason) state.append(": " + m.reason);
      if (m.text) state.append(m.vectors ? ", computes vectors of texts: /v1/embeddings" : m.sounds ? ", a model of speech: /v1/audio/transcriptions" : ", a language model");
      element("div", null, card, { class: "methods" });
      element("p", "", card, { class: "fault", role: "alert" });
      const row = element("div", null, card, { class: "row" });
      const part = m.sounds ? "listen" : m.text ? "chat" : "try";
      const go = element("a", part === "try" ? "try it" : part, row, { href: "#" + part });
      go.addEventListener("click", () => { one(part + "-model").dataset.want = m.name; });
      go.hidden = !ready || m.vectors || m.sounds && !m.speech;
      if (control) {
        const button = (name, what) => element("button", name, row, { type: "button" }).addEventListener("click", () => act(card, m.name, what));
        button(ready ? "reload" : "load", "load");
        if (ready) button("unload", "unload");
      }
      if (ready && !m.text) describe(m, card).catch((e) => { card.querySelector(".fault").textContent = e.message; });
    }
    one("control-note").textContent = control ? "" : "Models are loaded and unloaded from this page if the server runs with --control.";
  }

  return { view, refresh, list: () => list };
})();
