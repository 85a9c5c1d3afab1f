import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { METRICS } from '../../src/contract/index.ts'
import { prometheusName } from '../../src/server/metrics.ts'
import { ROOT } from '../cli/package.ts'
import { blocksOf } from '../docs/blocks.ts'
import { Service, type LogLine } from './service.ts'

const GUIDE = 'docs/guides/observability.md'

test('RX9 docs/guides/observability.md: its setup receives the spans and metrics of `tidemark start`, and every log line names its sync and its trace', async () => {
  const [script] = blocksOf(GUIDE).filter(({ language }) => language === 'js')
  const [file] = /(?<=\/\/ )\S+\.mjs/.exec(script!.text)!
  const service = await Service.start({ files: { [file]: script!.text }, env: { NODE_OPTIONS: `--import ./${file}` } })
  await fetch(`${service.url}/agents/v1/people`)
  const { lines, stderr } = await service.stop()

  // Buffered output was sent at the end too: the exporter waits longer than the whole test takes.
  const seen = (name: string): number => stderr.split(`name: '${name}'`).length - 1
  for (const [name, least] of [
    ['tidemark.cycle', 2],
    ['tidemark.page', 3],
    ['tidemark.commit', 2],
    ['GET', 6],
    ['tidemark.delivery', 2],
  ] as const)
    expect([name, seen(name) >= least]).toEqual([name, true])
  for (const { name } of Object.values(METRICS)) expect(stderr).toContain(`name: '${name}'`)
  expect(stderr).not.toContain('heron')

  const ids = {
    trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
    span_id: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
  }
  const good = { tenant: 'default', worker: 'office', sync: 'good', cycle: expect.any(Number) as number, ...ids }
  const refused = { ...good, sync: 'refused' }
  const said = (message: string, sync?: string): LogLine[] =>
    lines.filter((line) => line.message === message && (sync === undefined || line['sync'] === sync))
  expect(said('cycle started', 'good')).toEqual([expect.objectContaining(good)])
  expect(said('page landed', 'good')).toEqual([
    expect.objectContaining({ ...good, page: 1 }),
    expect.objectContaining({ ...good, page: 2 }),
  ])
  expect(said('cycle ended', 'good')).toEqual([expect.objectContaining({ ...good, stopReason: 'complete', pages: 2 })])
  expect(said('the connector speaks')).toEqual([
    expect.objectContaining({ ...good, page: 1 }),
    expect.objectContaining({ ...good, page: 2 }),
  ])
  expect(said('the source responded', 'good')).toEqual(
    [1, 2].map(
      (page) =>
        expect.objectContaining({
          ...good,
          page,
          method: 'GET',
          host: '127.0.0.1',
          status: 200,
          requestId: 'office-1',
        }) as LogLine,
    ),
  )
  expect(said('page failed, retrying').slice(0, 1)).toEqual([
    expect.objectContaining({ ...refused, page: 1, requestId: 'office-1', code: 'SOURCE_UNAVAILABLE' }),
  ])
  expect(said('waiting').slice(0, 1)).toEqual([expect.objectContaining(refused)])
  expect(said('cycle failed').slice(0, 1)).toEqual([
    expect.objectContaining({ ...refused, code: 'SOURCE_UNAVAILABLE' }),
  ])
  expect(said('webhook message not delivered').slice(0, 1)).toEqual([
    expect.objectContaining({
      tenant: 'default',
      webhook: expect.any(String),
      requestId: expect.stringMatching(/^msg_/),
      attempt: 1,
      status: 503,
      ...ids,
    }),
  ])
  expect(said('request').at(-1)).toMatchObject({
    requestId: expect.any(String),
    method: 'GET',
    route: '/agents/v1/:database',
    status: 401,
    ms: expect.any(Number),
  })
  // One cycle is one trace, and another cycle is another trace.
  expect(new Set(lines.filter((line) => line['sync'] === 'good').map((line) => line['trace_id'])).size).toBe(1)
  expect(said('cycle ended', 'good')[0]!['trace_id']).not.toBe(said('cycle failed')[0]!['trace_id'])

  const documented = new Set(
    [...readFileSync(join(ROOT, GUIDE), 'utf8').matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, names]) =>
      [...names!.matchAll(/`(\w+)`/g)].map((match) => match[1]!),
    ),
  )
  for (const field of [
    'tenant',
    'worker',
    'sync',
    'cycle',
    'page',
    'requestId',
    'trace_id',
    'span_id',
    'webhook',
    'attempt',
    'route',
    'host',
    'status',
    'code',
  ])
    expect([field, documented.has(field)]).toEqual([field, true])
})

test('/metrics of a service exposes everything in the reference, each metric once', async () => {
  const service = await Service.start()
  const text = await service.metrics()
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!] as const)
  expect(types.map(([name]) => name).filter((name, at, all) => all.indexOf(name) !== at)).toEqual([])
  for (const metric of Object.values(METRICS)) expect(types).toContainEqual([prometheusName(metric), metric.kind])
  expect(text).toMatch(/^tidemark_records_total\{worker="office",sync="good",outcome="created"\} 2$/m)
  expect(text).toMatch(/^tidemark_records_total\{worker="office",sync="good",outcome="quarantined"\} 2$/m)
  expect(text).toMatch(/^tidemark_errors_total\{error_type="SOURCE_UNAVAILABLE",outcome="retried"\} 1$/m)
  expect(text).toMatch(/^tidemark_delivery_duration_seconds_count\{outcome="delivered"\} [1-9]/m)
  expect(text).toMatch(
    /^http_client_request_duration_seconds_count\{http_request_method="GET",server_address="127.0.0.1",http_response_status_code="503"\} 2$/m,
  )
  expect(text).toMatch(/^tidemark_runner_slots 4$/m)
  expect(text).toMatch(/^tidemark_sync_failures\{worker="office",sync="refused"\} 1$/m)
  expect(text).not.toMatch(/heron|default/)

  const exposed = new Exposed(text)
  for (const { where, expr, legend } of [...dashboardQueries(), ...alertQueries()]) {
    expect([where, exposed.faultsOf(expr, legend)]).toEqual([where, []])
  }
  // Control: the search finds faults.
  expect(
    exposed.faultsOf(
      'sum by (sync) (rate(tidemark_cycles_total{stopreason="error"}[5m])) + tidemark_nothing',
      '{{worker}}',
    ),
  ).toEqual(['no label stopreason', 'no figure tidemark_nothing', 'the legend has no worker'])
  await service.stop()
})

test('the dashboard is importable by Grafana: a schema, a variable for the data source that all panels use, and no overlapping panels', () => {
  const dashboard = readDashboard()
  expect(dashboard).toMatchObject({
    id: null,
    uid: 'tidemark',
    title: 'Tidemark',
    schemaVersion: expect.any(Number),
    templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }] },
  })
  expect(dashboard.panels.length).toBeGreaterThan(20)
  const ids = dashboard.panels.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const taken = new Set<string>()
  for (const {
    id,
    type,
    title,
    datasource,
    targets = [],
    gridPos: { x, y, w, h },
  } of dashboard.panels) {
    expect([id, ['row', 'stat', 'timeseries'].includes(type), title !== '']).toEqual([id, true, true])
    for (let column = x; column < x + w; column++)
      for (let line = y; line < y + h; line++) {
        expect([title, column < 24, taken.has(`${column} ${line}`)]).toEqual([title, true, false])
        taken.add(`${column} ${line}`)
      }
    if (type === 'row') continue
    for (const of of [datasource, ...targets.map((target) => target.datasource)])
      expect(of).toEqual({ type: 'prometheus', uid: '${datasource}' })
    expect(targets.length).toBeGreaterThan(0)
    expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length)
  }
})

test('the guide names exactly the existing alerts', () => {
  const page = readFileSync(join(ROOT, GUIDE), 'utf8')
  expect([...new Set([...page.matchAll(/`(Tidemark[A-Z]\w+)`/g)].map((match) => match[1]!))].toSorted()).toEqual(
    alertQueries()
      .map(({ where }) => where)
      .toSorted(),
  )
})

/** The exposed metrics, and the parts of a query that are not exposed. */
class Exposed {
  readonly #labels = new Map<string, Map<string, Set<string>>>()

  constructor(text: string) {
    for (const [, name, labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
      const known = this.#labels.get(name!) ?? new Map<string, Set<string>>()
      this.#labels.set(name!, known)
      for (const [, label, value] of labels.matchAll(/(\w+)="([^"]*)"/g))
        known.set(label!, (known.get(label!) ?? new Set()).add(value!))
    }
  }

  faultsOf(expr: string, legend: string): string[] {
    const faults: string[] = []
    const asked = [...expr.matchAll(/\b((?:tidemark|http_client)_\w+)(?:\{([^}]*)\})?/g)]
    if (asked.length === 0) faults.push('it asks for nothing')
    const known = new Set<string>()
    for (const [, name, selector = ''] of asked) {
      const labels = this.#labels.get(name!)
      if (labels === undefined) faults.push(`no figure ${name}`)
      for (const label of labels?.keys() ?? []) known.add(label)
      for (const [, label, operator, value] of selector.matchAll(/(\w+)\s*(=~|=)\s*"([^"]*)"/g)) {
        if (labels !== undefined && !labels.has(label!)) faults.push(`no label ${label}`)
        // A counter may not have occurred; a gauge exposes all its values.
        else if (operator === '=' && GAUGED.test(name!) && !labels!.get(label!)!.has(value!))
          faults.push(`${label} is never ${value}`)
      }
    }
    const groups = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names]) =>
      names!.split(',').map((name) => name.trim()),
    )
    faults.push(...groups.filter((label) => !known.has(label)).map((label) => `no label ${label}`))
    faults.push(
      ...[...legend.matchAll(/\{\{(\w+)\}\}/g)]
        .map((match) => match[1]!)
        .filter((label) => !groups.includes(label))
        .map((label) => `the legend has no ${label}`),
    )
    return faults
  }
}

const GAUGED = /^tidemark_(?:syncs|webhooks|webhook_deliveries|consumers)$/

interface Query {
  readonly where: string
  readonly expr: string
  readonly legend: string
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly datasource?: object
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly {
    readonly refId: string
    readonly datasource: object
    readonly expr: string
    readonly legendFormat: string
  }[]
}

function readDashboard(): { panels: Panel[] } & Record<string, unknown> {
  return JSON.parse(readFileSync(join(ROOT, 'docs/grafana/tidemark.json'), 'utf8')) as { panels: Panel[] } & Record<
    string,
    unknown
  >
}

function dashboardQueries(): Query[] {
  return readDashboard().panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ where: title, expr, legend: legendFormat })),
  )
}

function alertQueries(): Query[] {
  const { groups } = parse(readFileSync(join(ROOT, 'docs/grafana/alerts.yaml'), 'utf8')) as {
    groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[]
  }
  return groups.flatMap(({ rules }) =>
    rules.map(({ alert, expr, annotations }) => ({
      where: alert,
      expr,
      legend: annotations.summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '{{$1}}'),
    })),
  )
}
