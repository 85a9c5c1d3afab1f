import type { SyncContext } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { listFields, requireList } from './describe.ts'

export interface DiscoveredObject {
  readonly id: string
  readonly key: readonly string[]
  readonly cursor: string
  readonly candidates: readonly string[]
  /** Of those that were asked for: each takes a request, and an org has a thousand of them. */
  readonly columns?: readonly string[]
}

/** The objects that can be followed; what is not replicated has no stamp of its last change. */
export async function discoverObjects(client: HttpClient, context: SyncContext, described: readonly string[]): Promise<DiscoveredObject[]> {
  const { body } = await client.get('/sobjects', {}, context)
  const names = requireList(body, 'sobjects').filter((object) => object.queryable === true && object.replicateable === true && object.deprecatedAndHidden !== true).map(({ name }) => String(name))
  const found: DiscoveredObject[] = []
  for (const id of names) {
    const columns = described.includes(id) ? { columns: await listFields(client, id, context) } : {}
    found.push({ id, key: ['Id'], cursor: 'SystemModstamp', candidates: ['CreatedDate', 'LastModifiedDate', 'SystemModstamp'], ...columns })
  }
  return found
}
