"use strict";
// One request: inputs from files, a drawing or numbers.
const trying = (function () {
  let inputs = [], info = null;

  const scales = {
    unit: ["0 to 1", (x) => x], sign: ["−1 to 1", (x) => 2 * x - 1], byte: ["0 to 255", (x) => Math.round(255 * x)], sixteen: ["0 to 16", (x) => 16 * x],
    imagenet: ["ImageNet mean and deviation", (x, c) => (x - [0.485, 0.456, 0.406][c % 3]) / [0.229, 0.224, 0.225][c % 3]],
  };

  // Where a shape has its picture: channels first or last; null for no picture.
  function layout(shape) {
    const s = shape.slice(-3);
    if (shape.length < 2 || shape.slice(0, -3).some((d) => d > 1)) return null;
    if (s.length === 3 && [1, 3].includes(s[0]) && s[1] > 3 && s[2] > 3) return { c: s[0], h: s[1], w: s[2], last: false };
    if (s.length === 3 && [1, 3].includes(s[2]) && s[0] > 3 && s[1] > 3) return { c: s[2], h: s[0], w: s[1], last: true };
    return s.length === 2 && s[0] > 3 && s[1] > 3 ? { c: 1, h: s[0], w: s[1], last: false } : null;
  }

  class InputField {
    constructor(meta, parent) {
      this.meta = meta;
      this.shape = meta.shape.map((d, i) => d > 0 ? d : (meta.max_shape || [])[i] > 0 ? Math.min(meta.max_shape[i], i ? meta.max_shape[i] : 1) : 1);
      this.values = null;
      const card = element("div", null, parent, { class: "card drop" });
      element("h3", `${meta.name}: ${meta.datatype} ${meta.shape.join("×") || "scalar"}`, card);
      if (meta.shape.some((d) => d < 0)) this.askShape(card);
      this.picture = layout(this.shape);
      this.note = element("p", "", card, { class: "soft", role: "status" });
      const row = element("div", null, card, { class: "row" });
      this.addFile(row, card);
      this.fill = element("select", null, row, { "aria-label": "fill" });
      for (const name of ["fill with …", "zeros", "ones", "random"]) element("option", name, this.fill);
      this.fill.addEventListener("change", () => this.setFill());
      if (this.picture) this.addPicture(row, card);
      const d = element("details", null, card);
      element("summary", "numbers", d);
      this.text = element("textarea", null, d, { rows: 3, "aria-label": "numbers of " + meta.name, placeholder: "1 2.5 −3 …" });
      this.text.addEventListener("input", () => this.attempt(() => this.set(read.numbers(this.text.value), "numbers")));
      this.set(new Array(read.count(this.shape)).fill(0), "zeros");
    }

    askShape(card) {
      const label = element("label", "shape ", card), field = element("input", null, label, { value: this.shape.join(" ") });
      field.addEventListener("change", () => {
        const shape = field.value.split(/[\s,x×]+/).filter(Boolean).map(Number);
        if (shape.length !== this.meta.shape.length || shape.some((d) => !(Number.isInteger(d) && d >= 0)) || read.count(shape) > 1 << 26) {
          this.note.textContent = `want ${this.meta.shape.length} sizes`;
          return;
        }
        this.shape = shape;
        this.set(new Array(read.count(shape)).fill(0), "zeros");
      });
    }

    addFile(row, card) {
      const label = element("label", null, row), file = element("input", null, label, { type: "file", "aria-label": "file for " + this.meta.name });
      file.accept = "image/*,.npy,.wav";
      file.addEventListener("change", () => file.files[0] && this.file(file.files[0]));
      card.addEventListener("dragover", (e) => { e.preventDefault(); card.classList.add("over"); });
      card.addEventListener("dragleave", () => card.classList.remove("over"));
      card.addEventListener("drop", (e) => {
        e.preventDefault();
        card.classList.remove("over");
        if (e.dataTransfer.files[0]) this.file(e.dataTransfer.files[0]);
      });
      if (this.shape[this.shape.length - 1] >= 1000) {
        const rate = element("label", "sound at ", row);
        this.rate = element("input", null, rate, { type: "number", value: 16000, min: 1, size: 6 });
        rate.append(" Hz");
      }
    }

    addPicture(row, card) {
      this.scale = element("select", null, row, { "aria-label": "range of pixels" });
      for (const key in scales) element("option", "pixels " + scales[key][0], this.scale, { value: key });
      const small = this.picture.w <= 32 && this.picture.c === 1;
      this.scale.value = this.picture.c === 3 ? "imagenet" : "unit";
      this.scale.addEventListener("change", () => this.source && this.setPicture(this.source));
      if (small) this.addPad(card);
    }

    // A pad to draw on with a finger or the mouse.
    addPad(card) {
      const pad = element("canvas", null, card, { class: "pad", "aria-label": "drawing of " + this.meta.name });
      pad.width = pad.height = 200;
      const ctx = pad.getContext("2d");
      const clear = () => {
        ctx.fillStyle = "#000";
        ctx.fillRect(0, 0, 200, 200);
      };
      clear();
      ctx.strokeStyle = "#fff";
      ctx.lineWidth = 200 / this.picture.w * 1.3;
      ctx.lineCap = ctx.lineJoin = "round";
      const at = (e) => [e.offsetX * pad.width / pad.clientWidth, e.offsetY * pad.height / pad.clientHeight];
      let down = false;
      pad.addEventListener("pointerdown", (e) => {
        down = true;
        pad.setPointerCapture(e.pointerId);
        ctx.beginPath();
        ctx.moveTo(...at(e));
      });
      pad.addEventListener("pointermove", (e) => {
        if (!down) return;
        ctx.lineTo(...at(e));
        ctx.stroke();
      });
      const end = () => {
        if (!down) return;
        down = false;
        this.setPicture(pad, "the drawing");
        run();
      };
      pad.addEventListener("pointerup", end);
      pad.addEventListener("pointercancel", end);
      const row = element("div", null, card, { class: "row" });
      element("span", "draw here", row, { class: "soft" });
      element("button", "clear", row, { type: "button" }).addEventListener("click", () => {
        clear();
        this.setPicture(pad, "the drawing");
      });
    }

    attempt(f) {
      try {
        f();
      } catch (e) {
        this.values = null;
        this.note.textContent = e.message;
      }
    }

    async file(file) {
      if (file.size > 1 << 28) {
        this.note.textContent = "the file is too large";
        return;
      }
      const name = file.name.toLowerCase();
      try {
        if (name.endsWith(".npy")) {
          const x = read.npy(await file.arrayBuffer());
          if (this.meta.shape.length === x.shape.length && this.meta.shape.every((d, i) => d < 0 || d === x.shape[i])) this.shape = x.shape;
          this.set(x.values, file.name);
        } else if (name.endsWith(".wav")) {
          this.setSound(read.wav(await file.arrayBuffer(), this.rate ? Number(this.rate.value) : 0), file.name);
        } else {
          if (!this.picture) throw new Error(`${this.meta.name} is no picture: its shape is ${this.shape.join("×")}`);
          this.setPicture(await createImageBitmap(file), file.name);
        }
      } catch (e) {
        this.values = null;
        this.note.textContent = `${file.name}: ${e.message}`;
      }
    }

    // Sound that is too short is followed by silence.
    setSound(samples, name) {
      const n = read.count(this.shape), values = new Array(n).fill(0);
      for (let i = 0; i < Math.min(n, samples.length); i++) values[i] = samples[i];
      this.set(values, `${name}: ${samples.length} samples for ${n}`);
    }

    setPicture(source, name) {
      this.source = source;
      const p = this.picture, f = scales[this.scale.value][1];
      const planes = read.pixels(source, p.w, p.h, p.c).map((plane, c) => plane.map((x) => f(x, c)));
      const values = p.last ? planes[0].flatMap((_, i) => planes.map((plane) => plane[i])) : planes.flat();
      this.set(values, name || this.from);
    }

    setFill() {
      const n = read.count(this.shape), index = this.fill.selectedIndex;
      if (index > 0) this.set(Array.from({ length: n }, () => index === 3 ? Math.random() : index - 1), this.fill.value);
      this.fill.selectedIndex = 0;
    }

    set(values, from) {
      const n = read.count(this.shape);
      this.from = from;
      this.values = values.length === n ? values : null;
      this.note.textContent = values.length === n ? `${from}, ${n} ${n === 1 ? "element" : "elements"}` : `${values.length} elements, want ${n}`;
    }

    tensor() {
      if (!this.values) throw new Error(`${this.meta.name}: ${this.note.textContent}`);
      const values = this.meta.datatype === "BYTES" ? this.values.map(String) : this.values;
      return { name: this.meta.name, shape: this.shape, datatype: this.meta.datatype, values };
    }
  }

  async function run() {
    const button = one("try-run"), outputs = one("try-outputs"), fault = one("try-fault");
    if (button.disabled) return;
    fault.textContent = "";
    button.disabled = true;
    try {
      const answer = await api.infer(one("try-model").value, one("try-method").value, inputs.map((i) => i.tensor()));
      one("try-time").textContent = `${answer.took.toFixed(1)} ms, with the network`;
      outputs.replaceChildren();
      answer.outputs.forEach((out) => show.output(out, outputs));
    } catch (e) {
      fault.textContent = e.message;
      outputs.replaceChildren();
      one("try-time").textContent = "";
    }
    button.disabled = false;
  }

  async function setMethod() {
    const parent = one("try-inputs"), fault = one("try-fault");
    fault.textContent = "";
    one("try-outputs").replaceChildren();
    one("try-time").textContent = "";
    parent.replaceChildren();
    inputs = [];
    try {
      info = await api.json(api.modelPath(one("try-model").value) + "/versions/" + encodeURIComponent(one("try-method").value));
      inputs = info.inputs.filter((i) => !i.optional).map((i) => new InputField(i, parent));
    } catch (e) {
      fault.textContent = e.message;
    }
  }

  function setModel() {
    const m = models.list().find((x) => x.name === one("try-model").value), methods = one("try-method");
    methods.replaceChildren();
    for (const name of m ? m.methods : []) element("option", name, methods);
    one("try-method-label").hidden = !m || m.methods.length < 2;
    return setMethod();
  }

  async function view() {
    const select = one("try-model"), before = select.dataset.want || select.value;
    delete select.dataset.want;
    await models.refresh();
    const usable = models.list().filter((m) => m.state === "READY" && !m.text);
    const same = [...select.options].map((o) => o.value).join("\n") === usable.map((m) => m.name).join("\n");
    select.replaceChildren();
    for (const m of usable) element("option", m.name, select, { value: m.name });
    one("try-none").hidden = usable.length > 0;
    one("try-run").disabled = !usable.length;
    const value = select.value;
    if (usable.some((m) => m.name === before)) select.value = before;
    if (usable.length && !(same && inputs.length && select.value === value && before === value)) await setModel();
    if (!usable.length) one("try-inputs").replaceChildren();
  }

  one("try-model").addEventListener("change", setModel);
  one("try-method").addEventListener("change", setMethod);
  one("try-run").addEventListener("click", run);
  return { view };
})();
