import { Command } from 'commander'
import { SyncError, type JsonObject, type JsonValue, type QuarantineEntry } from '../../contract/index.ts'
import { countReplayOutcomes, replayQuarantinedRecords, type ReplayResult } from '../../engine/replay-quarantine.ts'
import { systemClock } from '../../platform/clock.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { systemRandom } from '../../platform/random.ts'
import { parseJson } from '../../values/json.ts'
import { actorName } from '../kit/actor.ts'
import { parseCount } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { RawJson, isoTime } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { formatTable } from '../kit/table.ts'
import {
  printTarget,
  createTerminalLog,
  openTargetStore,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type TargetFlags,
} from '../kit/target.ts'
import { withExistingStore } from '../kit/with-store.ts'

interface ListFlags extends TargetFlags {
  readonly database?: string
  readonly limit: number
}

interface ShowFlags extends TargetFlags {
  readonly reveal?: boolean
}

interface ReplayFlags extends TargetFlags {
  readonly database?: string
  readonly yes?: boolean
}

export function quarantineVerbs(): Record<'list' | 'show' | 'replay', Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name))
  const database = ['--database <name>', 'only records of this database'] as const
  return {
    list: verb('list')
      .summary('list quarantined records, newest first')
      .description(
        'Lists the records that failed validation, newest first, with the reason and a count per reason. A record that lands later is removed from the list automatically.',
      )
      .option(...database)
      .option('--limit <n>', 'records to list', parseCount, 50),
    show: verb('show')
      .summary('show one quarantined record')
      .description(
        'Shows a quarantined record: the reason, the time, the page it came from and its fields. Values are hidden unless --reveal is given.',
      )
      .argument('<id>', 'the id of the record, from `tidemark quarantine list`', parseCount)
      .option('--reveal', 'show the values'),
    replay: verb('replay')
      .summary('re-validate quarantined records and land those that pass')
      .description(
        'Re-validates quarantined records and lands those that now pass; the others stay with the new reason. Newer versions are not overwritten, and deleted rows stay deleted.',
      )
      .argument('[sync...]', 'the syncs that read the records (default: all)')
      .option(...database)
      .option('--yes', 'replay the records instead of showing the plan'),
  }
}

export const quarantineList: VerbAction<[ListFlags]> = async (cli, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const entries = ((await store?.quarantineEntries({ limit: ENTRIES_MAX })) ?? []).filter(
      (entry) => flags.database === undefined || entry.database === flags.database,
    )
    const codes = [...new Set(entries.map(({ code }) => code))].toSorted()
    const reasons = codes.map((code) => ({ code, count: entries.filter((entry) => entry.code === code).length }))
    const listed = entries.slice(0, flags.limit)
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        count: entries.length,
        reasons,
        entries: listed.map(entryDocument),
      })
    if (entries.length === 0) return cli.terminal.print('No records are quarantined.')
    cli.terminal.print(
      ...formatTable(
        ['ID', 'WHEN', 'SYNC', 'DATABASE', 'KEY', 'REASON'],
        listed.map((entry) => [
          String(entry.id),
          isoTime(entry.at),
          entry.sync,
          entry.database,
          toPrintable(entry.key ?? '(no key)'),
          toPrintable(`${entry.code}: ${entry.message}`),
        ]),
      ),
    )
    cli.terminal.remark(
      cli.terminal.colors.dim(
        `${formatNumber(entries.length)} in total: ${reasons.map(({ code, count }) => `${code} ×${formatNumber(count)}`).join(', ')}. Replay them with \`tidemark quarantine replay\`.`,
      ),
    )
  })
}

export const quarantineShow: VerbAction<[number, ShowFlags]> = async (cli, id, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const entry = (await store?.quarantineEntries({ limit: ENTRIES_MAX }))?.find((known) => known.id === id)
    if (entry === undefined)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `No quarantined record has the id ${id}. List them with \`tidemark quarantine list\`.`,
      )
    const content = readContent(entry, flags.reveal === true)
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        ...entryDocument(entry),
        cycle: entry.cycle,
        page: entry.page,
        content: new RawJson(content),
      })
    const { sync, database, key, code, message, at, cycle, page } = entry
    cli.terminal.print(
      `sync      ${sync}, page ${page} of cycle ${cycle}, ${isoTime(at)}`,
      `database  ${database}`,
      `key       ${toPrintable(key ?? '(none)')}`,
      `reason    ${toPrintable(`${code}: ${message}`)}`,
      `content   ${toPrintable(typeof content === 'string' ? content : JSON.stringify(content, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))}`,
    )
    if (flags.reveal !== true) cli.terminal.remark(cli.terminal.colors.dim('Add --reveal to see the values.'))
  })
}

export const quarantineReplay: VerbAction<[string[], ReplayFlags]> = async (cli, names, flags) => {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const dry = flags.yes !== true
  const store = dry ? await openExistingStore(target) : await openTargetStore(target)
  try {
    const ports = { clock: systemClock, random: systemRandom, log: createTerminalLog(cli, target.settings.logLevel) }
    const plans = names.length === 0 ? target.worker.plans() : names.map((name) => target.worker.plan(name))
    const replayed: ReplayResult[] = []
    if (store !== null)
      for (const plan of plans) {
        replayed.push(
          ...(await replayQuarantinedRecords(plan, {
            store,
            ports,
            holder: `cli:${holderName()}`,
            isHolderGone: isHolderGone,
            actor: actorName(),
            database: flags.database,
            dryRun: dry,
          })),
        )
      }
    const document = {
      ...targetDocument(target),
      ...countReplayOutcomes(replayed),
      entries: replayed.map(({ entry, outcome, message }) => ({
        ...entryDocument(entry),
        outcome,
        message: message || entry.message,
      })),
    }
    if (!cli.terminal.json) printReplay(cli, replayed)
    if (dry && replayed.length > 0)
      throw new RefusedError('CONFIRMATION_NEEDED', 'Nothing was changed. Add --yes to replay these records.', document)
    if (cli.terminal.json) cli.terminal.printDocument(document)
  } finally {
    await store?.close()
  }
}

/** The newest entries that are counted and searched. */
const ENTRIES_MAX = 10_000

function printReplay({ terminal }: Cli, replayed: readonly ReplayResult[]): void {
  if (replayed.length === 0) return terminal.print('No records are quarantined.')
  terminal.print(
    ...formatTable(
      ['ID', 'SYNC', 'KEY', 'OUTCOME', 'REASON'],
      replayed.map(({ entry, outcome, message }) => [
        String(entry.id),
        entry.sync,
        toPrintable(entry.key ?? '(no key)'),
        outcome,
        toPrintable(message) || '-',
      ]),
    ),
  )
}

/** Leaves out the record itself, which may contain personal data. */
function entryDocument({ id, sync, database, key, code, message, at }: QuarantineEntry): object {
  return { id, sync, database, key, code, message, at: isoTime(at) }
}

/** The record as received, or with the type in place of each value. */
function readContent({ text }: QuarantineEntry, reveal: boolean): JsonValue {
  let content: JsonValue
  try {
    content = parseJson(text)
  } catch {
    return reveal ? text : `${formatNumber(text.length)} characters`
  }
  return reveal ? content : describeTypes(content)
}

function describeTypes(value: JsonValue | undefined): JsonValue {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value !== 'object') return typeof value === 'bigint' ? 'number' : typeof value
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, field]) => [name, describeTypes(field)]))
}
