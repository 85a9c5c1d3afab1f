/** A backfill and a delta of one database beside a small one that is replaced, a relation between them, one pacer for all. */
import { Worker } from "@notionhq/workers";
import * as Builder from "@notionhq/workers/builder";
import * as Schema from "@notionhq/workers/schema";

const worker = new Worker();
export default worker;

const api = worker.pacer("api", { allowedRequests: 100, intervalMs: 1000 });

const projects = worker.database("projects", {
	type: "managed",
	initialTitle: "Projects",
	primaryKeyProperty: "Project ID",
	schema: {
		properties: {
			"Project Name": Schema.title(),
			"Project ID": Schema.richText(),
		},
	},
});

const tasks = worker.database("tasks", {
	type: "managed",
	initialTitle: "Tasks",
	primaryKeyProperty: "Task ID",
	schema: {
		properties: {
			"Task Name": Schema.title(),
			"Task ID": Schema.richText(),
			Status: Schema.select([
				{ name: "Open", color: "blue" },
				{ name: "Done", color: "green" },
			]),
			Project: Schema.relation("projects", { twoWay: true, relatedPropertyName: "Tasks" }),
		},
	},
});

type Task = { id: string; name: string; status: string; project: string; updatedAt: string };

worker.sync("projectsSync", {
	database: projects,
	mode: "replace",
	schedule: "1h",
	execute: async () => {
		const { items } = await ask<{ items: { id: string; name: string }[] }>("/projects?size=100");
		return {
			changes: items.map((project) => ({
				type: "upsert" as const,
				key: project.id,
				properties: { "Project Name": Builder.title(project.name), "Project ID": Builder.richText(project.id) },
			})),
			hasMore: false,
		};
	},
});

worker.sync("tasksBackfill", {
	database: tasks,
	mode: "replace",
	schedule: "manual",
	execute: async (state: { page: number } | undefined) => {
		const page = state?.page ?? 1;
		const { items, hasMore } = await ask<{ items: Task[]; hasMore: boolean }>(`/tasks?page=${page}&size=3`);
		return { changes: items.map(toChange), hasMore, nextState: hasMore ? { page: page + 1 } : undefined };
	},
});

worker.sync("tasksDelta", {
	database: tasks,
	mode: "incremental",
	schedule: "5m",
	execute: async (state: { since: string; after: string } | undefined) => {
		const query = new URLSearchParams({ size: "3", since: state?.since ?? "", after: state?.after ?? "" });
		const { items, hasMore } = await ask<{ items: Task[]; hasMore: boolean }>(`/tasks/changed?${query}`);
		const last = items.at(-1);
		return { changes: items.map(toChange), hasMore, nextState: last ? { since: last.updatedAt, after: last.id } : state };
	},
});

function toChange(task: Task) {
	return {
		type: "upsert" as const,
		key: task.id,
		upstreamUpdatedAt: task.updatedAt,
		properties: {
			"Task Name": Builder.title(task.name),
			"Task ID": Builder.richText(task.id),
			Status: Builder.select(task.status),
			Project: [Builder.relation(task.project)],
		},
	};
}

async function ask<T>(path: string): Promise<T> {
	await api.wait();
	const response = await fetch(`${process.env.API_URL}${path}`);
	if (!response.ok) throw new Error(`the API answered ${response.status}`);
	return (await response.json()) as T;
}
