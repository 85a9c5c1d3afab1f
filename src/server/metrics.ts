import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import {
  METRICS,
  type AttributeName,
  type Attributes,
  type Meter,
  type Metric,
  type MetricName,
  type Store,
  type Verification,
  type Webhook,
} from '../contract/index.ts'
import type { DestinationOverview } from '../destinations/loop/destination-overview.ts'
import { LABEL_VALUES_MAX, LabelLimiter, pickLabels } from '../platform/label-limiter.ts'
import type { Health } from '../runner/health.ts'
import type { RunnerCapacity } from '../runner/runner-options.ts'
import { computeWebhookState, type WebhookState } from '../webhooks/manage-webhooks.ts'
import { required } from '../values/required.ts'
import { countOpen } from '../verify/describe-report.ts'
import { computeConsumerLag, type LagStatus } from './consumer-lag.ts'
import type { SyncMetrics } from './sync-metrics.ts'

/** Gauges computed per scrape for the caller's tenant only. */
export const TENANT_GAUGES = {
  tidemark_syncs: { about: 'Syncs by health.', labels: ['health'] },
  tidemark_sync_lag_seconds: {
    about:
      'Time since the start of the last complete cycle; later changes of the source may be missing. Absent before the first complete cycle, and for the backfill of a pair, whose delta has the lag.',
    labels: ['worker', 'sync'],
  },
  tidemark_sync_backfill_needed: {
    about:
      '1 while a backfill is requested for the sync or its pair: changes were lost, and the copy may lack them until it completes.',
    labels: ['worker', 'sync'],
  },
  tidemark_sync_failures: { about: 'Consecutive failed cycles of the sync.', labels: ['worker', 'sync'] },
  tidemark_sync_running: { about: 'Whether a process is running the sync.', labels: ['worker', 'sync'] },
  tidemark_feed_sequence: { about: 'The newest sequence of the feed.', labels: [] },
  tidemark_webhooks: { about: 'Webhooks by state.', labels: ['state'] },
  tidemark_webhook_deliveries: { about: 'Webhook messages waiting for a retry, and failed ones.', labels: ['state'] },
  tidemark_webhook_behind: { about: 'Feed entries that the slowest webhook has not read.', labels: [] },
  tidemark_destinations: { about: 'Destinations by health.', labels: ['health'] },
  tidemark_destination_lag_seconds: {
    about: 'Age of the oldest change that is not applied; 0 if the destination is current. Absent until it is loaded.',
    labels: ['destination'],
  },
  tidemark_destination_behind: {
    about: 'Feed entries that the slowest database of the destination has not read.',
    labels: ['destination'],
  },
  tidemark_destination_consecutive_failures: {
    about: 'Consecutive failed runs of the destination.',
    labels: ['destination'],
  },
  tidemark_verification_age_seconds: {
    about: 'Time since the start of the last verification of the database. Absent before the first.',
    labels: ['database'],
  },
  tidemark_verification_differences: {
    about: 'Rows that the last verification of the database found to differ from the source and did not repair.',
    labels: ['database'],
  },
  tidemark_consumers: { about: 'Consumers with a checkpoint, by lag status.', labels: ['status'] },
} as const satisfies Record<string, { about: string; labels: readonly string[] }>

/** Process-wide metrics for the operator. */
export const PROCESS_METRICS = {
  tidemark_http_requests_total: { kind: 'counter', about: 'HTTP requests.', labels: ['route', 'status'] },
  tidemark_http_request_seconds: {
    kind: 'histogram',
    about: 'Duration of HTTP requests.',
    labels: ['route'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10],
  },
  tidemark_runner_slots: { kind: 'gauge', about: 'Maximum concurrent cycles of this process.', labels: [] },
  tidemark_runner_running: { kind: 'gauge', about: 'Cycles running in this process.', labels: [] },
  tidemark_runner_waiting: { kind: 'gauge', about: 'Due syncs waiting for a slot.', labels: [] },
} as const

/** The name that the OpenTelemetry-to-Prometheus translation gives the metric. */
export function prometheusName({ name, kind, unit }: Metric): string {
  return `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}${kind === 'counter' ? '_total' : ''}`
}

export function prometheusLabel(name: AttributeName): string {
  return name.replace('tidemark.', '').replaceAll('.', '_')
}

export interface MetricsRequest {
  readonly store: Store
  readonly syncMetrics: SyncMetrics
  readonly destinations: readonly DestinationOverview[]
  /** The last verification of every database. */
  readonly verifications: readonly Verification[]
  readonly now: number
  /** Whether the caller operates this process. */
  readonly isOperator: boolean
  readonly capacity: RunnerCapacity | null
}

/** Labels have few values: routes by pattern, statuses by class. Never names of tenants or records (XF16). */
export class Metrics implements Meter {
  readonly #registry = new Registry()
  readonly #labelBounds = new LabelLimiter()
  readonly #recorders = new Map<MetricName, (value: number, labels: Readonly<Record<string, string>>) => void>()
  readonly #requests: Counter
  readonly #seconds: Histogram
  /** Cached, so that recording is cheap. */
  readonly #series = new Map<string, { requests: Counter.Internal; seconds: Histogram.Internal<string> }>()

  constructor() {
    const { tidemark_http_requests_total: requests, tidemark_http_request_seconds: seconds } = PROCESS_METRICS
    const registers = [this.#registry]
    this.#requests = new Counter({
      name: 'tidemark_http_requests_total',
      help: requests.about,
      labelNames: requests.labels,
      registers,
    })
    this.#seconds = new Histogram({
      name: 'tidemark_http_request_seconds',
      help: seconds.about,
      labelNames: seconds.labels,
      buckets: [...seconds.buckets],
      registers,
    })
    for (const [name, metric] of Object.entries<Metric>(METRICS)) {
      const options = {
        name: prometheusName(metric),
        help: metric.about,
        labelNames: metric.labels.map(prometheusLabel),
        registers,
      }
      if (metric.kind === 'counter') {
        const counter = new Counter(options)
        this.#recorders.set(name as MetricName, (value, labels) => counter.inc(labels, value))
      } else {
        const histogram = new Histogram({
          ...options,
          buckets: [...required(metric.buckets, `the buckets of ${name}`)],
        })
        this.#recorders.set(name as MetricName, (value, labels) => histogram.observe(labels, value))
      }
    }
  }

  record(metric: MetricName, value: number, labels: Attributes = {}): void {
    const bounded = Object.entries(this.#labelBounds.limit(pickLabels(METRICS[metric].labels, labels)))
    this.#recorders.get(metric)?.(
      value,
      Object.fromEntries(bounded.map(([name, label]) => [prometheusLabel(name as AttributeName), String(label)])),
    )
  }

  recordRequest(route: string, status: number, seconds: number): void {
    const name = `${route} ${Math.floor(status / 100)}xx`
    let series = this.#series.get(name)
    if (series === undefined) {
      series = {
        requests: this.#requests.labels(route, `${Math.floor(status / 100)}xx`),
        seconds: this.#seconds.labels(route),
      }
      this.#series.set(name, series)
    }
    series.requests.inc()
    series.seconds.observe(seconds)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** Tenant gauges use a registry per response: concurrent scrapes of two tenants must not see each other's values. */
  async render({
    store,
    syncMetrics,
    destinations,
    verifications,
    now,
    isOperator,
    capacity,
  }: MetricsRequest): Promise<string> {
    const headSequence = await store.headSequence()
    const webhooks = await store.webhooks()
    const states: Record<WebhookState, number> = { enabled: 0, failing: 0, disabled: 0 }
    for (const webhook of webhooks) states[computeWebhookState(webhook)]++
    const lags: Record<LagStatus, number> = { healthy: 0, warning: 0, critical: 0 }
    for (const consumer of await store.consumers()) lags[(await computeConsumerLag(store, consumer, now)).status]++

    const gauges = new TenantGauges()
    const setBySync = (
      name: keyof typeof TENANT_GAUGES,
      valueOf: (metric: SyncMetrics['syncs'][number]) => number | null,
    ): void =>
      gauges.set(
        name,
        TENANT_GAUGES[name],
        syncMetrics.syncs.flatMap((metric) => {
          const value = valueOf(metric)
          return value === null ? [] : [[{ worker: metric.worker, sync: metric.sync }, value] as const]
        }),
      )
    const setByLabel = (name: keyof typeof TENANT_GAUGES, counts: Readonly<Record<string, number>>): void =>
      gauges.set(
        name,
        TENANT_GAUGES[name],
        Object.entries(counts).map(([value, count]) => [{ [TENANT_GAUGES[name].labels[0] ?? '']: value }, count]),
      )
    const setOne = (name: keyof typeof TENANT_GAUGES, value: number): void =>
      gauges.set(name, TENANT_GAUGES[name], [[{}, value]])
    setByLabel('tidemark_syncs', syncMetrics.healthCounts)
    setBySync('tidemark_sync_lag_seconds', ({ lagSeconds }) => lagSeconds)
    setBySync('tidemark_sync_backfill_needed', ({ backfillNeeded }) => backfillNeeded)
    setBySync('tidemark_sync_failures', ({ failures }) => failures)
    setBySync('tidemark_sync_running', ({ running }) => running)
    setOne('tidemark_feed_sequence', headSequence)
    setByLabel('tidemark_webhooks', states)
    setByLabel('tidemark_webhook_deliveries', {
      waiting: sumDeliveries(webhooks, 'waiting'),
      failed: sumDeliveries(webhooks, 'failed'),
    })
    setOne('tidemark_webhook_behind', Math.max(0, ...webhooks.map((webhook) => headSequence - webhook.sequence)))
    setByLabel('tidemark_consumers', lags)
    const destinationHealth: Record<Health, number> = { HEALTHY: 0, INITIALIZING: 0, WARNING: 0, ERROR: 0, PAUSED: 0 }
    for (const { health } of destinations) destinationHealth[health]++
    setByLabel('tidemark_destinations', destinationHealth)
    const setByDestination = (
      name: keyof typeof TENANT_GAUGES,
      valueOf: (overview: DestinationOverview) => number | null,
    ): void =>
      gauges.set(
        name,
        TENANT_GAUGES[name],
        destinations.slice(0, LABEL_VALUES_MAX.syncs).flatMap((overview) => {
          const value = valueOf(overview)
          return value === null ? [] : [[{ destination: overview.name }, value] as const]
        }),
      )
    setByDestination('tidemark_destination_lag_seconds', ({ lagMs }) => (lagMs === null ? null : lagMs / 1_000))
    setByDestination('tidemark_destination_behind', ({ behind }) => behind)
    setByDestination('tidemark_destination_consecutive_failures', ({ status }) => status?.failures ?? 0)
    const setByDatabase = (name: keyof typeof TENANT_GAUGES, valueOf: (verification: Verification) => number): void =>
      gauges.set(
        name,
        TENANT_GAUGES[name],
        verifications
          .slice(0, LABEL_VALUES_MAX.syncs)
          .map((verification) => [{ database: verification.database }, valueOf(verification)] as const),
      )
    setByDatabase('tidemark_verification_age_seconds', ({ startedAt }) => Math.max(0, now - startedAt) / 1_000)
    setByDatabase('tidemark_verification_differences', ({ report }) => (report === null ? 0 : countOpen(report)))
    if (isOperator && capacity !== null) {
      for (const [name, value] of Object.entries(capacity))
        gauges.set(`tidemark_runner_${name}`, PROCESS_METRICS[`tidemark_runner_${name as keyof RunnerCapacity}`], [
          [{}, value],
        ])
    }
    // Metrics over all tenants are for the operator only.
    return `${isOperator ? await this.#registry.metrics() : ''}${await gauges.render()}`
  }
}

/** The gauges of one response. */
class TenantGauges {
  readonly #registry = new Registry()

  set(
    name: string,
    { about, labels }: { about: string; labels: readonly string[] },
    values: readonly (readonly [Record<string, string>, number])[],
  ): void {
    const gauge = new Gauge({ name, help: about, labelNames: labels, registers: [this.#registry] })
    for (const [labelled, value] of values) gauge.set(labelled, value)
  }

  render(): Promise<string> {
    return this.#registry.metrics()
  }
}

function sumDeliveries(webhooks: readonly Webhook[], count: 'waiting' | 'failed'): number {
  return webhooks.reduce((total, webhook) => total + webhook[count], 0)
}
