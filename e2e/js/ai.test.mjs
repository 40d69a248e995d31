// Vercel's AI SDK: objects and tools, by the chat API of any server of that kind and by
// OpenAI's responses.
import { test } from "node:test";
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, stepCountIs, streamObject, streamText, tool } from "ai";
import { demo, key, serveDemo } from "./server.mjs";
import { fits, limit, place, question, report, shape, told, weather } from "./tools.mjs";

// That a setting is not sent is no news.
globalThis.AI_SDK_LOG_WARNINGS = false;

// The models of a server, by the way that they are asked.
function models(url) {
  const settings = { baseURL: url + "/v1", apiKey: key };
  return {
    compatible: createOpenAICompatible({ name: "realizar", supportsStructuredOutputs: true, ...settings })(demo),
    chat: createOpenAI(settings).chat(demo),
    responses: createOpenAI(settings).responses(demo),
  };
}

// What the responses API keeps, which this server does not.
const providerOptions = { openai: { store: false } };

for (const way of ["compatible", "chat", "responses"]) {
  test(`objects, ${way}`, limit, async (t) => {
    const model = models(await serveDemo(t))[way];
    for (const temperature of [0, 1, 2]) {
      const request = { model, schema: shape, prompt: question, temperature, seed: 6, maxRetries: 0, providerOptions };
      const whole = await generateObject(request);
      fits(shape, whole.object);
      assert.equal(whole.finishReason, "stop");
      const stream = streamObject(request);
      let last;
      for await (const part of stream.partialObjectStream) last = part;
      fits(shape, last);
      assert.deepEqual(await stream.object, last);
    }
  });

  test(`tools, ${way}`, limit, async (t) => {
    const model = models(await serveDemo(t))[way];
    const cities = [];
    const tools = { [weather.name]: tool({ description: weather.description, inputSchema: place, execute: ({ city }) => (cities.push(city), JSON.parse(report)) }) };
    const request = { model, prompt: question, tools, temperature: 0, stopWhen: stepCountIs(3), maxRetries: 0, providerOptions };
    const whole = await generateText(request);
    told(whole.text);
    assert.deepEqual(whole.steps.map((step) => step.finishReason), ["tool-calls", "stop"]);
    const stream = streamText(request);
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    assert.equal(text, whole.text);
    assert.deepEqual(cities, ["Paris", "Paris"]);
  });

  test(`tools that must be called, ${way}`, limit, async (t) => {
    const model = models(await serveDemo(t))[way];
    const tools = { paint: tool({ inputSchema: shape }), locate: tool({ inputSchema: place }) };
    for (const toolChoice of ["required", { type: "tool", toolName: "paint" }]) {
      for (const temperature of [0, 2]) {
        const { toolCalls } = await generateText({ model, prompt: question, tools, toolChoice, temperature, seed: 7, maxOutputTokens: 800, maxRetries: 0, providerOptions });
        assert.ok(toolCalls.length > 0);
        for (const call of toolCalls) {
          assert.ok(!call.invalid || toolCalls.length > 1 && call === toolCalls.at(-1), JSON.stringify(call)); // the last of many may be cut
          if (!call.invalid) fits({ paint: shape, locate: place }[call.toolName], call.input);
        }
      }
    }
  });
}
