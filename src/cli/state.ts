import { Command } from 'commander'
import { NEVER_RUN, type Store, type SyncRef } from '../contract/index.ts'
import { registryRecord } from '../strategies/kit/envelope.ts'
import { countArgument, countOrZeroArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { grouped } from './counts.ts'
import { diffStates } from './diff-states.ts'
import { findSync } from './find-sync.ts'
import { Foreign, isoTime } from './json-document.ts'
import { openForReading } from './open-for-reading.ts'
import { printable } from './printable.ts'
import { showTidemark } from '../redaction/redact-state.ts'
import { describeState, registryDocument, stateDocument } from './state-document.ts'
import { AUDIT_MAX, movesState, stateOfVersion } from './state-moves.ts'
import { table } from './table.ts'
import { announce, targetDocument, withStoreFlags, workerTarget, type TargetFlags, type WorkerTarget } from './target.ts'

interface ReadFlags extends TargetFlags {
  readonly reveal?: boolean
}

interface LogFlags extends ReadFlags {
  readonly limit: number
}

export type StateVerb = 'get' | 'set' | 'reset' | 'log' | 'rewind' | 'diff' | 'copy' | 'verify'

export function stateVerbs(): Record<StateVerb, Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name)).argument('<sync>', 'the sync')
  const destructive = (command: Command): Command => command
    .option('--yes', 'do it; without, the plan is shown and nothing changes')
    .option('--if-version <n>', 'only if the checkpoint still has this version', countOrZeroArgument)
  return {
    get: verb('get')
      .summary('what is stored: version, digest and size')
      .description('Shows the stored state of a sync: its version, a digest and its size. The value itself only with --reveal.')
      .option('--reveal', 'show the value'),
    set: destructive(verb('set'))
      .summary('store another state')
      .description('Stores another state for a sync, audited with the reason. An unfinished cycle is given up; rows and log stay.')
      .argument('<json>', 'the state; - reads it from standard input')
      .requiredOption('--reason <text>', 'why, for the audit'),
    reset: destructive(verb('reset'))
      .summary('forget the state of a sync')
      .description('Forgets the state of a sync. Of a tracked pair the backfill is ordered with it, and the next run reads everything again. Without --yes the plan shows what the next cycle does. Rows and log stay.')
      .requiredOption('--reason <text>', 'why, for the audit'),
    log: verb('log')
      .summary('every move of the checkpoint, newest first')
      .description('Shows the audit of a checkpoint: who moved it, when, from which cycle and why, newest first.')
      .option('--limit <n>', 'how many entries', countArgument, 20)
      .option('--reveal', 'show the states as they are'),
    rewind: destructive(verb('rewind'))
      .summary('go back to the state of an earlier version')
      .description('Stores the state that an earlier version had, as a new version. Rows and log stay.')
      .requiredOption('--to <version>', 'the version whose state to take, from `tidemark state log`; 0 is before the first', countOrZeroArgument)
      .option('--reason <text>', 'why, for the audit'),
    diff: verb('diff')
      .summary('what differs between two versions')
      .description('Shows which members of the state differ between two versions. Their values only with --reveal.')
      .argument('<from>', 'a version, from `tidemark state log`', countOrZeroArgument)
      .argument('<to>', 'another', countOrZeroArgument)
      .option('--reveal', 'show the values'),
    copy: destructive(verb('copy'))
      .summary('give a sync the state of another')
      .description('Stores the committed state of one sync for another of the same worker, as a new version of that one. Rows and log stay.')
      .argument('<to>', 'the sync that gets it')
      .option('--reason <text>', 'why, for the audit'),
    verify: withStoreFlags(new Command('verify'))
      .summary('check that nobody changed the audit')
      .description('Follows the chain of hashes through the whole audit of the tenant. An entry that was changed, moved, added or removed is found.')
      .option('--expect <head>', 'a head printed earlier: it must still be in the chain'),
  }
}

export const stateGet: Act<[string, ReadFlags]> = async (cli, name, flags) => {
  await reading(cli, flags, name, async (target, ref, store) => {
    const reveal = flags.reveal === true
    const checkpoint = (await store?.read(ref)) ?? NEVER_RUN
    const { version, committed, inflight, tidemark } = checkpoint
    if (cli.terminal.json) {
      cli.terminal.document({
        ...targetDocument(target), sync: ref.sync, version, committed: stateDocument(committed, reveal),
        inflight: inflight === null ? null : {
          cycle: inflight.cycle, mode: inflight.mode, page: inflight.page, startedAt: isoTime(inflight.startedAt), state: stateDocument(inflight.state, reveal),
        },
        tidemark: showTidemark(tidemark, reveal), record: registryDocument(registryRecord(target.tenant, ref, checkpoint), reveal),
      })
      return
    }
    cli.terminal.print(`version    ${version}`, `committed  ${describeState(committed, reveal)}`)
    if (inflight !== null) cli.terminal.print(`inflight   ${describeState(inflight.state, reveal)}, after page ${grouped(inflight.page)} of cycle ${inflight.cycle}`)
    if (tidemark !== null) cli.terminal.print(`tidemark   ${showTidemark(tidemark, reveal)}`)
    if (!reveal && (committed !== null || inflight !== null)) cli.terminal.remark(cli.terminal.colors.dim('Add --reveal to see the values.'))
  })
}

export const stateLog: Act<[string, LogFlags]> = async (cli, name, flags) => {
  await reading(cli, flags, name, async (target, ref, store) => {
    const reveal = flags.reveal === true
    const entries = store === null ? [] : await store.audit(ref, { limit: flags.limit })
    if (cli.terminal.json) {
      cli.terminal.document({
        ...targetDocument(target), sync: ref.sync,
        entries: entries.map(({ state, at, ...entry }) => ({ ...entry, at: isoTime(at), state: stateDocument(state, reveal) })),
      })
      return
    }
    if (entries.length === 0) cli.terminal.print('The checkpoint has never moved.')
    else {
      cli.terminal.print(...table(['VERSION', 'WHEN', 'ACTION', 'BY', 'CYCLE', 'STATE', 'REASON'], entries.map((entry) => [
        String(entry.version), isoTime(entry.at), entry.action, printable(entry.actor), entry.cycle === null ? '-' : String(entry.cycle),
        movesState(entry) ? describeState(entry.state, reveal) : '-', printable(entry.reason),
      ])))
    }
  })
}

export const stateDiff: Act<[string, number, number, ReadFlags]> = async (cli, name, from, to, flags) => {
  await reading(cli, flags, name, async (target, ref, store) => {
    const entries = store === null ? [] : await store.audit(ref, { limit: AUDIT_MAX })
    const differences = diffStates(stateOfVersion(ref, entries, from), stateOfVersion(ref, entries, to), flags.reveal === true)
    if (cli.terminal.json) cli.terminal.document({ ...targetDocument(target), sync: ref.sync, from, to, differences: new Foreign(differences as never) })
    else if (differences.length === 0) cli.terminal.print(`Versions ${from} and ${to} have the same state.`)
    else cli.terminal.print(...table(['WHERE', 'WHAT', ...(flags.reveal === true ? ['FROM', 'TO'] : [])], differences.map(({ path, change, ...values }) => [
      printable(path), change, ...(flags.reveal === true ? [printable(values.from ?? '-'), printable(values.to ?? '-')] : []),
    ])))
  })
}

async function reading(cli: Cli, flags: TargetFlags, name: string, body: (target: WorkerTarget, ref: SyncRef, store: Store | null) => Promise<void>): Promise<void> {
  const target = await workerTarget(cli, flags)
  announce(cli, target)
  const store = await openForReading(target)
  try {
    await body(target, await findSync(target, store, name), store)
  } finally {
    await store?.close()
  }
}
