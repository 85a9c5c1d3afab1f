/** Mistakes of workers, one sync each. */
import { Worker } from "@notionhq/workers";
import { Pacer } from "@notionhq/workers/pacer";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const rows = worker.database("rows", {
	type: "managed",
	initialTitle: "Rows",
	primaryKeyProperty: "ID",
	schema: { properties: { ID: Schema.title(), Amount: Schema.number(), Done: Schema.checkbox(), Owners: Schema.people() } },
});

const good = { type: "upsert", key: "good", properties: { ID: Builder.title("good"), Amount: Builder.number(1) } };
const hostile = (key: string, execute: (state: unknown) => unknown) =>
	worker.sync(key, { database: rows, mode: "incremental", schedule: "manual", execute: async (state) => (await execute(state)) as never });

hostile("throws", () => {
	throw new Error("no such table");
});
hostile("throwsText", () => {
	throw "just words";
});
hostile("noPage", () => undefined);
hostile("noChanges", () => ({ hasMore: false }));
hostile("noChange", () => ({ changes: [good, null], hasMore: false }));
hostile("noType", () => ({ changes: [good, { key: "x", properties: {} }], hasMore: false }));
hostile("elsewhere", () => ({ changes: [good, { ...good, targetDatabaseKey: "nowhere" }], hasMore: false }));
hostile("noPacer", () => Pacer.wait("absent"));
hostile("noState", () => ({ changes: [good], hasMore: true }));
hostile("sameState", () => ({ changes: [good], hasMore: true, nextState: { page: 1 } }));
hostile("mapState", () => ({ changes: [good], hasMore: true, nextState: { seen: new Map([["a", 1]]) } }));
hostile("badValues", () => ({
	changes: [
		good,
		{ ...good, key: "amount", properties: { Amount: [["a lot"]] } },
		{ ...good, key: "done", properties: { Done: [["perhaps"]] } },
		{ ...good, key: "owners", properties: { Owners: "me" } },
		{ ...good, key: "undeclared", properties: { Colour: Builder.select("red") } },
		{ ...good, key: "none", properties: undefined },
		{ ...good, key: "when", upstreamUpdatedAt: "yesterday" },
		{ ...good, key: "", properties: {} },
	],
	hasMore: false,
}));
