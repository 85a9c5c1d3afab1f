import type { SyncContext } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { readAllRows } from './dictionary.ts'

export interface DiscoveredTable {
  readonly id: string
  readonly key: readonly string[]
  readonly cursor: string
  readonly candidates: readonly string[]
  /** Of those that were asked for. */
  readonly columns?: readonly string[]
}

/** The tables that have a stamp of the last change, by themselves or from one they extend. */
export async function discoverTables(client: HttpClient, context: SyncContext, described: readonly string[]): Promise<DiscoveredTable[]> {
  const tables = await readAllRows(client, 'sys_db_object', 'nameISNOTEMPTY', ['name', 'super_class.name'], context)
  const parents = new Map(tables.map((row) => [row['name']!, row['super_class.name'] ?? '']))
  const stamped = new Set((await readAllRows(client, 'sys_dictionary', 'element=sys_updated_on', ['name'], context)).map((row) => row['name']!))
  const found: DiscoveredTable[] = []
  for (const id of parents.keys()) {
    const line = listTableAncestry(id, parents)
    if (!line.some((table) => stamped.has(table))) continue
    const columns = described.includes(id) ? { columns: await listColumns(client, line, context) } : {}
    found.push({ id, key: ['sys_id'], cursor: 'sys_updated_on', candidates: ['sys_created_on', 'sys_updated_on'], ...columns })
  }
  return found.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

async function listColumns(client: HttpClient, line: readonly string[], context: SyncContext): Promise<string[]> {
  const entries = await readAllRows(client, 'sys_dictionary', `nameIN${line.join(',')}^elementISNOTEMPTY`, ['element'], context)
  return [...new Set(entries.map((row) => row['element']!))].toSorted()
}

/** The table and those it extends. */
function listTableAncestry(table: string, parents: ReadonlyMap<string, string>): string[] {
  const line: string[] = []
  for (let at = table; at !== '' && !line.includes(at); at = parents.get(at) ?? '') line.push(at)
  return line
}
