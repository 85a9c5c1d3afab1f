/** The changes since the last cycle, with a state that outlives the cycle. */
import { Worker } from "@notionhq/workers";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const tickets = worker.database("tickets", {
	type: "managed",
	initialTitle: "Tickets",
	primaryKeyProperty: "Ticket ID",
	schema: {
		properties: {
			Summary: Schema.title(),
			"Ticket ID": Schema.richText(),
			State: Schema.select([{ name: "open" }, { name: "closed" }]),
		},
	},
});

type Ticket = { id: string; summary: string; state: string; updatedAt: string };
type State = { since: string | null; after?: string; startedWith?: Date };

worker.sync("ticketsDelta", {
	database: tickets,
	mode: "incremental",
	schedule: "5m",
	execute: async (state: State | undefined) => {
		const query = new URLSearchParams({ size: "2", since: state?.since ?? "", after: state?.after ?? "" });
		const response = await fetch(`${process.env.API_URL}/tickets/changed?${query}`);
		const { items, hasMore } = (await response.json()) as { items: Ticket[]; hasMore: boolean };
		const last = items.at(-1);
		return {
			changes: items.map((ticket) => ({
				type: "upsert" as const,
				key: ticket.id,
				upstreamUpdatedAt: ticket.updatedAt,
				properties: {
					Summary: Builder.title(ticket.summary),
					"Ticket ID": Builder.richText(ticket.id),
					State: Builder.select(ticket.state),
				},
			})),
			hasMore,
			nextState: { since: last?.updatedAt ?? state?.since ?? null, after: last?.id ?? state?.after },
		};
	},
});
