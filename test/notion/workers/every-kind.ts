/** Every kind of property there is, as the builders write it, empty, and left out. */
import { Worker } from "@notionhq/workers";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const things = worker.database("things", {
	type: "attached",
	initialTitle: "Things",
	primaryKeyProperty: "ID",
	schema: {
		properties: {
			Name: Schema.title(),
			ID: Schema.richText(),
			Note: Schema.richText(),
			Amount: Schema.number("euro"),
			Day: Schema.date(),
			Meeting: Schema.date("ll"),
			Trip: Schema.date(),
			Kind: Schema.select([{ name: "a" }]),
			Tags: Schema.multiSelect([]),
			Stage: Schema.status({ groups: [{ name: "To-do", options: [{ name: "New" }] }] }),
			Done: Schema.checkbox(),
			Site: Schema.url(),
			Mail: Schema.email(),
			Phone: Schema.phoneNumber(),
			Parts: Schema.relation("things"),
			Owners: Schema.people(),
			Where: Schema.place(),
			Papers: Schema.file(),
		},
	},
});

worker.sync("thingsSync", {
	database: things,
	execute: async () => ({
		changes: [
			{
				type: "upsert" as const,
				key: "full",
				upstreamUpdatedAt: "2026-03-19T12:00:00Z",
				icon: Builder.notionIcon("rocket", "blue"),
				cover: Builder.imageCover("https://example.com/cover.png"),
				pageContentMarkdown: "Hello, **world**",
				properties: {
					Name: Builder.title("Full"),
					ID: Builder.richText("full"),
					Note: [["See "], ...Builder.link("the page", "https://example.com"), [", due ", [["b"]]], ...Builder.date("2026-05-01")],
					Amount: Builder.number(12.5),
					Day: Builder.date("2026-01-31"),
					Meeting: Builder.dateTime("2026-01-31T09:30:00Z", "Europe/Berlin"),
					Trip: Builder.dateRange("2026-02-01", "2026-02-14"),
					Kind: Builder.select("a"),
					Tags: Builder.multiSelect("red", "blue"),
					Stage: Builder.status("New"),
					Done: Builder.checkbox(true),
					Site: Builder.url("https://example.com/full"),
					Mail: Builder.email("full@example.com"),
					Phone: Builder.phoneNumber("+49 30 123"),
					Parts: [Builder.relation("empty"), Builder.relation("sparse")],
					Owners: Builder.people("ada@example.com", "alan@example.com"),
					Where: Builder.place({ lat: 52.5, lon: 13.4, name: "Berlin" }),
					Papers: Builder.file("https://example.com/a.pdf", "A"),
				},
			},
			{
				type: "upsert" as const,
				key: "empty",
				properties: {
					Name: Builder.title(""), ID: Builder.richText("empty"), Note: [], Amount: Builder.number(Number.NaN), Day: [], Meeting: [], Trip: [],
					Kind: Builder.select(""), Tags: Builder.multiSelect(), Stage: [], Done: Builder.checkbox(false), Site: Builder.url(""), Mail: [], Phone: [],
					Parts: [], Owners: Builder.people(), Where: [] as never, Papers: [],
				},
			},
			{
				type: "upsert" as const,
				key: "sparse",
				properties: { Name: Builder.title("Sparse"), ID: Builder.richText("sparse"), Amount: [["9007199254740993"]] } as never,
			},
		],
		hasMore: false,
	}),
});
