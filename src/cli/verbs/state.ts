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
import {
  printTarget,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface ReadFlags extends TargetFlags {
  readonly reveal?: boolean
}

interface GetFlags extends ReadFlags {
  readonly partitions: number
  readonly after?: string
}

interface LogFlags extends ReadFlags {
  readonly limit: number
}

export type StateVerb = 'get' | 'set' | 'reset' | 'log' | 'rewind' | 'diff' | 'copy' | 'verify'

export function stateVerbs(): Record<StateVerb, Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name)).argument('<sync>', 'the sync')
  const destructive = (command: Command): Command =>
    command
      .option('--yes', 'apply the change instead of showing the plan')
      .option('--if-version <n>', 'only if the checkpoint still has this version', parseCountOrZero)
  return {
    get: verb('get')
      .summary('show the stored state of a sync')
      .description(
        'Shows the version, digest and size of the stored state, and of the states of its partitions. The values are hidden unless --reveal is given.',
      )
      .option('--reveal', 'show the values')
      .option('--partitions <n>', 'partitions to show; 0 for none', parseCountOrZero, 10)
      .option('--after <key>', 'show the partitions after this key'),
    set: destructive(verb('set'))
      .summary('set the state of a sync')
      .description(
        'Replaces the state of a sync and records the reason in the audit log. An unfinished cycle is abandoned; rows and change log are kept.',
      )
      .argument('<json>', 'the state; - reads it from standard input')
      .requiredOption('--reason <text>', 'the reason, for the audit log'),
    reset: destructive(verb('reset'))
      .summary('delete the state of a sync')
      .description(
        'Deletes the state of a sync. For a tracked pair it also requests a backfill, so that the next run reads everything again. The plan shows the effect on the next cycle. Rows and change log are kept.',
      )
      .requiredOption('--reason <text>', 'the reason, for the audit log'),
    log: verb('log')
      .summary('show the audit log of a checkpoint, newest first')
      .description('Shows every change of a checkpoint, newest first: the actor, the time, the cycle and the reason.')
      .option('--limit <n>', 'entries to show', parseCount, 20)
      .option('--reveal', 'show the raw states'),
    rewind: destructive(verb('rewind'))
      .summary('restore the state of an earlier version')
      .description(
        'Stores the state of an earlier version as a new version. Rows and change log are kept. `tidemark state log` lists the versions; 0 is before the first.',
      )
      .requiredOption('--to <version>', 'the version to restore', parseCountOrZero)
      .option('--reason <text>', 'the reason, for the audit log'),
    diff: verb('diff')
      .summary('compare the states of two versions')
      .description(
        'Shows the fields that differ between the states of two versions. Values are hidden unless --reveal is given.',
      )
      .argument('<from>', 'a version, from `tidemark state log`', parseCountOrZero)
      .argument('<to>', 'the version to compare it with', parseCountOrZero)
      .option('--reveal', 'show the values'),
    copy: destructive(verb('copy'))
      .summary('copy the state of one sync to another')
      .description(
        'Copies the committed state of a sync to another sync of the same worker, as a new version. Rows and change log are kept.',
      )
      .argument('<to>', 'the sync that receives the state')
      .option('--reason <text>', 'the reason, for the audit log'),
    verify: withStoreFlags(new Command('verify'))
      .summary('verify the hash chain of the audit log')
      .description(
        'Verifies the hash chain of the whole audit log of the tenant, and detects changed, moved, added or removed entries.',
      )
      .option('--expect <head>', 'a head printed earlier that the chain must contain'),
  }
}

export const stateGet: VerbAction<[string, GetFlags]> = async (cli, name, flags) => {
  await withExistingSync(cli, flags, name, async (target, ref, store) => {
    const reveal = flags.reveal === true
    const checkpoint = (await store?.readCheckpoint(ref)) ?? EMPTY_CHECKPOINT
    const { version, committed, inflight, tidemark } = checkpoint
    const count = (await store?.countPartitions(ref)) ?? 0
    const partitions =
      store === null || count === 0 || flags.partitions === 0
        ? []
        : await store.partitions(ref, {
            limit: flags.partitions,
            ...(flags.after !== undefined && { after: flags.after }),
          })
    if (cli.terminal.json) {
      cli.terminal.printDocument({
        ...targetDocument(target),
        sync: ref.sync,
        version,
        committed: stateDocument(committed, reveal),
        inflight:
          inflight === null
            ? null
            : {
                cycle: inflight.cycle,
                mode: inflight.mode,
                page: inflight.page,
                startedAt: isoTime(inflight.startedAt),
                state: stateDocument(inflight.state, reveal),
              },
        tidemark: redactTidemark(tidemark, reveal),
        partitions: {
          count,
          shown: partitions.map(({ key, cycle, state }) => ({ key, cycle, state: stateDocument(state, reveal) })),
        },
        record: registryDocument(toRegistryRecord(target.tenant, ref, checkpoint), reveal),
      })
      return
    }
    cli.terminal.print(`version    ${version}`, `committed  ${describeState(committed, reveal)}`)
    if (inflight !== null)
      cli.terminal.print(
        `inflight   ${describeState(inflight.state, reveal)}, after page ${formatNumber(inflight.page)} of cycle ${inflight.cycle}`,
      )
    if (tidemark !== null) cli.terminal.print(`tidemark   ${redactTidemark(tidemark, reveal)}`)
    if (count > 0)
      cli.terminal.print(
        `partitions ${formatNumber(count)}`,
        ...formatTable(
          ['KEY', 'CYCLE', 'STATE'],
          partitions.map(({ key, cycle, state }) => [
            toPrintable(key, 60),
            cycle === null ? '-' : String(cycle),
            describeState(state, reveal),
          ]),
        ),
      )
    const last = partitions.at(-1)
    if (last !== undefined && partitions.length === flags.partitions && partitions.length < count)
      cli.terminal.remark(
        cli.terminal.colors.dim(`Add --after ${JSON.stringify(last.key)} to see the next partitions.`),
      )
    if (!reveal && (committed !== null || inflight !== null))
      cli.terminal.remark(cli.terminal.colors.dim('Add --reveal to see the values.'))
  })
}

export const stateLog: VerbAction<[string, LogFlags]> = async (cli, name, flags) => {
  await withExistingSync(cli, flags, name, async (target, ref, store) => {
    const reveal = flags.reveal === true
    const entries = store === null ? [] : await store.audit(ref, { limit: flags.limit })
    if (cli.terminal.json) {
      cli.terminal.printDocument({
        ...targetDocument(target),
        sync: ref.sync,
        entries: entries.map(({ state, at, ...entry }) => ({
          ...entry,
          at: isoTime(at),
          state: stateDocument(state, reveal),
        })),
      })
      return
    }
    if (entries.length === 0) cli.terminal.print('The audit log of this checkpoint is empty.')
    else {
      cli.terminal.print(
        ...formatTable(
          ['VERSION', 'WHEN', 'ACTION', 'BY', 'CYCLE', 'STATE', 'REASON'],
          entries.map((entry) => [
            String(entry.version),
            isoTime(entry.at),
            entry.action,
            toPrintable(entry.actor),
            entry.cycle === null ? '-' : String(entry.cycle),
            isStateTransition(entry) ? describeState(entry.state, reveal) : '-',
            toPrintable(entry.reason),
          ]),
        ),
      )
    }
  })
}

export const stateDiff: VerbAction<[string, number, number, ReadFlags]> = async (cli, name, from, to, flags) => {
  await withExistingSync(cli, flags, name, async (target, ref, store) => {
    const entries = store === null ? [] : await store.audit(ref, { limit: AUDIT_ENTRIES_MAX })
    const differences = diffStates(
      findStateOfVersion(ref, entries, from),
      findStateOfVersion(ref, entries, to),
      flags.reveal === true,
    )
    if (cli.terminal.json)
      cli.terminal.printDocument({
        ...targetDocument(target),
        sync: ref.sync,
        from,
        to,
        differences: new RawJson(differences as never),
      })
    else if (differences.length === 0) cli.terminal.print(`Versions ${from} and ${to} have the same state.`)
    else
      cli.terminal.print(
        ...formatTable(
          ['FIELD', 'CHANGE', ...(flags.reveal === true ? ['FROM', 'TO'] : [])],
          differences.map(({ path, change, ...values }) => [
            toPrintable(path),
            change,
            ...(flags.reveal === true ? [toPrintable(values.from ?? '-'), toPrintable(values.to ?? '-')] : []),
          ]),
        ),
      )
  })
}

async function withExistingSync(
  cli: Cli,
  flags: TargetFlags,
  name: string,
  body: (target: WorkerTarget, ref: SyncRef, store: Store | null) => Promise<void>,
): Promise<void> {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const store = await openExistingStore(target)
  try {
    await body(target, await findSync(target, store, name), store)
  } finally {
    await store?.close()
  }
}
