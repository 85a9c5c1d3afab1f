import type { Target } from './target.ts'

/** The command that shows a view, to be copied into a shell. */
export function selectCommand({ settings }: Target, view: string): string {
  // PostgreSQL names its views with their schema, quoted where they must be; SQLite gives the bare name.
  const name = /^sqlite:|^file:/i.test(settings.storeUrl) && !/^[a-z_][a-z0-9_]*$/i.test(view) ? `"${view}"` : view
  const sql = `select * from ${name} limit 5`
  return `npx tidemark query ${name.includes('"') ? `'${sql}'` : `"${sql}"`}`
}
