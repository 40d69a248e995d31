// A registry on loopback that has the tests' model and takes what is pushed to it.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { model } from "./server.mjs";

const babble = readFileSync(model);

export function digestOf(data) {
  return "sha256:" + createHash("sha256").update(data).digest("hex");
}

// registry starts one that stays for the test t. Its name is the model's; while stalls is
// true, large files stop in the middle.
export async function registry(t) {
  const blobs = new Map(), manifests = new Map();
  const keep = (data) => (blobs.set(digestOf(data), data), { digest: digestOf(data), size: data.length });
  const layer = { mediaType: "application/vnd.ollama.image.model", ...keep(babble) };
  const config = { mediaType: "application/vnd.docker.container.image.v1+json", ...keep(Buffer.from("{}")) };
  manifests.set("ns/babble:1", Buffer.from(JSON.stringify({ schemaVersion: 2, config, layers: [layer] })));
  const r = { stalls: false, asked: 0, digest: layer.digest, size: babble.length, babble };
  const server = createServer(async (q, a) => {
    r.asked++;
    const [, name, kind, rest] = /^\/v2\/(.*)\/(manifests|blobs)\/(.*)$/.exec(new URL(q.url, "http://x").pathname) ?? [];
    const body = Buffer.concat(await q.toArray());
    const end = (status, headers = {}) => a.writeHead(status, headers).end();
    if (q.url === "/v2/") return end(200);
    if (q.method === "POST") return end(202, { Location: `/v2/${name}/blobs/uploads/1` });
    if (q.method === "PUT" && kind === "blobs") {
      const { digest } = keep(body);
      return end(new URL(q.url, "http://x").searchParams.get("digest") === digest ? 201 : 400, { "Docker-Content-Digest": digest });
    }
    if (q.method === "PUT") {
      manifests.set(`${name}:${rest}`, body);
      return end(201, { "Docker-Content-Digest": digestOf(body) });
    }
    const data = kind === "manifests" ? manifests.get(`${name}:${rest}`) : blobs.get(rest);
    if (!data) return end(404);
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(q.headers.range ?? "") ?? [];
    const part = from ? data.subarray(+from, +to + 1) : data;
    const headers = { "Content-Length": part.length, "Docker-Content-Digest": digestOf(data), "Content-Type": kind === "manifests" ? JSON.parse(data).mediaType ?? "application/vnd.docker.distribution.manifest.v2+json" : "application/octet-stream" };
    if (from) headers["Content-Range"] = `bytes ${from}-${+from + part.length - 1}/${data.length}`;
    a.writeHead(from ? 206 : 200, headers);
    if (q.method === "HEAD") return a.end();
    if (r.stalls && part.length > 1000) return a.write(part.subarray(0, part.length / 2));
    a.end(part);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  r.host = `127.0.0.1:${server.address().port}`;
  r.name = `${r.host}/ns/babble:1`;
  return r;
}
