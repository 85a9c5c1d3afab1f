import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createRecords, QUERY, serveApi } from '../probe/lying-api.ts'
import { Project } from './project.ts'

const rowOf = (facts: readonly Record<string, any>[], topic: string): Record<string, any> =>
  facts.find((fact) => fact['topic'] === topic)!

describe('tidemark probe <url>', () => {
  test('RX10 --dry-run lists the requests and their number, and sends none', async () => {
    await using api = await serveApi()
    const project = new Project()
    const { code, stdout, stderr } = await project.ask('probe', api.url + QUERY, '--dry-run')
    expect([code, stderr]).toEqual([0, '\nNothing was sent.\n'])
    expect(stdout).toMatch(
      /lower bound +GET \/v1\/items\?sort=updated_at&order=asc&limit=50&updated_since=<time of a row>/,
    )
    expect(stdout).toContain('At most 19 requests, one after another; none of them writes.')
    expect(api.requests).toEqual([])
    const { steps } = await project.json('probe', api.url + QUERY, '--dry-run')
    expect(steps.reduce((sum: number, step: { requests_max: number }) => sum + step.requests_max, 0)).toBe(19)
  })

  test('RX10 sends no more requests than it announced, and prints facts with evidence and certainty', async () => {
    await using api = await serveApi()
    const project = new Project()
    const { code, stdout } = await project.ask('probe', api.url + QUERY)
    expect(code).toBe(0)
    expect(api.requests.length).toBeLessThanOrEqual(19)
    expect(stdout).toContain(`${api.requests.length} requests were sent.`)
    expect(stdout).toContain('lower-bound  `updated_since` includes rows with exactly its time.')
    expect(stdout).toMatch(/shown; requests 11, 12; rec_018 at \d{4}-/)
    expect(stdout).toContain('not testable because no row changed in the last hour')
    expect(stdout).toContain('connector: rest')
  })

  test('--requests limits the requests; what was not asked is not testable', async () => {
    await using api = await serveApi()
    const { facts, ended_by: endedBy } = await new Project().json('probe', api.url + QUERY, '--requests', '5')
    expect(api.requests).toHaveLength(5)
    expect(endedBy).toBe('The budget of 5 requests is spent')
    expect(rowOf(facts, 'lower-bound')).toMatchObject({
      certainty: 'untestable',
      reason: 'The budget of 5 requests is spent',
    })
  })

  test('--write writes a manifest that loads, and never overwrites without --force', async () => {
    await using api = await serveApi({ sizeOf: ({ limit }) => Math.min(limit, 15) })
    const project = new Project()
    const url = api.url + QUERY
    const { written } = await project.json('probe', url, '--write', 'tidemark.yaml', '--answer', 'deletes=ignore')
    expect(written).toBe('tidemark.yaml')
    const text = readFileSync(join(project.folder, 'tidemark.yaml'), 'utf8')
    expect(text).toContain('kind: window\n        since: updated_since')
    expect(text).toContain('value: 15')
    expect(text).toContain('deletes: ignore')
    expect((await project.ask('preview', 'items')).code).toBe(0)
    expect(api.requests.at(-1)).toContain('limit=15')
    const sent = api.requests.length
    const refused = await project.ask('probe', url, '--write', 'tidemark.yaml')
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('already exists. Nothing was written.')
    expect(api.requests).toHaveLength(sent)
    project.write('tidemark.yaml', 'mine')
    expect((await project.ask('probe', url, '--write', 'tidemark.yaml', '--force')).code).toBe(0)
    expect(readFileSync(join(project.folder, 'tidemark.yaml'), 'utf8')).toContain('connector: rest')
  })

  test('RX14 reads the token from the environment, and shows it nowhere', async () => {
    await using api = await serveApi()
    const project = new Project()
    const url = api.url + QUERY
    const answer = await project.ask('probe', url, '--bearer', 'CRM_TOKEN', '--json', {
      env: { CRM_TOKEN: 'sesame-sesame' },
    })
    expect(answer.code).toBe(0)
    expect(answer.stdout).toContain('token: ${CRM_TOKEN}')
    expect(answer.stdout + answer.stderr).not.toContain('sesame-sesame')
    expect(api.authorizations).toEqual(api.requests.map(() => 'Bearer sesame-sesame'))
  })

  test('RX14 a secret parameter is sent, and neither shown nor written', async () => {
    await using api = await serveApi()
    const project = new Project()
    const answer = await project.ask('probe', api.url + QUERY, '--parameter', 'appid=CRM_TOKEN', '--json', {
      env: { CRM_TOKEN: 'sesame-sesame' },
    })
    expect(answer.code).toBe(0)
    expect(api.requests.every((request) => request.includes('appid=sesame-sesame'))).toBe(true)
    expect(answer.stdout).toContain('query: appid')
    expect(answer.stdout + answer.stderr).not.toContain('sesame-sesame')
    const given = await project.ask('probe', `${api.url}${QUERY}&api_key=sesame-sesame`, '--dry-run')
    expect([given.code, given.stdout]).toEqual([2, ''])
    expect(given.stderr).toContain('--parameter api_key=<setting>')
    expect(given.stderr).not.toContain('sesame-sesame')
  })

  test('refuses credentials in a URL, and an address without a list', async () => {
    await using api = await serveApi()
    const project = new Project()
    const secret = await project.ask('probe', api.url.replace('//', '//user:hidden-word@'))
    expect(secret.code).toBe(2)
    expect(secret.stderr).not.toContain('hidden-word')
    const single = await project.ask('probe', `${api.url}/rec_001`)
    expect(single.code).toBe(2)
    expect(single.stderr).toContain('--records <path>')
  })
})

describe('tidemark probe <sync>', () => {
  const manifest = (url: string, options: string): string => `connector: rest
config: { base_url: "${url.replace('/items', '')}" }
streams:
  - id: items
    key: [id]
    cursor: updated_at
    options:
      path: /items
      records: data
      query: { sort: updated_at, order: asc }
      page: { kind: token, parameter: cursor, next: next_cursor, size: { parameter: limit, value: 20 } }
      lookup: { path: "/items/{key}" }
${options}`
  const timestamp = `      follow: { kind: timestamp, since: updated_since, size: { parameter: limit, value: 20 } }
      deletes: ignore
`

  test('a manifest that agrees with its API has no contradiction', async () => {
    await using api = await serveApi()
    const project = new Project()
    project.write('tidemark.yaml', manifest(api.url, timestamp))
    const { code, stdout } = await project.ask('probe', 'items', '--json')
    expect(JSON.parse(stdout).contradictions).toEqual([])
    expect(code).toBe(0)
  })

  test('RX13 an exclusive filter that is declared as inclusive is a finding with exit code 1', async () => {
    await using api = await serveApi({
      select: (all, { since }) => all.filter(({ updated_at: at }) => since === null || String(at) > since),
    })
    const project = new Project()
    project.write('tidemark.yaml', manifest(api.url, timestamp))
    const { code, stdout } = await project.ask('probe', 'items')
    expect(code).toBe(1)
    expect(stdout).toContain('declared timestamp  `updated_since` excludes rows with exactly its time.')
    project.write('tidemark.yaml', manifest(api.url, timestamp.replace('since:', 'bound: above, since:')))
    expect((await project.ask('probe', 'items')).code).toBe(0)
  })

  test('a list that cannot be read is no success', async () => {
    const project = new Project()
    await using api = await serveApi()
    project.write('tidemark.yaml', manifest(api.url, timestamp).replace('records: data', 'records: rows'))
    const { code, stdout } = await project.ask('probe', 'items')
    expect(code).toBe(1)
    expect(stdout).toContain('The list cannot be read.')
  })

  test('deleted rows that the manifest does not declare are a finding', async () => {
    const records = createRecords().map((record, index) => ({ ...record, deleted: index === 3 }))
    await using api = await serveApi({}, records)
    const project = new Project()
    project.write('tidemark.yaml', manifest(api.url, timestamp))
    const { contradictions } = await project.json('probe', 'items')
    expect(contradictions.map(({ declared }: { declared: string }) => declared)).toEqual(['deleted', 'deleted'])
    project.write('tidemark.yaml', manifest(api.url, `      deleted: deleted\n${timestamp}`))
    expect((await project.json('probe', 'items')).contradictions).toEqual([])
  })

  test('a sync in code is probed through its source', async () => {
    const project = Project.withWorker({})
    const plan = await project.ask('probe', 'people-list', '--dry-run', '--requests', '9')
    expect(plan.stdout).toContain('At most 9 requests')
    const { facts, contradictions, requests } = await project.json('probe', 'people-list')
    expect(rowOf(facts, 'records')).toMatchObject({ value: '5' })
    expect([contradictions, requests]).toEqual([[], []])
  })
})
