import { describe, test } from 'vitest'
import { describeSource } from '../../../src/testing/describe-source.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'
import { SkippingClock } from '../../../src/testing/skipping-clock.ts'
import { manifestOf, openSource } from '../airbyte/shop.ts'

const PAGE_SIZE = 6
const LAG_MS = 10_000

interface Item {
  readonly id: string
  readonly parent: string
  readonly updated_at: string
  readonly n: number
}

const manifest = (cursor: string): string =>
  manifestOf(`
  - type: DeclarativeStream
    name: parents
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester: { $ref: '#/definitions/requester', path: /parents }
      record_selector: { $ref: '#/definitions/records' }
  - type: DeclarativeStream
    name: items
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester: { $ref: '#/definitions/requester', path: "/parents/{{ stream_partition.parent }}/items" }
      record_selector: { $ref: '#/definitions/records' }
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestOption, inject_into: request_parameter, field_name: after }
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ response.next }}", stop_condition: "{{ not response.next }}" }
      partition_router:
        type: SubstreamPartitionRouter
        parent_stream_configs: [{ stream: '#/streams/0', parent_key: id, partition_field: parent }]
${cursor}`)

const CURSOR = `    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: updated_at
      datetime_format: '%Y-%m-%dT%H:%M:%SZ'
      start_datetime: '2020-01-01T00:00:00Z'
      start_time_option: { type: RequestOption, inject_into: request_parameter, field_name: since }`

/** Parents with items, each list with a page token. */
function openHarness(cursor: string): SourceHarness {
  const clock = new SkippingClock()
  const items = new Map<string, Item>()
  const parents = new Set(['p0', 'p1', 'p2'])
  let writes = 0
  let created = 0
  const set = (id: string): void => {
    const n = ++writes
    const parent = items.get(id)?.parent ?? String([...parents][n % parents.size])
    items.set(id, { id, parent, n, updated_at: `${new Date(clock.now()).toISOString().slice(0, 19)}Z` })
  }
  const answer = ({ pathname, searchParams }: URL): object => {
    if (pathname.endsWith('/parents')) return { data: [...parents].toSorted().map((id) => ({ id })) }
    const parent = /parents\/(\w+)\/items/.exec(pathname)?.[1]
    const since = searchParams.get('since') ?? ''
    const found = [...items.values()]
      .filter((item) => item.parent === parent && item.updated_at >= since)
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const rest = found.filter(({ id }) => id > (searchParams.get('after') ?? ''))
    const page = rest.slice(0, PAGE_SIZE)
    return { data: page, next: rest.length > PAGE_SIZE ? page.at(-1)?.id : null }
  }
  const { mode, execute } = openSource(manifest(cursor)).stream('items', { lagMs: LAG_MS })
  return {
    source: { mode, execute },
    clock,
    fetch: async (input) =>
      Response.json(answer(new URL(String(input))), { headers: { date: new Date(clock.now()).toUTCString() } }),
    create: (count) =>
      Array.from({ length: count }, () => {
        const id = `i${String(++created).padStart(4, '0')}`
        set(id)
        return id
      }),
    change: (keys) => keys.forEach((key) => set(key)),
    remove: (keys) => keys.forEach((key) => items.delete(key)),
    rows: () => Object.fromEntries(items),
    settle: () => clock.skip(5 * 60_000),
    deltaReportsDeletes: false,
    partitions: {
      timeOf: (record) => (record as Item).updated_at,
      add: () => void parents.add(`p${parents.size + ++writes}`),
      remove() {
        const [parent = ''] = parents
        parents.delete(parent)
        for (const item of items.values()) if (item.parent === parent) items.delete(item.id)
      },
    },
  }
}

describeSource('airbyte children, listed', () => openHarness(''), { runner: { describe, test } })
describeSource('airbyte children, followed', () => openHarness(CURSOR), { runner: { describe, test } })
