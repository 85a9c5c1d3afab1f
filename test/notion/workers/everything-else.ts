/** All a worker may declare beside syncs into databases. */
import { createXldb, CREDENTIAL_VALUE, j, Worker } from "@notionhq/workers";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";
import * as Xldb from "@notionhq/workers/xldb-schema";

const worker = new Worker();
export default worker;

const greeting = process.env.GREETING ?? "nothing";
const github = worker.oauth("github", { name: "github-oauth", provider: "github" });
worker.credential("STRIPE_KEY", { network: [{ domain: "api.stripe.com", transform: [{ headers: { Authorization: `Bearer ${CREDENTIAL_VALUE}` } }] }] });
worker.tool("greet", { title: "Greet", description: "Says hello", schema: j.object({ name: j.string() }), execute: async ({ name }) => `Hello, ${name}` });
worker.webhook("onPush", { title: "On push", description: "A push happened", execute: async () => {} });
worker.aiConnector("chats", { aiConnectorId: "id", archetype: "chat", execute: async () => ({ changes: [], hasMore: false }) });
const table = createXldb(worker, "table", { type: "managed", initialTitle: "Table", upsertKey: ["id"], schema: { columns: [{ name: "id", title: "ID", type: Xldb.text() }] } });
worker.sync("tableSync", { database: table, execute: async () => ({ changes: [{ type: "upsert", values: { id: "1" } }], hasMore: false }) });

const secrets = worker.database("secrets", {
	type: "managed",
	initialTitle: "Secrets",
	primaryKeyProperty: "ID",
	schema: { properties: { ID: Schema.title(), Value: Schema.richText() } },
});

worker.sync("secretsSync", {
	database: secrets,
	execute: async (_state, { notion }) => {
		const { results } = await notion.users.list({});
		return {
			changes: [
				{ type: "upsert", key: "greeting", properties: { ID: Builder.title("greeting"), Value: Builder.richText(greeting) } },
				{ type: "upsert", key: "token", properties: { ID: Builder.title("token"), Value: Builder.richText(await github.accessToken()) } },
				{ type: "upsert", key: "users", properties: { ID: Builder.title("users"), Value: Builder.richText(String(results.length)) } },
			],
			hasMore: false,
		};
	},
});
