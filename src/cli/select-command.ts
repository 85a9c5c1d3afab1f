import { parseStoreUrl } from '../config/store-url.ts'
import type { Target } from './target.ts'

/** The command that shows a view, to be copied into a shell. */
export function selectCommand({ settings }: Target, view: string): string {
  // PostgreSQL names its views with their schema, quoted where they must be; SQLite gives the bare name.
  const bare = parseStoreUrl(settings.storeUrl, settings.folder).kind === 'sqlite' && !/^[a-z_][a-z0-9_]*$/i.test(view)
  const name = bare ? `"${view}"` : view
  const sql = `select * from ${name} limit 5`
  return `npx tidemark query ${name.includes('"') ? `'${sql}'` : `"${sql}"`}`
}
