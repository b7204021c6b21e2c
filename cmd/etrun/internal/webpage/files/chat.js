"use strict";
// Conversations with language models, as streams of server-sent events.
const chat = (function () {
  let messages = [], stop = null;

  function bubble(role, text) {
    const e = element("div", null, one("chat-log"), { class: "message " + role });
    element("span", role === "user" ? "you" : one("chat-model").value, e, { class: "who" });
    return element("span", text, e);
  }

  // The objects of a stream, one after the other.
  async function* events(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const lines = rest.split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        yield JSON.parse(data);
      }
    }
  }

  function request(text) {
    const form = one("chat-form").value, body = { model: one("chat-model").value, stream: true, stream_options: { include_usage: true } };
    const number = (id, name) => { if (one(id).value !== "") body[name] = Number(one(id).value); };
    number("chat-temperature", "temperature");
    number("chat-top-p", "top_p");
    number("chat-top-k", "top_k");
    number("chat-max", "max_tokens");
    number("chat-seed", "seed");
    if (form === "text") return ["/v1/completions", { ...body, prompt: text }];
    const system = one("chat-system").value.trim();
    return ["/v1/chat/completions", { ...body, messages: [...(system ? [{ role: "system", content: system }] : []), ...messages] }];
  }

  async function stream(path, body, into) {
    const begun = performance.now();
    let first = 0, parts = 0, usage = null, finish = "";
    const rate = () => {
      const n = usage ? usage.completion_tokens : parts, took = (performance.now() - first) / 1000;
      one("chat-rate").textContent = first ? `${n} tokens, first after ${(first - begun).toFixed(0)} ms` +
        (n > 1 && took > 0 ? `, ${((n - 1) / took).toFixed(1)} tokens per second` : "") + (finish ? `, ended by ${finish}` : "") : "";
    };
    const answer = await api.post(path, body, stop.signal);
    for await (const e of events(answer)) {
      if (e.error) throw new Error(e.error.message || "the run failed");
      if (e.usage) usage = e.usage;
      const choice = (e.choices || [])[0];
      if (choice) {
        const piece = choice.text ?? (choice.delta || {}).content ?? "";
        if (piece && !first) first = performance.now();
        if (piece) parts++;
        into.textContent += piece;
        finish = choice.finish_reason || finish;
      }
      if (!usage) rate();
    }
    if (usage) rate();
  }

  function busy(on) {
    one("chat-send").disabled = on;
    one("chat-stop").disabled = !on;
  }

  async function send(text) {
    const form = one("chat-form").value;
    one("chat-fault").textContent = "";
    one("chat-rate").textContent = "";
    one("chat-text").value = "";
    bubble("user", text);
    if (form === "chat") messages.push({ role: "user", content: text });
    const into = bubble("assistant", form === "text" ? text : "");
    stop = new AbortController();
    busy(true);
    try {
      await stream(...request(text), into);
    } catch (e) {
      if (e.name !== "AbortError") one("chat-fault").textContent = e.message;
      else one("chat-rate").textContent += ", stopped";
    }
    busy(false);
    if (form !== "chat") return;
    if (into.textContent) messages.push({ role: "assistant", content: into.textContent });
    else messages.pop();
  }

  one("chat-ask").addEventListener("submit", (e) => {
    e.preventDefault();
    const text = one("chat-text").value;
    if (text.trim() && !one("chat-send").disabled) send(text);
  });
  one("chat-text").addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    one("chat-ask").requestSubmit();
  });
  one("chat-stop").addEventListener("click", () => stop && stop.abort());
  one("chat-new").addEventListener("click", () => {
    if (stop) stop.abort();
    messages = [];
    one("chat-log").replaceChildren();
    one("chat-rate").textContent = one("chat-fault").textContent = "";
  });

  async function view() {
    await models.refresh();
    const select = one("chat-model"), before = select.dataset.want || select.value;
    delete select.dataset.want;
    const usable = models.list().filter((m) => m.state === "READY" && m.text && !m.vectors);
    select.replaceChildren();
    for (const m of usable) element("option", m.name, select, { value: m.name });
    if (usable.some((m) => m.name === before)) select.value = before;
    one("chat-none").hidden = usable.length > 0;
    one("chat-body").hidden = !usable.length;
  }

  return { view };
})();
