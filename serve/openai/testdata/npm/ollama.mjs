// Asks a server with the npm client of Ollama's API, and prints what it returns as one JSON object. Arguments: the URL, and that of a server
// with a model for vectors.
import { Ollama } from "ollama";

const client = new Ollama({ host: process.argv[2] }), vectors = new Ollama({ host: process.argv[3] });
const options = { num_predict: 8, temperature: 0 }, messages = [{ role: "user", content: "hello" }];
const out = {};

// all returns the text of a stream.
async function all(stream, of) {
  let text = "";
  for await (const part of stream) text += of(part);
  return text;
}

out.Chat = (await client.chat({ model: "lm", messages, options })).message.content;
out.ChatStreamed = await all(await client.chat({ model: "lm", messages, options, stream: true }), (p) => p.message.content);
out.Text = (await client.generate({ model: "lm", prompt: "hello", raw: true, options })).response;
out.TextStreamed = await all(await client.generate({ model: "lm", prompt: "hello", raw: true, options, stream: true }), (p) => p.response);
out.Models = (await client.list()).models.map((m) => m.name);
out.Loaded = (await client.ps()).models.map((m) => m.name);
out.Shown = (await client.show({ model: "lm" })).capabilities;
out.Version = (await client.version()).version;
out.Vectors = (await vectors.embed({ model: "vec", input: ["the model", "x"] })).embeddings;
out.Vector = (await vectors.embeddings({ model: "vec", prompt: "the model" })).embedding;
try {
  await client.chat({ model: "lm", messages, options: { mirostat: 2 } });
} catch (e) {
  out.Error = `${e.name} ${e.status_code} ${e.message}`;
}
console.log(JSON.stringify(out));
