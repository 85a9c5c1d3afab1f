import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { changes } from '../../src/client/index.ts'
import { queryFile } from '../destinations/duckdb-harness.ts'
import { Project, Running } from './project.ts'

test('demo: three accounts with edits and faults are synced; Ctrl-C ends it and leaves no port or file', async () => {
  const project = new Project()
  const temporary = join(project.folder, 'tmp')
  mkdirSync(temporary)
  // Left by one that was killed, and by one that is still at work.
  mkdirSync(join(temporary, 'tidemark-demo-999999999-dead'))
  mkdirSync(join(temporary, `tidemark-demo-${process.pid}-alive`))
  // The demo ignores the settings of the real store and the real keys.
  const env = {
    TMPDIR: temporary,
    TIDEMARK_STORE: `sqlite:${join(project.folder, 'mine.db')}`,
    TIDEMARK_KEY: 'not a key at all',
  }
  const service = new Running(project, ['demo', '--json', '--port', '0'], { env })
  await service.says('"event":"ready"')
  const { url, key, folder, receiver, rows, try: commands } = documents(service).find(({ event }) => event === 'ready')!
  expect(rows).toMatchObject({
    customers: expect.any(Number),
    contacts: expect.any(Number),
    issues: expect.any(Number),
  })
  expect(Math.min(...Object.values(rows as Record<string, number>))).toBeGreaterThan(0)
  expect(commands).toEqual({
    console: `${url}/console/`,
    feed: expect.stringContaining(`${url}/agents/v1/changes`),
    query: expect.stringContaining('select'),
    why: expect.stringMatching(/why customers cus_\w+ --file /),
  })

  // The feed goes on with what happens in the accounts, in every way it can happen and from more than one of them.
  const wanted = new Set(['created', 'updated', 'deleted', 'contacts', 'issues'])
  const position = Object.values(rows as Record<string, number>).reduce((sum, count) => sum + count)
  let seen = 0
  for await (const { action, database } of changes({ url, key })) {
    if (++seen <= position) continue
    wanted.delete(action)
    wanted.delete(database)
    if (wanted.size === 0) break
  }
  for (const code of ['RATE_LIMITED', 'SOURCE_UNAVAILABLE']) await service.says(`"code":"${code}"`)
  const isDelivered = async (): Promise<boolean> =>
    ((await (await fetch(`${url}/api/webhooks`)).json()) as { data: { succeededAt: string | null }[] }).data.some(
      ({ succeededAt }) => succeededAt !== null,
    )
  await expect.poll(isDelivered).toBe(true)
  const failed = documents(service).filter(({ event, result }) => event === 'ended' && result.error !== null)
  expect(failed).toEqual([])

  const worker = readFileSync(join(folder, 'worker.ts'), 'utf8')
  const ports = [url, receiver, ...[...worker.matchAll(/baseUrl: '([^']+)'/g)].map(([, address]) => address)]
  expect(ports.length).toBe(5)
  expect(folder.startsWith(temporary)).toBe(true)
  service.process.kill('SIGINT')
  expect(await service.ended).toMatchObject({ code: 0, stderr: '' })
  expect(documents(service).at(-1)).toMatchObject({ event: 'end', forged: 0, kept: null })
  expect(documents(service).at(-1)!['received']).toBeGreaterThan(0)
  for (const address of ports) await expect(fetch(address)).rejects.toThrow('fetch failed')
  expect(readdirSync(temporary)).toEqual([`tidemark-demo-${process.pid}-alive`])
  expect(project.has('mine.db')).toBe(false)
})

test('demo: a taken port is a specific error, and no files are left', async () => {
  const project = new Project()
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void taken.close())
  const { code, stderr } = await project.run('demo', '--port', String((taken.address() as AddressInfo).port), {
    env: { TMPDIR: project.folder },
  })
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('PORT_TAKEN') })
  expect(readdirSync(project.folder)).toEqual([])
})

test('demo --keep keeps the worker and its store; --seconds ends it; a non-empty folder is refused', async () => {
  const project = new Project()
  const { code, stdout } = await project.run('demo', '--port', '0', '--seconds', '1', '--keep', 'kept')
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      /1 {2}Open the console\n {3}http:.*2 {2}Follow every change\n.*3 {2}Query the rows\n.*4 {2}Show the history of a row\n.*are in .*kept/s,
    ),
  })
  expect(await project.json('query', 'select count(*) as n from customers', '--file', 'kept/worker.ts')).toMatchObject({
    rows: [{ n: expect.any(Number) }],
  })
  expect(await project.run('demo', '--keep', 'kept')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is not empty'),
  })
  expect(existsSync(join(project.folder, 'kept/worker.ts'))).toBe(true)
})

test('demo --destination duckdb: the copy arrives in a file beside the store, follows the edits and can be queried', async () => {
  const project = new Project()
  const service = new Running(
    project,
    ['demo', '--json', '--port', '0', '--keep', 'kept', '--destination', 'duckdb'],
    {},
  )
  await service.says('"event":"ready"')
  const file = join(project.folder, 'kept/copy.duckdb')
  const copied = documents(service).find(({ event }) => event === 'copied')!
  expect(copied).toMatchObject({ destination: 'duckdb', file, changes: expect.any(Number) })
  const { rows, try: commands } = documents(service).find(({ event }) => event === 'ready')!
  const total = Object.values(rows as Record<string, number>).reduce((sum, count) => sum + count)
  expect(copied['changes']).toBeGreaterThanOrEqual(total)
  const [, sql = ''] = /^duckdb -readonly kept\/copy\.duckdb "(.*)"$/.exec(commands.duckdb as string)!
  // The file is closed between two batches.
  await expect.poll(() => queryFile(file, sql).catch(() => []), { timeout: 30_000 }).toHaveLength(5)
  const headOf = async (): Promise<number> =>
    Number((await queryFile(file, 'select max(_sequence) as head from contacts'))[0]!['head'])
  await expect.poll(() => headOf().catch(() => 0), { timeout: 30_000 }).toBeGreaterThan(total)
  service.process.kill('SIGINT')
  expect(await service.ended).toMatchObject({ code: 0, stderr: '' })
  expect(documents(service).at(-1)!['copied']).toBeGreaterThan(copied['changes'] as number)
  expect(readFileSync(join(project.folder, 'kept/worker.ts'), 'utf8')).toContain('duckdb({ file: ')
  const names = await queryFile(file, 'select table_name from information_schema.tables order by 1')
  expect(names.map(({ table_name: name }) => name)).toEqual(
    ['_tidemark_destination', ...Object.keys(rows as object)].toSorted(),
  )
})

// oxlint-disable-next-line typescript/no-explicit-any -- whatever the command said; the assertions say what it is
function documents({ stdout }: Running): Record<string, any>[] {
  return stdout
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}
