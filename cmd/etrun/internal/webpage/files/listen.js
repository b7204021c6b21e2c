"use strict";
// Recordings of the microphone, or files, and their texts as they come.
const listening = (function () {
  const RATE = 16000, MOST = 600; // Hz, and seconds
  let recorder = null, ask = null, timer = 0;

  // A .wav file of samples in 16 bits.
  function wav(samples) {
    const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
    const word = (at, text) => [...text].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
    word(0, "RIFF");
    view.setUint32(4, 36 + 2 * samples.length, true);
    word(8, "WAVEfmt ");
    view.setUint32(16, 16, true);
    view.setUint16(20, 1, true);
    view.setUint16(22, 1, true);
    view.setUint32(24, RATE, true);
    view.setUint32(28, 2 * RATE, true);
    view.setUint16(32, 2, true);
    view.setUint16(34, 16, true);
    word(36, "data");
    view.setUint32(40, 2 * samples.length, true);
    samples.forEach((x, i) => view.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, Math.round(x * 32768))), true));
    return new Blob([view.buffer], { type: "audio/wav" });
  }

  // What the browser plays as a .wav file of one channel. WAVE and FLAC files are sent as they are.
  async function convert(blob) {
    const start = new TextDecoder("latin1").decode(await blob.slice(0, 4).arrayBuffer());
    if (start === "RIFF" || start === "fLaC") return blob;
    let sound;
    try {
      sound = await new OfflineAudioContext(1, RATE, RATE).decodeAudioData(await blob.arrayBuffer());
    } catch {
      throw new Error("the browser cannot play this file");
    }
    const mixed = new OfflineAudioContext(1, Math.max(1, Math.ceil(sound.duration * RATE)), RATE), from = mixed.createBufferSource();
    from.buffer = sound;
    from.connect(mixed.destination);
    from.start();
    return wav((await mixed.startRendering()).getChannelData(0));
  }

  async function transcribe(blob) {
    if (ask) ask.abort();
    const mine = ask = new AbortController(), begun = performance.now();
    one("listen-fault").textContent = one("listen-text").textContent = "";
    one("listen-time").textContent = "listening …";
    try {
      const sound = await convert(blob), body = new FormData(), translate = one("listen-translate").checked;
      one("listen-sound").src = URL.createObjectURL(sound);
      one("listen-sound").hidden = false;
      for (const [name, value] of [["model", one("listen-model").value], ["stream", "true"], ["language", translate ? "" : one("listen-language").value.trim()]]) if (value) body.append(name, value);
      body.append("file", sound, "recording");
      const answer = await api.ask("/v1/audio/" + (translate ? "translations" : "transcriptions"), { method: "POST", body, signal: mine.signal });
      for await (const e of api.events(answer)) {
        if (e.error) throw new Error(e.error.message);
        if (e.delta) one("listen-text").append(e.delta);
        if (e.type === "transcript.text.done") one("listen-text").textContent = e.text || "(no text)";
      }
      one("listen-time").textContent = `${((performance.now() - begun) / 1000).toFixed(1)} s`;
    } catch (e) {
      if (mine !== ask) return;
      one("listen-time").textContent = "";
      one("listen-fault").textContent = e.message;
    }
  }

  async function record() {
    if (recorder) {
      recorder.stop();
      return;
    }
    one("listen-fault").textContent = "";
    let stream;
    try {
      if (!navigator.mediaDevices) throw new Error("browsers record on https or localhost only");
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (e) {
      one("listen-fault").textContent = `no microphone: ${e.message}`;
      return;
    }
    const parts = [], begun = performance.now();
    recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", (e) => parts.push(e.data));
    recorder.addEventListener("stop", () => {
      clearInterval(timer);
      stream.getTracks().forEach((t) => t.stop());
      one("listen-record").textContent = "record";
      const kind = recorder.mimeType;
      recorder = null;
      transcribe(new Blob(parts, { type: kind }));
    });
    recorder.start();
    one("listen-record").textContent = "stop";
    timer = setInterval(() => {
      const seconds = (performance.now() - begun) / 1000;
      one("listen-time").textContent = `recording, ${seconds.toFixed(0)} s`;
      if (seconds > MOST && recorder) recorder.stop();
    }, 500);
  }

  const drop = one("listen-drop"), file = one("listen-file");
  one("listen-record").addEventListener("click", record);
  file.addEventListener("change", () => file.files[0] && transcribe(file.files[0]));
  drop.addEventListener("dragover", (e) => { e.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (e) => {
    e.preventDefault();
    drop.classList.remove("over");
    if (e.dataTransfer.files[0]) transcribe(e.dataTransfer.files[0]);
  });
  one("listen-model").addEventListener("change", setModel);

  function setModel() {
    const m = models.list().find((x) => x.name === one("listen-model").value);
    one("listen-translate-label").hidden = !m || !m.translates;
    if (!m || !m.translates) one("listen-translate").checked = false;
  }

  async function view() {
    const list = (await models.refresh()).filter((m) => m.speech), select = one("listen-model"), before = select.dataset.want || select.value;
    delete select.dataset.want;
    select.replaceChildren(...list.map((m) => element("option", m.name, null, { value: m.name })));
    if (list.some((m) => m.name === before)) select.value = before;
    one("listen-none").hidden = list.length > 0;
    one("listen-body").hidden = !list.length;
    setModel();
  }

  return { view };
})();
