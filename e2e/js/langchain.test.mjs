// LangChain: structured output and tools.
import { test } from "node:test";
import assert from "node:assert/strict";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { demo, key, serveDemo } from "./server.mjs";
import { fits, limit, place, question, report, shape, told, weather } from "./tools.mjs";

// chat is a model as LangChain has it.
function chat(url, more) {
  return new ChatOpenAI({ model: demo, apiKey: key, maxRetries: 0, configuration: { baseURL: url + "/v1" }, ...more });
}

for (const useResponsesApi of [false, true]) {
  const way = useResponsesApi ? "responses" : "chat";

  test(`withStructuredOutput, ${way}`, limit, async (t) => {
    const url = await serveDemo(t);
    for (const method of ["jsonSchema", "functionCalling"]) {
      for (const temperature of [0, 1, 2]) {
        const model = chat(url, { useResponsesApi, temperature }).withStructuredOutput(shape, { name: "shape", method, strict: true });
        fits(shape, await model.invoke(question));
      }
    }
  });

  test(`bindTools, ${way}`, limit, async (t) => {
    const url = await serveDemo(t);
    const cities = [];
    const getWeather = tool(({ city }) => (cities.push(city), report), { ...weather, schema: place });
    const model = chat(url, { useResponsesApi, temperature: 0 }).bindTools([getWeather], { strict: true });
    const messages = [new HumanMessage(question)];
    const asked = await model.invoke(messages);
    assert.deepEqual(asked.tool_calls.map((call) => [call.name, call.args]), [[weather.name, { city: "Paris" }]]);
    messages.push(asked);
    for (const call of asked.tool_calls) {
      const result = await getWeather.invoke(call);
      assert.ok(result instanceof ToolMessage);
      messages.push(result);
    }
    told((await model.invoke(messages)).text);
    assert.deepEqual(cities, ["Paris"]);

    let all;
    for await (const chunk of await model.stream(question)) all = all ? all.concat(chunk) : chunk;
    assert.deepEqual(all.tool_calls.map((call) => call.args), [{ city: "Paris" }]);

    const must = chat(url, { useResponsesApi, temperature: 2 }).bindTools([getWeather], { tool_choice: weather.name, strict: true });
    const called = await must.invoke(question);
    assert.equal(called.tool_calls.length, 1);
    assert.equal(called.invalid_tool_calls.length, 0);
    fits(place, called.tool_calls[0].args);
  });
}
