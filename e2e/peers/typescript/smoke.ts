// Calls the service with the client of openapi-fetch and the types that openapi-typescript made.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const { QUERN_URL: baseUrl, QUERN_TOKEN: token, QUERN_NAMESPACE: namespace = "", QUERN_QUESTION: question = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

const me = await client.GET("/user/me");
assert.ok(me.data, JSON.stringify(me.error));
const username = me.data.username;
assert.equal(username, "ada");

const created = await client.POST("/ingest/new/{namespace}/{datasetName}", {
  params: { path: { namespace, datasetName: "orders" } },
  body: { dataDescription: "Orders of the shop" },
});
assert.equal(created.response.status, 201);

const rows = [{ region: "north" }, { region: "south" }, { region: "west" }];
const stored = await client.POST("/ingest/{namespace}/{datasetName}", {
  params: { path: { namespace, datasetName: "orders" } },
  body: { data: rows },
});
assert.equal(stored.data?.indexed, 3);

const path = { username, namespace, datasetName: "orders" };
const seen: unknown[] = [];
let cursor: string | undefined;
let pages = 0;
do {
  const page = await client.GET("/data/{username}/{namespace}/{datasetName}/rows", { params: { path, query: { limit: 2, cursor } } });
  assert.ok(page.data, JSON.stringify(page.error));
  seen.push(...page.data.data.map((row) => row.region));
  cursor = page.data.nextCursor;
  pages++;
} while (cursor !== undefined);
assert.deepEqual([seen, pages], [["north", "south", "west"], 2]);

const run = await client.POST("/query/ask", { body: { username, namespace, query: question } });
assert.ok(run.data && typeof run.data === "object", JSON.stringify(run.error));
assert.equal(run.data.status, "completed");
assert.equal(run.data.result?.response, "Two regions.");

const absent = await client.POST("/data/{username}/{namespace}/{datasetName}/ingestions", {
  params: { path },
  body: { sessionId: "0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70", options: { delimiter: ";", types: { region: "varchar" } } },
});
assert.equal(absent.response.status, 404);
assert.equal(absent.error?.error_code, "NOT_FOUND");

const wrong = await client.POST("/query", { body: { username, namespace, query: "SELECT regoin FROM orders" } });
assert.equal(wrong.response.status, 422);
assert.equal(wrong.error?.error_code, "QUERY_INVALID");
assert.ok(wrong.error.sub_errors?.some(({ code, message }) => code === "candidate" && message === "region"));

console.log("every call was answered as documented");
