import type { StrategyName } from '../sources/kit/source-advice.ts'
import { required } from '../values/required.ts'
import type { Advice } from './choose-strategy.ts'
import { chooseTimestamp, type Answers } from './answers.ts'

/** Renders a worker that describes the API declaratively with the `rest` source. */
export function renderRestWorker(advice: Advice, answers: Answers): string {
  const stamp = chooseTimestamp(answers)
  const shape = [
    "name: 'items'",
    "path: '/items'",
    "records: 'data'",
    "key: 'id'",
    ...(stamp === null ? [] : [`updatedAt: '${stamp}_at'`]),
    ...(advice.mode === 'pair' && answers.deletes === 'reported' && answers.changes !== 'events'
      ? ["deleted: 'deleted'"]
      : []),
  ]
  const lines = [
    `${shape.join(', ')},`,
    ...([advice.backfill.strategy, advice.delta?.strategy].some(
      (strategy) => strategy === 'keyset' || strategy === 'timestamp',
    )
      ? [`query: { sort: '${stamp}_at,id' },`]
      : []),
    `page: ${renderPaging(advice.backfill.strategy, stamp ?? 'updated')},`,
    ...(advice.delta === null
      ? []
      : [
          `follow: ${renderFollow(advice.delta.strategy, advice, answers)},`,
          `lagMs: ${groupDigits(required(advice.lagMs, 'the lag of a delta'))},`,
        ]),
    ...renderDeletes(advice),
  ]
  const stream = advice.mode === 'pair' ? 'source: api.items' : '...api.items'
  return `import { Worker } from 'tidemark'\nimport { bearer, rest } from 'tidemark/sources/rest'

// Set the address, the parameter names and the response fields. API_TOKEN is read from .env.
const api = rest({
  baseUrl: 'https://api.example.com',
  auth: bearer('API_TOKEN'),
  streams: [
    {
${lines.map((line) => `      ${line.replaceAll('\n', '\n      ')}`).join('\n')}
    },
  ],
})

const worker = new Worker({ name: 'example' })
const items = worker.database('items')
const pacer = worker.pacer('api', { allowedRequests: 60, intervalMs: 60_000 })

worker.${advice.mode === 'pair' ? 'track' : 'sync'}('items', {
  database: items,
  pacer,
  schedule: '${advice.schedule}',
  ${stream},
})

export default worker
`
}

const SIZE_OPTION = "size: { parameter: 'limit', value: 100 }"

function renderPaging(strategy: StrategyName, stamp = 'updated'): string {
  switch (strategy) {
    case 'whole':
      return "{ kind: 'none' }"
    case 'token':
      return `{ kind: 'token', parameter: 'page_token', next: 'next', ${SIZE_OPTION} }`
    case 'pageNumber':
      return `{ kind: 'pageNumber', parameter: 'page', total: 'total', ${SIZE_OPTION} }`
    case 'offset':
      return `{ kind: 'offset', parameter: 'offset', total: 'total', ${SIZE_OPTION} }`
    case 'keyset':
      return `{ kind: 'keyset', after: '${stamp}_after', afterId: 'after_id', until: '${stamp}_until', ${SIZE_OPTION} }`
    case 'timestamp':
      return `{ kind: 'timestamp', since: '${stamp}_from', until: '${stamp}_until', ${SIZE_OPTION} }`
    default:
      throw new TypeError(`the rest source does not support the strategy ${strategy}`)
  }
}

function renderFollow(strategy: StrategyName, advice: Advice, { deletes }: Answers): string {
  if (strategy === 'window')
    return `{ kind: 'window', since: 'updated_from', until: 'updated_until', page: ${renderPaging(advice.backfill.strategy)} }`
  if (strategy !== 'eventFeed') return renderPaging(strategy)
  return `{
  kind: 'events', path: '/events', records: 'data', id: 'id', at: 'created_at', record: 'item',
  // \`after\` returns the events after an id; \`newest\` returns only the newest event.
  after: 'after', order: 'oldest-first', more: 'has_more', newest: { newest: 1 },${deletes === 'reported' ? "\n  deletions: { at: 'type', are: ['*.deleted'] }," : ''}
  // How long events are kept.
  retentionMs: 30 * 86_400_000,
}`
}

function renderDeletes(advice: Advice): string[] {
  if (advice.deletes === 'until-backfill') return ["deletes: 'ignore',"]
  if (advice.deletes !== 'streams') return []
  return [
    `deletes: {
  path: '/deleted', records: 'data', key: 'id', updatedAt: 'deleted_at',
  follow: { kind: 'keyset', after: 'deleted_after', afterId: 'after_id', until: 'deleted_until', ${SIZE_OPTION} },
},`,
  ]
}

function groupDigits(count: number): string {
  return String(count).replace(/(\d)(?=(\d{3})+$)/g, '$1_')
}
