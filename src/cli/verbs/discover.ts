import { existsSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { Command } from 'commander'
import { defaultWorkerName } from '../../worker/load-worker.ts'
import type { ManifestStream } from '../../config/manifest/manifest-file.ts'
import { SyncError } from '../../contract/index.ts'
import type { DiscoveredStream } from '../../sources/kit/define-source.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { askSource } from '../kit/ask-source.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { formatTable } from '../kit/table.ts'
import { resolveStoreTarget, withStoreFlags, type TargetFlags } from '../kit/target.ts'

type DiscoverFlags = TargetFlags

export function discoverVerb(): Command {
  return withStoreFlags(new Command('discover'))
    .summary('list the streams that the source of a manifest offers')
    .description(
      'Lists the streams that the source of a manifest offers, with their keys and cursors. The manifest needs no streams yet; for declared streams, the differences from the stored columns are shown.',
    )
}

export const discover: VerbAction<[DiscoverFlags]> = async (cli, flags) => {
  const path = resolve(cli.folder, flags.file ?? 'tidemark.yaml')
  if (!existsSync(path))
    throw new SyncError('WORKER_NOT_FOUND', `The file ${path} does not exist. Pass the manifest with --file.`)
  const folder = dirname(path)
  // Imported here so that other verbs start without the YAML parser.
  const [{ CONNECTORS }, { readManifest }] = await Promise.all([
    import('../../config/manifest/connectors.ts'),
    import('../../config/manifest/manifest.ts'),
  ])
  const {
    name = defaultWorkerName(path),
    connector,
    config,
    streams: declared,
  } = readManifest(path, relative(cli.folder, path), cli.environment)
  const source = CONNECTORS[connector]
  const { discover: discoverStreams } = source
  if (discoverStreams === undefined)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The connector ${connector} cannot list streams. Declare them in the manifest.`,
    )
  const found = await askSource(cli, resolveStoreTarget(cli, flags), { worker: name, verb: 'discover' }, (context) =>
    discoverStreams(config, folder, context, declared),
  )
  const streams = found.map(({ id, key, cursor, candidates }) => ({
    id,
    key,
    cursor: cursor ?? null,
    candidates,
    needs: key.length === 0 ? 'key' : null,
    mode: source.followsChanges || cursor !== undefined ? 'incremental' : 'full_refresh',
  }))
  const drift = await compareWithLanded(cli, flags, declared, found, source.listsStreams)
  const { terminal } = cli
  if (terminal.json) {
    terminal.printDocument({ connector, streams, ...(declared.length > 0 && { drift }) })
    return
  }
  const rows = streams.map(({ id, key, cursor, candidates, mode }) =>
    [
      id,
      key.join(', ') || 'none: name one',
      cursor ?? (candidates.length > 0 ? `none (${candidates.join(', ')}?)` : 'none'),
      mode,
    ].map((cell) => toPrintable(cell)),
  )
  terminal.print(...formatTable(['STREAM', 'KEY', 'CURSOR', 'MODE'], rows))
  for (const { stream, isGone, new: added, gone } of drift) {
    const summary = isGone
      ? 'the source no longer lists it'
      : [...added.map((name) => `new ${name}`), ...gone.map((name) => `gone ${name}`)].join('; ')
    terminal.print(`${terminal.colors.yellow('•')} ${stream}: ${toPrintable(summary)}`)
  }
}

interface StreamDrift {
  readonly stream: string
  readonly isGone: boolean
  readonly new: readonly string[]
  readonly gone: readonly string[]
}

/** Compares the columns that the source lists with the stored columns, for each stream of the manifest. */
async function compareWithLanded(
  cli: Cli,
  flags: TargetFlags,
  declared: readonly ManifestStream[],
  found: readonly DiscoveredStream[],
  isListed: boolean,
): Promise<StreamDrift[]> {
  if (declared.length === 0) return []
  const store = await openExistingStore(resolveStoreTarget(cli, flags))
  try {
    const landed = new Map(
      ((await store?.databases()) ?? []).map(({ name, columns }) => [name, columns.map((column) => column.name)]),
    )
    return declared.flatMap(({ id, select, options = {} }): StreamDrift[] => {
      // Each connector has its own option for the stream: `options.table`, `options.object`, `options.topic`.
      const names = [...Object.values(options), id, id.slice(id.lastIndexOf('.') + 1)]
      const stream = found.find((one) => [one.id, ...(one.aliases ?? [])].some((name) => names.includes(name)))
      if (stream === undefined) return isListed ? [{ stream: id, isGone: true, new: [], gone: [] }] : []
      const { columns = [] } = stream
      const before = landed.get(id) ?? []
      if (before.length === 0 || columns.length === 0) return []
      // Keys and timestamps are stored even when not selected, so a missing column is missing in the source.
      const added = columns.filter((name) => (select === undefined || select.includes(name)) && !before.includes(name))
      const gone = before.filter((name) => !columns.includes(name))
      return added.length + gone.length === 0 ? [] : [{ stream: id, isGone: false, new: added, gone }]
    })
  } finally {
    await store?.close()
  }
}
