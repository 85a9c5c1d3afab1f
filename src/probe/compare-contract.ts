import type { RestStream } from '../sources/rest/stream.ts'
import type { Contradiction, Fact, Topic } from './fact.ts'

const DEFAULT_LAG_MS = 30_000

/** The declarations of a stream that the facts contradict. Only those that lose or falsify rows count. */
export function compareContract(stream: RestStream, facts: readonly Fact[]): Contradiction[] {
  return RULES.flatMap(({ topic, declared, contradicts }) =>
    facts.flatMap((fact) => {
      if (fact.topic !== topic || fact.certainty === 'untestable') return []
      const text = contradicts(stream, fact)
      return text === null ? [] : [{ declared: declared(stream), text, evidence: fact.evidence }]
    }),
  )
}

interface Rule {
  readonly topic: Topic
  readonly declared: (stream: RestStream) => string
  /** The contradiction as a sentence; null if there is none. */
  readonly contradicts: (stream: RestStream, fact: Fact) => string | null
}

const RULES: readonly Rule[] = [
  {
    topic: 'lower-bound',
    declared: (stream) => filterOf(stream)?.kind ?? 'follow',
    contradicts(stream, { value, text }) {
      const filter = filterOf(stream)
      if (filter === null) return null
      if (['ignored', 'shifted', 'partial', 'inconsistent'].includes(value)) return text
      if (value !== 'exclusive') return null
      if (filter.kind === 'timestamp' && filter.bound !== 'above')
        return `${text} The stream reads it as inclusive. Set \`bound: above\`, or rows with the time of the cursor are lost.`
      return filter.kind === 'window' && filter.overlapMs === 0
        ? `${text} Without an overlap, rows with the time of the border are lost.`
        : null
    },
  },
  {
    topic: 'order',
    declared: () => 'order',
    contradicts(stream, { value, text }) {
      const isSorted = filterOf(stream)?.kind === 'timestamp' || filterOf(stream)?.kind === 'keyset'
      if (value === 'sort-ignored') return text
      return isSorted && (value === 'unsorted' || value === 'descending')
        ? `${text} The stream reads it in ascending order of time.`
        : null
    },
  },
  {
    topic: 'late-rows',
    declared: () => 'lag',
    contradicts({ lagMs = DEFAULT_LAG_MS }, { value, text }) {
      const lateMs = Number(value) * 1_000
      return lateMs > lagMs ? `${text} The declared lag is ${lagMs / 1_000} s.` : null
    },
  },
  {
    topic: 'lookup',
    declared: () => 'lookup',
    contradicts: ({ lookup }, { value, text }) =>
      lookup !== undefined && value !== 'found' && value !== '404' && value !== '410' ? text : null,
  },
  {
    topic: 'deletes',
    declared: () => 'deleted',
    contradicts: ({ deleted }, { value, text }) =>
      deleted === undefined && (value.startsWith('flag:') || value === 'lookup-flag')
        ? `${text} The stream declares no \`deleted\`, so they are stored as live rows.`
        : null,
  },
  {
    topic: 'page-size',
    declared: () => 'size',
    contradicts({ page, follow }, { value, text }) {
      const size = 'size' in page ? page.size : follow !== undefined && 'size' in follow ? follow.size : undefined
      // These pagings take a page that is not full for the last one, or count by its size.
      const counts = ['timestamp', 'offset', 'pageNumber'].includes(page.kind) || follow?.kind === 'timestamp'
      if (size === undefined || !counts) return null
      if (value === 'ignored') return text
      return /^\d+$/.test(value) && Number(value) < size.value ? `${text} The stream requests ${size.value}.` : null
    },
  },
  ...(['page-border', 'list-end', 'stability', 'ids'] as const).map((topic) => ({
    topic,
    declared: () => 'page',
    contradicts: (_stream: RestStream, { value, text }: Fact) => (HARMFUL.has(value) ? text : null),
  })),
]

const HARMFUL = new Set([
  'ties-lost',
  'rows-lost',
  'too-early',
  'changing-answers',
  'unstable-order',
  'repeated-in-page',
])

function filterOf({ page, follow }: RestStream): Filter | null {
  const rule = follow ?? page
  return rule.kind === 'window' || rule.kind === 'timestamp' || rule.kind === 'keyset' ? (rule as Filter) : null
}

interface Filter {
  readonly kind: 'window' | 'timestamp' | 'keyset'
  readonly bound?: 'from' | 'above'
  readonly overlapMs?: number
}
