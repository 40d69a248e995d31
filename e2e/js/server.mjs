// A `realizar serve` of its own for a test, and what `realizar run` answers without one.
import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import { after } from "node:test";
import assert from "node:assert/strict";
import OpenAI from "openai";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const model = join(root, "testdata", "babble.gguf");
export const modelName = "babble";
export const key = "open-sesame";

const folder = mkdtempSync(join(tmpdir(), "realizar-e2e-"));
after(() => rmSync(folder, { recursive: true }));

// The command: that of REALIZAR_BINARY, or one built for these tests.
const command = process.env.REALIZAR_BINARY || build();

function build() {
  const out = join(folder, "realizar");
  execFileSync("go", ["build", "-tags", "nocuda", "-o", out, "./cmd/realizar"], {
    cwd: root,
    env: { ...process.env, CGO_ENABLED: "0" },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return out;
}

const keys = join(folder, "keys");
writeFileSync(keys, key + "\n", { mode: 0o600 });

// serve starts a server that asks for the key. When the test t ends it is told to stop,
// and must leave with 0.
export async function serve(t, ...args) {
  return serveModel(t, model, ...args);
}

// serveModel is serve of another model.
export async function serveModel(t, model, ...args) {
  return start(t, [model, "--served-model-name", modelName, ...args]);
}

// thinker is a file of the model with a chat template that has thoughts, and is no longer.
export function thinker() {
  const data = readFileSync(model);
  const template =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ '<think>' ~ m.reasoning_content ~ '</think>' if m.reasoning_content }}{{ m.content }}<|im_end|>\n" +
    "{% endfor %}<|im_start|>assistant\n{{ '<think></think>' if enable_thinking is defined and not enable_thinking else '<think>' }}";
  const end = "<|im_start|>assistant\n{% endif %}";
  const from = data.indexOf("{% for message in messages %}");
  const to = data.indexOf(end, from) + end.length;
  const room = to - from - template.length - "{##}".length;
  assert.ok(from >= 0 && room >= 0, "the model's template is too short");
  data.write(template + "{#" + " ".repeat(room) + "#}", from);
  const path = join(folder, "thinker.gguf");
  writeFileSync(path, data);
  return path;
}

// The model in the program, which calls tools and writes JSON.
export const demo = "demo";

// serveDemo is serve with that model.
export async function serveDemo(t, ...args) {
  return start(t, [demo, ...args]);
}

async function start(t, args) {
  const all = ["serve", "--device", "cpu", "--port", "0", "--api-key-file", keys, ...args];
  const child = spawn(command, all, { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  child.stderr.on("data", (text) => (log += text));
  const left = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
  t.after(async () => {
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), 60_000);
    assert.equal(await left, 0, "the server's log:\n" + log);
    clearTimeout(late);
  });
  const said = new Promise((resolve) => createInterface(child.stdout).once("line", resolve));
  const line = await Promise.race([said, left]);
  const [url] = /http:\/\/\S+/.exec(line) ?? [];
  assert.ok(url, `the server says ${line}, and no address; its log:\n${log}`);
  return url;
}

// client asks the server, and no second time where that fails.
export function client(url, options = {}) {
  return new OpenAI({ baseURL: url + "/v1", apiKey: key, maxRetries: 0, ...options });
}

// run is what the model answers without a server, by the likeliest tokens.
export function run(prompt, ...args) {
  const out = execFileSync(command, ["run", model, prompt, "--device", "cpu", "--json", "--temperature", "0", ...args]);
  const answer = JSON.parse(out);
  assert.notEqual(answer.text.trim(), "");
  return answer;
}
