import { Command } from 'commander'
import { isSyncError, type Store } from '../../contract/index.ts'
import type { ToolContext } from '../../mcp/tool-context.ts'
import { systemClock } from '../../platform/clock.ts'
import { ownVersion } from '../../platform/own-version.ts'
import { listDeclaredSyncs } from '../../runner/declared-sync.ts'
import { locateStore } from '../../stores/drivers.ts'
import { runSelect } from '../../stores/run-select.ts'
import { required } from '../../values/required.ts'
import { actorName } from '../kit/actor.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import {
  printTarget,
  openTargetStore,
  resolveStoreTarget,
  withStoreFlags,
  loadWorkerTarget,
  type Target,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

/** A query that takes longer fails: requests are served one at a time. */
const QUERY_DEADLINE_MS = 10_000

interface McpFlags extends TargetFlags {
  readonly allowWrites?: boolean
}

export function mcpVerb(): Command {
  return withStoreFlags(new Command('mcp'))
    .summary('serve the Model Context Protocol to an agent')
    .description(
      'Serves the Model Context Protocol on standard input and output: an agent can read the databases, the changes and the syncs of one tenant. Read-only unless --allow-writes is given.',
    )
    .option('--allow-writes', 'allow the agent to trigger, pause and resume syncs')
}

export const mcp: VerbAction<[McpFlags]> = async (cli, flags) => {
  const signal = cli.listenForStop()
  const target = await loadTarget(cli, flags)
  printTarget(cli, target)
  const { serveMcp } = await import('../../mcp/serve-mcp.ts')
  const stores = new LazyStore(target)
  try {
    await serveMcp({
      context: createToolContext(target, stores),
      version: ownVersion(),
      allowWrites: flags.allowWrites === true,
      stdin: process.stdin,
      stdout: cli.stdout,
      signal,
    })
  } finally {
    await stores.close()
  }
}

/** Loads the worker if there is one; the store alone is enough to read. */
async function loadTarget(cli: Cli, flags: McpFlags): Promise<Target | WorkerTarget> {
  try {
    return await loadWorkerTarget(cli, flags)
  } catch (error) {
    if (flags.file === undefined && isSyncError(error) && error.code === 'WORKER_NOT_FOUND')
      return resolveStoreTarget(cli, flags)
    throw error
  }
}

function createToolContext(target: Target | WorkerTarget, stores: LazyStore): ToolContext {
  const location = locateStore(target.settings.storeUrl, target.settings.folder)
  return {
    tenant: target.tenant,
    clock: systemClock,
    actor: `mcp:${actorName().replace(/^cli:/, '')}`,
    syncs: 'worker' in target ? listDeclaredSyncs(target.worker) : [],
    syntax: location.syntax,
    openExistingStore: () => stores.openExisting(),
    openOrCreateStore: () => stores.openOrCreate(),
    select: (sql, limit) => runSelect(location, sql, { limit, tenant: target.tenant, deadlineMs: QUERY_DEADLINE_MS }),
  }
}

/** Opens one store on first use and shares it. */
class LazyStore {
  readonly #target: Target
  #opening: Promise<Store | null> = Promise.resolve(null)

  constructor(target: Target) {
    this.#target = target
  }

  openExisting(): Promise<Store | null> {
    return this.#open(() => openExistingStore(this.#target))
  }

  async openOrCreate(): Promise<Store> {
    return required(await this.#open(() => openTargetStore(this.#target)), 'the store')
  }

  async close(): Promise<void> {
    await (await this.#opening.catch(() => null))?.close()
  }

  /** Serializes the calls, so that two concurrent calls do not open two stores. */
  #open(open: () => Promise<Store | null>): Promise<Store | null> {
    this.#opening = this.#opening.catch(() => null).then((store) => store ?? open())
    return this.#opening
  }
}
