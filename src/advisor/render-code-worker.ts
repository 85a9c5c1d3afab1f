import type { Advice } from './choose-strategy.ts'
import { chooseMode, chooseTimestamp, type Answers } from './answers.ts'
import type { StrategyName } from '../sources/kit/source-advice.ts'

/** Renders a worker that uses a strategy in code with its own request function. */
export function renderCodeWorker(advice: Advice, answers: Answers): string {
  const { backfill, delta, deletesBy } = advice
  const names = new Set(['SyncError', 'Worker', 'type Change', 'type SyncContext'])
  const parts: string[] = [
    renderItemType(answers),
    renderBackfill(
      backfill.strategy,
      delta === null || delta.strategy === 'frontier' ? 'list' : 'backfill',
      answers,
      names,
    ),
  ]
  if (delta !== null && delta.strategy !== 'frontier')
    parts.push(renderDelta(delta.strategy, deletesBy === null ? 'delta' : 'changes', answers, names))
  if (deletesBy !== null) {
    names.add('streams').add('keyset')
    parts.push(
      DELETES_CODE,
      '/** Every cycle reads the changes, then the deletions. */\nconst delta = streams({ changes, deletes })',
    )
  }
  return `import { ${[...names].toSorted(compareImportNames).join(', ')} } from 'tidemark'

// Set the address and the shape of the responses. API_TOKEN is read from .env.
const API = 'https://api.example.com'
${parts.some((part) => part.includes('LIMIT')) ? 'const LIMIT = 100\n' : ''}${advice.lagMs === null ? '' : `/** A record can appear this long after its timestamp, so every cycle stays this far behind. */\nconst LAG_MS = ${groupDigits(advice.lagMs)}\n`}
const worker = new Worker({ name: 'example' })
const items = worker.database('items')
const pacer = worker.pacer('api', { allowedRequests: 60, intervalMs: 60_000 })

${parts.join('\n\n')}

${renderDeclaration(advice)}

export default worker

${REQUEST_HELPER_CODE}
`
}

function compareImportNames(a: string, b: string): number {
  return a.startsWith('type ') === b.startsWith('type ')
    ? a.toLowerCase() < b.toLowerCase()
      ? -1
      : 1
    : a.startsWith('type ')
      ? 1
      : -1
}

/** Whether records carry a deleted flag. A complete list does not contain deleted records. */
function hasDeletedFlag(answers: Answers): boolean {
  return chooseMode(answers) === 'pair' && answers.deletes === 'reported' && answers.changes !== 'events'
}

function renderItemType(answers: Answers): string {
  const isTracked = answers.changes !== 'none' && answers.changes !== 'newest-first'
  const stamp = chooseTimestamp(answers)
  const isFlagged = hasDeletedFlag(answers)
  const time = isTracked ? ', upstreamUpdatedAt: item.updated_at' : ''
  const upsert = `{ type: 'upsert', key: item.id, record: item${time} }`
  const change = isFlagged
    ? `(item.deleted === true ? { type: 'delete', key: item.id${time} } : ${upsert})`
    : `(${upsert})`
  return `type Item = { id: string; name: string${stamp === null ? '' : `; ${stamp}_at: string`}${isFlagged ? '; deleted?: boolean' : ''} }

/** The key is an id that never changes.${isTracked ? ' The API’s timestamp decides which version of a record is newer.' : ''} */
const toChange = (item: Item): Change => ${change}`
}

function renderBackfill(strategy: StrategyName, name: string, answers: Answers, names: Set<string>): string {
  const fields = `id name${answers.changes === 'none' ? '' : ' updated_at'}${hasDeletedFlag(answers) ? ' deleted' : ''}`
  switch (strategy) {
    case 'whole':
      names.add('type Execute')
      return `const ${name}: Execute = async (_state, context) => {
  const { body } = await ask<{ data: Item[] }>(context, '/items')
  return { changes: body.data.map(toChange), hasMore: false }
}`
    case 'frontier':
      return renderFrontier(names, name)
    case 'token':
      names.add('token')
      return `const ${name} = token({
  read: async ({ token }, context) => {
    const { body } = await ask<{ data: Item[]; next: string | null }>(context, '/items', { query: { limit: LIMIT, page_token: token } })
    return { changes: body.data.map(toChange), next: body.next }
  },
})`
    case 'relay':
      names.add('relay').add('type PageInfo')
      return `const ${name} = relay({
  read: async ({ after }, context) => {
    const query = 'query ($first: Int!, $after: String) { items(first: $first, after: $after) { nodes { ${fields} } pageInfo { hasNextPage endCursor } } }'
    const { body } = await ask<{ data: { items: { nodes: Item[]; pageInfo: PageInfo } } }>(context, '/graphql', { body: { query, variables: { first: LIMIT, after } } })
    const { nodes, pageInfo } = body.data.items
    return { changes: nodes.map(toChange), pageInfo }
  },
})`
    case 'relayNested':
      names.add('relayNested').add('type PageInfo')
      return `type Parent = { id: string; items: { nodes: Item[]; pageInfo: PageInfo } }

const ITEMS = 'nodes { ${fields} } pageInfo { hasNextPage endCursor }'

const ${name} = relayNested({
  readOuter: async ({ after }, context) => {
    const query = 'query ($first: Int!, $after: String) { parents(first: 20, after: $after) { nodes { id items(first: $first) { ' + ITEMS + ' } } pageInfo { hasNextPage endCursor } } }'
    const { body } = await ask<{ data: { parents: { nodes: Parent[]; pageInfo: PageInfo } } }>(context, '/graphql', { body: { query, variables: { first: LIMIT, after } } })
    const { nodes, pageInfo } = body.data.parents
    return { changes: nodes.flatMap(({ items }) => items.nodes.map(toChange)), pageInfo, parents: nodes.map(({ id, items }) => ({ id, pageInfo: items.pageInfo })) }
  },
  readInner: async ({ parents }, context) => {
    const fields = parents.map((_, n) => 'p' + n + ': parent(id: $id' + n + ') { id items(first: $first, after: $after' + n + ') { ' + ITEMS + ' } }')
    const query = 'query ($first: Int!, ' + parents.map((_, n) => '$id' + n + ': ID!, $after' + n + ': String').join(', ') + ') { ' + fields.join(' ') + ' }'
    const variables = Object.fromEntries([['first', LIMIT], ...parents.flatMap(({ id, after }, n) => [['id' + n, id], ['after' + n, after]])])
    const { body } = await ask<{ data: Record<string, Parent | null> }>(context, '/graphql', { body: { query, variables } })
    const read = parents.map(({ id }, n) => ({ id, items: body.data['p' + n]?.items ?? null }))
    return { changes: read.flatMap(({ items }) => (items?.nodes ?? []).map(toChange)), parents: read.map(({ id, items }) => ({ id, pageInfo: items?.pageInfo ?? null })) }
  },
})`
    case 'pageNumber':
      names.add('pageNumber')
      return `const ${name} = pageNumber({
  read: async ({ page }, context) => {
    const { body } = await ask<{ data: Item[]; total: number }>(context, '/items', { query: { page, limit: LIMIT } })
    return { changes: body.data.map(toChange), total: body.total }
  },
})`
    case 'offset':
      names.add('offset')
      return `const ${name} = offset({
  read: async ({ offset, limit }, context) => {
    const { body } = await ask<{ data: Item[]; total: number }>(context, '/items', { query: { offset, limit } })
    return { changes: body.data.map(toChange), total: body.total }
  },
  limit: LIMIT,
})`
    default:
      return renderKeyset(name, answers, names)
  }
}

function renderDelta(strategy: StrategyName, name: string, answers: Answers, names: Set<string>): string {
  switch (strategy) {
    case 'eventFeed':
      names.add('eventFeed')
      return renderEventFeed(name, answers)
    case 'search':
      names.add('search')
      return `const ${name} = search<Item>({
  read: async ({ fromMs, untilMs, sortBy, afterId, throughId, limit }, context) => {
    const question = { updated: { from: fromMs, until: untilMs }, id: { above: afterId, upTo: throughId }, sort: sortBy === 'id' ? 'id' : 'updated_at', limit }
    const { body, serverTime } = await ask<{ data: Item[]; total: number }>(context, '/items/search', { body: question })
    return { items: body.data, total: body.total, serverTime }
  },
  modifiedMs: (item) => Date.parse(item.updated_at),
  id: (item) => item.id, // a whole number, as text
  toChange,
  lagMs: LAG_MS,
  limit: LIMIT,
  lookBackMs: 300_000,
})`
    case 'token':
      names.add('token')
      return `const ${name} = token({
  read: async ({ token }, context) => {
    const { body } = await ask<{ data: Item[]; next: string | null; sync_token: string | null }>(context, '/items/changes', { query: { limit: LIMIT, token } })
    // The last page has a sync token instead of a next page; the next cycle continues from it.
    return { changes: body.data.map(toChange), next: body.next, resume: body.sync_token }
  },
})`
    default:
      return renderKeyset(name, answers, names)
  }
}

/** Renders the backfill, which reads to the end, or the delta, which reads up to the lag. */
function renderKeyset(name: string, answers: Answers, names: Set<string>): string {
  names.add('keyset')
  const { order, ties } = answers
  const stamp = chooseTimestamp(answers)
  const isUnique = ties === 'no' || order === 'unique'
  const cursor = isUnique
    ? `// Without an id, the timestamp itself is still to be read.\n      ...(after !== undefined && { [after.id === '' ? '${stamp}_from' : '${stamp}_after']: after.timestamp }),`
    : `...(after !== undefined && { ${stamp}_after: after.timestamp, after_id: after.id }),`
  return `const ${name} = keyset<Item>({
  read: async ({ after, until, limit }, context) => {
    const query = {
      sort: '${stamp}_at,id',
      limit,
      ${stamp}_until: until,
      ${cursor}
    }
    const { body, serverTime } = await ask<{ data: Item[] }>(context, '/items', { query })
    return { items: body.data, end: body.data.length < limit, serverTime }
  },
  timestamp: (item) => item.${stamp}_at,
  id: (item) => item.id,
  toChange,
  lagMs: ${name === 'list' || name === 'backfill' ? '0, // only the delta needs a lag' : 'LAG_MS,'}
  limit: LIMIT,
})`
}

function renderFrontier(names: Set<string>, name: string): string {
  names.add('frontier')
  return `const ${name} = frontier<Item>(
  async ({ cursor, ...context }) => {
    const { body } = await ask<{ data: Item[]; next: string | null }>(context, '/items', { query: { sort: 'newest', limit: LIMIT, page_token: cursor ?? undefined } })
    return { items: body.data, nextCursor: body.next }
  },
  { id: (item) => item.id, toChange },
)`
}

function renderEventFeed(name: string, { deletes }: Answers): string {
  const change =
    deletes === 'reported'
      ? "[type.endsWith('.deleted') ? { type: 'delete', key: item.id } : toChange(item)]"
      : '[toChange(item)]'
  return `type Event = { id: string; type: string; created_at: string; item: Item }

const ${name} = eventFeed<Event>({
  anchor: async (context) => (await ask<{ data: Event[] }>(context, '/events', { query: { newest: 1 } })).body.data[0],
  read: async ({ after }, context) => {
    const { body, serverTime } = await ask<{ data: Event[]; has_more: boolean }>(context, '/events', { query: { after } })
    return { events: body.data, hasMore: body.has_more, serverTime }
  },
  time: (event) => event.created_at,
  id: (event) => event.id,
  toChanges: ({ ${deletes === 'reported' ? 'type, ' : ''}item }) => ${change},
  lagMs: LAG_MS,
  order: 'oldest-first',
  retentionMs: 30 * 86_400_000, // how long events are kept
})`
}

const DELETES_CODE = `type Deletion = { id: string; deleted_at: string }

const deletes = keyset<Deletion>({
  read: async ({ after, until, limit }, context) => {
    const query = { limit, deleted_until: until, ...(after !== undefined && { deleted_after: after.timestamp, after_id: after.id }) }
    const { body, serverTime } = await ask<{ data: Deletion[] }>(context, '/deleted', { query })
    return { items: body.data, end: body.data.length < limit, serverTime }
  },
  timestamp: (deletion) => deletion.deleted_at,
  id: (deletion) => deletion.id,
  toChange: ({ id, deleted_at }) => ({ type: 'delete', key: id, upstreamUpdatedAt: deleted_at }),
  lagMs: LAG_MS,
  limit: LIMIT,
})`

function renderDeclaration({ mode, delta, deletesBy, schedule }: Advice): string {
  if (mode === 'replace') {
    return `// Replace: rows that a complete cycle does not return are swept.
worker.sync('items', {
  database: items,
  pacer,
  mode: 'replace',
  schedule: '${schedule}',
  execute: list,
})`
  }
  if (delta?.strategy === 'frontier') {
    return `// Both syncs share one function: items reads the top every 15 minutes; items-backfill reads everything once a day
// and sweeps deleted records.
worker.track('items', {
  database: items,
  pacer,
  schedule: '${schedule}',
  backfillSchedule: '1d',
  source: { backfill: list, delta: list },
})`
  }
  // A sync token exists only after a first read, so it cannot be an anchor.
  const anchor = delta?.strategy === 'token' && deletesBy === null ? null : 'anchor: delta.anchor'
  return `// items-backfill reads everything on request; items follows changes on schedule. The anchor of the delta is taken
// before the backfill reads its first page, so changes made during the backfill are not missed.
worker.track('items', {
  database: items,
  pacer,
  schedule: '${schedule}',
  source: {
    backfill,
    delta,${anchor === null ? '' : `\n    ${anchor},`}
  },
})`
}

const REQUEST_HELPER_CODE = `/** The engine paces, limits and cancels these requests, and acts on the code of an error. */
async function ask<Body>(context: SyncContext, path: string, { query = {}, body }: { query?: Record<string, string | number | undefined>; body?: object } = {}): Promise<{ body: Body; serverTime: string | null }> {
  const url = new URL(API + path)
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value))
  const headers = { authorization: 'Bearer ' + context.secrets.get('API_TOKEN'), 'content-type': 'application/json' }
  const response = await context.fetch(url, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) })
  if (response.ok) return { body: (await response.json()) as Body, serverTime: response.headers.get('date') }
  const message = 'the API responded with status ' + response.status
  if (response.status === 401 || response.status === 403) throw new SyncError('AUTH_REJECTED', message)
  if (response.status === 429) throw new SyncError('RATE_LIMITED', message, { retryAfterMs: Number(response.headers.get('retry-after') ?? 1) * 1_000 })
  throw new SyncError(response.status >= 500 ? 'SOURCE_UNAVAILABLE' : 'CONNECTOR_FAILED', message)
}`

function groupDigits(count: number): string {
  return String(count).replace(/(\d)(?=(\d{3})+$)/g, '$1_')
}
