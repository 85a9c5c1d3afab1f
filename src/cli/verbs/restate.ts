import { join, resolve } from 'node:path'
import { Command, Option } from 'commander'
import { isSyncError, SyncError } from '../../contract/index.ts'
import { findFreePorts } from '../../runner/restate/free-ports.ts'
import { registerService } from '../../runner/restate/register-service.ts'
import { RestateServer } from '../../runner/restate/restate-server.ts'
import { parseCountOrZero, parseUrl } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { DEFAULT_PORT } from '../kit/serve-api.ts'
import { waitForAbort, serveWorker } from './start.ts'
import { withStoreFlags, loadWorkerTarget, type TargetFlags, type WorkerTarget } from '../kit/target.ts'

interface UpFlags extends TargetFlags {
  readonly folder?: string
  readonly ingressPort?: number
  readonly adminPort?: number
  readonly workerPort: number
  readonly port?: number
}

interface RegisterFlags {
  readonly admin: string
}

/** Restate's own, which its documents and its console use. */
const INGRESS_PORT = 8080
const ADMIN_PORT = 9070
/** Where a worker is served to it. What it has begun there it ends there: the next start must be at the same address. */
const WORKER_PORT = 9080
const WORKER_URL = `http://127.0.0.1:${WORKER_PORT}`

export function restateVerbs(): Record<'up' | 'register', Command> {
  return {
    up: withStoreFlags(new Command('up'))
      .summary('a Restate server on this machine and the worker on it, for development')
      .description('Starts a Restate server on this machine, from the npm package @restatedev/restate-server, serves the worker to it as `tidemark start --runner restate` does, and registers it. Without a worker file the server alone. Ctrl-C ends all of it and leaves nothing but its folder, in which the next one goes on.')
      .option('--folder <folder>', 'what Restate keeps, and its log (default: .tidemark/restate beside the worker)')
      .addOption(new Option('--ingress-port <n>', `where it takes calls; 0 takes any (default: ${INGRESS_PORT}, or any when it is taken)`).argParser(parseCountOrZero))
      .addOption(new Option('--admin-port <n>', `where workers are registered, and its own console; 0 takes any (default: ${ADMIN_PORT}, or any when it is taken)`).argParser(parseCountOrZero))
      .addOption(new Option('--worker-port <n>', 'where it calls the worker; what was begun at one port goes on at the same').argParser(parseCountOrZero).default(WORKER_PORT))
      .addOption(new Option('--port <n>', `where to serve the feed; 0 takes any (default: ${DEFAULT_PORT}, or any when it is taken)`).argParser(parseCountOrZero)),
    register: new Command('register')
      .summary('tell Restate where a worker is served')
      .description('Tells Restate where a worker is served, as `tidemark start --runner restate` says when it starts. Restate asks there at once what is offered. Said again of the same address, it looks anew.')
      .argument('[url]', 'where Restate reaches the worker', parseUrl, WORKER_URL)
      .addOption(new Option('--admin <url>', 'where Restate registers workers').argParser(parseUrl).default(`http://127.0.0.1:${ADMIN_PORT}`))
      .option('--json', 'answer in JSON, for programs'),
  }
}

export const restateUp: VerbAction<[UpFlags]> = async (cli, flags) => {
  const stopping = cli.listenForStop('Stopping: what was begun goes on when it is started again.')
  const target = await loadWorkerIfPresent(cli, flags)
  const ports = { ingress: flags.ingressPort ?? (await portOrAny(INGRESS_PORT)), admin: flags.adminPort ?? (await portOrAny(ADMIN_PORT)) }
  const folder = flags.folder === undefined ? join(target?.settings.folder ?? cli.folder, '.tidemark', 'restate') : resolve(cli.folder, flags.folder)
  const server = await RestateServer.start({ folder, ports })
  const untilEnded = async (): Promise<void> => {
    await Promise.race([waitForAbort(stopping), server.waitForExit()])
    if (!stopping.aborted) throw new SyncError('RESTATE_UNAVAILABLE', `restate-server ended by itself. Its last words:\n${server.logTail()}`)
  }
  try {
    showServer(cli, server)
    if (target === null) return await untilEnded()
    const restate = { ingress: server.ingress, host: '127.0.0.1', port: flags.workerPort }
    await serveWorker(cli, { target, restate, concurrency: 4, grace: 10, api: true, host: '127.0.0.1', ...(flags.port !== undefined && { port: flags.port }) }, async (service) => {
      await register(cli, server.admin, service.restateUrl()!)
      await untilEnded()
    })
  } finally {
    await server.stop()
  }
}

export const restateRegister: VerbAction<[string, RegisterFlags]> = (cli, url, { admin }) => register(cli, admin, url)

async function register({ terminal }: Cli, admin: string, url: string): Promise<void> {
  const { deployment, services } = await registerService(admin, url)
  if (terminal.json) terminal.printDocument({ event: 'registered', url, admin, deployment, services })
  else terminal.print(`Restate at ${admin} calls ${services.join(', ')} at ${url} (${deployment}).`)
}

async function loadWorkerIfPresent(cli: Cli, flags: UpFlags): Promise<WorkerTarget | null> {
  try {
    return await loadWorkerTarget(cli, flags)
  } catch (error) {
    if (flags.file === undefined && isSyncError(error) && error.code === 'WORKER_NOT_FOUND') return null
    throw error
  }
}

/** Several of these on one machine are welcome; only who asks for a port must have that one. */
async function portOrAny(port: number): Promise<number> {
  try {
    await findFreePorts([port])
    return port
  } catch (error) {
    if (isSyncError(error) && error.code === 'PORT_TAKEN') return 0
    throw error
  }
}

function showServer({ terminal }: Cli, { ingress, admin, folder, pid }: RestateServer): void {
  if (terminal.json) return terminal.printDocument({ event: 'restate', ingress, admin, folder, pid })
  terminal.print(`Restate takes calls at ${ingress}; its console is at ${admin}. It keeps everything in ${folder}.`)
}
