// Structured output, tools and responses with tools by OpenAI's own client.
import { test } from "node:test";
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { client, demo, serveDemo } from "./server.mjs";
import { fits, limit, place, question, report, shape, told, weather } from "./tools.mjs";

const messages = [{ role: "user", content: question }];

// Temperatures at which a model says anything.
const temperatures = [0, 1, 2];

test("a schema of zod", limit, async (t) => {
  const c = client(await serveDemo(t));
  const response_format = zodResponseFormat(shape, "shape");
  for (const temperature of temperatures) {
    const request = { model: demo, messages, temperature, seed: 3, response_format };
    const whole = (await c.chat.completions.parse(request)).choices[0];
    assert.equal(whole.finish_reason, "stop");
    fits(shape, whole.message.parsed);
    const streamed = await c.chat.completions.stream(request).finalChatCompletion();
    assert.deepEqual(streamed.choices[0].message.parsed, whole.message.parsed);
  }
  const object = await c.chat.completions.create({ model: demo, messages, temperature: 0, response_format: { type: "json_object" } });
  assert.equal(typeof JSON.parse(object.choices[0].message.content), "object");
  await assert.rejects(
    c.chat.completions.create({ model: demo, messages, response_format: { type: "json_schema", json_schema: { name: "a", schema: { type: "text" } } } }),
    (err) => err instanceof OpenAI.BadRequestError && err.param === "response_format.json_schema.schema",
  );
});

test("runTools", limit, async (t) => {
  const c = client(await serveDemo(t));
  for (const stream of [false, true]) {
    const cities = [];
    const tool = zodFunction({ ...weather, parameters: place, function: ({ city }) => (cities.push(city), report) });
    const runner = c.chat.completions.runTools({ model: demo, messages, temperature: 0, tools: [tool], stream });
    told(await runner.finalContent());
    assert.deepEqual(cities, ["Paris"]);
    const roles = runner.messages.map((m) => m.role);
    assert.deepEqual(roles, ["user", "assistant", "tool", "assistant"]);
  }
});

test("tools that must be called", limit, async (t) => {
  const c = client(await serveDemo(t));
  const tools = [zodFunction({ name: "paint", parameters: shape }), zodFunction({ name: "locate", parameters: place })];
  const schemas = { paint: shape, locate: place };
  for (const temperature of temperatures) {
    for (const tool_choice of ["required", { type: "function", function: { name: "paint" } }]) {
      const request = { model: demo, messages, tools, tool_choice, parallel_tool_calls: false, temperature, seed: 4 };
      const whole = (await c.chat.completions.parse(request)).choices[0];
      assert.equal(whole.finish_reason, "tool_calls");
      assert.equal(whole.message.content, null);
      assert.equal(whole.message.tool_calls.length, 1);
      const called = whole.message.tool_calls[0].function;
      fits(schemas[called.name], called.parsed_arguments);
      const streamed = (await c.chat.completions.stream(request).finalChatCompletion()).choices[0].message.tool_calls;
      assert.deepEqual(streamed.map((call) => call.function.parsed_arguments), [called.parsed_arguments]);
    }
  }
});

test("functions of old clients", limit, async (t) => {
  const c = client(await serveDemo(t));
  const functions = [{ ...weather, parameters: z.toJSONSchema(place) }];
  const asked = (await c.chat.completions.create({ model: demo, messages, functions, temperature: 0 })).choices[0];
  assert.equal(asked.finish_reason, "function_call");
  assert.deepEqual(JSON.parse(asked.message.function_call.arguments), { city: "Paris" });
  const history = [...messages, asked.message, { role: "function", name: weather.name, content: report }];
  told((await c.chat.completions.create({ model: demo, messages: history, functions, temperature: 0 })).choices[0].message.content);
});

test("responses with a schema", limit, async (t) => {
  const c = client(await serveDemo(t));
  const text = { format: zodTextFormat(shape, "shape") };
  for (const temperature of temperatures) {
    const request = { model: demo, input: question, text, temperature, seed: 5 };
    const whole = await c.responses.parse(request);
    assert.equal(whole.status, "completed");
    fits(shape, whole.output_parsed);
    assert.equal(whole.text.format.type, "json_schema");
    const streamed = await c.responses.stream(request).finalResponse();
    assert.deepEqual(streamed.output_parsed, whole.output_parsed);
  }
});

test("responses with tools", limit, async (t) => {
  const c = client(await serveDemo(t));
  const tools = [zodResponsesFunction({ ...weather, parameters: place })];
  const request = { model: demo, tools, temperature: 0 };
  // ask is a response, whole or put together of a stream.
  const ask = { whole: (input) => c.responses.parse({ ...request, input }), stream: (input) => c.responses.stream({ ...request, input }).finalResponse() };
  for (const kind of ["whole", "stream"]) {
    const input = [{ role: "user", content: question }];
    const first = await ask[kind](input);
    const calls = first.output.filter((item) => item.type === "function_call");
    assert.deepEqual(calls.map((call) => [call.name, call.parsed_arguments]), [[weather.name, { city: "Paris" }]]);
    input.push(...first.output, { type: "function_call_output", call_id: calls[0].call_id, output: report });
    told((await ask[kind](input)).output_text);
  }
  let pieces = "";
  for await (const event of await c.responses.create({ ...request, input: question, tool_choice: "required", parallel_tool_calls: false, stream: true })) {
    if (event.type === "response.function_call_arguments.delta") pieces += event.delta;
    if (event.type === "response.function_call_arguments.done") assert.equal(event.arguments, pieces);
  }
  fits(place, pieces);
});
