"use strict";
// Markdown as elements, made of the tokens of marked's lexer: nothing of a text is ever markup.
const markdown = (function () {
  const inner = (name) => (t, parent) => add(t.tokens, element(name, null, parent));
  const plain = (t, parent) => t.tokens ? add(t.tokens, parent) : parent.append(t.text);

  const kinds = {
    space: () => {}, def: () => {},
    paragraph: inner("p"), blockquote: inner("blockquote"), strong: inner("strong"), em: inner("em"), del: inner("del"),
    heading: (t, parent) => add(t.tokens, element("h" + Math.min(6, t.depth + 2), null, parent)),
    hr: (t, parent) => element("hr", null, parent),
    br: (t, parent) => element("br", null, parent),
    codespan: (t, parent) => element("code", t.text, parent),
    code, link, list, table,
    image: (t, parent) => link({ href: t.href, tokens: [{ type: "text", text: t.text || t.href }] }, parent),
    checkbox: (t, parent) => parent.append(t.checked ? "☑ " : "☐ "),
    html: (t, parent) => parent.append(t.raw),
    text: plain, escape: plain,
  };

  function code(t, parent) {
    const box = element("div", null, parent, { class: "code" }), row = element("div", null, box, { class: "soft" });
    element("span", t.lang || "", row);
    const copy = element("button", "copy", row, { type: "button" });
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(t.text);
        copy.textContent = "copied";
      } catch { // a page without TLS has no clipboard
        getSelection().selectAllChildren(text);
        copy.textContent = "selected: copy with Ctrl C";
      }
    });
    const text = element("code", t.text, element("pre", null, box));
  }

  function link(t, parent) {
    if (/^(https?|mailto):/i.test(t.href)) parent = element("a", null, parent, { href: t.href, target: "_blank", rel: "noopener noreferrer" });
    add(t.tokens, parent);
  }

  function list(t, parent) {
    const e = element(t.ordered ? "ol" : "ul", null, parent, t.ordered && t.start !== 1 ? { start: t.start } : {});
    for (const item of t.items) add(item.tokens, element("li", null, e));
  }

  function table(t, parent) {
    const e = element("table", null, element("div", null, parent, { class: "scroll" }), { class: "grid" });
    for (const cells of [t.header, ...t.rows]) {
      const row = element("tr", null, e);
      for (const c of cells) add(c.tokens, element(cells === t.header ? "th" : "td", null, row, c.align ? { class: c.align } : {}));
    }
  }

  function add(tokens, parent) {
    for (const t of tokens || []) (kinds[t.type] || kinds.html)(t, parent);
  }

  // Replaces the contents of an element by a text.
  function show(text, parent) {
    parent.replaceChildren();
    add(marked.lexer(text), parent);
  }

  return { show };
})();
