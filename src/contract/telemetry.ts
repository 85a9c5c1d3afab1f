/**
 * What can be watched from outside: spans and figures, and the only words they may carry. Whatever is not named here cannot
 * be exported, so that no state, record, address with a query or message of somebody else gets out with them (invariant 10).
 */
export const ATTRIBUTES = {
  'tidemark.tenant': 'Whose data it is. On spans alone, never on figures.',
  'tidemark.worker': 'The worker (connector).',
  'tidemark.sync': 'The sync, or the one that lands what a vendor’s webhook tells.',
  'tidemark.mode': '`replace` or `incremental`.',
  'tidemark.trigger': 'Why the cycle runs: `schedule`, `trigger`, `manual`, `library`, `webhook` …',
  'tidemark.cycle': 'The number of the cycle.',
  'tidemark.page': 'The position of the page in its cycle; 1 for the first.',
  'tidemark.resumed': 'Whether the cycle goes on with what another run began.',
  'tidemark.stop_reason': 'Why the cycle ended: `complete`, `error`, `cancelled`, `paused`, `held` …',
  'tidemark.pages': 'Pages landed by this run.',
  'tidemark.changes': 'Changes that the page told.',
  'tidemark.retries': 'How often something was tried again.',
  'tidemark.waited_ms': 'How long was waited before trying again.',
  'tidemark.records.created': 'Rows that are new.',
  'tidemark.records.updated': 'Rows that changed.',
  'tidemark.records.deleted': 'Rows that the source deleted.',
  'tidemark.records.swept': 'Rows that a listing no longer had.',
  'tidemark.records.unchanged': 'Rows that were the same.',
  'tidemark.records.stale': 'Changes older than what is there.',
  'tidemark.records.missing': 'Deletions of what was not there.',
  'tidemark.records.quarantined': 'Records that could not be landed.',
  'tidemark.outcome': 'What became of it: of a page or a commit `landed`, `overlap`, `braked`, `discarded` or `failed`; of a record what it was counted as; of a delivery `delivered`, `failed` or `gone`.',
  'tidemark.fate': 'Of an error: `retried` or `failed`.',
  'tidemark.reason': 'What was waited for: a slot of the `pacer`, the `source` or the `store`.',
  'tidemark.request_id': 'What the vendor calls the request, for its support to find it; of a delivery the id of the message.',
  'tidemark.webhook': 'The id of the webhook.',
  'tidemark.attempt': 'Which try of the delivery it is; 1 for the first.',
  'http.request.method': 'As in the conventions of OpenTelemetry.',
  'http.response.status_code': 'As in the conventions of OpenTelemetry.',
  'server.address': 'The host that is asked, without port, path or query.',
  'server.port': 'Its port.',
  'error.type': 'A code of `docs/reference/errors.md`, or the status of an answer. Never a message.',
} as const

export type AttributeName = keyof typeof ATTRIBUTES
export type Attributes = { readonly [Name in AttributeName]?: string | number | boolean | undefined }

const SYNC_ATTRIBUTES = ['tidemark.tenant', 'tidemark.worker', 'tidemark.sync'] as const
const COUNT_ATTRIBUTES = [
  'tidemark.records.created', 'tidemark.records.updated', 'tidemark.records.deleted', 'tidemark.records.swept',
  'tidemark.records.unchanged', 'tidemark.records.stale', 'tidemark.records.missing', 'tidemark.records.quarantined',
] as const
const REQUEST_ATTRIBUTES = ['http.request.method', 'server.address', 'server.port', 'http.response.status_code', 'tidemark.request_id', 'error.type'] as const

export const SPANS = {
  cycle: {
    name: 'tidemark.cycle', isRequest: false, within: 'whatever the program around it is doing', about: 'One run of a cycle, from the lease to its release.',
    attributes: [...SYNC_ATTRIBUTES, 'tidemark.mode', 'tidemark.trigger', 'tidemark.cycle', 'tidemark.resumed', 'tidemark.stop_reason', 'tidemark.pages', 'tidemark.retries', 'tidemark.waited_ms', ...COUNT_ATTRIBUTES, 'error.type'],
  },
  page: {
    name: 'tidemark.page', isRequest: false, within: 'the cycle', about: 'One page, from asking the source to its landing. The next one is asked for while it lands, so the spans of two pages may overlap.',
    attributes: [...SYNC_ATTRIBUTES, 'tidemark.cycle', 'tidemark.page', 'tidemark.changes', 'tidemark.outcome', ...COUNT_ATTRIBUTES, 'error.type'],
  },
  fetch: {
    name: '{method}', isRequest: true, within: 'its page; of the anchor of a backfill, the cycle', about: 'One request of the source, to the head of its answer.',
    attributes: [...SYNC_ATTRIBUTES, 'tidemark.cycle', 'tidemark.page', ...REQUEST_ATTRIBUTES],
  },
  commit: {
    name: 'tidemark.commit', isRequest: false, within: 'its page', about: 'One transaction that lands a page, with the waits for a busy database.',
    attributes: [...SYNC_ATTRIBUTES, 'tidemark.cycle', 'tidemark.page', 'tidemark.outcome', 'error.type'],
  },
  delivery: {
    name: 'tidemark.delivery', isRequest: true, within: 'nothing: a trace of its own', about: 'One message to one webhook, one try.',
    attributes: ['tidemark.tenant', 'tidemark.webhook', 'tidemark.attempt', 'tidemark.outcome', ...REQUEST_ATTRIBUTES],
  },
} as const satisfies Record<string, { name: string; isRequest: boolean; within: string; about: string; attributes: readonly AttributeName[] }>

export type SpanName = keyof typeof SPANS

const REQUEST_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** No tenant among their labels: there may be any number of them, and who reads figures must not learn their names. */
export const METRICS = {
  cycles: { name: 'tidemark.cycles', kind: 'counter', unit: '{cycle}', about: 'Cycles that ended, by why.', labels: ['tidemark.worker', 'tidemark.sync', 'tidemark.stop_reason'] },
  cycleDuration: { name: 'tidemark.cycle.duration', kind: 'histogram', unit: 's', about: 'How long cycles took.', labels: ['tidemark.stop_reason'], buckets: [0.1, 1, 10, 60, 300, 1_800, 7_200] },
  lag: {
    name: 'tidemark.cycle.lag', kind: 'histogram', unit: 's', about: 'How old the copy was when a cycle ended: since a complete one began, or since the last complete one when it failed.',
    labels: ['tidemark.worker', 'tidemark.sync'], buckets: [1, 10, 60, 300, 900, 3_600, 21_600, 86_400, 604_800],
  },
  pages: { name: 'tidemark.pages', kind: 'counter', unit: '{page}', about: 'Pages landed.', labels: ['tidemark.worker', 'tidemark.sync'] },
  records: { name: 'tidemark.records', kind: 'counter', unit: '{record}', about: 'Records, by what they were to the copy.', labels: ['tidemark.worker', 'tidemark.sync', 'tidemark.outcome'] },
  errors: { name: 'tidemark.errors', kind: 'counter', unit: '{error}', about: 'Errors of cycles, by code: pages that were tried again, and cycles that failed.', labels: ['error.type', 'tidemark.fate'] },
  fetchDuration: {
    name: 'http.client.request.duration', kind: 'histogram', unit: 's', about: 'Time from a request of a source to the head of its answer.',
    labels: ['http.request.method', 'server.address', 'http.response.status_code', 'error.type'], buckets: REQUEST_BUCKETS,
  },
  commitDuration: { name: 'tidemark.commit.duration', kind: 'histogram', unit: 's', about: 'How long it took to land a page.', labels: ['tidemark.outcome'], buckets: REQUEST_BUCKETS },
  waitDuration: { name: 'tidemark.wait.duration', kind: 'histogram', unit: 's', about: 'Waits of cycles, by what for.', labels: ['tidemark.reason'], buckets: [0.1, 1, 5, 15, 60, 300, 900] },
  deliveryDuration: { name: 'tidemark.delivery.duration', kind: 'histogram', unit: 's', about: 'How long a message to a webhook took, by what came of it.', labels: ['tidemark.outcome'], buckets: REQUEST_BUCKETS },
} as const satisfies Record<string, Metric>

export interface Metric {
  readonly name: string
  readonly kind: 'counter' | 'histogram'
  readonly unit: string
  readonly about: string
  readonly labels: readonly AttributeName[]
  readonly buckets?: readonly number[]
}

export type MetricName = keyof typeof METRICS

/** Takes figures. */
export interface Meter {
  record(metric: MetricName, value: number, labels?: Attributes): void
}

export interface Tracer {
  /** Inside `parent`; without one, inside whatever the program around us is doing. */
  start(span: SpanName, attributes: Attributes, parent: Span | null): Span
}

export interface Span {
  readonly ids: SpanIds | null
  /** What carries the trace on to whoever is asked; nothing unless that was wanted. */
  readonly headers: Readonly<Record<string, string>>
  /** What the act does and waits for is seen inside this span. */
  within<T>(act: () => T): T
  setAttributes(attributes: Attributes): void
  /** With a code when it failed. Once is enough; what comes after the first end is not heard. */
  end(error?: string | null): void
}

export interface SpanIds {
  readonly traceId: string
  readonly spanId: string
}

/** Where nobody watches. */
export const NOOP_SPAN: Span = { ids: null, headers: {}, within: (act) => act(), setAttributes: () => {}, end: () => {} }
