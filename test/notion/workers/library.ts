/** Two databases filled by one sync, a listing of the second, and a delta that feeds both. */
import { Worker } from "@notionhq/workers";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const authors = worker.database("authors", {
	type: "managed",
	initialTitle: "Authors",
	primaryKeyProperty: "ID",
	schema: { properties: { Name: Schema.title(), ID: Schema.richText() } },
});
const works = worker.database("works", {
	type: "managed",
	initialTitle: "Works",
	primaryKeyProperty: "ID",
	schema: { properties: { Name: Schema.title(), ID: Schema.richText(), Author: Schema.relation("authors") } },
});

type Author = { id: string; name: string };
type Work = Author & { author: string };

const author = ({ id, name }: Author) => ({
	type: "upsert" as const,
	key: id,
	properties: { Name: Builder.title(name), ID: Builder.richText(id) },
});
const work = ({ author: by, ...rest }: Work) => {
	const { properties, ...change } = author(rest);
	return { ...change, targetDatabaseKey: "works", properties: { ...properties, Author: [Builder.relation(by)] } };
};

const all = async <T>(path: string): Promise<T[]> => ((await (await fetch(`${process.env.API_URL}${path}?size=1000`)).json()) as { items: T[] }).items;

worker.sync("authorsList", {
	database: authors,
	schedule: "manual",
	execute: async () => ({ changes: (await all<Author>("/authors")).map(author), hasMore: false }),
});

worker.sync("worksList", {
	database: works,
	schedule: "manual",
	execute: async () => ({ changes: (await all<Work>("/works")).map(work), hasMore: false }),
});

worker.sync("news", {
	database: authors,
	mode: "incremental",
	execute: async () => ({
		changes: [...(await all<Author>("/new-authors")).map(author), ...(await all<Work>("/new-works")).map(work)],
		hasMore: false,
	}),
});
