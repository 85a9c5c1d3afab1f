import { afterEach, beforeEach, expect, test } from 'vitest'
import { github } from '../../src/sources/github/source.ts'
import { GithubSimulator } from '../../simulators/src/index.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<GithubSimulator>
let vendor: GithubSimulator

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new GithubSimulator(ports, { viewer: 'me', organizations: ['acme'] }))
  vendor = stage.vendor
})
afterEach(() => stage.close())

const source = (): ReturnType<typeof github> => github({ token: 'GITHUB_TOKEN', owner: 'acme', repositoriesPerPage: 3 })
const repositories = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('repository', { name: `r${n}`, owner: 'acme' }))
const issues = (repository: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('issue', { repository, title: `i${n}` }))
const keys = async (): Promise<string[]> => Object.keys(await stage.rows()).toSorted()
const known = (type: string): string[] =>
  vendor
    .truth(type)
    .map(({ id }) => String(id))
    .toSorted()
const titles = async (): Promise<unknown> =>
  Object.fromEntries(Object.entries(await stage.rows()).map(([key, row]) => [key, (row as { title: string }).title]))

test('N60: repositories are read by end cursor in pages of a hundred', async () => {
  repositories(250)
  stage.list(source().repositories)
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
  const asked = stage.asked().map(({ body }) => JSON.parse(body))
  expect(asked).toHaveLength(3)
  expect(asked[0].query).toContain('repositories(first: 100, after: $after')
  expect(asked.map(({ variables }) => variables.after === null)).toEqual([true, false, false])
  expect(await keys()).toEqual(known('repository'))
})

test('N61 N62 N63 N65: issues are read on two levels, and only repositories with more issues are requested again', async () => {
  const [first, second] = repositories(7)
  issues(first!, 250)
  issues(second!, 150)
  stage.list(source().issues)
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
  const asked = stage.asked().map(({ body }) => JSON.parse(body))
  expect(
    asked.map(({ query, variables }) =>
      query.includes('owner:')
        ? 'outer'
        : Object.values(variables).filter((value) => value === first || value === second).length,
    ),
  ).toEqual(['outer', 2, 1, 'outer', 'outer'])
  expect(await titles()).toEqual(Object.fromEntries(vendor.truth('issue').map(({ id, title }) => [id, title])))
  expect(await stage.state()).toBeNull()
})

test('XC16: a rejected cursor restarts the cycle and does not stop the sync', async () => {
  repositories(250)
  stage.list(source().repositories)
  vendor.faults.plan(
    { kind: 'expired-token' },
    { times: 1, on: (request) => request.method === 'POST' && stage.vendor.requests.entries.length > 1 },
  )
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
  expect(stage.asked().map(({ body }) => JSON.parse(body).variables.after === null)).toEqual([
    true,
    false,
    true,
    false,
    false,
  ])
  expect(await keys()).toEqual(known('repository'))
})

test('N64: the reported budget paces the next pages', async () => {
  const [first] = repositories(1)
  issues(first!, 350)
  stage.list(source().issues)
  const from = stage.scene.clock.now()
  await stage.backfill({ afterMs: 0 })
  const times = stage.asked().map(({ atMs }) => atMs - from)
  expect(times).toHaveLength(4)
  expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(700)
})

test('changes during a read arrive with the next cycle, and issues are deleted with their repository', async () => {
  const [first, second, third] = repositories(6)
  for (const repository of [first!, second!, third!]) issues(repository, 150)
  stage.list(source().issues)
  const result = await stage.backfill({
    onRequest(request) {
      if (request !== 2) return
      vendor.remove('repository', second!)
      vendor.update('issue', vendor.records.current('issue')[0]!.id, { title: 'changed' })
      issues(third!, 20)
    },
  })
  expect(result.stopReason).toBe('complete')
  await stage.backfill()
  expect(await titles()).toEqual(Object.fromEntries(vendor.truth('issue').map(({ id, title }) => [id, title])))
})

test.each([
  ['a primary limit', { kind: 'rate-limit' }, 'RATE_LIMITED'],
  ['a secondary limit', { kind: 'rate-limit', secondary: true, retryAfter: '3' }, 'RATE_LIMITED'],
  ['a server error', { kind: 'server-error', status: 502 }, 'SOURCE_UNAVAILABLE'],
  ['half a body', { kind: 'truncated', how: 'short' }, 'SOURCE_INVALID'],
  ['a body cut off', { kind: 'truncated', how: 'cut-off' }, 'SOURCE_INVALID'],
  ['NX9: a partial answer', { kind: 'partial' }, 'SOURCE_INVALID'],
] as const)('%s is asked again, and nothing is taken for deleted', async (_, fault, code) => {
  const [first] = repositories(4)
  issues(first!, 150)
  stage.list(source().issues)
  await stage.backfill()
  vendor.faults.plan(fault, { times: 1 })
  expect((await stage.backfill()).error).toMatchObject({ code })
  expect(await keys()).toEqual(known('issue'))
  await stage.backfill({ afterMs: 3_700_000 })
  expect(await keys()).toEqual(known('issue'))
})

test.each([
  ['no error', [], 'SOURCE_INVALID'],
  [
    'an error that says something else',
    [{ type: 'FORBIDDEN', path: ['p0'], message: 'Resource not accessible.' }],
    'AUTH_REJECTED',
  ],
])(
  'NX9: a repository that is left out of the pages that follow with %s is not taken for deleted',
  async (_, errors, code) => {
    const [first] = repositories(2)
    issues(first!, 250)
    stage.list(source().issues)
    await stage.backfill()
    const { error } = await stage.backfill({
      allowDeletes: true,
      spoil: (body) =>
        body.data.p0 === undefined
          ? body
          : { ...body, data: { ...body.data, p0: null }, ...(errors.length > 0 && { errors }) },
    })
    expect(error).toMatchObject({ code })
    expect(await keys()).toEqual(known('issue'))
  },
)

test('a missing owner is an error, not an empty list', async () => {
  repositories(2)
  stage.list(source().repositories)
  await stage.backfill()
  stage.list(github({ token: 'GITHUB_TOKEN', owner: 'nobody' }).repositories)
  expect((await stage.backfill()).stopReason).not.toBe('complete')
  expect(await keys()).toEqual(known('repository'))
})

test('a run that is interrupted anywhere is resumed', async () => {
  const [first, second] = repositories(8)
  issues(first!, 350)
  issues(second!, 120)
  stage.list(source().issues)
  expect(await stage.untilComplete('backfill')).toBeGreaterThan(3)
  expect(await keys()).toEqual(known('issue'))
})
