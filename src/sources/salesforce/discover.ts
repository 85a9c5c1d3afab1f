import type { SyncContext } from '../../contract/index.ts'
import type { HttpClient } from '../kit/http-client.ts'
import { listFields, requireList } from './describe.ts'

export interface DiscoveredObject {
  readonly id: string
  readonly key: readonly string[]
  readonly cursor: string
  readonly candidates: readonly string[]
  /** Only for described objects: each needs a request, and an org has about a thousand objects. */
  readonly columns?: readonly string[]
}

/** Lists the objects that can be tracked. Objects that are not replicateable have no modification time. */
export async function discoverObjects(
  client: HttpClient,
  context: SyncContext,
  described: readonly string[],
): Promise<DiscoveredObject[]> {
  const { body } = await client.get('/sobjects', {}, context)
  const names = requireList(body, 'sobjects')
    .filter(
      (object) => object.queryable === true && object.replicateable === true && object.deprecatedAndHidden !== true,
    )
    .map(({ name }) => String(name))
  const found: DiscoveredObject[] = []
  for (const id of names) {
    const columns = described.includes(id) ? { columns: await listFields(client, id, context) } : {}
    found.push({
      id,
      key: ['Id'],
      cursor: 'SystemModstamp',
      candidates: ['CreatedDate', 'LastModifiedDate', 'SystemModstamp'],
      ...columns,
    })
  }
  return found
}
