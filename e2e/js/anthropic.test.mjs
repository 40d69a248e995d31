// Anthropic's own client for JavaScript against a server's process. What an answer has to
// say comes from `realizar run`, which knows nothing of the server.
import { test } from "node:test";
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { demo, key, modelName, run, serve, serveDemo, serveModel, thinker } from "./server.mjs";
import { fits, place, question as weatherQuestion, report, told, weather as weatherTool } from "./tools.mjs";

const question = "Tell me a story.";

// A server that does not answer fails its test.
const limit = { timeout: 120_000 };

// client asks the server, and no second time where that fails.
function client(url, options = {}) {
  return new Anthropic({ baseURL: url, apiKey: key, authToken: null, maxRetries: 0, ...options });
}

// asked is a conversation of one question, answered by the likeliest tokens.
function asked(question, tokens, more = {}) {
  return { model: modelName, messages: [{ role: "user", content: question }], temperature: 0, max_tokens: tokens, ...more };
}

// refused checks an error of the API.
async function refused(promise, kind, status, type, ...says) {
  await assert.rejects(promise, (err) => {
    assert.ok(err instanceof kind, `${err} is no ${kind.name}`);
    assert.equal(err.status, status);
    assert.equal(err.type, type);
    assert.ok(err.requestID, "it names no request");
    for (const part of says) assert.ok(err.message.includes(part), `${err.message} is without ${part}`);
    return true;
  });
}

test("messages", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(question, "--max-tokens", "30");
  const got = await c.messages.create(asked(question, 30));
  assert.equal(got.content.length, 1);
  assert.equal(got.content[0].type, "text");
  assert.equal(got.content[0].text, want.text);
  assert.equal(got.stop_reason, "max_tokens");
  assert.equal(got.stop_sequence, null);
  assert.equal(got.role, "assistant");
  assert.equal(got.model, modelName);
  assert.equal(got.usage.input_tokens + got.usage.cache_read_input_tokens, want.usage.prompt_tokens);
  assert.equal(got.usage.output_tokens, 30);

  const said = asked(question, 12, {
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    messages: [{ role: "user", content: "Hello!" }, { role: "assistant", content: got.content }, { role: "user", content: question }],
  });
  const longer = await c.messages.create(said);
  const { temperature, max_tokens, ...counted } = said;
  const { input_tokens } = await c.messages.countTokens(counted);
  assert.equal(longer.usage.input_tokens + longer.usage.cache_read_input_tokens, input_tokens);
  assert.ok(input_tokens > want.usage.prompt_tokens + 30);

  const beta = await c.beta.messages.create(asked(question, 30, { betas: ["nothing-2030-01-01"] }));
  assert.equal(beta.content[0].text, want.text);
});

test("message streams", limit, async (t) => {
  const c = client(await serve(t));
  const want = run(question, "--max-tokens", "30");
  const stream = c.messages.stream(asked(question, 30));
  let text = "", pieces = 0;
  const kinds = new Set();
  stream.on("text", (piece) => ((text += piece), pieces++));
  for await (const event of stream) kinds.add(event.type);
  const final = await stream.finalMessage();
  assert.equal(text, want.text);
  assert.equal(final.content[0].text, want.text);
  assert.ok(pieces > 1, `it came in ${pieces} pieces`);
  assert.equal(final.stop_reason, "max_tokens");
  assert.equal(final.usage.output_tokens, 30);
  assert.equal(final.usage.input_tokens + final.usage.cache_read_input_tokens, want.usage.prompt_tokens);
  assert.deepEqual([...kinds], ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"]);
});

test("stop sequences", limit, async (t) => {
  const c = client(await serve(t));
  const text = run(question, "--max-tokens", "30").text;
  const stop = text.trim().split(" ")[8];
  const before = text.slice(0, text.indexOf(stop));
  const request = asked(question, 30, { stop_sequences: ["no such text", stop] });
  for (const message of [await c.messages.create(request), await c.messages.stream(request).finalMessage()]) {
    assert.equal(message.content[0].text, before);
    assert.equal(message.stop_reason, "stop_sequence");
    assert.equal(message.stop_sequence, stop);
  }
});

test("tools in a loop", limit, async (t) => {
  const c = client(await serveModel(t, demo));
  const cities = [];
  const weather = betaTool({
    name: "weather",
    description: "Says what the weather is like.",
    inputSchema: { type: "object", properties: { city: { type: "string", enum: ["Oslo", "Rome"] } }, required: ["city"], additionalProperties: false },
    run: ({ city }) => {
      cities.push(city);
      if (cities.length === 2) throw new Error("no answer");
      return "rain";
    },
  });
  for (const stream of [false, true]) {
    cities.length = 0;
    const runner = c.beta.messages.toolRunner(asked("What is the weather like in Oslo?", 200, {
      tools: [weather], tool_choice: { type: "any", disable_parallel_tool_use: true }, max_iterations: 4, stream,
    }));
    let cached = 0;
    for await (const turn of runner) {
      const message = stream ? await turn.finalMessage() : turn;
      assert.equal(message.stop_reason, "tool_use");
      assert.equal(message.content.at(-1).name, "weather");
      cached += message.usage.cache_read_input_tokens;
    }
    assert.equal(cities.length, 4);
    for (const city of cities) assert.ok(["Oslo", "Rome"].includes(city));
    assert.ok(cached > 0);
  }
});

test("tools of the model's own choice", limit, async (t) => {
  const c = client(await serveDemo(t));
  for (const stream of [false, true]) {
    const cities = [];
    const tool = betaZodTool({ ...weatherTool, inputSchema: place, run: ({ city }) => (cities.push(city), report) });
    const last = await c.beta.messages.toolRunner(asked(weatherQuestion, 100, { model: demo, tools: [tool], stream }));
    assert.deepEqual(cities, ["Paris"]);
    assert.equal(last.stop_reason, "end_turn");
    told(last.content[0].text);
  }
});

test("a form of zod", limit, async (t) => {
  const c = client(await serveDemo(t));
  const shape = z.object({ city: z.enum(["Oslo", "Rome"]), warm: z.boolean() });
  const ask = asked("Which city is it?", 100, { model: demo, output_config: { format: zodOutputFormat(shape) } });
  fits(shape, (await c.messages.parse(ask)).parsed_output);
  fits(shape, (await c.messages.stream(ask).finalMessage()).parsed_output);
});

test("thoughts", limit, async (t) => {
  const c = client(await serveModel(t, thinker()));
  const ask = asked(question, 60, { thinking: { type: "enabled", budget_tokens: 12 } });
  const whole = await c.messages.create(ask);
  assert.deepEqual(whole.content.map((b) => b.type), ["thinking", "text"]);
  assert.ok(whole.content[0].signature);
  assert.ok(whole.usage.output_tokens_details.thinking_tokens >= 12);
  const streamed = await c.messages.stream(ask).finalMessage();
  assert.deepEqual(streamed.content, whole.content);
  const count = async (content) => (await c.messages.countTokens({ model: modelName, messages: [...ask.messages, { role: "assistant", content }, { role: "user", content: "And?" }] })).input_tokens;
  const omitted = await c.messages.stream({ ...ask, thinking: { ...ask.thinking, display: "omitted" } }).finalMessage();
  assert.equal(omitted.content[0].thinking, "");
  assert.equal(await count(omitted.content), await count(whole.content));
  const none = await c.messages.create({ ...ask, thinking: { type: "disabled" } });
  assert.deepEqual(none.content.map((b) => b.type), ["text"]);
});

test("the form of an answer", limit, async (t) => {
  const c = client(await serveModel(t, demo));
  const schema = { type: "object", properties: { city: { type: "string", enum: ["Oslo", "Rome"] } }, required: ["city"], additionalProperties: false };
  for (const more of [{ output_config: { format: { type: "json_schema", schema } } }, { output_format: { type: "json_schema", schema } }]) {
    const message = await c.messages.create(asked("Which city is it?", 100, more));
    assert.ok(["Oslo", "Rome"].includes(JSON.parse(message.content[0].text).city));
  }
});

test("errors of messages", limit, async (t) => {
  const url = await serve(t);
  const c = client(url);
  const ask = (more) => c.messages.create(asked(question, 5, more));
  await refused(client(url, { apiKey: key + "e" }).messages.create(asked(question, 5)), Anthropic.AuthenticationError, 401, "authentication_error");
  await refused(ask({ model: "third" }), Anthropic.NotFoundError, 404, "not_found_error", "third", modelName);
  const long = "word ".repeat(2000);
  await refused(c.messages.create(asked(long, 5)), Anthropic.BadRequestError, 400, "invalid_request_error", "prompt is too long", "1024");
  await refused(c.messages.stream(asked(long, 5)).finalMessage(), Anthropic.BadRequestError, 400, "invalid_request_error", "prompt is too long");
  await refused(ask({ temperature: 3 }), Anthropic.BadRequestError, 400, "invalid_request_error", "0 to 2");
  await refused(ask({ wings: 2 }), Anthropic.BadRequestError, 400, "invalid_request_error", "wings");
  await refused(ask({ tools: [{ type: "web_search_20250305", name: "web_search" }] }), Anthropic.BadRequestError, 400, "invalid_request_error", "web_search_20250305");
  await refused(ask({ messages: [] }), Anthropic.BadRequestError, 400, "invalid_request_error", "messages");
});

test("messages that are left", limit, async (t) => {
  const c = client(await serve(t, "--parallel", "2"));
  const want = run(question, "--max-tokens", "300").text;
  const other = c.messages.stream(asked(question, 300)).finalMessage();
  for (let i = 0; i < 5; i++) {
    const stream = await c.messages.create(asked(question + " Again.", 900, { stream: true }));
    let events = 0;
    for await (const event of stream) {
      assert.ok(event.type);
      if (++events === 4) break; // which the client takes for leaving
    }
    assert.ok(stream.controller.signal.aborted);
  }
  assert.equal((await other).content[0].text, want);
});
