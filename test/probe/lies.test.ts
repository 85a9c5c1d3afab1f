import { describe, expect, test } from 'vitest'
import type { Fact } from '../../src/probe/fact.ts'
import { probeUrl, type ListReport } from '../../src/probe/probe-list.ts'
import {
  compareByTime,
  createRecords,
  QUERY,
  serveApi,
  type ApiBehaviour,
  type ListedRecord,
  type ServedApi,
} from './lying-api.ts'
import { createProbeContext } from './probe-context.ts'

const BUDGET = 30

interface Probed {
  readonly report: ListReport
  readonly requests: readonly string[]
  /** The values of all facts of a topic. */
  readonly values: (topic: Fact['topic']) => string[]
  /** The warnings, as topic and value. */
  readonly warnings: readonly string[]
}

async function probe(
  lies: Partial<ApiBehaviour> = {},
  {
    records,
    requestsMax = BUDGET,
    query = QUERY,
  }: { records?: ListedRecord[]; requestsMax?: number; query?: string } = {},
): Promise<Probed> {
  await using api: ServedApi = await serveApi(lies, records)
  const url = new URL(`${api.url}${query}`)
  const report = await probeUrl(url, {}, {}, createProbeContext(), { requestsMax })
  return {
    report,
    requests: [...api.requests],
    values: (topic) => report.facts.filter((fact) => fact.topic === topic).map(({ value }) => value),
    warnings: report.facts.filter(({ isWarning }) => isWarning).map(({ topic, value }) => `${topic} ${value}`),
  }
}

function findFact({ report }: Probed, topic: Fact['topic'], value: string): Fact {
  const fact = report.facts.find((candidate) => candidate.topic === topic && candidate.value === value)
  if (fact === undefined) throw new Error(`There is no fact ${topic} ${value}.`)
  return fact
}

describe('an honest API', () => {
  test('RX12 has its facts shown with requests and rows, and no warning', async () => {
    const probed = await probe()
    expect(probed.warnings).toEqual([])
    expect(probed.values('lower-bound')).toEqual(['inclusive'])
    expect(probed.values('order')).toEqual(['ascending', 'ties-by-id'])
    expect(probed.values('page-border')).toEqual(['ties-kept'])
    expect(probed.values('lookup')).toEqual(['found', '404'])
    expect(probed.values('list-end')).toEqual(['complete'])
    expect(probed.values('ids')).toEqual(['unique'])
    expect(probed.values('stability')).toEqual(['stable'])
    expect(probed.values('rate-limit')).toEqual(['x-ratelimit-limit:600', 'x-ratelimit-remaining:counts'])
    const bound = findFact(probed, 'lower-bound', 'inclusive')
    expect(bound.certainty).toBe('shown')
    expect(bound.evidence.requests.map((number) => probed.report.requests[number - 1]?.purpose)).toEqual([
      'lower bound',
      'lower bound',
    ])
    expect(bound.evidence.rows).toHaveLength(2)
  })

  test('RX10 RX12 receives exactly the requests of the journal, all of them GET, and none beyond the budget', async () => {
    const { report, requests } = await probe()
    expect(requests).toHaveLength(report.requests.length)
    expect(requests.every((request) => request.startsWith('GET '))).toBe(true)
    const few = await probe({}, { requestsMax: 6 })
    expect(few.requests).toHaveLength(6)
    expect(few.report.endedBy).toBe('The budget of 6 requests is spent')
    const bound = findFact(few, 'lower-bound', 'unknown')
    expect([bound.certainty, bound.reason]).toEqual(['untestable', 'The budget of 6 requests is spent'])
  })

  test('RX14 has no values of its records in the report except keys and times', async () => {
    const records = createRecords().map((record) => ({ ...record, email: 'secret@example.com' }))
    const { report } = await probe({}, { records })
    expect(JSON.stringify(report)).not.toContain('secret@example.com')
    expect(JSON.stringify(report)).toContain('rec_000')
  })
})

describe('--watch', () => {
  test('reads the newest rows again, and sees a row that appears late', async () => {
    const now = Date.now()
    const recent = createRecords().map(({ id }, index) => ({
      id,
      updated_at: new Date(now - (41 - index) * 10_000).toISOString(),
    }))
    // The late row is visible from the last reading on, and later than all requests of a probe that does not watch.
    await using api = await serveApi(
      { records: (number) => (number < 20 ? recent.filter((_, index) => index !== 30) : recent) },
      recent,
    )
    const url = new URL(`${api.url}${QUERY.replace('limit=20', 'limit=100')}`)
    const watch = { polls: 3, everyMs: 5 }
    const { facts, requests } = await probeUrl(url, {}, {}, createProbeContext(), { requestsMax: BUDGET, watch })
    expect(facts.find(({ topic }) => topic === 'late-rows')?.evidence.rows.map(({ key }) => key)).toEqual(['rec_030'])
    expect(requests.filter(({ purpose }) => purpose === 'newest rows')).toHaveLength(2 + watch.polls)
    expect(api.requests).toHaveLength(requests.length)
  })
})

describe('RX11 probe names the lie of an API', () => {
  test('whose filter excludes its time', async () => {
    const probed = await probe({
      select: (all, { since }) => all.filter(({ updated_at: at }) => since === null || String(at) > since),
    })
    expect(probed.values('lower-bound')).toEqual(['exclusive'])
    expect(findFact(probed, 'lower-bound', 'exclusive').certainty).toBe('shown')
  })

  test('but not of one that sorts a filtered list in another way', async () => {
    const probed = await probe(
      { sort: (all, { since }) => all.toSorted((a, b) => (since === null ? 1 : -1) * compareByTime(a, b)) },
      { records: createRecords(160) },
    )
    expect(findFact(probed, 'lower-bound', 'unknown').reason).toContain('begins with others')
    expect(probed.warnings).not.toContain('lower-bound inconsistent')
  })

  test('whose filter has no effect', async () => {
    const probed = await probe({ select: (all) => all })
    expect(probed.warnings).toContain('lower-bound ignored')
    expect(probed.report.recommendation.answers.changes).toBe('none')
  })

  // The row of the bound is the first one of its minute, or a later one.
  test.each([13_000, 11_000])('whose filter is rounded to the minute, with a row every %i ms', async (stepMs) => {
    const probed = await probe(
      {
        select: (all, { since }) =>
          all.filter(({ updated_at: at }) => since === null || String(at) >= `${since.slice(0, 16)}:00.000Z`),
      },
      { records: createDenseRecords(stepMs) },
    )
    expect(probed.warnings).toEqual(['lower-bound rounded'])
  })

  test('whose filter returns some of the rows with its time', async () => {
    const probed = await probe({
      select: (all, { since }) =>
        all.filter(
          ({ id, updated_at: at }) =>
            since === null || String(at) > since || (String(at) === since && Number(id.slice(-1)) % 2 === 0),
        ),
    })
    expect(probed.warnings).toEqual(['lower-bound partial'])
  })

  test('that ignores the requested order', async () => {
    const probed = await probe({ sort: (all) => all.toSorted((a, b) => mix(a.id) - mix(b.id)) })
    expect(probed.warnings).toContain('order sort-ignored')
  })

  test('but not of one that is sorted by another field, as requested', async () => {
    const query = QUERY.replace('sort=updated_at&order=asc', 'sort=created_at')
    const probed = await probe({ sort: (all) => all.toSorted((a, b) => mix(a.id) - mix(b.id)) }, { query })
    expect(probed.values('order')).toContain('unsorted')
    expect(probed.warnings).not.toContain('order sort-ignored')
  })

  test('that ignores the direction of the order', async () => {
    const probed = await probe({ sort: (all) => all.toSorted(compareByTime) })
    expect(probed.warnings).toEqual(['order sort-ignored'])
  })

  test('that loses rows with one time at a page border', async () => {
    const probed = await probe({
      nextOf: (page) => String(page.at(-1)?.updated_at),
      startOf: (sorted, { cursor }) =>
        cursor === null ? 0 : countWhile(sorted, ({ updated_at: at }) => String(at) <= cursor),
    })
    expect(probed.warnings).toEqual(['page-border ties-lost'])
    const { evidence } = findFact(probed, 'page-border', 'ties-lost')
    expect(evidence.rows.map(({ key }) => key)).toEqual(['rec_002', 'rec_003', 'rec_007', 'rec_011'])
    expect(probed.report.recommendation.cautions).toHaveLength(1)
    expect(probed.report.recommendation.answers.changes).toBe('none')
  })

  test('that loses rows of different times at a page border', async () => {
    const probed = await probe(
      {
        startOf: (sorted, { cursor }) => (cursor === null ? 0 : sorted.findIndex(({ id }) => id === cursor) + 2),
      },
      { records: createDenseRecords() },
    )
    expect(probed.warnings).toEqual(['page-border rows-lost'])
  })

  test('that ignores the page size', async () => {
    const probed = await probe({ sizeOf: () => 10 })
    expect(probed.warnings).toEqual(['page-size ignored'])
  })

  test('that returns short pages before the last one', async () => {
    const probed = await probe({ sizeOf: ({ limit }) => (limit > 5 ? limit : Math.max(1, limit - 1)) })
    expect(probed.warnings).toEqual(['page-size short-pages'])
  })

  test('that has a page size limit', async () => {
    const probed = await probe({ sizeOf: ({ limit }) => Math.min(limit, 25) })
    expect(probed.values('page-size')).toEqual(['25'])
    expect(probed.warnings).toEqual([])
    expect(probed.report.recommendation.settings.pageSizeMax).toBe(25)
  })

  test('whose order is unstable', async () => {
    const probed = await probe({
      sort: (all, { number }) =>
        all.toSorted((a, b) =>
          a.updated_at === b.updated_at ? (number % 2 === 0 ? 1 : -1) * compareByTime(a, b) : compareByTime(a, b),
        ),
    })
    expect(probed.warnings).toContain('stability unstable-order')
  })

  test('whose cursor repeats the last row', async () => {
    const probed = await probe({
      startOf: (sorted, { cursor }) => (cursor === null ? 0 : sorted.findIndex(({ id }) => id === cursor)),
    })
    expect(probed.warnings).toEqual(['page-border repeats-last-row'])
  })

  test('that says too early that it has no more rows', async () => {
    const probed = await probe({ hasMore: (end, _sorted, { limit }) => (limit > 5 && end < 40 ? true : end < 6) })
    expect(probed.warnings).toEqual(['list-end too-early'])
  })

  test('whose times are local times without a zone', async () => {
    const local = createRecords().map(({ id }, index) => ({
      id,
      updated_at: new Date(Date.now() + 2 * 3_600_000 - (40 - index) * 1_000_000).toISOString().slice(0, 19),
    }))
    const probed = await probe({}, { records: local })
    expect(probed.warnings).toContain('time-format text-without-zone')
    expect(probed.warnings).toContain('clock local-time')
  })

  test('whose filter reads its time as a local time', async () => {
    const probed = await probe(
      {
        select: (all, { since }) =>
          all.filter(
            ({ updated_at: at }) => since === null || Date.parse(String(at)) >= Date.parse(since) - 3 * 3_600_000,
          ),
      },
      { records: createHourlyRecords() },
    )
    expect(probed.warnings).toEqual(['lower-bound shifted'])
    expect(findFact(probed, 'lower-bound', 'shifted').text).toContain('+03:00')
  })

  test('whose `Date` header is wrong', async () => {
    const probed = await probe({ headers: () => ({ date: new Date(Date.now() - 3_600_000).toUTCString() }) })
    expect(probed.warnings).toEqual(['clock wrong'])
  })

  test('whose `Date` header goes back', async () => {
    const probed = await probe({
      headers: ({ number }) => ({ date: new Date(Date.now() - (number % 2) * 60_000).toUTCString() }),
    })
    expect(probed.warnings).toEqual(['clock goes-back'])
  })

  test('whose rate limit header has no number', async () => {
    const probed = await probe({ headers: () => ({ 'x-ratelimit-remaining': 'plenty', 'x-ratelimit-rule': 'burst' }) })
    expect(probed.warnings).toEqual(['rate-limit no-number:x-ratelimit-remaining'])
  })

  test('that returns deleted rows with status 200 and a flag', async () => {
    const records = createRecords().map((record, index) => ({ ...record, deleted: index === 4 }))
    const probed = await probe({}, { records })
    expect(probed.warnings).toEqual(['deletes lookup-flag', 'deletes flag:deleted'])
    expect(findFact(probed, 'deletes', 'lookup-flag').evidence.rows.map(({ key }) => key)).toEqual(['rec_004'])
    expect(probed.report.recommendation.answers.deletes).toBe('reported')
  })

  test('whose deleted rows are gone by key', async () => {
    const records = createRecords().map((record, index) => ({ ...record, deleted: index === 4 }))
    const probed = await probe(
      {
        one: (record) =>
          record === undefined || record.deleted === true ? { status: 410, body: {} } : { status: 200, body: record },
      },
      { records },
    )
    expect(probed.values('deletes')).toContain('lookup-gone')
    expect(probed.values('lookup')).toEqual(['found', '410'])
  })

  test('that refuses a key without a record like a missing permission', async () => {
    const probed = await probe({
      one: (record) => (record === undefined ? { status: 403, body: {} } : { status: 200, body: record }),
    })
    expect(probed.warnings).toEqual(['lookup status-403'])
    expect(probed.report.endedBy).toBeNull()
  })

  test('that returns a record for every key', async () => {
    const probed = await probe({
      one: (record) => ({ status: 200, body: record ?? { id: 'rzq0zq0', updated_at: null } }),
    })
    expect(probed.warnings).toEqual(['lookup invents'])
  })

  test('that hides deleted rows behind a filter', async () => {
    const [gone = createRecords(1)[0]!, ...live] = createRecords().toReversed()
    const probed = await probe(
      {
        select: (all, { url, since }) =>
          (url.searchParams.has('deleted') ? [...all, { ...gone, deleted: true }] : all).filter(
            ({ updated_at: at }) => since === null || String(at) >= since,
          ),
      },
      { records: live },
    )
    expect(probed.values('deletes')).toContain('filter:deleted')
    expect(findFact(probed, 'deletes', 'filter:deleted').certainty).toBe('shown')
    expect(probed.report.recommendation.answers.deletes).toBe('elsewhere')
  })

  test('that repeats ids on another page', async () => {
    const probed = await probe({
      page: (page, { cursor }) => (cursor === 'rec_005' ? [page[0]!, createRecords()[0]!, ...page.slice(2)] : page),
    })
    expect(probed.warnings).toContain('ids repeated')
  })

  test('that repeats ids in one page', async () => {
    const probed = await probe({ page: (page) => (page.length > 4 ? [...page.slice(0, -1), page[0]!] : page) })
    expect(probed.warnings).toContain('ids repeated-in-page')
  })

  test('whose answer changes with each request', async () => {
    const probed = await probe({
      page: (page, { number }) => page.filter((_, index) => index % 5 !== number % 5),
      sizeOf: () => 30,
      hasMore: () => false,
    })
    expect(probed.warnings).toContain('stability changing-answers')
  })

  test('that makes a row visible after newer ones', async () => {
    const now = Date.now()
    const recent = createRecords().map(({ id }, index) => ({
      id,
      updated_at: new Date(now - (41 - index) * 10_000).toISOString(),
    }))
    const probed = await probe(
      {
        records: (number) => (number < 10 ? recent.filter((_, index) => index !== 37) : recent),
      },
      { records: recent, query: QUERY.replace('limit=20', 'limit=100') },
    )
    const [late = ''] = probed.values('late-rows')
    expect(findFact(probed, 'late-rows', late).evidence.rows.map(({ key }) => key)).toEqual(['rec_037'])
    expect(Number(late)).toBeGreaterThanOrEqual(40)
    expect(probed.report.recommendation.settings.lagMs).toBe(2_000 * Number(late))
  })
})

/** Records some seconds apart, so that several are in each minute. */
function createDenseRecords(stepMs = 13_000): ListedRecord[] {
  const start = Math.floor(Date.now() / 60_000) * 60_000 - 7_200_000
  return Array.from({ length: 40 }, (_, index) => ({
    id: `rec_${String(index).padStart(3, '0')}`,
    updated_at: new Date(start + index * stepMs + 137).toISOString(),
  }))
}

/** Records every half hour and seven minutes. */
function createHourlyRecords(): ListedRecord[] {
  const start = Math.floor(Date.now() / 1_000) * 1_000 - 40 * 2_220_000 - 3_600_000
  return Array.from({ length: 40 }, (_, index) => ({
    id: `rec_${String(index).padStart(3, '0')}`,
    updated_at: new Date(start + index * 2_220_000 + 421).toISOString(),
  }))
}

function mix(id: string): number {
  return (Number(id.slice(4)) * 17) % 41
}

function countWhile<Item>(items: readonly Item[], matches: (item: Item) => boolean): number {
  const end = items.findIndex((item) => !matches(item))
  return end < 0 ? items.length : end
}
