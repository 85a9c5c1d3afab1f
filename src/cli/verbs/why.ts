import { Command } from 'commander'
import { didYouMean } from '../../values/did-you-mean.ts'
import { describeValue } from '../../config/names.ts'
import { SyncError, type LogEntry, type Store } from '../../contract/index.ts'
import { listChangedMembers } from '../../values/changed-members.ts'
import { getVerification } from '../../values/get-verification.ts'
import { parseJson } from '../../values/json.ts'
import type { VerbAction } from '../cli.ts'
import { RawJson, isoTime } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { formatTable } from '../kit/table.ts'
import { printTarget, resolveStoreTarget, targetDocument, withStoreFlags, type TargetFlags } from '../kit/target.ts'

interface WhyFlags extends TargetFlags {
  readonly reveal?: boolean
}

export function whyVerb(): Command {
  return withStoreFlags(new Command('why'))
    .summary('show the change history of a row')
    .description(
      'Shows every change of a row with the sync, the cycle and the page that wrote it, or the verification that repaired it.',
    )
    .argument('<database>', 'the database')
    .argument('<key>', 'the key of the row')
    .option('--reveal', 'also show the records and cursors')
}

export const why: VerbAction<[string, string, WhyFlags]> = async (cli, database, key, flags) => {
  const target = resolveStoreTarget(cli, flags)
  printTarget(cli, target)
  const store = await openExistingStore(target)
  const databases = store === null ? [] : (await store.databases()).map(({ name }) => name)
  if (store === null || !databases.includes(database)) {
    await store?.close()
    throw new SyncError(
      'ARGUMENT_INVALID',
      `${target.storeLabel} has no database ${describeValue(database)} for tenant ${target.tenant}.${didYouMean(database, databases)}`,
    )
  }
  const { entries, isCompacted } = await readHistory(store, database, key).finally(() => store.close())
  const reveal = flags.reveal === true

  if (cli.terminal.json) {
    cli.terminal.printDocument({
      ...targetDocument(target),
      database,
      key,
      history: entries.map((entry, at) => {
        const { sequence, action, worker, sync, cycle, page, upstreamAt, committedAt, cursor, text } = entry
        return {
          sequence,
          action,
          worker,
          sync,
          cycle,
          page,
          verification: getVerification(entry),
          upstreamAt,
          committedAt: isoTime(committedAt),
          changed: new RawJson(listChangedMembers(entries[at - 1], entry)),
          ...(reveal ? { cursor, record: text === null ? null : new RawJson(parseJson(text)) } : {}),
        }
      }),
    })
    return
  }
  const [first] = entries
  if (first === undefined) {
    const note = isCompacted ? ' Entries older than the log retention are deleted.' : ''
    cli.terminal.print(`${database} has no history for the key ${describeValue(key)}.${note}`)
  } else {
    cli.terminal.print(
      ...formatTable(
        ['SEQUENCE', 'WHEN', 'ACTION', 'SYNC', 'CYCLE', 'PAGE', 'UPSTREAM', reveal ? 'RECORD' : 'CHANGED'],
        entries.map((entry, at) => [
          String(entry.sequence),
          isoTime(entry.committedAt),
          entry.action,
          `${entry.worker}/${entry.sync}`,
          ...toOrigin(entry),
          entry.upstreamAt ?? '-',
          reveal ? toPrintable(entry.text ?? '') : toPrintable(listChangedMembers(entries[at - 1], entry).join(', ')),
        ]),
      ),
    )
    if (first.action !== 'created')
      cli.terminal.remark(cli.terminal.colors.dim('Earlier changes are older than the log retention and were deleted.'))
  }
}

/** The cycle and the page of an entry; a repair and a rewriting have none. */
function toOrigin(entry: LogEntry): [cycle: string, page: string] {
  const verification = getVerification(entry)
  if (entry.cycle === 0 && entry.page === -1) return ['rewritten by column rules', '-']
  return verification === null
    ? [String(entry.cycle), String(entry.page)]
    : [`repaired by verification ${verification}`, '-']
}

async function readHistory(
  store: Store,
  database: string,
  key: string,
): Promise<{ entries: LogEntry[]; isCompacted: boolean }> {
  const [entries, { floor }] = [
    await store.history(database, key),
    await store.feed({ after: 0, limit: 0, scanMax: 1 }),
  ]
  return { entries, isCompacted: floor > 0 }
}
