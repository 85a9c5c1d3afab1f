import type { FaultCode, Severity } from '../../src/linter/index.ts'

/** A worker with a fault, and the same without it. Each is the body of `execute` unless it says more. */
export interface WorkerPair {
  readonly word: FaultCode
  readonly severity: Severity
  readonly faulty: WorkerDraft
  readonly good: WorkerDraft
  readonly pagesMax?: number
}

export interface WorkerDraft {
  readonly execute: string
  readonly mode?: 'replace' | 'incremental'
  /** Before the worker. */
  readonly above?: string
  /** After its sync. */
  readonly below?: string
}

/** 25 records, three to a second, long ago. */
const ABOVE = `
const all = Array.from({ length: 25 }, (_, n) => ({ id: 'k' + String(n).padStart(3, '0'), name: 'n' + n, at: new Date(1.7e12 + Math.floor(n / 3) * 1000).toISOString() }))
const upsert = (record) => ({ type: 'upsert', key: record.id, record, upstreamUpdatedAt: record.at })
let count = 0
`

export function textOf({ execute, mode = 'incremental', above = '', below = '' }: WorkerDraft): string {
  return `import { Worker } from 'tidemark'
${ABOVE}${above}
const worker = new Worker({ name: 'checked' })
const things = worker.database('things')
worker.sync('things', { database: things, mode: '${mode}', limits: { retriesMax: 0 }, async execute(state, context) {
${execute}
} })
${below}
${mode === 'incremental' && below === '' ? '// tidemark-ignore things: missing-deletes\n' : ''}export default worker
`
}

/** By time and id, as it should be. */
const KEYSET = `
const left = all.filter(({ at, id }) => state === undefined || at > state.at || (at === state.at && id > state.id))
const page = left.slice(0, 5)
const last = page.at(-1)
return { changes: page.map(upsert), hasMore: left.length > 5, nextState: last === undefined ? state : { at: last.at, id: last.id } }`

/** By position, read whole. */
const LIST = `
const from = state?.from ?? 0
return { changes: all.slice(from, from + 5).map(upsert), hasMore: from + 5 < all.length, nextState: { from: from + 5 } }`

const keyset: WorkerDraft = { execute: KEYSET }
const list: WorkerDraft = { execute: LIST, mode: 'replace' }

export const WORKER_PAIRS: readonly WorkerPair[] = [
  {
    word: 'no-first-run',
    severity: 'error',
    faulty: { execute: KEYSET.replace('state === undefined || ', '') },
    good: keyset,
  },
  {
    word: 'fails',
    severity: 'error',
    faulty: { ...list, execute: "if (state?.from === 10) throw new Error('out of paper')" + LIST },
    good: list,
  },
  {
    word: 'page-malformed',
    severity: 'error',
    faulty: { ...list, execute: 'return { changes: all.slice(0, 5).map(upsert), hasMore: true }' },
    good: list,
  },
  { word: 'page-malformed', severity: 'error', faulty: { ...list, execute: 'return all' }, good: list },
  {
    word: 'state-not-json',
    severity: 'error',
    faulty: { execute: KEYSET.replace('{ at: last.at, id', '{ when: new Date(last.at), at: last.at, id') },
    good: keyset,
  },
  {
    word: 'state-too-large',
    severity: 'error',
    faulty: { execute: KEYSET.replace('{ at: last.at, id', "{ pad: 'x'.repeat(70_000), at: last.at, id") },
    good: keyset,
  },
  {
    word: 'state-grows',
    severity: 'warning',
    faulty: {
      ...list,
      above: grown(),
      execute: LIST.replace(
        '{ from: from + 5 }',
        '{ from: from + 5, seen: [...(state?.seen ?? []), ...all.slice(from, from + 5).map(({ id }) => id)] }',
      ),
    },
    good: { ...list, above: grown() },
  },
  {
    word: 'state-stuck',
    severity: 'error',
    faulty: { ...list, execute: LIST.replace('nextState: { from: from + 5 }', 'nextState: { from: 0 }') },
    good: list,
  },
  {
    word: 'state-stuck',
    severity: 'error',
    faulty: {
      execute: KEYSET.replace('at > state.at || (at === state.at && id > state.id)', 'at >= state.at')
        .replace('{ at: last.at, id: last.id }', '{ at: last.at }')
        .replaceAll('5', '3'),
    },
    good: keyset,
  },
  {
    word: 'state-lost',
    severity: 'error',
    faulty: {
      execute: LIST.replace(
        'nextState: { from: from + 5 }',
        'nextState: from + 5 < all.length ? { from: from + 5 } : undefined',
      ).replace('const from', 'if (state?.from >= all.length) return { changes: [], hasMore: false }\nconst from'),
    },
    good: { execute: LIST },
  },
  {
    word: 'starts-over',
    severity: 'warning',
    faulty: {
      execute: LIST.replace(
        'nextState: { from: from + 5 }',
        'nextState: { from: from + 5 < all.length ? from + 5 : 0 }',
      ),
    },
    good: { execute: LIST },
  },
  {
    word: 'no-end',
    severity: 'error',
    faulty: {
      ...list,
      execute: LIST.replace(
        'all.slice(from, from + 5)',
        'all.slice(Math.min(from, 20), Math.min(from, 20) + 5)',
      ).replace('from + 5 < all.length', 'true'),
    },
    good: list,
  },
  {
    word: 'empty-pages',
    severity: 'warning',
    faulty: { ...list, execute: LIST.replace('from + 5 < all.length', 'from < 55') },
    good: list,
  },
  {
    word: 'early-end',
    severity: 'error',
    faulty: { ...list, execute: LIST.replace('from + 5 < all.length', 'from < 10') },
    good: list,
  },
  {
    word: 'early-end',
    severity: 'error',
    faulty: { execute: KEYSET.replace('left.length > 5', 'false') },
    good: keyset,
  },
  {
    word: 'no-tie-break',
    severity: 'error',
    faulty: {
      execute: KEYSET.replace(' || (at === state.at && id > state.id)', '').replace(
        '{ at: last.at, id: last.id }',
        '{ at: last.at }',
      ),
    },
    good: keyset,
  },
  {
    word: 'no-tie-break',
    severity: 'warning',
    faulty: {
      above: unique(),
      execute: KEYSET.replace(' || (at === state.at && id > state.id)', '').replace(
        '{ at: last.at, id: last.id }',
        '{ at: last.at }',
      ),
    },
    good: { above: unique(), execute: KEYSET },
  },
  {
    word: 'no-lag',
    severity: 'error',
    faulty: {
      execute: KEYSET.replace(
        '{ at: last.at, id: last.id }',
        '{ at: last.at, id: last.id, since: context.clock.now() }',
      ),
    },
    good: keyset,
  },
  {
    word: 'no-lag',
    severity: 'error',
    faulty: { execute: `all[24].at = new Date(context.cycle.startedAt).toISOString()${KEYSET}` },
    good: { execute: `all[24].at = new Date(context.cycle.startedAt - 20_000).toISOString()${KEYSET}` },
  },
  {
    word: 'missing-deletes',
    severity: 'warning',
    faulty: { execute: KEYSET, below: ' ' },
    good: {
      execute: `if (state?.gone) return { changes: [{ type: 'delete', key: 'k000', upstreamUpdatedAt: all[24].at }], hasMore: false }${KEYSET}`,
      below: ' ',
    },
  },
  {
    word: 'missing-deletes',
    severity: 'warning',
    faulty: { execute: KEYSET, below: ' ' },
    good: { execute: KEYSET, below: `worker.sync('everything', { database: things, async execute(state) {${LIST}} })` },
  },
  {
    word: 'no-upstream-time',
    severity: 'warning',
    faulty: {
      execute: KEYSET.replace('page.map(upsert)', "page.map((record) => ({ type: 'upsert', key: record.id, record }))"),
      below: `worker.sync('everything', { database: things, async execute(state) {${LIST}} })`,
    },
    good: { execute: KEYSET, below: `worker.sync('everything', { database: things, async execute(state) {${LIST}} })` },
  },
  {
    word: 'key-not-unique',
    severity: 'error',
    faulty: {
      ...list,
      above: 'for (const one of all) one.key = one.name.slice(0, 2)\n',
      execute: LIST.replace('map(upsert)', 'map((record) => ({ ...upsert(record), key: record.key }))'),
    },
    good: list,
  },
  {
    word: 'key-unstable',
    severity: 'error',
    faulty: {
      ...list,
      execute: LIST.replace('map(upsert)', "map((record) => ({ ...upsert(record), key: 'row' + ++count }))"),
    },
    good: list,
  },
  {
    word: 'record-volatile',
    severity: 'warning',
    faulty: {
      ...list,
      execute: LIST.replace(
        'map(upsert)',
        'map((record) => ({ ...upsert(record), record: { ...record, reading: ++count } }))',
      ),
    },
    good: list,
  },
  {
    word: 'page-unstable',
    severity: 'warning',
    faulty: { ...list, execute: 'return { changes: all.slice(count, count++ + 6).map(upsert), hasMore: false }' },
    good: { ...list, execute: 'return { changes: all.map(upsert), hasMore: false }' },
  },
  {
    word: 'page-too-large',
    severity: 'warning',
    faulty: {
      ...list,
      execute:
        "return { changes: Array.from({ length: 1_001 }, (_, n) => ({ type: 'upsert', key: String(n), record: { n } })), hasMore: false }",
    },
    good: {
      ...list,
      execute:
        "return { changes: Array.from({ length: 1_000 }, (_, n) => ({ type: 'upsert', key: String(n), record: { n } })), hasMore: false }",
    },
  },
  {
    word: 'quarantined',
    severity: 'warning',
    faulty: {
      ...list,
      execute: LIST.replace(
        'map(upsert)',
        "map((record) => ({ ...upsert(record), key: record.id === 'k003' ? '' : record.id }))",
      ),
    },
    good: list,
  },
  {
    word: 'quarantined',
    severity: 'error',
    faulty: {
      ...list,
      execute: LIST.replace('map(upsert)', 'map((record) => ({ ...upsert(record), key: Number(record.id.slice(1)) }))'),
    },
    good: list,
  },
  {
    word: 'reads-wall-clock',
    severity: 'warning',
    faulty: { execute: `const until = Date.now() - 30_000${KEYSET}` },
    good: { execute: `const until = context.clock.now() - 30_000${KEYSET}` },
  },
  {
    word: 'reads-wall-clock',
    severity: 'warning',
    faulty: { execute: `const until = new Date().toISOString()${KEYSET}` },
    good: { execute: `const until = new Date(context.cycle.startedAt).toISOString()${KEYSET}` },
  },
  {
    word: 'reads-chance',
    severity: 'warning',
    faulty: { execute: `const jitter = Math.random()${KEYSET}` },
    good: { execute: `const jitter = context.random.next()${KEYSET}` },
  },
  {
    word: 'unpaced-request',
    severity: 'warning',
    faulty: { execute: `await fetch('http://127.0.0.1:1/').catch(() => null)${KEYSET}` },
    good: { execute: `await context.fetch('http://127.0.0.1:1/').catch(() => null)${KEYSET}` },
  },
  {
    word: 'unfinished',
    severity: 'note',
    faulty: list,
    good: { ...list, execute: LIST.replaceAll('5', '20') },
    pagesMax: 4,
  },
  {
    word: 'nothing-read',
    severity: 'note',
    faulty: { ...list, execute: 'return { changes: [], hasMore: false }' },
    good: list,
  },
]

/** More of them, so that a cycle has seven pages. */
function grown(): string {
  return "for (let n = 25; n < 35; n++) all.push({ id: 'k0' + n, name: 'n' + n, at: all[24].at })\n"
}

/** No two at once. */
function unique(): string {
  return 'all.forEach((one, n) => { one.at = new Date(1.7e12 + n * 1000).toISOString() })\n'
}
