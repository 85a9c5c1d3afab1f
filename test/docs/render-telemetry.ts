import { ATTRIBUTES, METRICS, SPANS, type Metric } from '../../src/contract/index.ts'
import { LABEL_VALUES_MAX, OTHER_LABEL } from '../../src/platform/label-limiter.ts'
import { TENANT_GAUGES, PROCESS_METRICS, prometheusLabel, prometheusName } from '../../src/server/metrics.ts'

/** Renders docs/reference/telemetry.md from the tables that the exporters use. */
export function renderTelemetry(): string {
  return [
    '# Spans and metrics',
    '',
    'Generated from `src/contract/telemetry.ts` and `src/server/metrics.ts`. [The guide](../guides/observability.md) explains how to view them.',
    '',
    '## Spans',
    '',
    'A request span is named after its HTTP method, as the OpenTelemetry conventions require, and is of the kind `CLIENT`; all others are `INTERNAL`.',
    '',
    '| span | parent | meaning | attributes |',
    '|---|---|---|---|',
    ...Object.values(SPANS).map(
      ({ name, within, about, attributes }) => `| \`${name}\` | ${within} | ${about} | ${list(attributes)} |`,
    ),
    '',
    '## Attributes',
    '',
    'There are no others: no address with a path or a query, no header, state, cursor, key or record, and no error message.',
    '',
    '| attribute | meaning |',
    '|---|---|',
    ...Object.entries(ATTRIBUTES).map(([name, about]) => `| \`${name}\` | ${about} |`),
    '',
    '## Metrics of cycles and deliveries',
    '',
    'Recorded by every process, for the program’s own OpenTelemetry and for `/metrics`.',
    '',
    '| OpenTelemetry | Prometheus | kind | meaning | attributes | labels |',
    '|---|---|---|---|---|---|',
    ...Object.values<Metric>(METRICS).map(
      (metric) =>
        `| \`${metric.name}\` | \`${prometheusName(metric)}\` | ${metric.kind}, ${metric.unit} | ${metric.about} | ${list(metric.labels)} | ${list(metric.labels.map(prometheusLabel))} |`,
    ),
    '',
    `To bound cardinality, the first ${LABEL_VALUES_MAX.syncs} syncs, ${LABEL_VALUES_MAX.hosts} hosts and ${LABEL_VALUES_MAX.statuses} response statuses that a process sees are labelled by name, and all others together as \`${OTHER_LABEL}\`.`,
    '',
    '## Metrics of the process, at /metrics only',
    '',
    'Shown to the tenant that the process was started for.',
    '',
    '| Prometheus | kind | meaning | labels |',
    '|---|---|---|---|',
    ...Object.entries(PROCESS_METRICS).map(
      ([name, { kind, about, labels }]) => `| \`${name}\` | ${kind} | ${about} | ${list(labels)} |`,
    ),
    '',
    '## Metrics of the store, at /metrics only',
    '',
    `Read on each scrape, for the tenant of the key. The first ${LABEL_VALUES_MAX.syncs} syncs are labelled by name, declared ones first; for the rest \`${OTHER_LABEL}\` is the worst value, and the number of running syncs.`,
    '',
    '| Prometheus | kind | meaning | labels |',
    '|---|---|---|---|',
    ...Object.entries(TENANT_GAUGES).map(
      ([name, { about, labels }]) => `| \`${name}\` | gauge | ${about} | ${list(labels)} |`,
    ),
    '',
  ].join('\n')
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.map((name) => `\`${name}\``).join(', ')
}
