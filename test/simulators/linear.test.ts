import { LinearClient } from '@linear/sdk'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { LINEAR_ENTITIES } from '../../simulators/src/linear/entities.ts'
import { LinearSimulator, type LinearOptions } from '../../simulators/src/linear/simulator.ts'
import { portsOf } from './ports.ts'

interface Page {
  nodes: Array<{ id: string; title: string; identifier: string; team: { key: string } }>
  pageInfo: { hasNextPage: boolean; endCursor: string | null }
}

const ISSUES =
  'query ($first: Int, $after: String, $filter: IssueFilter, $all: Boolean) { issues(first: $first, after: $after, filter: $filter, includeArchived: $all) { nodes { id title identifier team { key } } pageInfo { hasNextPage endCursor } } }'

function open(options: LinearOptions = {}) {
  const ports = portsOf()
  const simulator = new LinearSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const post = (query: string, variables: object = {}, authorization = 'lin_api_key') =>
    fetch('https://api.linear.app/graphql', {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    })
  const issues = async (variables: object = {}) =>
    ((await (await post(ISSUES, variables)).json()) as { data: { issues: Page } }).data.issues
  const team = simulator.create('team', { name: 'Engineering', key: 'ENG' })
  /** One issue a second, oldest first. */
  const fill = (count: number) =>
    Array.from({ length: count }, (_, n) => {
      ports.clock.advance(1_000)
      return simulator.create('issue', { team, title: `i${n}` })
    })
  return { ...ports, simulator, post, issues, team, fill }
}

describe('the linear simulator', () => {
  test('the other entities have the fields and arguments of the schema that Linear publishes', () => {
    const folder = dirname(fileURLToPath(import.meta.resolve('@linear/sdk')))
    const file = readdirSync(folder).find((name) => /^index-.*\.d\.mts$/.test(name)) ?? ''
    const types = readFileSync(join(folder, file), 'utf8')
    const fieldsOf = (name: string): string[] =>
      [...(types.split(`\ntype ${name} = `)[1]?.split('\n};')[0] ?? '').matchAll(/^ {2}(\w+)\??:/gm)].map(
        ([, field]) => field!,
      )
    for (const { typeName, list, filter, args, fields } of Object.values(LINEAR_ENTITIES)) {
      expect(fieldsOf(typeName), typeName).toEqual(expect.arrayContaining([...Object.keys(fields), 'updatedAt']))
      expect(fieldsOf(`Query${list[0]!.toUpperCase()}${list.slice(1)}Args`), list).toEqual(
        expect.arrayContaining(['after', 'filter', 'first', 'includeArchived', 'orderBy', ...Object.keys(args ?? {})]),
      )
      expect(fieldsOf(filter), filter).toEqual(expect.arrayContaining(['id', 'updatedAt']))
    }
  })

  test('issues are paged by Relay cursors, newest first, fifty by default', async () => {
    const { issues, fill } = open()
    const ids = fill(60)
    const first = await issues()
    const second = await issues({ after: first.pageInfo.endCursor })
    expect([first.nodes.length, second.nodes.length, second.pageInfo.hasNextPage]).toEqual([50, 10, false])
    expect([...first.nodes, ...second.nodes].map((issue) => issue.id)).toEqual(ids.toReversed())
    expect(first.nodes[0]).toMatchObject({ identifier: 'ENG-60', team: { key: 'ENG' } })
  })

  test('archived issues are hidden unless requested, and timestamps can be filtered by', async () => {
    const { simulator, clock, issues, fill } = open()
    const ids = fill(3)
    clock.advance(60_000)
    simulator.update('issue', ids[0]!, { archived: true })
    simulator.update('issue', ids[1]!, { title: 'changed' })
    expect((await issues()).nodes).toHaveLength(2)
    expect((await issues({ all: true })).nodes).toHaveLength(3)
    expect(
      (await issues({ filter: { updatedAt: { gte: new Date(clock.now()).toISOString() } } })).nodes.map(
        (issue) => issue.title,
      ),
    ).toEqual(['changed'])
  })

  test('complexity counts a tenth per property and one per object, times the page size', async () => {
    const { post } = open()
    const response = await post('{ issues(first: 10) { nodes { id title } pageInfo { hasNextPage } } }')
    // issues 1 + 10 × (nodes 1 + 2 properties 0.2 + pageInfo 1 + 1 property 0.1)
    expect(response.headers.get('x-complexity')).toBe('24')
    const heavy = await post('{ teams(first: 250) { nodes { issues(first: 250) { nodes { id } } } } }')
    expect([heavy.status, await heavy.json()]).toMatchObject([400, { errors: [{ message: 'Query too complex' }] }])
  })

  test('a spent budget returns 400 with RATELIMITED in the body, and refills at a constant rate', async () => {
    const { clock, post } = open({ requestsPerHour: 2 })
    await post('{ viewer { id } }')
    await post('{ viewer { id } }')
    const refused = await post('{ viewer { id } }')
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { errors: [{ extensions: { code: 'RATELIMITED' } }] },
    ])
    expect(Number(refused.headers.get('x-ratelimit-requests-reset'))).toBe(clock.now() + 3_600_000)
    clock.advance(1_800_000)
    expect((await post('{ viewer { id } }')).status).toBe(200)
  })

  test('a page above 250, an unknown field and a missing key are refused', async () => {
    const { post } = open()
    expect(await (await post('{ issues(first: 251) { nodes { id } } }')).json()).toMatchObject({
      errors: [{ extensions: { code: 'INVALID_INPUT' } }],
    })
    expect(await (await post('{ nothing }')).json()).toMatchObject({
      errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
    })
    expect((await post('{ viewer { id } }', {}, '')).status).toBe(401)
  })
})

describe('the linear client against the simulator', () => {
  test('the client lists every issue once, page by page', async () => {
    const { simulator, fill } = open()
    const ids = fill(25)
    await using server = await serve(simulator)
    const client = new LinearClient({ apiKey: 'lin_api_key', apiUrl: `${server.url}/graphql` })
    let page = await client.issues({ first: 10 })
    const seen = page.nodes.map(({ id }) => id)
    while (page.pageInfo.hasNextPage) {
      page = await page.fetchNext()
      seen.splice(0, seen.length, ...page.nodes.map(({ id }) => id))
    }
    expect(seen).toEqual(ids.toReversed())
    expect(server.requests).toBe(3)
    expect(page.nodes[0]).toMatchObject({
      identifier: 'ENG-25',
      title: 'i24',
      priorityLabel: 'No priority',
      createdAt: expect.any(Date),
    })
  })

  test('the client recognises a refusal', async () => {
    const { simulator } = open()
    simulator.faults.plan({ kind: 'rate-limit' })
    simulator.faults.plan({ kind: 'unauthorized' })
    await using server = await serve(simulator)
    const client = new LinearClient({ apiKey: 'lin_api_key', apiUrl: `${server.url}/graphql` })
    await expect(client.issues()).rejects.toMatchObject({ type: 'Ratelimited' })
    await expect(client.issues()).rejects.toMatchObject({ type: 'AuthenticationError' })
  })
})
