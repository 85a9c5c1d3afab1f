/** A feed of events over two databases: rows come, change and go, each event names its table. */
import { RateLimitError, Worker } from "@notionhq/workers";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const database = (key: string) =>
	worker.database(key, {
		type: "managed",
		initialTitle: key,
		primaryKeyProperty: "ID",
		schema: { properties: { Name: Schema.title(), ID: Schema.richText() } },
	});
const people = database("people");
database("rooms");

type Event = { id: number; table: string; key: string; name: string | null; at: string };

worker.sync("events", {
	database: people,
	mode: "incremental",
	schedule: "continuous",
	execute: async (state: { after: number } | undefined) => {
		const response = await fetch(`${process.env.API_URL}/events?after=${state?.after ?? 0}&size=4`);
		if (response.status === 429) throw new RateLimitError({ retryAfter: Number(response.headers.get("retry-after")) });
		const { events, hasMore } = (await response.json()) as { events: Event[]; hasMore: boolean };
		return {
			changes: events.map(({ key, table, name, at }) =>
				name === null
					? { type: "delete" as const, key, targetDatabaseKey: table }
					: {
							type: "upsert" as const,
							key,
							targetDatabaseKey: table,
							upstreamUpdatedAt: at,
							properties: { Name: Builder.title(name), ID: Builder.richText(key) },
						},
			),
			hasMore,
			nextState: { after: events.at(-1)?.id ?? state?.after ?? 0 },
		};
	},
});
