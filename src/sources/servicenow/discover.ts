import type { SyncContext } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { readAllRows } from './dictionary.ts'

export interface DiscoveredTable {
  readonly id: string
  readonly key: readonly string[]
  readonly cursor: string
  readonly candidates: readonly string[]
  /** Only for described tables. */
  readonly columns?: readonly string[]
}

/** Lists the tables that have or inherit a modification time. */
export async function discoverTables(
  client: HttpClient,
  context: SyncContext,
  described: readonly string[],
): Promise<DiscoveredTable[]> {
  const tables = await readAllRows(client, 'sys_db_object', 'nameISNOTEMPTY', ['name', 'super_class.name'], context)
  const parents = new Map(tables.map((row) => [row['name'] ?? '', row['super_class.name'] ?? '']))
  const stamped = new Set(
    (await readAllRows(client, 'sys_dictionary', 'element=sys_updated_on', ['name'], context)).map(
      (row) => row['name'] ?? '',
    ),
  )
  const found: DiscoveredTable[] = []
  for (const id of parents.keys()) {
    const ancestry = listTableAncestry(id, parents)
    if (!ancestry.some((table) => stamped.has(table))) continue
    const columns = described.includes(id) ? { columns: await listColumns(client, ancestry, context) } : {}
    found.push({
      id,
      key: ['sys_id'],
      cursor: 'sys_updated_on',
      candidates: ['sys_created_on', 'sys_updated_on'],
      ...columns,
    })
  }
  return found.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

async function listColumns(client: HttpClient, ancestry: readonly string[], context: SyncContext): Promise<string[]> {
  const entries = await readAllRows(
    client,
    'sys_dictionary',
    `nameIN${ancestry.join(',')}^elementISNOTEMPTY`,
    ['element'],
    context,
  )
  return [...new Set(entries.flatMap((row) => row['element'] ?? []))].toSorted()
}

/** The table, then the tables it extends. */
function listTableAncestry(table: string, parents: ReadonlyMap<string, string>): string[] {
  const ancestry: string[] = []
  for (let at = table; at !== '' && !ancestry.includes(at); at = parents.get(at) ?? '') ancestry.push(at)
  return ancestry
}
