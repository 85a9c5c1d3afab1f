/** Everything each time, page by page: a small catalogue without change tracking. */
import { Worker } from "@notionhq/workers";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const books = worker.database("books", {
	type: "managed",
	initialTitle: "Books",
	primaryKeyProperty: "ISBN",
	schema: {
		databaseIcon: Builder.emojiIcon("📚"),
		properties: {
			Title: Schema.title(),
			ISBN: Schema.richText(),
			Price: Schema.number("dollar"),
			"In print": Schema.checkbox(),
		},
	},
});

type Book = { id: string; title: string; price: number; inPrint: boolean };

worker.sync("booksSync", {
	database: books,
	schedule: "1h",
	execute: async (state: { page: number } | undefined) => {
		const page = state?.page ?? 1;
		const response = await fetch(`${process.env.API_URL}/books?page=${page}&size=2`);
		const { items, hasMore } = (await response.json()) as { items: Book[]; hasMore: boolean };
		console.log(`page ${page}: ${items.length} books`);
		return {
			changes: items.map((book) => ({
				type: "upsert" as const,
				key: book.id,
				properties: {
					Title: Builder.title(book.title),
					ISBN: Builder.richText(book.id),
					Price: Builder.number(book.price),
					"In print": Builder.checkbox(book.inPrint),
				},
				icon: Builder.emojiIcon("📖"),
				pageContentMarkdown: `# ${book.title}`,
			})),
			hasMore,
			nextState: hasMore ? { page: page + 1 } : undefined,
		};
	},
});
