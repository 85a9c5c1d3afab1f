import { join, resolve } from 'node:path'
import { Command, Option } from 'commander'
import { isSyncError, SyncError } from '../contract/index.ts'
import { freePorts } from '../runner/restate/free-ports.ts'
import { registerService } from '../runner/restate/register.ts'
import { RestateServer } from '../runner/restate/server.ts'
import { countOrZeroArgument, urlArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { aborted } from './start.ts'

interface UpFlags {
  readonly folder?: string
  readonly ingressPort?: number
  readonly adminPort?: number
}

interface RegisterFlags {
  readonly admin: string
}

/** Restate's own, which its documents and its console use. */
const INGRESS_PORT = 8080
const ADMIN_PORT = 9070
/** Where a worker is served to it. */
const WORKER_URL = 'http://127.0.0.1:9080'

export function restateVerbs(): Record<'up' | 'register', Command> {
  return {
    up: new Command('up')
      .summary('start a Restate server on this machine, for development')
      .description('Starts a Restate server on this machine, from the npm package @restatedev/restate-server, and prints its addresses. Ctrl-C ends it and leaves nothing but its folder, in which the next one goes on.')
      .option('--folder <folder>', 'what it keeps, and its log (default: .tidemark/restate)')
      .addOption(new Option('--ingress-port <n>', `where it takes calls; 0 takes any (default: ${INGRESS_PORT}, or any when it is taken)`).argParser(countOrZeroArgument))
      .addOption(new Option('--admin-port <n>', `where workers are registered, and its own console; 0 takes any (default: ${ADMIN_PORT}, or any when it is taken)`).argParser(countOrZeroArgument))
      .option('--json', 'answer in JSON, for programs'),
    register: new Command('register')
      .summary('tell Restate where a worker is served')
      .description('Tells Restate where a worker is served, as `tidemark start --runner restate` says when it starts. Restate asks there at once what is offered. Said again of the same address, it looks anew.')
      .argument('[url]', 'where Restate reaches the worker', urlArgument, WORKER_URL)
      .addOption(new Option('--admin <url>', 'where Restate registers workers').argParser(urlArgument).default(`http://127.0.0.1:${ADMIN_PORT}`))
      .option('--json', 'answer in JSON, for programs'),
  }
}

export const restateUp: Act<[UpFlags]> = async (cli, flags) => {
  const stopping = cli.listenForStop('Stopping Restate: what it has in hand goes on when it is started again.')
  const ports = { ingress: flags.ingressPort ?? (await unlessTaken(INGRESS_PORT)), admin: flags.adminPort ?? (await unlessTaken(ADMIN_PORT)) }
  const server = await RestateServer.start({ folder: resolve(cli.folder, flags.folder ?? join('.tidemark', 'restate')), ports })
  try {
    show(cli, server)
    await Promise.race([aborted(stopping), server.ended()])
    if (!stopping.aborted) throw new SyncError('RESTATE_UNAVAILABLE', `restate-server ended by itself. Its last words:\n${server.lastWords()}`)
  } finally {
    await server.stop()
  }
}

export const restateRegister: Act<[string, RegisterFlags]> = async ({ terminal }, url, { admin }) => {
  const { deployment, services } = await registerService(admin, url)
  if (terminal.json) terminal.document({ url, admin, deployment, services })
  else terminal.print(`Restate at ${admin} calls ${services.join(', ')} at ${url} (${deployment}).`)
}

/** Several of these on one machine are welcome; only who asks for a port must have that one. */
async function unlessTaken(port: number): Promise<number> {
  try {
    await freePorts([port])
    return port
  } catch (error) {
    if (isSyncError(error) && error.code === 'PORT_TAKEN') return 0
    throw error
  }
}

function show({ terminal }: Cli, { ingress, admin, folder, pid }: RestateServer): void {
  if (terminal.json) return terminal.document({ event: 'restate', ingress, admin, folder, pid })
  terminal.print(
    `Restate takes calls at ${ingress}; its console is at ${admin}. It keeps everything in ${folder}.`,
    `Serve a worker with \`tidemark start --runner restate --restate ${ingress} --restate-port 9080\`, then \`tidemark restate register --admin ${admin}\`.`,
  )
}
