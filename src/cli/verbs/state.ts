import { Command } from 'commander'
import { EMPTY_CHECKPOINT, type Store, type SyncRef } from '../../contract/index.ts'
import { toRegistryRecord } from '../../strategies/kit/envelope.ts'
import { parseCount, parseCountOrZero } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { diffStates } from '../kit/diff-states.ts'
import { findSync } from '../kit/find-sync.ts'
import { RawJson, isoTime } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { describeState, registryDocument, stateDocument } from '../kit/state-document.ts'
import { AUDIT_ENTRIES_MAX, isStateTransition, findStateOfVersion } from './state-transitions.ts'
import { formatTable } from '../kit/table.ts'
import { printTarget, targetDocument, withStoreFlags, loadWorkerTarget, type TargetFlags, type WorkerTarget } from '../kit/target.ts'

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
    .option('--if-version <n>', 'only if the checkpoint still has this version', parseCountOrZero)
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
      .option('--limit <n>', 'how many entries', parseCount, 20)
      .option('--reveal', 'show the states as they are'),
    rewind: destructive(verb('rewind'))
      .summary('go back to the state of an earlier version')
      .description('Stores the state that an earlier version had, as a new version. Rows and log stay.')
      .requiredOption('--to <version>', 'the version whose state to take, from `tidemark state log`; 0 is before the first', parseCountOrZero)
      .option('--reason <text>', 'why, for the audit'),
    diff: verb('diff')
      .summary('what differs between two versions')
      .description('Shows which members of the state differ between two versions. Their values only with --reveal.')
      .argument('<from>', 'a version, from `tidemark state log`', parseCountOrZero)
      .argument('<to>', 'another', parseCountOrZero)
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

export const stateGet: VerbAction<[string, ReadFlags]> = async (cli, name, flags) => {
  await withExistingSync(cli, flags, name, async (target, ref, store) => {
    const reveal = flags.reveal === true
    const checkpoint = (await store?.readCheckpoint(ref)) ?? EMPTY_CHECKPOINT
    const { version, committed, inflight, tidemark } = checkpoint
    if (cli.terminal.json) {
      cli.terminal.printDocument({
        ...targetDocument(target), sync: ref.sync, version, committed: stateDocument(committed, reveal),
        inflight: inflight === null ? null : {
          cycle: inflight.cycle, mode: inflight.mode, page: inflight.page, startedAt: isoTime(inflight.startedAt), state: stateDocument(inflight.state, reveal),
        },
        tidemark: redactTidemark(tidemark, reveal), record: registryDocument(toRegistryRecord(target.tenant, ref, checkpoint), reveal),
      })
      return
    }
    cli.terminal.print(`version    ${version}`, `committed  ${describeState(committed, reveal)}`)
    if (inflight !== null) cli.terminal.print(`inflight   ${describeState(inflight.state, reveal)}, after page ${formatNumber(inflight.page)} of cycle ${inflight.cycle}`)
    if (tidemark !== null) cli.terminal.print(`tidemark   ${redactTidemark(tidemark, reveal)}`)
    if (!reveal && (committed !== null || inflight !== null)) cli.terminal.remark(cli.terminal.colors.dim('Add --reveal to see the values.'))
  })
}

export const stateLog: VerbAction<[string, LogFlags]> = async (cli, name, flags) => {
  await withExistingSync(cli, flags, name, async (target, ref, store) => {
    const reveal = flags.reveal === true
    const entries = store === null ? [] : await store.audit(ref, { limit: flags.limit })
    if (cli.terminal.json) {
      cli.terminal.printDocument({
        ...targetDocument(target), sync: ref.sync,
        entries: entries.map(({ state, at, ...entry }) => ({ ...entry, at: isoTime(at), state: stateDocument(state, reveal) })),
      })
      return
    }
    if (entries.length === 0) cli.terminal.print('The checkpoint has never moved.')
    else {
      cli.terminal.print(...formatTable(['VERSION', 'WHEN', 'ACTION', 'BY', 'CYCLE', 'STATE', 'REASON'], entries.map((entry) => [
        String(entry.version), isoTime(entry.at), entry.action, toPrintable(entry.actor), entry.cycle === null ? '-' : String(entry.cycle),
        isStateTransition(entry) ? describeState(entry.state, reveal) : '-', toPrintable(entry.reason),
      ])))
    }
  })
}

export const stateDiff: VerbAction<[string, number, number, ReadFlags]> = async (cli, name, from, to, flags) => {
  await withExistingSync(cli, flags, name, async (target, ref, store) => {
    const entries = store === null ? [] : await store.audit(ref, { limit: AUDIT_ENTRIES_MAX })
    const differences = diffStates(findStateOfVersion(ref, entries, from), findStateOfVersion(ref, entries, to), flags.reveal === true)
    if (cli.terminal.json) cli.terminal.printDocument({ ...targetDocument(target), sync: ref.sync, from, to, differences: new RawJson(differences as never) })
    else if (differences.length === 0) cli.terminal.print(`Versions ${from} and ${to} have the same state.`)
    else cli.terminal.print(...formatTable(['WHERE', 'WHAT', ...(flags.reveal === true ? ['FROM', 'TO'] : [])], differences.map(({ path, change, ...values }) => [
      toPrintable(path), change, ...(flags.reveal === true ? [toPrintable(values.from ?? '-'), toPrintable(values.to ?? '-')] : []),
    ])))
  })
}

async function withExistingSync(cli: Cli, flags: TargetFlags, name: string, body: (target: WorkerTarget, ref: SyncRef, store: Store | null) => Promise<void>): Promise<void> {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const store = await openExistingStore(target)
  try {
    await body(target, await findSync(target, store, name), store)
  } finally {
    await store?.close()
  }
}
