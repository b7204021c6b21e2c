// Asks a server for the texts of a recording with the npm client of OpenAI's API, and prints what it returns as one JSON object. Arguments: the
// URL, and the recording.
import { createReadStream } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const file = () => createReadStream(process.argv[3]);
const out = { errors: {} };

out.capabilities = {};
for await (const m of client.models.list()) out.capabilities[m.id] = m.capabilities;

const transcribe = (options) => client.audio.transcriptions.create({ file: file(), model: "whisper", language: "en", ...options });
const json = await transcribe({});
out.text = json.text;
out.usage = json.usage;
out.plain = await transcribe({ response_format: "text" });
out.srt = await transcribe({ response_format: "srt" });
out.vtt = await transcribe({ response_format: "vtt" });
out.verbose = await transcribe({ response_format: "verbose_json", timestamp_granularities: ["segment"] });
out.words = await client.audio.transcriptions.create({ file: file(), model: "ctc", response_format: "verbose_json", timestamp_granularities: ["word"] });
out.translation = (await client.audio.translations.create({ file: file(), model: "whisper" })).text;

out.deltas = [];
for await (const event of await transcribe({ stream: true })) {
  if (event.type === "transcript.text.delta") out.deltas.push(event.delta);
  if (event.type === "transcript.text.done") out.done = event.text;
}

for (const [name, options] of Object.entries({
  model: { model: "none" }, kind: { model: "lm" }, word: { response_format: "verbose_json", timestamp_granularities: ["word"] },
  language: { language: "xx" }, format: { response_format: "mp3" }, include: { include: ["logprobs"] }, hot: { temperature: 3 },
})) {
  try {
    await transcribe(options);
    out.errors[name] = { name: "no error" };
  } catch (e) {
    out.errors[name] = { name: e.constructor.name, status: e.status ?? null, code: e.code ?? null, param: e.param ?? null, type: e.type ?? null };
  }
}

console.log(JSON.stringify(out));
