// The models of the machine by Ollama's own client for JavaScript, against a server's process
// and a registry on loopback.
import { test } from "node:test";
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ollama } from "ollama";
import { key, modelName, serve } from "./server.mjs";
import { digestOf, registry } from "./registry.mjs";

// A server that does not answer fails its test.
const limit = { timeout: 120_000 };
const served = modelName + ":latest";

// shop is a registry, and a server that lets clients change models, with folders of its own.
async function shop(t, ...args) {
  const home = mkdtempSync(join(tmpdir(), "realizar-store-"));
  t.after(() => rmSync(home, { recursive: true }));
  Object.assign(process.env, { HF_HOME: join(home, "hf"), HF_HUB_CACHE: "", REALIZAR_HOME: join(home, "realizar"), OLLAMA_MODELS: join(home, "ollama") });
  const r = await registry(t);
  const url = await serve(t, ...(args.length ? args : ["--manage-models", "--allow-registry", r.host]));
  return { r, url, c: new Ollama({ host: url, headers: { Authorization: "Bearer " + key } }) };
}

// refused checks an error of the server.
async function refused(promise, status, ...says) {
  await assert.rejects(promise, (err) => {
    assert.equal(err.status_code, status, `${err}`);
    for (const part of says) assert.ok(err.message.includes(part), `${err.message} is without ${part}`);
    return true;
  });
}

async function names(c) {
  return (await c.list()).models.map((m) => m.name);
}

// lines are all of a stream.
async function lines(stream) {
  const all = [];
  for await (const part of await stream) all.push(part);
  return all;
}

test("without the flag", limit, async (t) => {
  const { c, r } = await shop(t, "--served-model-name", "b");
  await refused(c.pull({ model: r.name }), 403, "--manage-models");
  await refused(c.push({ model: r.name }), 403, "--manage-models");
  await refused(c.create({ model: "a", from: "b" }), 403, "--manage-models");
  await refused(c.copy({ source: "a", destination: "b" }), 403, "--manage-models");
  await refused(c.delete({ model: "a" }), 403, "--manage-models");
  assert.equal((await c.pull({ model: modelName })).status, "success");
  assert.equal(r.asked, 0);
});

test("pull", limit, async (t) => {
  const { c, r } = await shop(t);
  const all = await lines(c.pull({ model: r.name, stream: true }));
  const short = r.digest.slice(7, 19);
  assert.deepEqual([all[0].status, ...all.slice(-3).map((p) => p.status)], ["pulling manifest", "verifying sha256 digest", "writing manifest", "success"]);
  assert.deepEqual(all.filter((p) => p.completed === r.size), [{ status: `pulling ${short}`, digest: r.digest, total: r.size, completed: r.size }]);
  assert.equal((await c.pull({ model: r.name })).status, "success");
  assert.deepEqual(await names(c), [served, r.name]);
  const show = await c.show({ model: r.name });
  assert.equal(show.model_info["llama.context_length"], 1024);
  assert.deepEqual((await c.ps()).models.map((m) => m.name), [served]);
  await refused(c.chat({ model: r.name, messages: [{ role: "user", content: "a" }] }), 404, "not served; name it");
  await refused(c.pull({ model: "example.org/a/b" }), 403, "--allow-registry");
  await refused(c.pull({ model: "/etc/passwd" }), 400, "want ollama:");
  await assert.rejects(lines(c.pull({ model: r.host + "/ns/none", stream: true })), /no such model or tag/);
});

test("a pull that is left", limit, async (t) => {
  const { c, r } = await shop(t);
  r.stalls = true;
  const stream = await c.pull({ model: r.name, stream: true });
  await assert.rejects(async () => {
    for await (const part of stream) if (part.completed > 0) stream.abort();
  }, { name: "AbortError" });
  assert.deepEqual(await names(c), [served]);
  r.stalls = false;
  assert.equal((await c.pull({ model: r.name })).status, "success");
  assert.deepEqual(await names(c), [served, r.name]);
});

test("copy, push and delete", limit, async (t) => {
  const { c, r } = await shop(t);
  await c.pull({ model: r.name });
  const to = r.host + "/team/mine:2";
  await c.copy({ source: r.name, destination: to });
  assert.deepEqual(await names(c), [served, r.name, to]);
  const all = await lines(c.push({ model: to, stream: true }));
  assert.equal(all[0].status, "retrieving manifest");
  assert.equal(all.at(-1).status, "success");
  await c.delete({ model: to });
  await c.delete({ model: r.name });
  assert.deepEqual(await names(c), [served]);
  assert.equal((await c.pull({ model: to })).status, "success");
  await refused(c.push({ model: "mine" }), 400, "host/namespace/name:tag");
  await refused(c.delete({ model: "none" }), 404, "not found");
  await refused(c.delete({ model: modelName }), 404, "not found");
});

test("create", limit, async (t) => {
  const { c, r, url } = await shop(t);
  const blob = (method, digest, body) => fetch(`${url}/api/blobs/${digest}`, { method, body, headers: { Authorization: "Bearer " + key } });
  assert.equal((await blob("HEAD", r.digest)).status, 404);
  assert.equal((await blob("POST", r.digest, "something else")).status, 400);
  assert.equal((await blob("POST", r.digest, r.babble)).status, 201);
  assert.equal((await blob("HEAD", r.digest)).status, 200);
  const all = await lines(c.create({ model: "made", files: { "model.gguf": r.digest }, stream: true }));
  assert.deepEqual(all.map((p) => p.status), [`using existing layer ${r.digest}`, "writing manifest", "success"]);
  assert.equal((await c.create({ model: "again", from: "made" })).status, "success");
  assert.deepEqual(await names(c), [served, "again:latest", "made:latest"]);
  await refused(c.create({ model: "x", from: "made", system: "Be brief." }), 400, "system");
  await refused(c.create({ model: "x", from: "made", quantize: "q4_K_M" }), 400, "quantize");
  await refused(c.create({ model: "x", files: { "model.gguf": digestOf("none") } }), 404, "/api/blobs/");
});
