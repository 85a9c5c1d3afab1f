import { join, resolve } from 'node:path'
import { Command, Option } from 'commander'
import { isSyncError, SyncError } from '../../contract/index.ts'
import { findFreePorts } from '../../runner/restate/free-ports.ts'
import { registerService } from '../../runner/restate/register-service.ts'
import { RestateServer } from '../../runner/restate/restate-server.ts'
import { required } from '../../values/required.ts'
import { parseCountOrZero, parseUrl } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { DEFAULT_PORT } from '../../embed/serve-api.ts'
import { waitForAbort } from '../kit/wait-for-abort.ts'
import { serveWorker } from './start.ts'
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

/** The default ports of Restate. */
const INGRESS_PORT = 8080
const ADMIN_PORT = 9070
/** Restate resumes an invocation at the address where it started, so the port must stay the same across restarts. */
const WORKER_PORT = 9080
const WORKER_URL = `http://127.0.0.1:${WORKER_PORT}`

export function restateVerbs(): Record<'up' | 'register', Command> {
  return {
    up: withStoreFlags(new Command('up'))
      .summary('start a Restate server and the worker, for development')
      .description(
        'Starts a Restate server on this machine from the npm package @restatedev/restate-server, serves the worker to it like `tidemark start --runner restate`, and registers it. Without a worker file, only the server starts. Ctrl-C stops everything; the next start continues with the same folder.',
      )
      .option('--folder <folder>', 'data and logs of Restate (default: .tidemark/restate)')
      .addOption(
        new Option(
          '--ingress-port <n>',
          `ingress port; 0 for any (default: ${INGRESS_PORT}, or any if taken)`,
        ).argParser(parseCountOrZero),
      )
      .addOption(
        new Option('--admin-port <n>', `admin port; 0 for any (default: ${ADMIN_PORT}, or any if taken)`).argParser(
          parseCountOrZero,
        ),
      )
      .addOption(
        new Option('--worker-port <n>', 'port of the worker; keep it the same across restarts')
          .argParser(parseCountOrZero)
          .default(WORKER_PORT),
      )
      .addOption(
        new Option('--port <n>', `port of the API; 0 for any (default: ${DEFAULT_PORT}, or any if taken)`).argParser(
          parseCountOrZero,
        ),
      ),
    register: new Command('register')
      .summary('register a worker with Restate')
      .description(
        'Registers the address of a worker with Restate; `tidemark start --runner restate` prints the address. Restate queries the worker for its services. Re-registering the same address refreshes it.',
      )
      .argument('[url]', 'address at which Restate reaches the worker', parseUrl, WORKER_URL)
      .addOption(
        new Option('--admin <url>', 'admin address of Restate')
          .argParser(parseUrl)
          .default(`http://127.0.0.1:${ADMIN_PORT}`),
      )
      .option('--json', 'print JSON'),
  }
}

export const restateUp: VerbAction<[UpFlags]> = async (cli, flags) => {
  const stopping = cli.listenForStop('Stopping. Unfinished work continues on the next start.')
  const target = await loadWorkerIfPresent(cli, flags)
  const ports = {
    ingress: flags.ingressPort ?? (await portOrAny(INGRESS_PORT)),
    admin: flags.adminPort ?? (await portOrAny(ADMIN_PORT)),
  }
  const folder =
    flags.folder === undefined
      ? join(target?.settings.folder ?? cli.folder, '.tidemark', 'restate')
      : resolve(cli.folder, flags.folder)
  const server = await RestateServer.start({ folder, ports })
  const untilEnded = async (): Promise<void> => {
    await Promise.race([waitForAbort(stopping), server.waitForExit()])
    if (!stopping.aborted)
      throw new SyncError(
        'RESTATE_UNAVAILABLE',
        `restate-server exited unexpectedly. The end of its log:\n${server.logTail()}`,
      )
  }
  try {
    showServer(cli, server)
    if (target === null) return await untilEnded()
    const restate = { ingress: server.ingress, host: '127.0.0.1', port: flags.workerPort }
    await serveWorker(
      cli,
      {
        target,
        restate,
        concurrency: 4,
        grace: 10,
        api: true,
        host: '127.0.0.1',
        ...(flags.port !== undefined && { port: flags.port }),
      },
      async (service) => {
        await register(cli, server.admin, required(service.restateUrl(), 'the address of the worker'))
        await untilEnded()
      },
    )
  } finally {
    await server.stop()
  }
}

export const restateRegister: VerbAction<[string, RegisterFlags]> = (cli, url, { admin }) => register(cli, admin, url)

async function register({ terminal }: Cli, admin: string, url: string): Promise<void> {
  const { deployment, services } = await registerService(admin, url)
  if (terminal.json) terminal.printDocument({ event: 'registered', url, admin, deployment, services })
  else terminal.print(`Registered ${services.join(', ')} at ${url} with Restate at ${admin} (${deployment}).`)
}

async function loadWorkerIfPresent(cli: Cli, flags: UpFlags): Promise<WorkerTarget | null> {
  try {
    return await loadWorkerTarget(cli, flags)
  } catch (error) {
    if (flags.file === undefined && isSyncError(error) && error.code === 'WORKER_NOT_FOUND') return null
    throw error
  }
}

/** Falls back to any free port when the default is taken, so that several servers can run on one machine. */
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
  terminal.print(`Restate listens at ${ingress}; its console is at ${admin}. Its data is in ${folder}.`)
}
