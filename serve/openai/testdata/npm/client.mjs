// Asks a server with the npm client of OpenAI's API, and prints what it returns as one JSON object. Arguments: the URL, and that of a server
// with a model for vectors.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });

// caught returns the class and the members of an error of the client.
async function caught(promise) {
  try {
    await promise;
    return { name: "no error" };
  } catch (e) {
    return { name: e.constructor.name, status: e.status ?? null, code: e.code ?? null, param: e.param ?? null, type: e.type ?? null };
  }
}

const prompt = { model: "lm", prompt: "hello", max_tokens: 8, temperature: 0 };
const chat = { model: "lm", messages: [{ role: "user", content: "hello" }], max_completion_tokens: 8, temperature: 0 };
const out = {};

out.models = [];
for await (const m of client.models.list()) out.models.push(m.id);
out.model = (await client.models.retrieve("lm")).object;

const completion = await client.completions.create(prompt);
out.completion = completion.choices[0].text;
out.finish = completion.choices[0].finish_reason;
out.usage = completion.usage.completion_tokens;

out.streamed = "";
out.streamUsage = null;
for await (const part of await client.completions.create({ ...prompt, stream: true, stream_options: { include_usage: true } })) {
  out.streamed += part.choices[0]?.text ?? "";
  if (part.usage) out.streamUsage = part.usage.completion_tokens;
}

out.chat = (await client.chat.completions.create(chat)).choices[0].message.content;
const stream = client.chat.completions.stream(chat);
out.chatParts = 0;
stream.on("content", () => out.chatParts++);
out.chatStreamed = (await stream.finalChatCompletion()).choices[0].message.content;

const schema = { type: "object", properties: { a: { enum: ["x", "y"] } }, required: ["a"], additionalProperties: false };
const formed = await client.chat.completions.parse({
  ...chat, max_completion_tokens: 20, response_format: { type: "json_schema", json_schema: { name: "form", strict: true, schema } },
});
out.form = formed.choices[0].message.parsed;

const answer = await client.completions.create({ ...prompt, n: 2, logprobs: 1, stop: ["never"], seed: 3 });
out.choices = answer.choices.length;
out.logprobs = answer.choices[0].logprobs.token_logprobs.length;

const request = { model: "lm", input: "hello", max_output_tokens: 8, temperature: 0 };
const response = await client.responses.create(request);
out.response = response.output_text;
out.responseStatus = response.status;
const events = client.responses.stream(request);
out.responseParts = 0;
events.on("response.output_text.delta", () => out.responseParts++);
out.responseStreamed = (await events.finalResponse()).output_text;

const embedder = new OpenAI({ baseURL: process.argv[3] + "/v1", apiKey: "none", maxRetries: 0 });
const vectors = await embedder.embeddings.create({ model: "vec", input: ["the model", "x"], dimensions: 4 });
out.vectors = vectors.data.map((v) => v.embedding);
out.vectorTokens = vectors.usage.total_tokens;

out.errors = {
  stored: await caught(client.responses.create({ ...request, previous_response_id: "x" })),
  dimensions: await caught(embedder.embeddings.create({ model: "vec", input: "x", dimensions: 400 })),
  model: await caught(client.completions.create({ ...prompt, model: "none" })),
  member: await caught(client.chat.completions.create({ ...chat, color: "red" })),
  value: await caught(client.completions.create({ ...prompt, top_p: 3 })),
  long: await caught(client.completions.create({ ...prompt, prompt: "x".repeat(5000) })),
};

// A stream that the client ends leaves the server free for the next request.
const ended = await client.completions.create({ ...prompt, stream: true });
for await (const part of ended) {
  ended.controller.abort();
  break;
}
out.after = (await client.completions.create(prompt)).choices[0].text;

console.log(JSON.stringify(out));
