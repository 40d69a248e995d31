// What the tests of structured output and tools have in common, whatever the client.
import assert from "node:assert/strict";
import { z } from "zod";

export const question = "What is the weather in Paris?";

// A server that does not answer fails its test.
export const limit = { timeout: 120_000 };

// The arguments of the tool that the demo model is asked to call, and what comes of it.
export const place = z.object({ city: z.string().max(40) });
export const weather = { name: "get_weather", description: "The weather of a city." };
export const report = JSON.stringify({ temperature: 21 });

// A shape of answer that the model has never seen: that it fits is the server's work. Its
// texts are short, as a small model may not end them by itself.
export const shape = z.object({
  colour: z.enum(["red", "blue"]),
  size: z.int().min(-9).max(99),
  name: z.string().max(12),
  tags: z.array(z.boolean()).max(3),
  inner: z.object({ on: z.boolean(), kind: z.literal("leaf") }),
});

// fits checks an answer, which is JSON in a text or a value already.
export function fits(schema, answer) {
  return schema.parse(typeof answer === "string" ? JSON.parse(answer) : answer);
}

// told checks what the demo model says of the tool's report.
export function told(text) {
  assert.match(text, /21/);
  assert.match(text, /Paris/);
}
