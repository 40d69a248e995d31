// Ollama's own client for JavaScript against a server's process. What an answer has to
// say comes from `realizar run`, which knows nothing of the server.
import { test } from "node:test";
import assert from "node:assert/strict";
import { Ollama } from "ollama";
import { demo, key, modelName, run, serve, serveModel, thinker } from "./server.mjs";

const question = "Tell me a story.";

// A server that does not answer fails its test.
const limit = { timeout: 120_000 };

function client(url, bearer = key) {
  return new Ollama({ host: url, headers: { Authorization: "Bearer " + bearer } });
}

// asked is a chat of one question, answered by the likeliest tokens.
function asked(question, tokens, more = {}) {
  return { model: modelName, messages: [{ role: "user", content: question }], options: { temperature: 0, num_predict: tokens }, ...more };
}

// refused checks an error of the server.
async function refused(promise, status, ...says) {
  await assert.rejects(promise, (err) => {
    assert.equal(err.status_code, status, `${err}`);
    for (const part of says) assert.ok(err.message.includes(part), `${err.message} is without ${part}`);
    return true;
  });
}

test("chat", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(question, "--max-tokens", "30");
  const got = await c.chat(asked(question, 30));
  assert.equal(got.message.content, want.text);
  assert.equal(got.message.role, "assistant");
  assert.equal(got.done, true);
  assert.equal(got.done_reason, want.finish_reason);
  assert.equal(got.model, modelName);
  assert.equal(got.prompt_eval_count, want.usage.prompt_tokens);
  assert.equal(got.eval_count, 30);
  assert.ok(got.total_duration >= got.eval_duration && got.eval_duration > 0);
  let text = "", pieces = 0, last;
  for await (const part of await c.chat(asked(question, 30, { stream: true }))) {
    text += part.message.content;
    pieces++;
    last = part;
  }
  assert.equal(text, want.text);
  assert.ok(pieces > 2, `it came in ${pieces} pieces`);
  assert.equal(last.done, true);
  assert.equal(last.eval_count, 30);
});

test("generate", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(question, "--max-tokens", "20");
  const ask = { model: modelName, prompt: question, options: { temperature: 0, num_predict: 20 } };
  const got = await c.generate(ask);
  assert.equal(got.response, want.text);
  let text = "", last;
  for await (const part of await c.generate({ ...ask, prompt: "And then?", context: got.context, stream: true })) {
    text += part.response;
    last = part;
  }
  const chat = asked(question, 20);
  chat.messages.push({ role: "assistant", content: want.text }, { role: "user", content: "And then?" });
  const same = await c.chat(chat);
  assert.equal(text, same.message.content);
  assert.equal(last.prompt_eval_count, same.prompt_eval_count);
  const raw = run(question, "--max-tokens", "20", "--raw");
  assert.equal((await c.generate({ ...ask, raw: true })).response, raw.text);
});

test("tools", limit, async (t) => {
  const c = client(await serveModel(t, demo));
  const tools = [{ type: "function", function: { name: "get_weather", description: "Get the weather of a city", parameters: { type: "object", properties: { city: { type: "string", description: "The city" } }, required: ["city"] } } }];
  const ask = asked("what is the weather in Oslo?", 60, { tools });
  const first = await c.chat(ask);
  assert.deepEqual(first.message.tool_calls.map((call) => call.function.arguments), [{ city: "Oslo" }]);
  ask.messages.push(first.message, { role: "tool", tool_name: "get_weather", content: '{"temperature": 7, "condition": "rainy"}' });
  let text = "";
  for await (const part of await c.chat({ ...ask, stream: true })) {
    text += part.message.content;
    assert.equal(part.message.tool_calls, undefined);
  }
  assert.match(text, /7.*rainy|rainy.*7/);
});

test("format", limit, async (t) => {
  const c = client(await serveModel(t, demo));
  const schema = { type: "object", properties: { name: { type: "string", maxLength: 8 }, age: { type: "integer" } }, required: ["name", "age"], additionalProperties: false };
  const got = await c.chat(asked("A cat called Tom, 3 years old, as JSON", 200, { format: schema }));
  const pet = JSON.parse(got.message.content);
  assert.deepEqual(Object.keys(pet).sort(), ["age", "name"]);
  assert.ok(Number.isInteger(pet.age));
});

test("thoughts", limit, async (t) => {
  const c = client(await serveModel(t, thinker()));
  for (const think of [true, "low"]) {
    const { message } = await c.chat(asked(question, 12, { think }));
    assert.ok(message.thinking);
    assert.equal(message.content, "");
  }
  const { message } = await c.chat(asked(question, 12, { think: false }));
  assert.equal(message.thinking, undefined);
  assert.ok(message.content);
});

test("embeddings", limit, async (t) => {
  const c = client(await serve(t));
  const two = await c.embed({ model: modelName, input: ["one text", "another"] });
  const one = await c.embed({ model: modelName, input: "another", truncate: true, keep_alive: "5m" });
  assert.equal(two.embeddings.length, 2);
  assert.deepEqual(two.embeddings[1], one.embeddings[0]);
  const old = await c.embeddings({ model: modelName, prompt: "another" });
  assert.equal(old.embedding.length, one.embeddings[0].length);
});

test("models", limit, async (t) => {
  const c = client(await serve(t));
  const { models } = await c.list();
  assert.deepEqual(models.map((m) => m.name), [modelName + ":latest"]);
  assert.equal(models[0].details.family, "llama");
  const running = await c.ps();
  assert.equal(running.models[0].name, modelName + ":latest");
  const show = await c.show({ model: models[0].name });
  assert.equal(show.model_info["llama.context_length"], 1024);
  assert.deepEqual(show.capabilities, ["completion"]);
  assert.ok((await c.version()).version);
});

test("errors", limit, async (t) => {
  const url = await serve(t);
  const c = client(url);
  await refused(c.chat(asked(question, 5, { model: "other" })), 404, 'model "other" not found');
  await refused(c.chat(asked(question, 5, { options: { num_ctx: 4096 } })), 400, "num_ctx is 4096", "1024");
  await refused(c.chat(asked("long ".repeat(5000), 5)), 400, "messages", "1024");
  await refused(c.chat(asked(question, 5, { think: true })), 400, "think");
  await refused(c.generate({ model: modelName, prompt: "a", suffix: "b" }), 400, "suffix");
  await refused(client(url, "wrong").list(), 401);
});

test("a stream that is left", limit, async (t) => {
  const c = client(await serve(t, "--parallel", "1"));
  const stream = await c.chat(asked(question + " Again.", 900, { stream: true }));
  let parts = 0;
  await assert.rejects(async () => {
    for await (const _ of stream) if (++parts === 3) stream.abort();
  }, { name: "AbortError" });
  const want = run(question, "--max-tokens", "5");
  assert.equal((await c.chat(asked(question, 5))).message.content, want.text);
});
