// OpenAI's own client for JavaScript against a server's process. What an answer has to
// say comes from `realizar run`, which knows nothing of the server.
import { test } from "node:test";
import assert from "node:assert/strict";
import OpenAI from "openai";
import { client, key, modelName, run, serve } from "./server.mjs";

const question = "Tell me a story.";
const beginning = "once upon a time";

// A server that does not answer fails its test.
const limit = { timeout: 120_000 };

// asked is a chat of one question, answered by the likeliest tokens.
function asked(question, tokens, more = {}) {
  return { model: modelName, messages: [{ role: "user", content: question }], temperature: 0, max_completion_tokens: tokens, ...more };
}

// refused checks an error of the API.
async function refused(promise, kind, status, names, ...says) {
  await assert.rejects(promise, (err) => {
    assert.ok(err instanceof kind, `${err} is no ${kind.name}`);
    assert.equal(err.status, status);
    assert.ok(err.param === names || err.code === names, `param ${err.param}, code ${err.code}, want ${names}`);
    assert.ok(err.type, "it has no type");
    for (const part of says) assert.ok(err.message.includes(part), `${err.message} is without ${part}`);
    return true;
  });
}

test("models", limit, async (t) => {
  const c = client(await serve(t, "--served-model-name", "second"));
  const names = [];
  for await (const m of c.models.list()) names.push(m.id);
  assert.deepEqual(names, [modelName, "second"]);
  const one = await c.models.retrieve("second");
  assert.equal(one.id, "second");
  assert.equal(one.object, "model");
  await refused(c.models.retrieve("third"), OpenAI.NotFoundError, 404, "model_not_found", "third");
});

test("chat", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(question, "--max-tokens", "30");
  const got = await c.chat.completions.create(asked(question, 30));
  assert.equal(got.choices.length, 1);
  assert.equal(got.choices[0].message.content, want.text);
  assert.equal(got.choices[0].message.role, "assistant");
  assert.equal(got.choices[0].finish_reason, want.finish_reason);
  assert.equal(got.model, modelName);
  assert.equal(got.usage.prompt_tokens, want.usage.prompt_tokens);
  assert.equal(got.usage.completion_tokens, 30);
  const { data, response } = await c.chat.completions.create(asked(question, 30), { headers: { "X-Request-Id": "mine-7" } }).withResponse();
  assert.equal(data.choices[0].message.content, want.text);
  assert.ok(data.usage.prompt_tokens_details.cached_tokens > 0);
  assert.equal(response.headers.get("x-request-id"), "mine-7");
});

test("stream", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(question, "--max-tokens", "30");
  const stream = await c.chat.completions.create(asked(question, 30, { stream: true, stream_options: { include_usage: true } }));
  let text = "", pieces = 0, last;
  const reasons = [];
  for await (const chunk of stream) {
    if (!last) assert.equal(chunk.choices[0].delta.role, "assistant");
    last = chunk;
    for (const choice of chunk.choices) {
      if (choice.delta.content) pieces++;
      text += choice.delta.content ?? "";
      if (choice.finish_reason) reasons.push(choice.finish_reason);
    }
  }
  assert.equal(text, want.text);
  assert.ok(pieces > 1, `it came in ${pieces} pieces`);
  assert.deepEqual(reasons, [want.finish_reason]);
  assert.deepEqual(last.choices, []);
  assert.equal(last.usage.completion_tokens, 30);
  assert.equal(last.usage.prompt_tokens, want.usage.prompt_tokens);
});

test("choices, also as streams", limit, async (t) => {
  const c = client(await serve(t));
  const request = asked(question, 15, { n: 3, seed: 5, temperature: 1 });
  const whole = (await c.chat.completions.create(request)).choices.map((choice) => choice.message.content);
  assert.equal(new Set(whole).size, 3);
  const runner = c.chat.completions.stream(request);
  const final = await runner.finalChatCompletion();
  assert.deepEqual(final.choices.map((choice) => choice.message.content), whole);
  assert.deepEqual(final.choices.map((choice) => choice.index), [0, 1, 2]);
});

test("log-probabilities", limit, async (t) => {
  const c = client(await serve(t));
  const request = asked(question, 10, { logprobs: true, top_logprobs: 4 });
  const whole = (await c.chat.completions.create(request)).choices[0];
  const scores = whole.logprobs.content;
  assert.equal(scores.length, 10);
  assert.equal(Buffer.from(scores.flatMap((token) => token.bytes)).toString(), whole.message.content);
  for (const token of scores) {
    assert.ok(token.logprob < 0);
    assert.equal(token.top_logprobs.length, 4);
    assert.equal(token.top_logprobs[0].token, token.token);
    assert.equal(token.top_logprobs[0].logprob, token.logprob);
    for (let i = 1; i < 4; i++) assert.ok(token.top_logprobs[i].logprob <= token.top_logprobs[i - 1].logprob);
  }
  const streamed = await c.chat.completions.stream(request).finalChatCompletion();
  assert.deepEqual(streamed.choices[0].logprobs.content, scores);
});

test("seeds", limit, async (t) => {
  const c = client(await serve(t));
  const answer = async (seed) => (await c.chat.completions.create(asked(question, 20, { temperature: 1, seed }))).choices[0].message.content;
  const seven = await answer(7);
  assert.equal(await answer(7), seven);
  assert.notEqual(await answer(8), seven);
  assert.notEqual(await answer(), await answer());
});

test("stop", limit, async (t) => {
  const c = client(await serve(t));
  const text = run(question, "--max-tokens", "30").text;
  const stop = text.trim().split(" ")[8];
  const before = text.slice(0, text.indexOf(stop));
  for (const value of [stop, ["no such text", stop]]) {
    const whole = (await c.chat.completions.create(asked(question, 30, { stop: value }))).choices[0];
    assert.equal(whole.message.content, before);
    assert.equal(whole.finish_reason, "stop");
    const streamed = (await c.chat.completions.stream(asked(question, 30, { stop: value })).finalChatCompletion()).choices[0];
    assert.equal(streamed.message.content, before);
    assert.equal(streamed.finish_reason, "stop");
  }
});

test("completions", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(beginning, "--raw", "--max-tokens", "20").text;
  const other = run(question, "--raw", "--max-tokens", "20").text;
  const request = { model: modelName, prompt: [beginning, question], max_tokens: 20, temperature: 0 };
  const got = await c.completions.create(request);
  assert.deepEqual(got.choices.map((choice) => choice.text), [want, other]);
  const texts = ["", ""];
  for await (const chunk of await c.completions.create({ ...request, stream: true })) {
    for (const choice of chunk.choices) texts[choice.index] += choice.text;
  }
  assert.deepEqual(texts, [want, other]);
  const scored = await c.completions.create({ model: modelName, prompt: beginning, max_tokens: 0, echo: true, logprobs: 2 });
  assert.equal(scored.choices[0].text, beginning);
  const { tokens, token_logprobs: own } = scored.choices[0].logprobs;
  assert.equal(tokens.join(""), beginning);
  assert.equal(own[0], null);
  assert.ok(own.length === tokens.length && own.slice(1).every((p) => p < 0));
  await refused(c.completions.create({ ...request, suffix: "the end" }), OpenAI.BadRequestError, 400, "suffix");
});

// The client asks for base64 where it is not told, and makes numbers of it.
test("embeddings", limit, async (t) => {
  const c = client(await serve(t));
  const request = { model: modelName, input: [question, beginning, question] };
  const got = await c.embeddings.create(request);
  assert.equal(got.data.length, 3);
  const [a, b, again] = got.data.map((item) => Array.from(item.embedding));
  assert.equal(a.length, 64);
  assert.ok(Math.abs(cosine(a, again) - 1) < 1e-6);
  assert.ok(cosine(a, b) < 0.999);
  const floats = await c.embeddings.create({ ...request, encoding_format: "float" });
  for (let i = 0; i < a.length; i++) assert.ok(Math.abs(floats.data[0].embedding[i] - a[i]) < 1e-6);
  await refused(c.embeddings.create({ ...request, dimensions: 65 }), OpenAI.BadRequestError, 400, "dimensions", "64");
});

function cosine(a, b) {
  const product = (x, y) => x.reduce((sum, v, i) => sum + v * y[i], 0);
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
}

test("responses", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(question, "--max-tokens", "30").text;
  const request = { model: modelName, input: question, temperature: 0, max_output_tokens: 30 };
  const got = await c.responses.create({ ...request, metadata: { colour: "blue" } });
  assert.equal(got.output_text, want);
  assert.equal(got.status, "incomplete");
  assert.equal(got.incomplete_details.reason, "max_output_tokens");
  assert.equal(got.usage.output_tokens, 30);
  assert.deepEqual(got.metadata, { colour: "blue" });

  let text = "", number = 0;
  const runner = c.responses.stream(request);
  for await (const event of runner) {
    assert.equal(event.sequence_number, number++);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(text, want);
  assert.equal((await runner.finalResponse()).output_text, want);

  const instructed = await c.responses.create({ ...request, instructions: "Be brief." });
  const chat = await c.chat.completions.create({
    ...asked(question, 30), messages: [{ role: "system", content: "Be brief." }, { role: "user", content: question }],
  });
  assert.equal(instructed.output_text, chat.choices[0].message.content);
  await refused(c.responses.create({ ...request, store: true }), OpenAI.BadRequestError, 400, "store");
  await refused(c.responses.create({ ...request, previous_response_id: "resp_1" }), OpenAI.BadRequestError, 400, "previous_response_id");
});

test("errors", limit, async (t) => {
  const url = await serve(t);
  const c = client(url);
  const chat = (more) => c.chat.completions.create(asked(question, 5, more));
  await refused(client(url, { apiKey: key + "e" }).models.list(), OpenAI.AuthenticationError, 401, "invalid_api_key");
  await refused(chat({ model: "third" }), OpenAI.NotFoundError, 404, "model_not_found", "third", modelName);
  const long = "word ".repeat(2000);
  await refused(c.chat.completions.create(asked(long, 5)), OpenAI.BadRequestError, 400, "context_length_exceeded", "1024");
  await refused(c.chat.completions.create(asked(long, 5, { stream: true })), OpenAI.BadRequestError, 400, "context_length_exceeded", "1024");
  await refused(chat({ temperature: 3 }), OpenAI.BadRequestError, 400, "temperature", "0 to 2");
  await refused(chat({ wings: 2 }), OpenAI.BadRequestError, 400, "wings");
  await refused(chat({ response_format: { type: "xml" } }), OpenAI.BadRequestError, 400, "response_format.type", "json_schema");
  await refused(chat({ messages: [] }), OpenAI.BadRequestError, 400, "messages");
});

test("cancellation", limit, async (t) => {
  const url = await serve(t, "--parallel", "2");
  const c = client(url);
  const want = run(question, "--max-tokens", "400").text;
  const other = c.chat.completions.stream(asked(question, 400)).finalChatCompletion();
  for (let i = 0; i < 5; i++) {
    const stream = await c.chat.completions.create(asked(question + " Again.", 900, { stream: true }));
    let pieces = 0;
    for await (const chunk of stream) {
      assert.ok(chunk.id);
      if (++pieces === 3) break; // which the client takes for leaving
    }
    assert.ok(stream.controller.signal.aborted);
  }
  const early = new AbortController();
  const left = c.chat.completions.create(asked(question, 900), { signal: early.signal });
  early.abort();
  await assert.rejects(left, OpenAI.APIUserAbortError);
  assert.equal((await other).choices[0].message.content, want);
  assert.equal((await c.chat.completions.create(asked(question, 400))).choices[0].message.content, want);
});
