import { graphql as octokit, GraphqlResponseError } from '@octokit/graphql'
import { schema as published } from '@octokit/graphql-schema'
import { buildSchema, isObjectType, isInterfaceType } from 'graphql'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { GITHUB_SCHEMA } from '../../simulators/src/github/schema.ts'
import { GithubSimulator, type GithubOptions } from '../../simulators/src/github/simulator.ts'
import { portsOf } from './ports.ts'

interface Page {
  nodes: Array<{ id: string; name?: string; title?: string; issues?: Page } | null>
  pageInfo: { hasNextPage: boolean; endCursor: string | null }
  totalCount: number
}
interface Data {
  viewer: { login: string; repositories: Page }
  nodes: Array<{ id: string; issues: Page } | null>
  rateLimit: { limit: number; cost: number; remaining: number; nodeCount: number }
}

const NESTED = `query ($first: Int!, $after: String) {
  viewer { login repositories(first: $first, after: $after, orderBy: { field: NAME, direction: ASC }) {
    totalCount pageInfo { hasNextPage endCursor }
    nodes { id name issues(first: 2) { totalCount pageInfo { hasNextPage endCursor } nodes { ...issue } } }
  } }
  rateLimit { limit cost remaining nodeCount }
}
fragment issue on Issue { id title }`

function open(options: GithubOptions = {}) {
  const ports = portsOf()
  const simulator = new GithubSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const post = (query: string, variables: object = {}) =>
    fetch('https://api.github.com/graphql', {
      method: 'POST',
      headers: { authorization: 'bearer t' },
      body: JSON.stringify({ query, variables }),
    })
  const ask = async (query: string, variables: object = {}) =>
    (await (await post(query, variables)).json()) as {
      data: Data | null
      errors?: Array<{ type?: string; message: string; path?: unknown[] }>
    }
  const fill = (repositories: number, issues: number) =>
    Array.from({ length: repositories }, (_, r) => {
      const id = simulator.create('repository', { name: `repo${r}` })
      for (let n = 0; n < issues; n++) simulator.create('issue', { repository: id, title: `${r}-${n}` })
      return id
    })
  return { ...ports, simulator, post, ask, fill }
}

describe('the octokit client against the github simulator', () => {
  test('octokit reads repositories and their issues by two levels of cursors, each once', async () => {
    const { simulator, fill } = open()
    fill(5, 5)
    await using server = await serve(simulator)
    const client = octokit.defaults({ baseUrl: server.url, headers: { authorization: 'token secret' } })
    const titles: string[] = []
    let after: string | null = null
    do {
      const { viewer }: Data = await client(NESTED, { first: 2, after })
      let open = viewer.repositories.nodes.map((repository) => ({ id: repository!.id, page: repository!.issues! }))
      titles.push(...open.flatMap(({ page }) => page.nodes.map((issue) => issue!.title!)))
      while ((open = open.filter(({ page }) => page.pageInfo.hasNextPage)).length > 0) {
        const next: typeof open = []
        for (const { id, page } of open) {
          const { nodes }: Data = await client(
            'query ($ids: [ID!]!, $after: String) { nodes(ids: $ids) { id ... on Repository { issues(first: 2, after: $after) { pageInfo { hasNextPage endCursor } nodes { id title } totalCount } } } }',
            { ids: [id], after: page.pageInfo.endCursor },
          )
          titles.push(...nodes[0]!.issues.nodes.map((issue) => issue!.title!))
          next.push({ id, page: nodes[0]!.issues })
        }
        open = next
      }
      after = viewer.repositories.pageInfo.hasNextPage ? viewer.repositories.pageInfo.endCursor : null
    } while (after !== null)
    const expected = simulator.truth('issue').map((issue) => String(issue['title']))
    expect(titles.toSorted()).toEqual(expected.toSorted())
  })

  test('octokit throws its own errors for a spent budget, a partial response and a wrong token', async () => {
    const { simulator, fill } = open({ token: 'secret' })
    fill(2, 1)
    await using server = await serve(simulator)
    const client = octokit.defaults({ baseUrl: server.url, headers: { authorization: 'token secret' } })
    simulator.faults.plan({ kind: 'rate-limit' })
    await expect(client('{ viewer { login } }')).rejects.toMatchObject({ errors: [{ type: 'RATE_LIMITED' }] })
    simulator.faults.plan({ kind: 'partial' })
    const partial = await client<Data>(NESTED, { first: 2 }).catch((error: unknown) => error)
    expect(partial).toBeInstanceOf(GraphqlResponseError)
    expect((partial as GraphqlResponseError<Data>).data.viewer.repositories.nodes).toMatchObject([
      null,
      { name: 'repo1' },
    ])
    simulator.faults.plan({ kind: 'rate-limit', secondary: true })
    await expect(client('{ viewer { login } }')).rejects.toMatchObject({
      status: 403,
      response: { headers: { 'retry-after': '60' } },
    })
    await expect(client('{ viewer { login } }', { headers: { authorization: 'token wrong' } })).rejects.toMatchObject({
      status: 401,
    })
  })
})

describe('the simulated schema', () => {
  test('every type, field and argument is spelled as in the schema GitHub publishes', () => {
    const real = buildSchema(published.idl, { assumeValidSDL: true, assumeValid: true })
    for (const [name, type] of Object.entries(GITHUB_SCHEMA)) {
      const known = real.getType(name)
      if (!isObjectType(known) && !isInterfaceType(known)) throw new Error(`GitHub has no type ${name}.`)
      for (const [fieldName, field] of Object.entries(type.fields)) {
        const actual = known.getFields()[fieldName]
        expect(String(actual?.type), `${name}.${fieldName}`).toBe(field.type)
        for (const [argument, spelled] of Object.entries(field.args ?? {})) {
          expect(
            String(actual?.args.find((candidate) => candidate.name === argument)?.type),
            `${name}.${fieldName}(${argument})`,
          ).toBe(spelled)
        }
      }
    }
  })
})

describe('the limits of a github query', () => {
  test.each([
    [
      '{ viewer { repositories(first: 101) { totalCount } } }',
      'EXCESSIVE_PAGINATION',
      'Requesting 101 records on the `repositories` connection exceeds the `first` limit of 100 records.',
    ],
    [
      '{ viewer { repositories { totalCount } } }',
      'MISSING_PAGINATION_BOUNDARIES',
      'You must provide a `first` or `last` value to properly paginate the `repositories` connection.',
    ],
    [
      '{ viewer { repositories(first: 1, after: "x") { totalCount } } }',
      'INVALID_CURSOR_ARGUMENTS',
      '`x` does not appear to be a valid cursor.',
    ],
    ['{ user(login: "absent") { login } }', 'NOT_FOUND', "Could not resolve to a User with the login of 'absent'."],
    [
      `{ nodes(ids: [${Array.from({ length: 101 }, () => '"x"').join(',')}]) { id } }`,
      'ARGUMENT_LIMIT',
      'You may not provide more than 100 node ids; you provided 101.',
    ],
    [
      '{ viewer { a: repositories(first: 100) { nodes { b: issues(first: 100) { nodes { repository { c: issues(first: 100) { totalCount } } } } } } } }',
      'MAX_NODE_LIMIT_EXCEEDED',
      'This query requests up to 1,010,100 possible nodes which exceeds the maximum limit of 500,000.',
    ],
  ])('%s answers %s', async (query, type, message) => {
    expect((await open().ask(query)).errors).toMatchObject([{ type, message }])
  })

  test('an unknown field, an unknown argument and a syntax error are distinguished', async () => {
    const { ask } = open()
    expect((await ask('{ viewer { nothing } }')).errors).toMatchObject([
      {
        message: "Field 'nothing' doesn't exist on type 'User'",
        path: ['query', 'viewer', 'nothing'],
        extensions: { code: 'undefinedField' },
      },
    ])
    expect((await ask('{ viewer(x: 1) { login } }')).errors).toMatchObject([
      { extensions: { code: 'argumentNotAccepted' } },
    ])
    expect((await ask('{ viewer { login }')).errors).toHaveLength(1)
    expect((await ask('{ viewer }')).errors).toMatchObject([{ extensions: { code: 'selectionMismatch' } }])
  })

  test('the cost is counted from the query: one point per hundred connections it may open', async () => {
    const { ask, fill } = open()
    fill(1, 1)
    const { data } = await ask(
      '{ viewer { repositories(first: 100) { nodes { issues(first: 50) { nodes { id } } } } } rateLimit { limit cost remaining nodeCount } }',
    )
    expect(data!.rateLimit).toEqual({ limit: 5_000, cost: 1, remaining: 4_999, nodeCount: 5_100 })
  })

  test('a spent budget returns 200 with an error until the hour is over', async () => {
    const { clock, post, ask } = open({ pointsPerHour: 1 })
    await ask('{ viewer { login } }')
    const refused = await post('{ viewer { login } }')
    expect([refused.status, refused.headers.get('x-ratelimit-remaining')]).toEqual([200, '0'])
    expect(Number(refused.headers.get('x-ratelimit-reset')) * 1_000).toBe(clock.now() + 3_600_000)
    clock.advance(3_600_000)
    expect((await ask('{ viewer { login } }')).data).toEqual({ viewer: { login: 'octocat' } })
  })
})

describe('the github simulator', () => {
  test('a cursor stays valid when its record is deleted, and unknown nodes are null with an error each', async () => {
    const { simulator, ask, fill } = open()
    const ids = fill(3, 0)
    const first = (await ask('{ viewer { repositories(first: 1) { pageInfo { endCursor } } } }')).data!.viewer
      .repositories.pageInfo.endCursor
    simulator.remove('repository', ids[0]!)
    const rest = await ask(
      'query ($after: String) { viewer { repositories(first: 5, after: $after) { nodes { id } } } }',
      { after: first },
    )
    expect(rest.data!.viewer.repositories.nodes.map((node) => node!.id)).toEqual(ids.slice(1))
    const { data, errors } = await ask('query ($ids: [ID!]!) { nodes(ids: $ids) { id __typename } }', {
      ids: [ids[0], ids[1]],
    })
    expect(data!.nodes).toEqual([null, { id: ids[1], __typename: 'Repository' }])
    expect(errors).toMatchObject([{ type: 'NOT_FOUND', path: ['nodes', 0] }])
  })

  test('issues can be filtered by state and by change time, and sorted by change', async () => {
    const { simulator, clock, ask, fill } = open()
    const [repository] = fill(1, 3)
    const issues = simulator.truth('issue').map((issue) => String(issue['id']))
    clock.advance(60_000)
    simulator.update('issue', issues[0]!, { state: 'CLOSED' })
    const list = async (args: string) =>
      (
        await ask(
          `query ($id: ID!) { nodes: node(id: $id) { ... on Repository { issues(first: 10 ${args}) { nodes { id } } } } }`,
          { id: repository },
        )
      ).data!.nodes as unknown as { issues: Page }
    expect((await list('states: [CLOSED]')).issues.nodes).toEqual([{ id: issues[0] }])
    expect((await list('filterBy: { since: "2026-01-01T00:00:30Z" }')).issues.nodes).toEqual([{ id: issues[0] }])
    expect((await list('orderBy: { field: UPDATED_AT, direction: DESC }')).issues.nodes[0]).toEqual({ id: issues[0] })
  })

  test('variables have defaults, fields have aliases, and directives omit fields', async () => {
    const { ask, fill } = open()
    fill(2, 0)
    const { data } = await ask(
      'query q($n: Int = 1, $yes: Boolean = false) { me: viewer { login @skip(if: true) id @include(if: $yes) repositories(first: $n) { nodes { name } } } }',
    )
    expect(data).toEqual({ me: { repositories: { nodes: [{ name: 'repo0' }] } } })
  })

  test('a page by last and before returns the other end', async () => {
    const { ask, fill } = open()
    fill(3, 0)
    const { data } = await ask(
      '{ viewer { repositories(last: 2) { nodes { name } pageInfo { hasPreviousPage hasNextPage } } } }',
    )
    expect(data!.viewer.repositories).toEqual({
      nodes: [{ name: 'repo1' }, { name: 'repo2' }],
      pageInfo: { hasPreviousPage: true, hasNextPage: false },
    })
  })
})

describe('the REST API of a repository', () => {
  async function openRest() {
    const ports = portsOf()
    const simulator = new GithubSimulator(ports, { requestsPerHour: 30 })
    const repository = simulator.create('repository', { owner: 'acme', name: 'app' })
    const fetch = createSimulatorFetch(simulator)
    const get = (path: string) =>
      fetch(`https://api.github.com/repos/acme/app/${path}`, { headers: { authorization: 'Bearer t' } })
    const list = async (path: string) => (await (await get(path)).json()) as Array<Record<string, unknown>>
    const create = (type: string, fields: object = {}) => {
      ports.clock.advance(1_000)
      return simulator.create(type, { repository, ...fields })
    }
    return { ...ports, simulator, get, list, create }
  }

  test('issues include pull requests, open ones by default, newest first, with links between pages', async () => {
    const { get, list, create } = await openRest()
    const ids = [create('issue'), create('issue', { state: 'CLOSED' }), create('pull_request')]
    expect((await list('issues')).map((row) => row['node_id'])).toEqual([ids[2], ids[0]])
    expect((await list('issues?state=all&direction=asc')).map((row) => 'pull_request' in row)).toEqual([
      false,
      false,
      true,
    ])
    const first = await get('issues?state=all&per_page=2')
    expect(first.headers.get('link')).toMatch(/page=2>; rel="next"/)
    expect((await list('pulls')).map((row) => row['node_id'])).toEqual([ids[2]])
  })

  test('since includes its second, and sorts by the last change', async () => {
    const { simulator, clock, list, create } = await openRest()
    const ids = [create('issue'), create('issue'), create('issue')]
    clock.advance(5_000)
    simulator.update('issue', ids[0]!, { title: 'changed' })
    const since = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`
    const query = 'issues?state=all&sort=updated&direction=asc'
    expect((await list(`${query}&since=${since}`)).map((row) => row['node_id'])).toEqual([ids[0]])
    expect((await list(query)).map((row) => row['node_id'])).toEqual([ids[1], ids[2], ids[0]])
  })

  test('the primary limit is a 403 without a remaining request, and an unknown repository is a 404', async () => {
    const { get } = await openRest()
    expect((await get('../other/issues')).status).toBe(404)
    let last = await get('labels')
    for (let n = 0; n < 30 && last.ok; n++) last = await get('labels')
    expect([last.status, last.headers.get('x-ratelimit-remaining')]).toEqual([403, '0'])
  })
})
