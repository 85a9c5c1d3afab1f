import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Store, Webhook } from '../contract/index.ts'
import { stateOf, type WebhookState } from '../webhooks/manage.ts'
import { lagOf, type LagStatus } from './consumer-lag.ts'

/** Labels have few values, whatever is asked: a route by its pattern, a status by its class. Nobody's names (XF16). */
export class Metrics {
  readonly #registry = new Registry()
  readonly #requests = new Counter({ name: 'tidemark_http_requests_total', help: 'Requests answered.', labelNames: ['route', 'status'], registers: [this.#registry] })
  readonly #seconds = new Histogram({
    name: 'tidemark_http_request_seconds', help: 'Time to answer.', labelNames: ['route'], buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10], registers: [this.#registry],
  })

  /** Found once, so that noting costs next to nothing. */
  readonly #series = new Map<string, { requests: Counter.Internal; seconds: Histogram.Internal<'route'> }>()

  note(route: string, status: number, seconds: number): void {
    const name = `${route} ${Math.floor(status / 100)}xx`
    let series = this.#series.get(name)
    if (series === undefined) {
      series = { requests: this.#requests.labels(route, `${Math.floor(status / 100)}xx`), seconds: this.#seconds.labels(route) }
      this.#series.set(name, series)
    }
    series.requests.inc()
    series.seconds.observe(seconds)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** What is of the caller's tenant is gathered anew for each answer: two tenants that ask at once must not see each other's. */
  async text(healths: Readonly<Record<string, number>>, store: Store, { now, isOwn }: { now: number; isOwn: boolean }): Promise<string> {
    const position = await store.position()
    const webhooks = await store.webhooks()
    const states: Record<WebhookState, number> = { enabled: 0, failing: 0, disabled: 0 }
    for (const webhook of webhooks) states[stateOf(webhook)]++
    const lags: Record<LagStatus, number> = { healthy: 0, warning: 0, critical: 0 }
    for (const consumer of await store.consumers()) lags[(await lagOf(store, consumer, now)).status]++
    const own = new Registry()
    const gauge = (name: string, help: string, value: number): void => new Gauge({ name, help, registers: [own] }).set(value)
    const gauges = (name: string, help: string, label: string, values: Readonly<Record<string, number>>): void => {
      const all = new Gauge({ name, help, labelNames: [label], registers: [own] })
      for (const [value, count] of Object.entries(values)) all.set({ [label]: value }, count)
    }
    gauges('tidemark_syncs', 'Syncs by health.', 'health', healths)
    gauge('tidemark_feed_position', 'The newest sequence of the feed.', position)
    gauges('tidemark_webhooks', 'Webhooks by state.', 'state', states)
    gauges('tidemark_webhook_deliveries', 'Messages that wait to be tried again, and those that were given up.', 'state', { waiting: sum(webhooks, 'waiting'), dead: sum(webhooks, 'dead') })
    gauge('tidemark_webhook_behind', 'Entries of the feed that the webhook furthest behind has not read.', Math.max(0, ...webhooks.map((webhook) => position - webhook.position)))
    gauges('tidemark_consumers', 'Consumers that told where they stand, by how far behind they are.', 'status', lags)
    // What all callers together did is for who runs the server.
    return `${isOwn ? await this.#registry.metrics() : ''}${await own.metrics()}`
  }
}

function sum(webhooks: readonly Webhook[], count: 'waiting' | 'dead'): number {
  return webhooks.reduce((total, webhook) => total + webhook[count], 0)
}
