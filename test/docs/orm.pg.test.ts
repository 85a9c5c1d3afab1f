import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { ROOT } from '../cli/package.ts'
import { Project } from '../cli/project.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { blocksOf } from './blocks.ts'

const server = inject('postgresUrl')
const run = promisify(execFile)
const [worker, runSync, config, pull, shownColumns, query, indexSql, shownPlan, foreignKeySql, uniqueSql] = blocksOf(
  'docs/guides/orm.md',
).map(({ text }) => text)

interface Customer {
  readonly id: number
  readonly name: string
  readonly email: string
  readonly vip: boolean
  readonly signed_up_at: string
  readonly address: { readonly city: string }
}

describe.skipIf(server === '')('docs/guides/orm.md, block by block', () => {
  let url: string
  let client: pg.Client
  let project: Project
  let env: Record<string, string>

  beforeEach(async () => {
    url = await createDatabase(server)
    client = new pg.Client(url)
    await client.connect()
    project = new Project()
    env = { TIDEMARK_STORE: url, TIDEMARK_KEY: randomBytes(32).toString('base64') }
    symlinkSync(join(ROOT, 'node_modules'), join(project.folder, 'node_modules'))
    project.write('worker.ts', worker!)
    project.write('drizzle.config.json', config!.replace('postgres://localhost/shop', url))
    expect(runSync).toBe('npx tidemark run\n')
    await sync(customers(5_000))
  })
  afterEach(async () => {
    await client.end()
    await dropDatabase(server, url)
  })

  function customers(count: number): Customer[] {
    return Array.from({ length: count }, (_, n) => ({
      id: n + 1,
      name: `Customer ${n + 1}`,
      email: `customer${n + 1}@example.com`,
      vip: n % 100 === 6,
      signed_up_at: '2026-11-01T08:30:00.000Z',
      address: { city: 'Springfield' },
    }))
  }

  /** A separate process each time, which opens the store again. */
  async function sync(listed: readonly Customer[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    project.write('customers.json', JSON.stringify(listed))
    return project.run('run', { env })
  }

  async function node(...args: string[]): Promise<string> {
    return (await run(process.execPath, args, { cwd: project.folder, env: { ...process.env, ...env } })).stdout
  }

  const rows = async (text: string): Promise<unknown[]> =>
    (await client.query<unknown[]>({ text, rowMode: 'array' })).rows.flat()

  async function explain(): Promise<string> {
    const results = (await client.query<Record<string, string>>(indexSql!.split('\n').at(-2)!)).rows
    return results.map((row) => row['QUERY PLAN']).join('\n')
  }

  test('Drizzle introspects the copy and reads it', async () => {
    const command = pull!.trim().split(' ')
    expect(command.slice(0, 2)).toEqual(['npx', 'drizzle-kit'])
    await node(join(ROOT, 'node_modules/drizzle-kit/bin.cjs'), ...command.slice(2))
    const { stdout: schema } = await run('cat', [join(project.folder, 'drizzle/schema.ts')])
    expect(schema).toContain(shownColumns)
    expect(schema).toMatch(/key: text\("_key"\)\.primaryKey\(\)\.notNull\(\)/)
    project.write('query.mjs', query!)
    const file = JSON.stringify(join(project.folder, 'query.mjs'))
    const script = `await (await import('jiti')).createJiti(import.meta.url).import(${file})`
    expect(JSON.parse(await node('--input-type=module', '-e', script))).toEqual([
      { id: 7, name: 'Customer 7', signedUpAt: '2026-11-01 08:30:00+00' },
      { id: 107, name: 'Customer 107', signedUpAt: '2026-11-01 08:30:00+00' },
    ])
  })

  test('an index of the user is used by the planner, and stays through commits and reopening', async () => {
    await client.query(indexSql!)
    expect(await explain()).toContain(shownPlan!.trim())
    const changed = customers(5_100).map((one) => (one.id === 4_321 ? { ...one, name: 'Renamed' } : one))
    expect(await sync(changed)).toMatchObject({ code: 0 })
    expect(await explain()).toContain(shownPlan!.trim())
    await client.query('set enable_seqscan = off')
    expect(await rows("select name from customers where email = 'customer4321@example.com'")).toEqual(['Renamed'])
    expect(await rows("select name from customers where email = 'customer5100@example.com'")).toEqual(['Customer 5100'])
  })

  test('a foreign key of the user survives updates and follows a delete', async () => {
    await client.query(foreignKeySql!)
    await client.query(uniqueSql!)
    const renamed = customers(5_000).map((customer) => ({ ...customer, name: `${customer.name} II` }))
    expect(await sync(renamed)).toMatchObject({ code: 0 })
    const noted = 'select name from customers join notes on customer = _key order by notes.id'
    expect(await rows(noted)).toEqual(['Customer 7 II', 'Customer 8 II'])
    expect(await sync(renamed.filter(({ id }) => id !== 7))).toMatchObject({ code: 0 })
    expect(await rows('select customer from notes')).toEqual(['8'])
    expect(await rows('select customer_id from visits order by at')).toEqual([null, '8'])
  })

  test('a foreign key that refuses the delete fails the commit until the reference is removed', async () => {
    await client.query(foreignKeySql!.replace(' on delete cascade', ''))
    const { code, stdout, stderr } = await sync(customers(5_000).filter(({ id }) => id !== 7))
    expect(code).not.toBe(0)
    expect(stdout + stderr).toMatch(/foreign key/)
    expect((await project.run('status', { env })).stdout).toMatch(/foreign key/)
    expect(await rows('select count(*)::int from customers')).toEqual([5_000])
    await client.query("delete from notes where customer = '7'")
    expect(await sync(customers(5_000).filter(({ id }) => id !== 7))).toMatchObject({ code: 0 })
    expect(await rows('select count(*)::int from customers')).toEqual([4_999])
  })
})
