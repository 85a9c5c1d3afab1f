/**
 * The telemetry contract: spans, metrics and the only attributes they may carry. Attributes that are not named here
 * cannot be exported, so that no state, record, URL query or foreign message leaks (invariant 10).
 */
export const ATTRIBUTES = {
  'tidemark.tenant': 'The tenant that owns the data. On spans only, never on metrics.',
  'tidemark.worker': 'The worker (connector).',
  'tidemark.sync': 'The sync, or the sync that commits the changes of an inbound webhook.',
  'tidemark.mode': '`replace` or `incremental`.',
  'tidemark.trigger': 'The trigger of the cycle: `schedule`, `trigger`, `manual`, `library`, `webhook` …',
  'tidemark.cycle': 'The number of the cycle.',
  'tidemark.page': 'The number of the page in its cycle; 1 for the first.',
  'tidemark.resumed': 'Whether the cycle resumes one that another run began.',
  'tidemark.stop_reason': 'The reason the cycle ended: `complete`, `error`, `cancelled`, `paused`, `held` …',
  'tidemark.pages': 'Pages committed by this run.',
  'tidemark.changes': 'Changes in the page.',
  'tidemark.retries': 'The number of retries.',
  'tidemark.waited_ms': 'The time spent waiting before retries.',
  'tidemark.records.created': 'New rows.',
  'tidemark.records.updated': 'Changed rows.',
  'tidemark.records.deleted': 'Rows deleted by the source.',
  'tidemark.records.swept': 'Rows deleted because a listing no longer contained them.',
  'tidemark.records.unchanged': 'Unchanged rows.',
  'tidemark.records.stale': 'Changes older than the stored version.',
  'tidemark.records.missing': 'Deletions of rows that do not exist.',
  'tidemark.records.quarantined': 'Records that could not be committed.',
  'tidemark.outcome':
    'The outcome. Page or commit: `landed`, `overlap`, `mass_delete_blocked`, `discarded` or `failed`. Record: its count. Delivery: `delivered`, `failed` or `gone`. Error: `retried` or `failed`.',
  'tidemark.reason': 'The cause of the wait: a slot of the `pacer`, the `source` or the `store`.',
  'tidemark.request_id': 'The vendor’s id of the request, for its support; for a delivery, the id of the message.',
  'tidemark.webhook': 'The id of the webhook.',
  'tidemark.destination': 'The destination.',
  'tidemark.attempt': 'The attempt of the delivery; 1 for the first.',
  'http.request.method': 'As in the OpenTelemetry semantic conventions.',
  'http.response.status_code': 'As in the OpenTelemetry semantic conventions.',
  'server.address': 'The requested host, without port, path or query.',
  'server.port': 'The requested port.',
  'error.type': 'A code of `docs/reference/errors.md`, or the HTTP status. Never a message.',
} as const

export type AttributeName = keyof typeof ATTRIBUTES
export type Attributes = { readonly [Name in AttributeName]?: string | number | boolean | undefined }

const SYNC_ATTRIBUTES = ['tidemark.tenant', 'tidemark.worker', 'tidemark.sync'] as const
const COUNT_ATTRIBUTES = [
  'tidemark.records.created',
  'tidemark.records.updated',
  'tidemark.records.deleted',
  'tidemark.records.swept',
  'tidemark.records.unchanged',
  'tidemark.records.stale',
  'tidemark.records.missing',
  'tidemark.records.quarantined',
] as const
const REQUEST_ATTRIBUTES = [
  'http.request.method',
  'server.address',
  'server.port',
  'http.response.status_code',
  'tidemark.request_id',
  'error.type',
] as const

export const SPANS = {
  cycle: {
    name: 'tidemark.cycle',
    isRequest: false,
    within: 'the active span of the surrounding program',
    about: 'One run of a cycle, from acquiring the lease to releasing it.',
    attributes: [
      ...SYNC_ATTRIBUTES,
      'tidemark.mode',
      'tidemark.trigger',
      'tidemark.cycle',
      'tidemark.resumed',
      'tidemark.stop_reason',
      'tidemark.pages',
      'tidemark.retries',
      'tidemark.waited_ms',
      ...COUNT_ATTRIBUTES,
      'error.type',
    ],
  },
  page: {
    name: 'tidemark.page',
    isRequest: false,
    within: 'the cycle',
    about:
      'One page, from the request to the source to the commit. The next page is requested while this one is committed, so the spans of two pages may overlap.',
    attributes: [
      ...SYNC_ATTRIBUTES,
      'tidemark.cycle',
      'tidemark.page',
      'tidemark.changes',
      'tidemark.outcome',
      ...COUNT_ATTRIBUTES,
      'error.type',
    ],
  },
  fetch: {
    name: '{method}',
    isRequest: true,
    within: 'its page; for the anchor of a backfill, the cycle',
    about: 'One request to the source, until the response headers arrive.',
    attributes: [...SYNC_ATTRIBUTES, 'tidemark.cycle', 'tidemark.page', ...REQUEST_ATTRIBUTES],
  },
  commit: {
    name: 'tidemark.commit',
    isRequest: false,
    within: 'its page',
    about: 'One transaction that commits a page, including waits for a busy database.',
    attributes: [...SYNC_ATTRIBUTES, 'tidemark.cycle', 'tidemark.page', 'tidemark.outcome', 'error.type'],
  },
  delivery: {
    name: 'tidemark.delivery',
    isRequest: true,
    within: 'nothing: a separate trace',
    about: 'One attempt to deliver one message to one webhook.',
    attributes: ['tidemark.tenant', 'tidemark.webhook', 'tidemark.attempt', 'tidemark.outcome', ...REQUEST_ATTRIBUTES],
  },
} as const satisfies Record<
  string,
  { name: string; isRequest: boolean; within: string; about: string; attributes: readonly AttributeName[] }
>

export type SpanName = keyof typeof SPANS

const REQUEST_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Labels never include the tenant: their number is unbounded, and readers of metrics must not learn their names. */
export const METRICS = {
  cycles: {
    name: 'tidemark.cycles',
    kind: 'counter',
    unit: '{cycle}',
    about: 'Cycles that ended, by reason.',
    labels: ['tidemark.worker', 'tidemark.sync', 'tidemark.stop_reason'],
  },
  cycleDuration: {
    name: 'tidemark.cycle.duration',
    kind: 'histogram',
    unit: 's',
    about: 'Duration of cycles.',
    labels: ['tidemark.stop_reason'],
    buckets: [0.1, 1, 10, 60, 300, 1_800, 7_200],
  },
  lag: {
    name: 'tidemark.cycle.lag',
    kind: 'histogram',
    unit: 's',
    about:
      'Age of the copy at the end of a cycle: since the start of a complete cycle, or since the last complete one if it failed.',
    labels: ['tidemark.worker', 'tidemark.sync'],
    buckets: [1, 10, 60, 300, 900, 3_600, 21_600, 86_400, 604_800],
  },
  pages: {
    name: 'tidemark.pages',
    kind: 'counter',
    unit: '{page}',
    about: 'Pages committed.',
    labels: ['tidemark.worker', 'tidemark.sync'],
  },
  records: {
    name: 'tidemark.records',
    kind: 'counter',
    unit: '{record}',
    about: 'Records, by outcome.',
    labels: ['tidemark.worker', 'tidemark.sync', 'tidemark.outcome'],
  },
  errors: {
    name: 'tidemark.errors',
    kind: 'counter',
    unit: '{error}',
    about: 'Errors of cycles, by code: retried pages and failed cycles.',
    labels: ['error.type', 'tidemark.outcome'],
  },
  fetchDuration: {
    name: 'http.client.request.duration',
    kind: 'histogram',
    unit: 's',
    about: 'Time from a request to a source until the response headers arrive.',
    labels: ['http.request.method', 'server.address', 'http.response.status_code', 'error.type'],
    buckets: REQUEST_BUCKETS,
  },
  commitDuration: {
    name: 'tidemark.commit.duration',
    kind: 'histogram',
    unit: 's',
    about: 'Time to commit a page.',
    labels: ['tidemark.outcome'],
    buckets: REQUEST_BUCKETS,
  },
  waitDuration: {
    name: 'tidemark.wait.duration',
    kind: 'histogram',
    unit: 's',
    about: 'Waits of cycles, by cause.',
    labels: ['tidemark.reason'],
    buckets: [0.1, 1, 5, 15, 60, 300, 900],
  },
  deliveryDuration: {
    name: 'tidemark.delivery.duration',
    kind: 'histogram',
    unit: 's',
    about: 'Duration of a webhook delivery, by outcome.',
    labels: ['tidemark.outcome'],
    buckets: REQUEST_BUCKETS,
  },
  destinationBatchDuration: {
    name: 'tidemark.destination.batch.duration',
    kind: 'histogram',
    unit: 's',
    about: 'Time to read and apply a batch of a destination.',
    labels: ['tidemark.destination'],
    buckets: REQUEST_BUCKETS,
  },
  destinationChanges: {
    name: 'tidemark.destination.changes',
    kind: 'counter',
    unit: '{change}',
    about: 'Changes applied to a destination.',
    labels: ['tidemark.destination'],
  },
  destinationFailures: {
    name: 'tidemark.destination.failures',
    kind: 'counter',
    unit: '{failure}',
    about: 'Databases of a destination that could not be brought up to date in a run, by code.',
    labels: ['tidemark.destination', 'error.type'],
  },
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

/** Records metrics. */
export interface Meter {
  record(metric: MetricName, value: number, labels?: Attributes): void
}

/** Creates the spans of a cycle. */
export interface Tracer {
  /** The span is a child of `parent`; without one, of the active span of the surrounding program. */
  start(span: SpanName, attributes: Attributes, parent: Span | null): Span
}

export interface Span {
  readonly ids: SpanIds | null
  /** Headers that propagate the trace context to the called service; empty unless propagation is enabled. */
  readonly headers: Readonly<Record<string, string>>
  /** Runs the function with this span active. */
  within<T>(act: () => T): T
  setAttributes(attributes: Attributes): void
  /** With a code if it failed. Only the first call has an effect. */
  end(error?: string | null): void
}

/** The ids of a span, for log lines. */
export interface SpanIds {
  readonly traceId: string
  readonly spanId: string
}

/** The span used without a tracer. */
export const NOOP_SPAN: Span = {
  ids: null,
  headers: {},
  within: (act) => act(),
  setAttributes: () => {},
  end: () => {},
}
