import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SyncError } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { findFreePorts } from './free-ports.ts'

/** ingress: client calls. admin: registration. node: traffic between cluster nodes. */
export interface RestatePorts {
  readonly ingress: number
  readonly admin: number
  readonly node: number
}

export interface RestateServerOptions {
  /** Data directory. A server started on the same folder continues with its data. */
  readonly folder: string
  /** Absent ports are chosen from the free ones. */
  readonly ports?: Partial<RestatePorts>
  /** Further settings as Restate environment variables. */
  readonly settings?: Readonly<Record<string, string>>
  readonly startTimeoutMs?: number
}

/** A single small node on loopback, for development and tests. */
const SETTINGS = {
  RESTATE_NODE_NAME: 'tidemark',
  RESTATE_LISTEN_MODE: 'tcp',
  RESTATE_BIND_IP: '127.0.0.1',
  RESTATE_ADVERTISED_HOST: '127.0.0.1',
  RESTATE_DEFAULT_NUM_PARTITIONS: '4',
  RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '128 MB',
  RESTATE_DISABLE_TELEMETRY: 'true',
  RESTATE_LOG_DISABLE_ANSI_CODES: 'true',
}

const LOG_FILE = 'restate.log'
/** A larger log is rotated at the next start; one rotated file is kept. */
export const LOG_BYTES_MAX = 8 * 1_048_576
/** Enough for a busy machine; an idle one needs a second. */
const START_TIMEOUT_MS = 60_000
/** After this the process is killed, which it survives like a crash. */
const STOP_TIMEOUT_MS = 10_000

/** A restate-server process on loopback, from the npm package. */
export class RestateServer {
  readonly folder: string
  readonly ports: RestatePorts
  readonly #child: ChildProcess
  readonly #logOffset: number

  /** Resolves when the server is healthy. */
  static async start({
    folder,
    ports: requested = {},
    settings = {},
    startTimeoutMs = START_TIMEOUT_MS,
  }: RestateServerOptions): Promise<RestateServer> {
    const binary = findServerBinary()
    const [ingress = 0, admin = 0, node = 0] = await findFreePorts([requested.ingress, requested.admin, requested.node])
    const ports = { ingress, admin, node }
    mkdirSync(folder, { recursive: true })
    rotateLog(join(folder, LOG_FILE))
    // Append mode: another server may be running in the folder and writing to the same log.
    const log = openSync(join(folder, LOG_FILE), 'a')
    const { size } = fstatSync(log)
    const { PATH = '', HOME = '' } = process.env
    const child = spawn(binary, ['--no-logo', '--base-dir', resolve(folder)], {
      stdio: ['ignore', log, log],
      env: {
        PATH,
        HOME,
        ...SETTINGS,
        RESTATE_INGRESS__BIND_PORT: String(ingress),
        RESTATE_ADMIN__BIND_PORT: String(admin),
        RESTATE_BIND_PORT: String(node),
        ...settings,
      },
    })
    closeSync(log)
    const server = new RestateServer(child, folder, ports, size)
    try {
      await server.#waitUntilHealthy(startTimeoutMs)
      return server
    } catch (error) {
      await server.kill()
      throw error
    }
  }

  private constructor(child: ChildProcess, folder: string, ports: RestatePorts, logOffset: number) {
    this.#child = child
    this.folder = folder
    this.ports = ports
    this.#logOffset = logOffset
  }

  get pid(): number {
    return required(this.#child.pid, 'the process id of restate-server')
  }

  /** The value for `--restate`. */
  get ingress(): string {
    return `http://127.0.0.1:${this.ports.ingress}`
  }

  /** The address for registration and for Restate's own UI. */
  get admin(): string {
    return `http://127.0.0.1:${this.ports.admin}`
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async waitForExit(): Promise<void> {
    if (this.isRunning) await once(this.#child, 'exit')
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    const stopTimeout = new AbortController()
    await Promise.race([
      this.waitForExit(),
      sleep(STOP_TIMEOUT_MS, undefined, { signal: stopTimeout.signal, ref: false }).catch(() => {}),
    ])
    stopTimeout.abort()
    await this.kill()
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.waitForExit()
  }

  /** Freezes the process until `resume`. */
  suspend(): void {
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }

  /** The last log lines since the start. */
  logTail(lines = 20): string {
    return readFileSync(join(this.folder, LOG_FILE))
      .toString('utf8', this.#logOffset)
      .trimEnd()
      .split('\n')
      .slice(-lines)
      .join('\n')
  }

  async #waitUntilHealthy(startTimeoutMs: number): Promise<void> {
    const deadline = performance.now() + startTimeoutMs
    while (!((await respondsOk(`${this.admin}/health`)) && (await respondsOk(`${this.ingress}/restate/health`)))) {
      if (!this.isRunning)
        throw new SyncError(
          'RESTATE_UNAVAILABLE',
          `restate-server exited before it was ready; another one may be running in ${this.folder}. Last log lines:\n${this.logTail()}`,
        )
      if (performance.now() > deadline)
        throw new SyncError(
          'RESTATE_UNAVAILABLE',
          `restate-server was not ready within ${startTimeoutMs / 1_000} s. Last log lines:\n${this.logTail()}`,
        )
      await sleep(100)
    }
  }
}

/**
 * Resolves the native binary. The package's command is a wrapper, and killing the wrapper would leave the server
 * running. `from` is the file from which packages are resolved.
 */
export function findServerBinary(
  from: string = import.meta.url,
  platform = `${process.platform}-${process.arch}`,
): string {
  const locate = (path: string, file: string): string | null => {
    try {
      return createRequire(file).resolve(path)
    } catch {
      return null
    }
  }
  const release = locate('@restatedev/restate-server/package.json', from)
  if (release === null)
    throw new SyncError(
      'PACKAGE_UNFIT',
      'Starting a local Restate server requires the package @restatedev/restate-server: npm install --save-dev @restatedev/restate-server',
    )
  const binary = locate(`@restatedev/restate-server-${platform}/bin/restate-server`, release)
  if (binary === null)
    throw new SyncError(
      'PACKAGE_UNFIT',
      `@restatedev/restate-server has no binary for ${platform}, or was installed without optional dependencies. Run a server elsewhere (docker.restate.dev/restatedev/restate) and pass its address with --restate.`,
    )
  return binary
}

function rotateLog(log: string): void {
  if (existsSync(log) && statSync(log).size > LOG_BYTES_MAX) renameSync(log, `${log}.1`)
}

async function respondsOk(url: string): Promise<boolean> {
  try {
    const { ok, body } = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    await body?.cancel()
    return ok
  } catch {
    return false
  }
}
