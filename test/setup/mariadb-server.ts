import { spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql from 'mysql2/promise'
import { findFreePorts } from '../../src/runner/restate/free-ports.ts'

export interface MariadbServer {
  /** URL of an empty database, as an account with all privileges. */
  readonly url: string
  stop(): Promise<void>
}

const SERVER = existsSync('/usr/sbin/mariadbd') ? '/usr/sbin/mariadbd' : null

export const hasMariadb = SERVER !== null
export const MARIADB_HINT = 'Install MariaDB (`apt-get install mariadb-server`).'

/** A private server in its own directory, on a free local port. It ends with this process, however that ends. */
export async function startMariadb(settings: Readonly<Record<string, string>> = {}): Promise<MariadbServer> {
  if (SERVER === null) throw new Error(`No MariaDB was found. ${MARIADB_HINT}`)
  const home = mkdtempSync(join(findDataFolder(settings), 'tidemark-mariadb-'))
  const data = join(home, 'data')
  const account = accountOf('mysql')
  // A server that starts removes the temporary tables in its folder, also those of another server.
  const temporary = join(home, 'tmp')
  mkdirSync(temporary)
  if (account !== null) for (const folder of [home, temporary]) chownSync(folder, account.uid, account.gid)
  const installed = spawnSync(
    'mariadb-install-db',
    [
      `--datadir=${data}`,
      `--tmpdir=${temporary}`,
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
      ...(account === null ? [] : ['--user=mysql']),
    ],
    { encoding: 'utf8' },
  )
  if (installed.status !== 0) throw new Error(`mariadb-install-db failed: ${installed.stderr.slice(-2_000)}`)
  const [port] = await findFreePorts([undefined])
  const log = openSync(join(home, 'server.log'), 'a')
  const options = {
    port: String(port),
    'bind-address': '127.0.0.1',
    socket: join(home, 'socket'),
    tmpdir: temporary,
    'pid-file': join(home, 'pid'),
    'innodb-flush-log-at-trx-commit': '0',
    'skip-name-resolve': '1',
    ...settings,
  }
  const server = spawn(
    SERVER,
    ['--no-defaults', `--datadir=${data}`, ...Object.entries(options).map(([name, value]) => `--${name}=${value}`)],
    { ...account, stdio: ['ignore', log, log] },
  )
  const exited = new Promise<void>((resolve) => server.once('exit', () => resolve()).once('error', () => resolve()))
  // Holds a pipe to this process; when it breaks, the server is stopped and its files removed.
  const watchdog = spawn('sh', ['-c', WATCH, String(server.pid), home], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watchdog.stdin.on('error', () => {})
  const root = { host: '127.0.0.1', port: port!, user: 'root' }
  for (const deadline = Date.now() + 60_000; ;) {
    if (server.exitCode !== null || Date.now() > deadline)
      throw new Error(`MariaDB did not start: ${readFileSync(join(home, 'server.log'), 'utf8').slice(-2_000)}`)
    try {
      const connection = await mysql.createConnection(root)
      await connection.query('create database shop character set utf8mb4')
      await connection.end()
      break
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  return {
    url: `mariadb://root@127.0.0.1:${port}/shop`,
    stop: async () => {
      server.kill('SIGKILL')
      await exited
      watchdog.kill('SIGKILL')
      rmSync(home, { recursive: true, force: true })
    },
  }
}

const MEMORY_FOLDER = '/dev/shm'
const MEMORY_BYTES_MIN = 4 * 2 ** 30

/**
 * In memory if there is enough: MariaDB syncs every change of a schema to disk, whatever its settings. A server that is
 * to keep commits through a power cut is on disk.
 */
function findDataFolder(settings: Readonly<Record<string, string>>): string {
  if (settings['innodb-flush-log-at-trx-commit'] === '1' || !existsSync(MEMORY_FOLDER)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY_FOLDER : tmpdir()
}

const WATCH = `read -r _
kill -KILL "$0" 2>/dev/null
sleep 0.3
rm -rf "$1"`

function accountOf(name: string): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const fields = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([entry]) => entry === name)
  return fields === undefined ? null : { uid: Number(fields[2]), gid: Number(fields[3]) }
}
