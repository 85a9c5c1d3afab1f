import { Command } from 'commander'
import { SyncError, type DestinationSignal, type Store } from '../../contract/index.ts'
import { toDestinationDocument } from '../../destinations/loop/destination-document.ts'
import { readDestinationOverviews } from '../../destinations/loop/destination-overview.ts'
import {
  checkDestinationName,
  dropDestinationRows,
  findDeclaredDestination,
  listResyncDatabases,
} from '../../destinations/loop/manage-destinations.ts'
import { systemClock } from '../../platform/clock.ts'
import type { DeclaredDestination } from '../../worker/destination-options.ts'
import type { Cli, VerbAction } from '../cli.ts'
import { actorName } from '../kit/actor.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { formatDestinations } from '../kit/format-destinations.ts'
import { RefusedError } from '../kit/report-error.ts'
import { exitCodeOfDestinations, runDestinations, toDestinationResultDocument } from '../kit/run-destinations.ts'
import {
  loadWorkerTarget,
  openTargetStore,
  printTarget,
  targetDocument,
  withStoreFlags,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface ConfirmFlags extends TargetFlags {
  readonly yes?: boolean
}

interface RemoveFlags extends ConfirmFlags {
  readonly drop?: boolean
}

type DestinationVerb = 'list' | 'run' | 'pause' | 'resume' | 'resync' | 'remove'

export function destinationsVerbs(): Record<DestinationVerb, Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  const name = ['<name>', 'the destination, from `tidemark destinations list`'] as const
  return {
    list: verb('list')
      .summary('list the destinations and their lag')
      .description('Lists the destinations of the worker with their status, their lag and the last error.'),
    run: verb('run')
      .summary('run destinations once')
      .description('Brings the named destinations, or all, up to date once.')
      .argument('[name...]', 'the destinations to run (default: all)'),
    pause: verb('pause')
      .summary('pause a destination')
      .description('Pauses a destination. It continues where it stopped when it is resumed.')
      .argument(...name),
    resume: verb('resume')
      .summary('resume a paused destination')
      .description('Resumes a destination, and clears the wait after failed runs.')
      .argument(...name),
    resync: verb('resync')
      .summary('load databases again beside the old rows')
      .description(
        'Requests that databases are loaded again from the store. The old rows stay until the load is complete and then are replaced at once.',
      )
      .argument(...name)
      .argument('[database...]', 'the databases to load (default: all)')
      .option('--yes', 'request the load instead of only showing it'),
    remove: verb('remove')
      .summary('forget a destination')
      .description('Forgets the status of a destination. With --drop, its rows and tokens are deleted too.')
      .argument(...name)
      .option('--drop', 'delete the rows in the destination')
      .option('--yes', 'remove the destination instead of only showing it'),
  }
}

export const destinationsList: VerbAction<[TargetFlags]> = (cli, flags) =>
  withDestinations(cli, flags, async ({ target, store, declared }) => {
    const now = systemClock.now()
    const overviews = await readDestinationOverviews(store, declared, now)
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        destinations: overviews.map(toDestinationDocument),
      })
    if (overviews.length === 0)
      return cli.terminal.print('No destinations. Add one with `tidemark destinations add <kind> <name>`.')
    cli.terminal.print(...formatDestinations(cli, overviews, now))
  })

export const destinationsRun: VerbAction<[string[], TargetFlags]> = (cli, names, flags) =>
  withDestinations(cli, flags, async ({ target, store, declared }) => {
    for (const name of names) findDeclaredDestination(declared, name)
    const { ports } = await createRuntime(cli, target)
    const chosen = names.length === 0 ? undefined : names
    const results = await runDestinations(cli, target, store, ports, cli.listenForStop(), chosen)
    const exitCode = exitCodeOfDestinations(results)
    if (cli.terminal.json)
      cli.terminal.printDocument({
        ok: exitCode === 0,
        ...targetDocument(target),
        destinations: results.map(toDestinationResultDocument),
      })
    return exitCode
  })

export const destinationsPause: VerbAction<[string, TargetFlags]> = (cli, name, flags) =>
  signal(
    cli,
    name,
    flags,
    { kind: 'pause' },
    `Paused ${name}. Resume it with \`tidemark destinations resume ${name}\`.`,
  )

export const destinationsResume: VerbAction<[string, TargetFlags]> = (cli, name, flags) =>
  signal(cli, name, flags, { kind: 'resume' }, `Resumed ${name}.`)

export const destinationsResync: VerbAction<[string, string[], ConfirmFlags]> = (cli, name, databases, flags) =>
  withDestinations(cli, flags, async ({ target, store, declared }) => {
    const plan = findDeclaredDestination(declared, name)
    const chosen = listResyncDatabases(plan, databases)
    if (flags.yes !== true)
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `This loads ${chosen.join(', ')} again, and replaces the rows in ${plan.destination.location}.`,
        { destination: name, databases: chosen },
      )
    await store.signalDestination(name, { kind: 'resync', databases: chosen }, currentActor())
    if (cli.terminal.json)
      return cli.terminal.printDocument({ ...targetDocument(target), destination: name, resync: chosen })
    cli.terminal.print(
      `Requested. A running \`tidemark start\` picks it up; otherwise run \`tidemark destinations run ${name}\`.`,
    )
  })

export const destinationsRemove: VerbAction<[string, RemoveFlags]> = (cli, name, flags) =>
  withDestinations(cli, flags, async ({ target, store, declared }) => {
    await checkDestinationName(store, declared, name)
    const plan = declared.find((one) => one.name === name)
    if (flags.drop === true && plan === undefined)
      throw new SyncError('DESTINATION_UNKNOWN', `The worker does not declare ${name}, so its rows cannot be deleted.`)
    const drops = flags.drop === true ? (plan?.databases ?? []) : []
    if (flags.yes !== true)
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `This removes ${name}${drops.length === 0 ? '; its rows stay' : ` and deletes ${drops.join(', ')} in ${plan?.destination.location ?? ''}`}.`,
        { destination: name, drops },
      )
    if (plan !== undefined && drops.length > 0) await dropDestinationRows(store, plan, cli.listenForStop())
    const removed = await store.removeDestination(name, currentActor())
    if (cli.terminal.json)
      return cli.terminal.printDocument({ ...targetDocument(target), destination: name, removed, drops })
    cli.terminal.print(`Removed ${name}. If the worker still declares it, the next run adds it again.`)
  })

interface DestinationsContext {
  readonly target: WorkerTarget
  readonly store: Store
  readonly declared: readonly DeclaredDestination[]
}

async function withDestinations<T>(
  cli: Cli,
  flags: TargetFlags,
  body: (context: DestinationsContext) => Promise<T>,
): Promise<T> {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const store = await openTargetStore(target)
  try {
    const declared = target.worker.destinations?.() ?? []
    return await body({ target, store, declared })
  } finally {
    await store.close()
  }
}

async function signal(
  cli: Cli,
  name: string,
  flags: TargetFlags,
  given: DestinationSignal,
  message: string,
): Promise<void> {
  await withDestinations(cli, flags, async ({ target, store, declared }) => {
    await checkDestinationName(store, declared, name)
    await store.signalDestination(name, given, currentActor())
    if (cli.terminal.json)
      return cli.terminal.printDocument({ ...targetDocument(target), destination: name, signal: given.kind })
    cli.terminal.print(message)
  })
}

function currentActor(): { actor: string; at: number } {
  return { actor: actorName(), at: systemClock.now() }
}
