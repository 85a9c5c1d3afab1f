import { Command } from 'commander'
import { isSyncError, type Store } from '../contract/index.ts'
import type { Desk } from '../mcp/desk.ts'
import { systemClock } from '../platform/clock.ts'
import { syncsOf } from '../runner/declared-sync.ts'
import { locateStore } from '../stores/drivers.ts'
import { actorName } from './actor.ts'
import type { Act, Cli } from './cli.ts'
import { openForReading } from './open-for-reading.ts'
import { ownVersion } from './own-package.ts'
import { selectFrom } from './select-from.ts'
import { announce, openTargetStore, storeTarget, withStoreFlags, workerTarget, type Target, type TargetFlags, type WorkerTarget } from './target.ts'

/** An agent that asks too much is told so; meanwhile it is answered nothing else. */
const QUERY_MS = 10_000

interface McpFlags extends TargetFlags {
  readonly allowWrites?: boolean
}

export function mcpVerb(): Command {
  return withStoreFlags(new Command('mcp'))
    .summary('let an agent look at the databases and the syncs (Model Context Protocol)')
    .description('Serves the Model Context Protocol on standard input and output: an agent can look at the databases, the changes and the syncs of one tenant. It can change nothing unless allowed to.')
    .option('--allow-writes', 'let it trigger, pause and resume syncs too')
}

export const mcp: Act<[McpFlags]> = async (cli, flags) => {
  const signal = cli.listenForStop()
  const target = await targetOf(cli, flags)
  announce(cli, target)
  const { serveMcp } = await import('../mcp/serve-mcp.ts')
  const stores = new Stores(target)
  try {
    await serveMcp({ desk: deskOf(target, stores), version: ownVersion(), allowWrites: flags.allowWrites === true, stdin: process.stdin, stdout: cli.stdout, signal })
  } finally {
    await stores.close()
  }
}

/** A worker is welcome, but the store alone is enough to look at. */
async function targetOf(cli: Cli, flags: McpFlags): Promise<Target | WorkerTarget> {
  try {
    return await workerTarget(cli, flags)
  } catch (error) {
    if (flags.file === undefined && isSyncError(error) && error.code === 'WORKER_NOT_FOUND') return storeTarget(cli, flags)
    throw error
  }
}

function deskOf(target: Target | WorkerTarget, stores: Stores): Desk {
  const location = locateStore(target.settings.storeUrl, target.settings.folder)
  return {
    tenant: target.tenant, clock: systemClock, actor: `mcp:${actorName().replace(/^cli:/, '')}`,
    syncs: 'worker' in target ? syncsOf(target.worker) : [],
    syntax: location.syntax,
    reading: () => stores.reading(),
    writing: () => stores.writing(),
    select: (sql, limit) => selectFrom(location, sql, { limit, tenant: target.tenant, deadlineMs: QUERY_MS }),
  }
}

/** Opened when it is first needed; one for all. */
class Stores {
  readonly #target: Target
  #opening: Promise<Store | null> = Promise.resolve(null)

  constructor(target: Target) {
    this.#target = target
  }

  reading(): Promise<Store | null> {
    return this.#open(() => openForReading(this.#target))
  }

  async writing(): Promise<Store> {
    return (await this.#open(() => openTargetStore(this.#target)))!
  }

  async close(): Promise<void> {
    await (await this.#opening.catch(() => null))?.close()
  }

  /** One after the other, so that two calls at once do not open two. */
  #open(how: () => Promise<Store | null>): Promise<Store | null> {
    this.#opening = this.#opening.catch(() => null).then((store) => store ?? how())
    return this.#opening
  }
}
