/** Two syncs that share what an API allows, and one whose turn comes every minute. */
import { Worker } from "@notionhq/workers";
import { Pacer } from "@notionhq/workers/pacer";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const api = worker.pacer("api", { allowedRequests: 6, intervalMs: 1000 });
const slow = worker.pacer("slow", { allowedRequests: 0.5, intervalMs: 10_000 });

const requests = worker.database("requests", {
	type: "managed",
	initialTitle: "Requests",
	primaryKeyProperty: "ID",
	schema: { properties: { ID: Schema.title() } },
});

const sync = (key: string, wait: () => Promise<void>) =>
	worker.sync(key, {
		database: requests,
		mode: "incremental",
		execute: async (state: { page: number } | undefined) => {
			const page = state?.page ?? 1;
			for (let n = 0; n < 3; n++) {
				await wait();
				(globalThis as unknown as { noteRequest(sync: string): void }).noteRequest(key);
			}
			return {
				changes: [{ type: "upsert" as const, key: `${key} ${page}`, properties: { ID: Builder.title(`${key} ${page}`) } }],
				hasMore: page < 3,
				nextState: { page: page + 1 },
			};
		},
	});

sync("left", () => api.wait());
sync("right", () => Pacer.wait("api"));
sync("rare", () => slow.wait());
