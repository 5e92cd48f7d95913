// Creates an application of a static site, and follows the log of its deployment to the end.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const [url = "", token = "", repository = ""] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const FINAL = ["deployed", "failed", "cancelled"];

/** Returns what came, or fails with the message of the server. */
function expect<T>({ data, error }: { data?: T; error?: { message: string } }): T {
  if (data === undefined) throw new Error(error?.message ?? "no answer");
  return data;
}

const made = expect(
  await client.POST("/api/v1/deploy/application", {
    body: {
      name: "by-typescript",
      repository,
      branch: "main",
      port: 80,
      environment: "production",
      build_pack: "static",
    },
  }),
);
const deployment_id = made.data.deployments[0]?.id ?? "";
const path = { deployment_id };
let after: string | undefined;
for (;;) {
  const shown = expect(
    await client.GET("/api/v1/deploy/application/deployments/{deployment_id}", { params: { path } }),
  );
  const status = shown.data.status?.status ?? "";
  const query = after === undefined ? { embed: "none" as const, page_size: 1000 } : { after, embed: "none" as const };
  const page = expect(
    await client.GET("/api/v1/deploy/application/deployments/{deployment_id}/logs", { params: { path, query } }),
  );
  // Without `after` the newest line comes first.
  const lines = after === undefined ? page.data.logs.reverse() : page.data.logs;
  for (const line of lines) {
    console.log(`line ${line.log}`);
    after = line.id;
  }
  if (FINAL.includes(status) && lines.length === 0) {
    console.log(`end ${status}`);
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
}

export {};
