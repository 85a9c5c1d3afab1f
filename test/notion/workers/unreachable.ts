/** An API that is not there. */
import { Worker } from "@notionhq/workers";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const rows = worker.database("rows", {
	type: "managed",
	initialTitle: "Rows",
	primaryKeyProperty: "ID",
	schema: { properties: { ID: Schema.title() } },
});

worker.sync("unreachable", {
	database: rows,
	execute: async () => {
		await fetch(`${process.env.API_URL}/rows`);
		return { changes: [], hasMore: false };
	},
});
