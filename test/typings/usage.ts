import { createClient } from '../../src/client/index.ts'
import type { Databases, DoorEvents, Orders, People } from './golden.ts'

/** Never run: it is enough that the compiler takes it, and refuses what it must. */
export async function usage(): Promise<void> {
  const client = createClient<Databases>({ url: 'http://127.0.0.1:4680', key: 'tmk_…' })
  for await (const change of client.changes({ types: ['people', 'orders'] })) {
    // @ts-expect-error -- a deleted row has no record
    void change.snapshot.name
    if (change.action === 'deleted') continue
    if (change.database === 'people') {
      const { name, email, age, roles }: People = change.snapshot
      const said: [string, string | null, number | undefined, 'admin' | 'guest' | undefined] = [
        name,
        email,
        age,
        roles[0],
      ]
      void said
      // @ts-expect-error -- people have no total
      void change.snapshot.total
    } else {
      const order: Orders = change.snapshot
      const [line] = order['line items']
      const sku: string | undefined = line?.parts?.[0]?.sku
      void sku
      // @ts-expect-error -- only what was asked for comes
      if (change.database === 'door-events') continue
    }
  }
  // @ts-expect-error -- there is no such database
  client.changes({ types: ['peple'] })
  for await (const { id, record } of client.list('door-events')) {
    const event: DoorEvents = record
    const seen: [string, boolean | null | undefined, number | bigint | null | undefined, unknown] = [
      id,
      event.open,
      event.count,
      event.nested,
    ]
    void seen
  }
  const row = await client.get('people', 'p1')
  const name: string | undefined = row?.record.name
  void name
}
