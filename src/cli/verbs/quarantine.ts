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
import { printTarget, createTerminalLog, openTargetStore, targetDocument, withStoreFlags, loadWorkerTarget, type TargetFlags } from '../kit/target.ts'
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
      .summary('records that could not be landed, newest first')
      .description('Lists the records that could not be landed, with the reason, newest first, and counts them by reason. A record that lands later leaves it by itself.')
      .option(...database)
      .option('--limit <n>', 'how many to list', parseCount, 50),
    show: verb('show')
      .summary('one of them, with all that is known of it')
      .description('Shows a record that could not be landed: why, when and from which page, and which members it has. Their values only with --reveal.')
      .argument('<id>', 'its id, from `tidemark quarantine list`', parseCount)
      .option('--reveal', 'show the values'),
    replay: verb('replay')
      .summary('land those that pass now')
      .description('Puts the records through the checks and the door again: those that pass now land, those that do not stay with the new reason. Nothing newer is overwritten, and what was deleted since stays so.')
      .argument('[sync...]', 'the syncs that met them (default: all)')
      .option(...database)
      .option('--yes', 'do it; without, it is shown what would become of them'),
  }
}

export const quarantineList: VerbAction<[ListFlags]> = async (cli, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const entries = ((await store?.quarantineEntries({ limit: ENTRIES_MAX })) ?? []).filter((entry) => flags.database === undefined || entry.database === flags.database)
    const codes = [...new Set(entries.map(({ code }) => code))].toSorted()
    const reasons = codes.map((code) => ({ code, count: entries.filter((entry) => entry.code === code).length }))
    const listed = entries.slice(0, flags.limit)
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), count: entries.length, reasons, entries: listed.map(entryDocument) })
    if (entries.length === 0) return cli.terminal.print('Nothing is in quarantine.')
    cli.terminal.print(...formatTable(['ID', 'WHEN', 'SYNC', 'DATABASE', 'KEY', 'REASON'], listed.map((entry) => [
      String(entry.id), isoTime(entry.at), entry.sync, entry.database, toPrintable(entry.key ?? '(no key)'), toPrintable(`${entry.code}: ${entry.message}`),
    ])))
    cli.terminal.remark(cli.terminal.colors.dim(`${formatNumber(entries.length)} in all: ${reasons.map(({ code, count }) => `${code} ×${formatNumber(count)}`).join(', ')}. \`tidemark quarantine replay\` tries them again.`))
  })
}

export const quarantineShow: VerbAction<[number, ShowFlags]> = async (cli, id, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const entry = (await store?.quarantineEntries({ limit: ENTRIES_MAX }))?.find((known) => known.id === id)
    if (entry === undefined) throw new SyncError('ARGUMENT_INVALID', `Nothing in quarantine has the id ${id}. \`tidemark quarantine list\` shows what there is.`)
    const content = readContent(entry, flags.reveal === true)
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), ...entryDocument(entry), cycle: entry.cycle, page: entry.page, content: new RawJson(content) })
    const { sync, database, key, code, message, at, cycle, page } = entry
    cli.terminal.print(
      `sync      ${sync}, page ${page} of cycle ${cycle}, ${isoTime(at)}`, `database  ${database}`, `key       ${toPrintable(key ?? '(none)')}`, `reason    ${toPrintable(`${code}: ${message}`)}`,
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
    for (const plan of store === null ? [] : plans) {
      replayed.push(...(await replayQuarantinedRecords(plan, { store: store!, ports, holder: `cli:${holderName()}`, isHolderGone: isHolderGone, actor: actorName(), database: flags.database, dryRun: dry })))
    }
    const told = { ...targetDocument(target), ...countReplayOutcomes(replayed), entries: replayed.map(({ entry, outcome: fate, message }) => ({ ...entryDocument(entry), fate, message: message || entry.message })) }
    if (!cli.terminal.json) printReplay(cli, replayed)
    if (dry && replayed.length > 0) throw new RefusedError('CONFIRMATION_NEEDED', 'Nothing was changed: this is what would become of them.', told)
    if (cli.terminal.json) cli.terminal.printDocument(told)
  } finally {
    await store?.close()
  }
}

/** More than this are neither counted nor looked through. */
const ENTRIES_MAX = 10_000

function printReplay({ terminal }: Cli, replayed: readonly ReplayResult[]): void {
  if (replayed.length === 0) return terminal.print('Nothing is in quarantine.')
  terminal.print(...formatTable(['ID', 'SYNC', 'KEY', 'WHAT', 'WHY'], replayed.map(({ entry, outcome: fate, message }) => [String(entry.id), entry.sync, toPrintable(entry.key ?? '(no key)'), fate, toPrintable(message) || '-'])))
}

/** Without the record. */
function entryDocument({ id, sync, database, key, code, message, at }: QuarantineEntry): object {
  return { id, sync, database, key, code, message, at: isoTime(at) }
}

/** The record as it came; without its values what kind each of them has. */
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
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, member]) => [name, describeTypes(member)]))
}
