import { ATTRIBUTES, METRICS, SPANS, type Metric } from '../../src/contract/index.ts'
import { LABEL_VALUES_MAX, OTHER_LABEL } from '../../src/platform/label-limiter.ts'
import { TENANT_GAUGES, PROCESS_METRICS, prometheusLabel, prometheusName } from '../../src/server/metrics.ts'

/** docs/reference/telemetry.md, from the tables that the exporters are made of. */
export function renderTelemetry(): string {
  return [
    '# Spans and figures',
    '',
    'Made from `src/contract/telemetry.ts` and `src/server/metrics.ts`. How to look at them is in [the guide](../guides/observability.md).',
    '',
    '## Spans',
    '',
    'A request bears the name of its method, as the conventions of OpenTelemetry want it, and is of the kind `CLIENT`; all others are `INTERNAL`.',
    '',
    '| span | inside | what it is | attributes |',
    '|---|---|---|---|',
    ...Object.values(SPANS).map(({ name, within, about, attributes }) => `| \`${name}\` | ${within} | ${about} | ${list(attributes)} |`),
    '',
    '## Attributes',
    '',
    'There are no others: no address with a path or a query, no header, state, cursor, key or record, and no text of an error.',
    '',
    '| attribute | what it is |',
    '|---|---|',
    ...Object.entries(ATTRIBUTES).map(([name, about]) => `| \`${name}\` | ${about} |`),
    '',
    '## Figures of cycles and deliveries',
    '',
    'Noted by every process, for the program’s own OpenTelemetry and for `/metrics`.',
    '',
    '| OpenTelemetry | Prometheus | kind | what it is | attributes | labels |',
    '|---|---|---|---|---|---|',
    ...Object.values<Metric>(METRICS).map((metric) => `| \`${metric.name}\` | \`${prometheusName(metric)}\` | ${metric.kind}, ${metric.unit} | ${metric.about} | ${list(metric.labels)} | ${list(metric.labels.map(prometheusLabel))} |`),
    '',
    `However much there is, the first ${LABEL_VALUES_MAX.syncs} syncs, ${LABEL_VALUES_MAX.hosts} hosts and ${LABEL_VALUES_MAX.statuses} statuses of answers that a process sees are told by name, and all others together as \`${OTHER_LABEL}\`.`,
    '',
    '## At /metrics alone: of this process',
    '',
    'Shown to the tenant that the process was started for.',
    '',
    '| Prometheus | kind | what it is | labels |',
    '|---|---|---|---|',
    ...Object.entries(PROCESS_METRICS).map(([name, { kind, about, labels }]) => `| \`${name}\` | ${kind} | ${about} | ${list(labels)} |`),
    '',
    '## At /metrics alone: of the store',
    '',
    `Looked up when somebody asks, for the tenant of the key. The first ${LABEL_VALUES_MAX.syncs} syncs are told by name, those that are declared before the others; of the rest \`${OTHER_LABEL}\` is the worst, and how many are being run.`,
    '',
    '| Prometheus | kind | what it is | labels |',
    '|---|---|---|---|',
    ...Object.entries(TENANT_GAUGES).map(([name, { about, labels }]) => `| \`${name}\` | gauge | ${about} | ${list(labels)} |`),
    '',
  ].join('\n')
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.map((name) => `\`${name}\``).join(', ')
}
