"use strict";
// Conversations with language models, as streams of server-sent events. This browser keeps them.
const chat = (function () {
  const KEY = "etrun-chats", KEPT = 50;
  let pictures = []; // of the next message, as data URIs
  let now = fresh(), stop = null; // the conversation that is shown, and how its stream ends

  function fresh() {
    return { id: Date.now(), messages: [] };
  }

  function kept() {
    try {
      const list = JSON.parse(localStorage.getItem(KEY));
      return Array.isArray(list) ? list.filter((c) => c && Array.isArray(c.messages)) : [];
    } catch {
      return [];
    }
  }

  // Keeps the newest conversations, fewer if the browser has no room for them.
  function keep(list) {
    for (list = list.slice(0, KEPT); ; list.pop()) {
      try {
        localStorage.setItem(KEY, JSON.stringify(list, (key, value) => (key === "pictures" ? undefined : value)));
        break;
      } catch {
        if (!list.length) return;
      }
    }
    listKept();
  }

  function save() {
    now.model = one("chat-model").value;
    now.system = one("chat-system").value;
    keep([...(now.messages.length ? [now] : []), ...kept().filter((c) => c.id !== now.id)]);
  }

  function listKept() {
    const select = one("chat-kept"), list = kept();
    select.replaceChildren();
    element("option", list.length ? "earlier chats …" : "no earlier chats", select, { value: "" });
    for (const c of list) element("option", String((c.messages[0] || {}).content || "").slice(0, 60), select, { value: c.id });
    select.value = list.some((c) => c.id === now.id) ? now.id : "";
    one("chat-forget").disabled = !select.value;
  }

  // A message, and the elements of its thought and its text.
  function bubble(m, name) {
    const box = element("div", null, one("chat-log"), { class: "message " + m.role });
    element("span", m.role === "user" ? "you" : name || one("chat-model").value, box, { class: "who" });
    const thought = element("details", null, box, { class: "thought" });
    element("summary", "thought", thought);
    const parts = { thought, thoughtText: element("div", null, thought, { class: "plain" }), text: element("div", null, box) };
    parts.show = () => {
      thought.hidden = !m.thought;
      parts.thoughtText.textContent = m.thought || "";
      if (m.role === "user" || m.plain) {
        parts.text.className = "plain";
        parts.text.textContent = m.content;
        thumbnails(m.pictures || [], parts.text);
        if (m.seen && !m.pictures) element("div", "(pictures are not kept with earlier chats)", parts.text, { class: "soft" });
      } else {
        markdown.show(m.content, parts.text);
      }
    };
    parts.show();
    return { ...parts, box };
  }

  function thumbnails(list, parent) {
    return list.map((src) => element("img", null, parent, { src, alt: "picture", class: "picture" }));
  }

  function showPictures() {
    one("chat-pictures").replaceChildren();
    thumbnails(pictures, one("chat-pictures")).forEach((image, i) => {
      image.title = "remove this picture";
      image.addEventListener("click", () => {
        pictures.splice(i, 1);
        showPictures();
      });
    });
  }

  async function add(files) {
    for (const f of files) {
      if (!f.type.startsWith("image/")) continue;
      pictures.push(await new Promise((done, fail) => {
        const reader = new FileReader();
        reader.addEventListener("load", () => done(reader.result));
        reader.addEventListener("error", () => fail(reader.error));
        reader.readAsDataURL(f);
      }));
    }
    showPictures();
  }

  // The content of a message for the server.
  function content(m) {
    if (!m.pictures) return m.content;
    return [...m.pictures.map((url) => ({ type: "image_url", image_url: { url } })), { type: "text", text: m.content }];
  }

  // The conversation with the buttons of its messages.
  function draw() {
    one("chat-log").replaceChildren();
    now.messages.forEach((m, i) => {
      const row = element("div", null, bubble(m, now.model).box, { class: "row" });
      const button = (name, f) => element("button", name, row, { type: "button" }).addEventListener("click", f);
      if (m.role === "user") {
        button("edit", () => {
          if (stop) return;
          one("chat-text").value = m.content;
          pictures = m.pictures || [];
          showPictures();
          one("chat-text").focus();
          now.messages.length = i;
          draw();
        });
      } else if (i === now.messages.length - 1) {
        button("again", () => {
          if (stop) return;
          now.messages.length = i;
          draw();
          reply();
        });
      }
    });
  }

  function body() {
    const b = { model: one("chat-model").value, stream: true, stream_options: { include_usage: true } };
    const number = (id, name) => { if (one(id).value !== "") b[name] = Number(one(id).value); };
    number("chat-temperature", "temperature");
    number("chat-top-p", "top_p");
    number("chat-top-k", "top_k");
    number("chat-max", "max_tokens");
    number("chat-seed", "seed");
    return b;
  }

  // Adds the stream of an answer to a message, which is shown once per frame.
  async function stream(path, request, m, parts) {
    const begun = performance.now();
    let first = 0, pieces = 0, usage = null, finish = "", due = false;
    const rate = () => {
      if (!first) return;
      const n = usage ? usage.completion_tokens : pieces, took = performance.now() - first;
      one("chat-rate").textContent = `${n} tokens, first after ${(first - begun).toFixed(0)} ms` +
        (n > 1 && took >= 100 ? `, ${((n - 1) / took * 1000).toFixed(1)} tokens per second` : "") + (finish ? `, ended by ${finish}` : "");
    };
    const show = () => {
      due = false;
      parts.show();
      if (!usage) rate();
    };
    const answer = await api.post(path, request, stop.signal);
    for await (const e of api.events(answer)) {
      if (e.error) throw new Error(e.error.message || "the run failed");
      if (e.usage) usage = e.usage;
      const choice = (e.choices || [])[0];
      if (!choice) continue;
      const delta = choice.delta || {}, text = choice.text ?? delta.content ?? "", thought = delta.reasoning_content ?? "";
      if (text || thought) {
        first = first || performance.now();
        pieces++;
      }
      m.content += text;
      if (thought) m.thought = (m.thought || "") + thought;
      parts.thought.open = !!m.thought && !m.content;
      finish = choice.finish_reason || finish;
      if (!due) requestAnimationFrame(show);
      due = true;
    }
    show();
    rate();
  }

  // Streams the answer to a request into a message; a message without text is dropped.
  async function run(path, request, m) {
    one("chat-fault").textContent = one("chat-rate").textContent = "";
    stop = new AbortController();
    one("chat-send").disabled = true;
    one("chat-stop").disabled = false;
    const parts = bubble(m);
    try {
      await stream(path, request, m, parts);
    } catch (e) {
      if (e.name !== "AbortError") one("chat-fault").textContent = e.message;
      else one("chat-rate").textContent += ", stopped";
    }
    parts.show();
    stop = null;
    one("chat-send").disabled = false;
    one("chat-stop").disabled = true;
  }

  async function reply() {
    const system = one("chat-system").value.trim(), chat = now, m = { role: "assistant", content: "" };
    const messages = [...(system ? [{ role: "system", content: system }] : []), ...chat.messages.map((m) => ({ role: m.role, content: content(m) }))];
    await run("/v1/chat/completions", { ...body(), messages }, m);
    if (chat !== now) return; // another one was begun meanwhile
    if (m.content || m.thought) chat.messages.push(m);
    save();
    draw();
  }

  function send(text) {
    one("chat-text").value = "";
    if (one("chat-form").value === "text") {
      bubble({ role: "user", content: text });
      return run("/v1/completions", { ...body(), prompt: text }, { role: "assistant", content: text, plain: true });
    }
    now.messages.push({ role: "user", content: text, ...(pictures.length ? { pictures, seen: true } : {}) });
    pictures = [];
    showPictures();
    draw();
    return reply();
  }

  function begin(c) {
    if (stop) stop.abort();
    now = c;
    one("chat-rate").textContent = one("chat-fault").textContent = "";
    draw();
    listKept();
  }

  one("chat-ask").addEventListener("submit", (e) => {
    e.preventDefault();
    const text = one("chat-text").value;
    if (text.trim() && !stop) send(text);
  });
  one("chat-text").addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    one("chat-ask").requestSubmit();
  });
  const drop = one("chat-drop"), file = one("chat-file");
  file.addEventListener("change", async () => {
    await add(file.files);
    file.value = "";
  });
  drop.addEventListener("dragover", (e) => { e.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (e) => {
    e.preventDefault();
    drop.classList.remove("over");
    add(e.dataTransfer.files);
  });
  one("chat-text").addEventListener("paste", (e) => drop.hidden || add(e.clipboardData.files));
  one("chat-stop").addEventListener("click", () => stop && stop.abort());
  one("chat-new").addEventListener("click", () => begin(fresh()));
  one("chat-kept").addEventListener("change", () => {
    const c = kept().find((x) => String(x.id) === one("chat-kept").value);
    if (!c) return;
    one("chat-system").value = c.system || "";
    if ([...one("chat-model").options].some((o) => o.value === c.model)) one("chat-model").value = c.model;
    setModel();
    begin(c);
  });
  one("chat-forget").addEventListener("click", () => {
    keep(kept().filter((c) => c.id !== now.id));
    begin(fresh());
  });
  one("chat-model").addEventListener("change", setModel);

  // A model without a template continues texts only.
  function setModel() {
    const m = models.list().find((x) => x.name === one("chat-model").value), form = one("chat-form"), chats = !m || m.chats;
    form.querySelector("[value=chat]").disabled = !chats;
    if (!chats) form.value = "text";
    drop.hidden = !m || !m.sees;
    if (drop.hidden) {
      pictures = [];
      showPictures();
    }
    one("chat-note").textContent = chats ? "" : "This model has no chat template: it continues the text that you send.";
  }

  async function view() {
    await models.refresh();
    const select = one("chat-model"), before = select.dataset.want || select.value;
    delete select.dataset.want;
    const usable = models.list().filter((m) => m.state === "READY" && m.text && !m.vectors && !m.sounds);
    select.replaceChildren();
    for (const m of usable) element("option", m.name, select, { value: m.name });
    if (usable.some((m) => m.name === before)) select.value = before;
    one("chat-none").hidden = usable.length > 0;
    one("chat-body").hidden = !usable.length;
    setModel();
    listKept();
  }

  return { view };
})();
